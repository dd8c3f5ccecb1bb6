"""A run at a control plane that goes on in this process when the plane is lost, and is sent to it when it is back."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from evidentia.agents.enforcement import SupportsDecisionOf
from evidentia.contracts.errors import EvidentiaError, RunForgottenError, ServiceUnavailableError
from evidentia.contracts.policies import Posture
from evidentia.contracts.runs import CheckBypassed
from evidentia.governance.journal import bypass_verdict
from evidentia.policy.posture import CONTROL_PLANE, strictest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.agents.failover import FailoverGovernor
    from evidentia.contracts.decisions import PolicyDecision, Verdict
    from evidentia.contracts.policies import PolicyBody
    from evidentia.contracts.ports import GovernedRun
    from evidentia.contracts.runs import AnyCall, RunEnded, RunFacts
    from evidentia.governance.runs import LocalRun

MAX_KEPT: Final = 10_000
"""How many calls of a run are kept to go on from, and how many to be sent later; beyond that the oldest are dropped, and counted."""
UNREACHABLE: Final = (ServiceUnavailableError, OSError)


class FailoverRun:
    """Implements `GovernedRun`. Once it decides here it does so until it ends, so that one evaluator has seen the whole run."""

    def __init__(self, governor: FailoverGovernor, facts: RunFacts, policies: Sequence[PolicyBody], *, is_enforced: bool) -> None:
        self._governor = governor
        self._facts = facts
        self._policies = policies
        self._is_enforced = is_enforced
        self._has_plane_policies = False
        """Whether those of the plane decide also while it is out of reach."""
        self._lock = threading.RLock()
        self._remote: GovernedRun | None = None
        self._local: GovernedRun | None = None
        self._history: list[tuple[AnyCall, str]] = []
        self._spooled: list[tuple[AnyCall, str]] = []
        self._end: tuple[RunEnded, str] | None = None
        self._forgotten = 0
        self._unsendable = 0
        self.alerts: Sequence[Verdict] = ()
        """Faults that were met at the beginning."""
        self.is_sent = False
        """Whether the run has ended and nothing of it is left to send."""

    @property
    def facts(self) -> RunFacts:
        """Return who runs."""
        return self._facts

    @property
    def is_at_the_plane(self) -> bool:
        """Tell whether the plane decides about this run."""
        return self._local is None

    def begin(self) -> None:
        """Start at the plane, or here."""
        governor = self._governor
        early = governor.early_failure()
        if early is not None:
            self.alerts = self._go_on_here(early)
            return
        try:
            self._remote = governor.plane.start(self._facts, policies=self._policies, is_enforced=self._is_enforced)
            governor.seen.refresh(governor.plane, tenant=self._facts.tenant)
            lost = governor.take_lost()
            if lost:
                self._remote.record(CheckBypassed(what=CONTROL_PLANE, problem=f"{lost} runs were dropped", posture=self._posture()))
        except UNREACHABLE as error:
            governor.note_failure(error)
            self.alerts = self._go_on_here(error)

    def record(self, call: AnyCall, *, text: str = "") -> Sequence[Verdict]:
        """Decide about a call, at the plane or here."""
        with self._lock:
            if self._local is None and self._remote is not None:
                try:
                    verdicts = self._remote.record(call, text=text)
                except UNREACHABLE as error:
                    self._governor.note_failure(error)
                    # The plane may have got it, so it is sent again first: as the same call, which it then takes once.
                    self._unsendable += _keep(self._spooled, (call, text))
                    alerts = self._go_on_here(error)
                    return (*self._here().record(call, text=text), *alerts)
                self._forgotten += _keep(self._history, (call, text))
                return verdicts
            return self._record_here(call, text)

    def finish(self, end: RunEnded, *, text: str = "") -> Sequence[Verdict]:
        """Decide about the whole run, at the plane or here; then try to send what the plane has not got."""
        alerts: Sequence[Verdict] = ()
        with self._lock:
            if self._local is None and self._remote is not None:
                try:
                    return self._remote.finish(end, text=text)
                except UNREACHABLE as error:
                    self._governor.note_failure(error)
                    alerts = self._go_on_here(error)
            self._end = (end, text)
            verdicts = self._here().finish(end, text=text)
        if self._governor.early_failure() is None:
            self._governor.send_unsent()
        return (*verdicts, *alerts)

    def decisions(self) -> Sequence[PolicyDecision]:
        """Return what was decided so far, as the plane tells it, or as it was decided here."""
        return (self._local or self._remote or self._here()).decisions()

    def decision_of(self, verdict: Verdict) -> PolicyDecision | None:
        """Return the decision as it stands in the log of whoever decided it; None when that is not known."""
        run: object = self._local or self._remote
        return run.decision_of(verdict) if isinstance(run, SupportsDecisionOf) else None

    def flush(self) -> None:
        """Try to send what the plane has not got."""
        self._governor.send_unsent()

    def send(self) -> bool:
        """Send the plane what it has not got, in order; its verdicts change nothing any more. Tell whether it could be reached.

        A plane that refuses what it is sent does so for good, so nothing is left to send then either.
        """
        with self._lock:
            try:
                self._send_or_begin_again()
            except UNREACHABLE as error:
                self._governor.note_failure(error)
                return False
            except EvidentiaError:
                self.is_sent = True
                return True
            self.is_sent = self._end is not None
            return True

    def _send_or_begin_again(self) -> None:
        """Send what is spooled; a plane that was started again and knows nothing of the run begins it anew."""
        try:
            self._send_spooled()
        except RunForgottenError:
            self._remote = None
            self._send_spooled()

    def _send_spooled(self) -> None:
        if self._remote is None:
            # Where the run went on without the plane's policies, what these say afterwards stopped nothing, and must not look as if it had.
            is_enforced = self._is_enforced and self._has_plane_policies
            self._remote = self._governor.plane.start(self._facts, policies=self._policies, is_enforced=is_enforced)
        if self._unsendable:
            self._remote.record(
                CheckBypassed(what=CONTROL_PLANE, problem=f"{self._unsendable} calls were dropped", posture=self._posture())
            )
            self._unsendable = 0
        while self._spooled:
            call, text = self._spooled[0]
            self._remote.record(call, text=text)
            del self._spooled[0]
        if self._end is not None:
            self._remote.finish(self._end[0], text=self._end[1])

    def _record_here(self, call: AnyCall, text: str) -> Sequence[Verdict]:
        self._unsendable += _keep(self._spooled, (call, text))
        return self._here().record(call, text=text)

    def _go_on_here(self, error: Exception) -> Sequence[Verdict]:
        """Start here with what was recorded so far, write down that the plane was out of reach, and return what that comes to."""
        run = self._start_here(Posture.DEGRADE)
        posture = strictest(run.policies.policies, CONTROL_PLANE)
        if posture is Posture.OPEN:
            run = self._start_here(posture)
        self._local = run
        self._has_plane_policies = posture is not Posture.OPEN and bool(self._governor.seen.live(tenant=self._facts.tenant))
        for call, text in self._history:
            run.record(call, text=text)
        lost = f"; the first {self._forgotten} calls are not counted" if self._forgotten else ""
        bypass = CheckBypassed(what=CONTROL_PLANE, problem=f"{error}{lost}", posture=posture)
        self._record_here(bypass, "")
        self._governor.keep(self)
        return (bypass_verdict(bypass, is_enforced=self._is_enforced),)

    def _start_here(self, posture: Posture) -> LocalRun:
        return self._governor.local(posture=posture).start(self._facts, policies=self._policies, is_enforced=self._is_enforced)

    def _posture(self) -> Posture:
        seen = self._governor.seen.live(tenant=self._facts.tenant)
        return strictest([stored.policy for stored in seen], CONTROL_PLANE)

    def _here(self) -> GovernedRun:
        if self._local is None:
            raise ServiceUnavailableError("the run was not started")
        return self._local


def _keep(kept: list[tuple[AnyCall, str]], call: tuple[AnyCall, str]) -> int:
    """Keep a call and return how many had to be dropped for it."""
    kept.append(call)
    overflow = max(0, len(kept) - MAX_KEPT)
    del kept[:overflow]
    return overflow
