"""Goes on deciding while a control plane is out of reach: by the policies last seen from it, and with every bypass written down.

What was recorded meanwhile is kept in memory, up to a limit, and sent when the plane is back: when the next run begins, when this
one ends, or at `flush`. A process that ends before takes it along.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from evidentia.agents.failover_run import FailoverRun
from evidentia.contracts.errors import ServiceUnavailableError
from evidentia.contracts.policies import Posture
from evidentia.governance.governor import LocalGovernor
from evidentia.governance.memory_log import MemoryLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.policies import PolicyBody, StoredPolicy
    from evidentia.contracts.ports import Clock, Entropy, Governor
    from evidentia.contracts.runs import RunFacts
    from evidentia.governance.governor import CompiledPolicies

MAX_UNSENT: Final = 1_000
"""How many runs are kept to be sent later; beyond that the oldest are dropped, and the plane is told how many."""
REFRESH_NS: Final = 30_000_000_000
"""How old the policies last seen may be before they are asked for again."""
RETRY_NS: Final = 5_000_000_000
"""How long a plane that gave no answer is not asked again, so that runs do not wait for it one after the other."""


@runtime_checkable
class SupportsLive(Protocol):
    """A control plane that tells which policies are in force."""

    def live(self, *, tenant: str) -> Sequence[StoredPolicy]:
        """Return the policies that were not removed, by priority and then name."""
        ...


class SeenPolicies:
    """The policies last seen from a plane, by tenant. Thread safe."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[int, Sequence[StoredPolicy]]] = {}

    def live(self, *, tenant: str) -> Sequence[StoredPolicy]:
        """Return what was seen last; nothing when nothing was."""
        with self._lock:
            return self._seen.get(tenant, (0, ()))[1]

    def refresh(self, plane: Governor, *, tenant: str) -> None:
        """Ask the plane again, unless that was a moment ago."""
        now = self._clock.elapsed_ns()
        with self._lock:
            is_fresh = tenant in self._seen and now - self._seen[tenant][0] < REFRESH_NS
        if is_fresh or not isinstance(plane, SupportsLive):
            return
        policies = tuple(plane.live(tenant=tenant))
        with self._lock:
            self._seen[tenant] = (now, policies)


class FailoverGovernor:
    """Implements `Governor`: the control plane while it answers, else this process. Thread safe."""

    def __init__(
        self, plane: Governor, *, clock: Clock, entropy: Entropy, compiled: CompiledPolicies | None = None, retry_ns: int = RETRY_NS
    ) -> None:
        self.plane = plane
        self.seen = SeenPolicies(clock=clock)
        self._clock = clock
        self._entropy = entropy
        self._compiled = compiled
        self._retry_ns = retry_ns
        self._lock = threading.Lock()
        self._unsent: list[FailoverRun] = []
        self._lost = 0
        self._failure: tuple[int, str] | None = None

    def start(self, facts: RunFacts, *, policies: Sequence[PolicyBody] = (), is_enforced: bool = True) -> FailoverRun:
        """Start the run at the plane; where that is out of reach, here, as the posture of its policies says."""
        run = FailoverRun(self, facts, policies, is_enforced=is_enforced)
        run.begin()
        if run.is_at_the_plane:
            self.send_unsent()
        return run

    def local(self, *, posture: Posture) -> LocalGovernor:
        """Return who decides here: by the policies last seen, or, where the posture is open, by those given with the run alone."""
        store = None if posture is Posture.OPEN else self.seen
        log = MemoryLog(entropy=self._entropy)
        return LocalGovernor(store, log, clock=self._clock, entropy=self._entropy, compiled=self._compiled)

    def early_failure(self) -> ServiceUnavailableError | None:
        """Return the last failure while it is too early for another try."""
        failure = self._failure
        if failure is None or self._clock.elapsed_ns() - failure[0] >= self._retry_ns:
            return None
        return ServiceUnavailableError(failure[1])

    def note_failure(self, error: Exception) -> None:
        """Remember that the plane was asked and gave no answer."""
        self._failure = (self._clock.elapsed_ns(), str(error))

    def keep(self, run: FailoverRun) -> None:
        """Remember a run whose records the plane has not got."""
        with self._lock:
            if run not in self._unsent:
                self._unsent.append(run)
            while len(self._unsent) > MAX_UNSENT:
                del self._unsent[0]
                self._lost += 1

    def take_lost(self) -> int:
        """Return how many runs were dropped since this was asked last."""
        with self._lock:
            lost, self._lost = self._lost, 0
        return lost

    def send_unsent(self) -> None:
        """Send what runs recorded while the plane was out of reach, the oldest first; what cannot be sent yet stays."""
        with self._lock:
            unsent, self._unsent = self._unsent, []
        is_reachable = True
        for run in unsent:
            is_reachable = is_reachable and run.send()
            if not (is_reachable and run.is_sent):
                self.keep(run)
