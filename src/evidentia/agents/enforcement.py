"""Enforcement of verdicts in a run: raise what a policy stops, ask for human approval, keep warnings for the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import msgspec

from evidentia.agents.errors import InvalidRecordError
from evidentia.contracts.decisions import DecisionStatus, Evaluation, PolicyDecision, Verdict
from evidentia.contracts.errors import PolicyViolationError
from evidentia.contracts.policies import PolicyAction, Posture
from evidentia.contracts.protocol import Metadata
from evidentia.contracts.runs import CheckBypassed, StepCall
from evidentia.governance.governed_runs import APPROVAL
from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.ports import GovernedRun

    OnPolicyBlock = Callable[[PolicyViolationError], "ApprovalDecision"]


_OFFERED: Final = (DecisionStatus.EVALUATED, DecisionStatus.BYPASSED)


class PolicyCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands: the strongest action that takes effect so far, and why."""

    action: PolicyAction = PolicyAction.ALLOW
    reason: str = ""
    metadata: Metadata = msgspec.field(default_factory=dict)
    evaluations: tuple[Evaluation, ...] = ()

    @property
    def allowed(self) -> bool:
        """Tell whether the run may go on."""
        return not self.action.stops

    @property
    def blocked(self) -> bool:
        """Tell whether something stopped it."""
        return self.action.stops


@runtime_checkable
class HasAlerts(Protocol):
    """A run that may have met a fault when it began."""

    @property
    def alerts(self) -> Sequence[Verdict]:
        """Return the verdicts that are enforced before anything is recorded."""
        ...


@runtime_checkable
class SupportsDecisionOf(Protocol):
    """A run that finds one decision without reading all of them."""

    def decision_of(self, verdict: Verdict) -> PolicyDecision | None:
        """Return the decision as it stands in the log; None when it is not there."""
        ...


class VerdictEnforcer:
    """The verdicts of one run and what came of them. Thread safe in the sense that every warning is offered to one taker."""

    def __init__(self, *, is_enforced: bool, on_policy_block: OnPolicyBlock | None) -> None:
        self.is_enforced = is_enforced
        self._on_policy_block = on_policy_block
        self._offered: list[Evaluation] = []
        self.strongest: Verdict | None = None
        self.violation: PolicyViolationError | None = None
        self.prevention: PolicyViolationError | None = None
        """The last violation of a call that was only announced; the run goes on after it."""
        self.stop_reason = ""
        self.retry_reasons: list[str] = []
        self.abstention_response: str | None = None

    def enforce(self, run: GovernedRun, verdicts: Sequence[Verdict], *, is_announced: bool = False) -> None:
        """Take verdicts in, and raise those that stop with the reason of the first of the strongest, unless the call is approved.

        A call that is only announced is prevented by it: the run goes on, and the agent may do something else.
        """
        stopping = self.take(verdicts, is_announced=is_announced)
        if stopping:
            self.stop(run, stopping, is_announced=is_announced)

    def take(self, verdicts: Sequence[Verdict], *, is_announced: bool = False) -> Sequence[Verdict]:
        """Take verdicts in, and return those that stop, the strongest first."""
        for verdict in verdicts:
            if self.is_enforced:
                self._offer(verdict)
            counts = verdict.is_enforced and not (is_announced and verdict.stops)
            if counts and (self.strongest is None or _rank(verdict) > _rank(self.strongest)):
                self.strongest = verdict
        return sorted((verdict for verdict in verdicts if verdict.stops), key=_rank, reverse=True)

    def stop(self, run: GovernedRun, verdicts: Sequence[Verdict], *, is_over: bool = False, is_announced: bool = False) -> None:
        """Raise the violation unless it is approved; in a run that is over an approval is recorded, and a denial is not."""
        decisions = [decision_for(run, verdict) for verdict in verdicts]
        error = PolicyViolationError(verdicts[0].decisive.reason, decisions[0], decisions)
        before = (self.violation, self.stop_reason)
        # Set before anybody is asked, so that it holds as well when asking fails.
        if is_announced:
            self.prevention = error
        else:
            self.violation, self.stop_reason = self.violation or error, self.stop_reason or str(error)
        if self._on_policy_block is None or not self._is_approved(self._on_policy_block, run, error, is_over=is_over):
            raise error
        self.violation, self.stop_reason = before

    def take_feedback(self) -> list[Evaluation]:
        """Return the warnings that were not offered yet."""
        offered, self._offered = self._offered, []
        return offered

    def check(self) -> PolicyCheck:
        """Return where the run stands."""
        if self.strongest is None:
            return PolicyCheck()
        decisive = self.strongest.decisive
        return PolicyCheck(
            action=decisive.action, reason=decisive.reason, metadata=decisive.metadata, evaluations=self.strongest.evaluations
        )

    def _offer(self, verdict: Verdict) -> None:
        for evaluation in verdict.evaluations:
            if evaluation.status not in _OFFERED:
                continue
            if evaluation.action is PolicyAction.WARN:
                self._offered.append(evaluation)
            elif evaluation.action is PolicyAction.RETRY:
                self.retry_reasons.append(evaluation.reason)
        if verdict.is_enforced and verdict.abstention_response is not None:
            self.abstention_response = verdict.abstention_response

    @staticmethod
    def _is_approved(ask: OnPolicyBlock, run: GovernedRun, error: PolicyViolationError, *, is_over: bool) -> bool:
        said: object = ask(error)
        if not isinstance(said, ApprovalDecision):
            raise InvalidRecordError(
                "on_policy_block", f"it returned {type(said).__name__}; return an ApprovalDecision, and not from a coroutine"
            )
        if not said.lets_go_on:
            if not is_over:
                run.record(StepCall(name=APPROVAL, attributes=_account(said, error)))
            return False
        problem = f"approved by '{said.approver}': {error}"
        run.record(CheckBypassed(what=APPROVAL, problem=problem, posture=Posture.OPEN))
        return True


