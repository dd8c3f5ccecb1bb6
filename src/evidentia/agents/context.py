"""A run of an agent: what it does is recorded, decided about at the call, and audited at the end. Sync and async alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidentia.agents.checks import checked_text, plain
from evidentia.agents.enforcement import Heeding
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.lifecycle import RunLifecycle, new_run_id
from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.contracts.runs import RunFacts, RunStatus
from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.agents.approval import OnPolicyBlock
    from evidentia.agents.finding import AnyBase
    from evidentia.contracts.decisions import PolicyDecision
    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.grounding import GroundingReport
    from evidentia.contracts.policies import PolicyBody
    from evidentia.contracts.ports import Clock
    from evidentia.contracts.runs import AnyCall


class Context(RunLifecycle):
    """One run of an agent, for `with` and `async with`. Thread safe while it is open; it is entered once.

    `base` is a path, a URL of a control plane, or an open base; without it EVIDENTIA_BASE counts, and without that only `policies`
    are in force. `enforce_policy=False` decides and writes down everything, and stops nothing.
    `mid_execution_governance=False` keeps what is recorded, and decides about it when the run ends.
    `on_abstain="replace"` puts the abstention response of a policy in the place of the result.
    `capture_content` keeps prompts, responses, inputs and outputs in the log; else their hashes.
    """

    def __init__(
        self,
        agent_name: str,
        workflow_name: str = "default",
        *,
        inputs: object = None,
        metadata: Mapping[str, object] | None = None,
        enforce_policy: bool = True,
        session_id: str = "",
        user_id: str = "",
        user_group: str = "",
        end_user_id: str = "",
        agent_type: str = "",
        agent_id: str = "",
        agent_group: str = "",
        team: str = "",
        tenant: str = DEFAULT_TENANT,
        base: AnyBase | None = None,
        policies: Iterable[PolicyBody | Mapping[str, Any]] = (),  # Any: bodies as an author writes them
        on_abstain: str = "keep",
        on_policy_block: OnPolicyBlock | None = None,
        mid_execution_governance: bool | None = None,
        auto_grounding: bool = False,
        durable: bool = False,
        capture_content: bool = False,
        _clock: Clock | None = None,
    ) -> None:
        super().__init__()
        if on_abstain not in {"keep", "replace"}:
            raise InvalidRecordError("on_abstain", f"'{on_abstain}' is neither 'keep' nor 'replace'")
        self.inputs = inputs
        self.result: object = None
        self._facts = RunFacts(
            run_id=new_run_id(),
            agent_name=checked_text(agent_name, "agent_name"),
            workflow_name=checked_text(workflow_name, "workflow_name"),
            agent_id=checked_text(agent_id, "agent_id"),
            agent_type=checked_text(agent_type, "agent_type"),
            agent_group=checked_text(agent_group, "agent_group"),
            user_id=checked_text(user_id, "user_id"),
            user_group=checked_text(user_group, "user_group"),
            end_user_id=checked_text(end_user_id, "end_user_id"),
            team=checked_text(team, "team"),
            tenant=checked_text(tenant, "tenant"),
            session_id=checked_text(session_id, "session_id"),
            metadata=plain(metadata or {}),
        )
        self._base = base
        self._policies = tuple(policies)
        self._is_enforced = enforce_policy
        self._replaces = on_abstain == "replace"
        self._is_auto_grounding = auto_grounding
        self._is_durable = durable
        self._is_capturing = capture_content
        self._clock = _clock or SystemClock()
        self._heeding = Heeding(is_enforced=enforce_policy, on_policy_block=on_policy_block)
        self._deferred = [] if mid_execution_governance is False else None

    @property
    def run_id(self) -> str:
        """Return the id of the run."""
        return self._facts.run_id

    @property
    def facts(self) -> RunFacts:
        """Return who runs."""
        return self._facts

    @property
    def status(self) -> RunStatus:
        """Return `running`, `success`, `blocked` or `error`; a block that the agent caught stays a block."""
        if self._heeding.violation is not None:
            return RunStatus.BLOCKED
        return self._status

    @property
    def decisions(self) -> Sequence[PolicyDecision]:
        """Return what was decided so far, in order, as the log tells it."""
        return () if self._run is None else self._run.decisions()

    @property
    def should_stop(self) -> bool:
        """Tell whether the agent should come to an end: something was blocked, or somebody asked for it."""
        return self._asked_to_stop or self._heeding.violation is not None

    @property
    def stop_reason(self) -> str:
        """Return why it should; empty when it should not."""
        return self._heeding.stop_reason

    @property
    def retry_feedback(self) -> str:
        """Return what policies want tried again, one reason per line; nothing is tried again by itself."""
        return "\n".join(self._heeding.retry_reasons)

    @property
    def abstention_response(self) -> str | None:
        """Return what a policy wants said instead of an answer; None when none does."""
        return self._heeding.abstention_response

    def request_stop(self, reason: str = "") -> None:
        """Ask the agent to come to an end; it looks at `should_stop`."""
        self._asked_to_stop = True
        self._heeding.stop_reason = self._heeding.stop_reason or reason

    def set_result(self, result: object) -> None:
        """Say what the run gives back; the log keeps its hash."""
        self.result = result

    def set_output_text(self, text: str) -> None:
        """Say what the run tells its user, for a judge to read; without it the result is read."""
        self._output_text = checked_text(text, "text")

    def record_call(self, call: AnyCall) -> None:
        """Record a call of the contract as it is."""
        self._record(call)

    def ground(self, answer: str, response: EvidenceResponse) -> GroundingReport:
        """Check an answer claim by claim against the evidence, record the outcome, and return it; the policies decide here."""
        from evidentia.grounding.score import ground_answer

        report = ground_answer(answer, [(fragment.chunk_id, fragment.content) for fragment in response.fragments])
        self.set_output_text(answer)
        self.record_grounding(
            grounding_scores=[claim.score for claim in report.claims],
            citations=report.citations,
            unsupported_claims=report.unsupported,
            output_confidence=report.confidence_milli / 1_000,
        )
        return report