def decision_for(run: GovernedRun, verdict: Verdict) -> PolicyDecision:
    """Return the decision that a verdict became in the log."""
    if isinstance(run, SupportsDecisionOf):
        found = run.decision_of(verdict)
        if found is not None:
            return found
    decisions = run.decisions()
    return next((each for each in reversed(decisions) if _is_of(each, verdict)), decisions[-1])


def _is_of(decision: PolicyDecision, verdict: Verdict) -> bool:
    decisive = verdict.decisive
    return (decision.policy_id, decision.rule, decision.reason) == (decisive.policy_id, decisive.rule, decisive.reason)


def _rank(verdict: Verdict) -> int:
    return verdict.decisive.action.rank


def _account(said: ApprovalDecision, error: PolicyViolationError) -> Metadata:
    return {
        "approved": said.approved,
        "approver": said.approver,
        "timed_out": said.timed_out,
        "elapsed_seconds": said.elapsed_seconds,
        "reason": str(error),
    }


# --- approval ---
# Human in the loop: a callback decides whether a call that a policy stopped may go on; three callbacks are given.

_NS_PER_S = 1_000_000_000
_YES = frozenset({"y", "yes"})


class ApprovalDecision(msgspec.Struct, frozen=True):
    """The answer about a call that was stopped; one that timed out is not approved."""

    approved: bool
    approver: str = ""
    timed_out: bool = False
    elapsed_seconds: float = 0.0

    @property
    def lets_go_on(self) -> bool:
        """Tell whether the call may go on."""
        return self.approved and not self.timed_out


def auto_approve(error: PolicyViolationError) -> ApprovalDecision:
    """Let every stopped call go on; for tests and trials."""
    del error
    return ApprovalDecision(approved=True, approver="auto_approve")


def auto_deny(error: PolicyViolationError) -> ApprovalDecision:
    """Let no stopped call go on."""
    del error
    return ApprovalDecision(approved=False, approver="auto_deny")


def prompt_approval(error: PolicyViolationError) -> ApprovalDecision:
    """Ask at the terminal; anything but yes is no, and so is a terminal without input."""
    clock = SystemClock()
    began = clock.elapsed_ns()
    shown = str(error).encode("unicode_escape").decode()
    try:
        reply = input(f"A policy stopped this call: {shown}\nLet it go on? [y/N] ")
    except EOFError:
        reply = ""
    elapsed = (clock.elapsed_ns() - began) / _NS_PER_S
    return ApprovalDecision(approved=reply.strip().lower() in _YES, approver="terminal", elapsed_seconds=elapsed)
