"""Who governs a run: memory, the base in a directory, an open base, or a control plane with failover to this process.

While the plane is out of reach the policies last seen from it decide here, and every bypass is written down.

What was recorded meanwhile is kept in memory, up to a limit, and sent when the plane is back: when the next run begins, when this
one ends, or at `flush`. A process that ends before takes it along.
"""

from __future__ import annotations

import atexit
import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

from evidentia.agents.enforcement import SupportsDecisionOf
from evidentia.agents.errors import InvalidRecordError
from evidentia.contracts.errors import EvidentiaError, RunForgottenError, ServiceUnavailableError
from evidentia.contracts.judging import NO_TEXTS
from evidentia.contracts.policies import PolicyBody, Posture, StoredPolicy
from evidentia.contracts.ports import Clock, Entropy, GovernedRun, Governor, GroundingJudge
from evidentia.contracts.runs import AnyCall, CheckBypassed, RunEnded, RunFacts, RunId
from evidentia.governance.governor import CompiledPolicies, LocalGovernor
from evidentia.governance.memory_log import MemoryLog
from evidentia.governance.run_journal import bypass_verdict
from evidentia.policy.posture import CONTROL_PLANE, strictest
from evidentia.wiring.system import SystemClock, SystemEntropy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evidentia.contracts.decisions import PolicyDecision, Verdict
    from evidentia.contracts.judging import Judgement, JudgeRequest
    from evidentia.governance.governed_runs import LocalRun


MAX_UNSENT: Final = 1_000
"""How many runs are kept to be sent later; beyond that the oldest are dropped, and a bypass tells the plane how many."""
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


class FailoverGovernor(Governor):
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
        if run.is_remote:
            self.send_unsent()
        return run

    def local(self, *, posture: Posture) -> LocalGovernor:
        """Return who decides here: by the policies last seen, or, where the posture is open, by those given with the run alone."""
        store = None if posture is Posture.OPEN else self.seen
        log = MemoryLog(entropy=self._entropy)
        return LocalGovernor(store, log, clock=self._clock, entropy=self._entropy, compiled=self._compiled)

    def open_circuit(self) -> ServiceUnavailableError | None:
        """The circuit breaker: return the last failure while it is too early for another try, else None."""
        failure = self._failure
        if failure is None or self._clock.elapsed_ns() - failure[0] >= self._retry_ns:
            return None
        return ServiceUnavailableError(failure[1])

    def note_failure(self, error: Exception) -> None:
        """Remember that the plane was asked and gave no answer."""
        self._failure = (self._clock.elapsed_ns(), str(error))

    def queue(self, run: FailoverRun) -> None:
        """Queue a run whose records the plane has not got; the oldest is dropped beyond the limit."""
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
                self.queue(run)


# --- failover run ---
# A run at a control plane that goes on in this process when the plane is lost, and is sent to it when it is back.

MAX_KEPT: Final = 10_000
"""How many calls of a run are kept to go on from, and how many to be sent later; beyond that the oldest are dropped, and counted."""
UNREACHABLE: Final = (ServiceUnavailableError, OSError)


class _Said(NamedTuple):
    """A call with what a judge may read of it."""

    call: AnyCall
    text: str = ""
    texts: Mapping[str, str] = NO_TEXTS

    def record_in(self, run: GovernedRun) -> Sequence[Verdict]:
        """Record it, and return what was decided."""
        return run.record(self.call, text=self.text, texts=self.texts)


class FailoverRun(GovernedRun):
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
        self._history: list[_Said] = []
        self._spooled: list[_Said] = []
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
    def is_remote(self) -> bool:
        """Tell whether the plane decides about this run."""
        return self._local is None

    def begin(self) -> None:
        """Start at the plane, or here."""
        governor = self._governor
        open_circuit = governor.open_circuit()
        if open_circuit is not None:
            self.alerts = self._fail_over(open_circuit)
            return
        try:
            self._remote = governor.plane.start(self._facts, policies=self._policies, is_enforced=self._is_enforced)
            governor.seen.refresh(governor.plane, tenant=self._facts.tenant)
            lost = governor.take_lost()
            if lost:
                self._remote.record(CheckBypassed(what=CONTROL_PLANE, problem=f"{lost} runs were dropped", posture=self._posture()))
        except UNREACHABLE as error:
            governor.note_failure(error)
            self.alerts = self._fail_over(error)

    def record(self, call: AnyCall, *, text: str = "", texts: Mapping[str, str] = NO_TEXTS) -> Sequence[Verdict]:
        """Decide about a call, at the plane or here."""
        said = _Said(call, text, texts)
        with self._lock:
            if self._local is None and self._remote is not None:
                try:
                    verdicts = said.record_in(self._remote)
                except UNREACHABLE as error:
                    self._governor.note_failure(error)
                    # The plane may have got it, so it is sent again first: as the same call, which it then takes once.
                    self._unsendable += _append_bounded(self._spooled, said)
                    alerts = self._fail_over(error)
                    return (*said.record_in(self._local_run()), *alerts)
                # Whoever decides here has no judge, so that texts need not be kept for one.
                self._forgotten += _append_bounded(self._history, _Said(call, text))
                return verdicts
            return self._record_locally(said)

    def finish(self, end: RunEnded, *, text: str = "") -> Sequence[Verdict]:
        """Decide about the whole run, at the plane or here; then try to send what the plane has not got."""
        alerts: Sequence[Verdict] = ()
        with self._lock:
            if self._local is None and self._remote is not None:
                try:
                    return self._remote.finish(end, text=text)
                except UNREACHABLE as error:
                    self._governor.note_failure(error)
                    alerts = self._fail_over(error)
            self._end = (end, text)
            verdicts = self._local_run().finish(end, text=text)
        if self._governor.open_circuit() is None:
            self._governor.send_unsent()
        return (*verdicts, *alerts)

    def decisions(self) -> Sequence[PolicyDecision]:
        """Return what was decided so far, as the plane tells it, or as it was decided here."""
        return (self._local or self._remote or self._local_run()).decisions()

    def decision_of(self, verdict: Verdict) -> PolicyDecision | None:
        """Return the decision as it stands in the log of the plane or of this process; None when it is in neither."""
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
            self._spooled[0].record_in(self._remote)
            del self._spooled[0]
        if self._end is not None:
            self._remote.finish(self._end[0], text=self._end[1])

    def _record_locally(self, said: _Said) -> Sequence[Verdict]:
        self._unsendable += _append_bounded(self._spooled, said)
        return said.record_in(self._local_run())

    def _fail_over(self, error: Exception) -> Sequence[Verdict]:
        """Start here with what was recorded so far, write down that the plane was out of reach, and return what that comes to."""
        run = self._start_locally(Posture.DEGRADE)
        posture = strictest(run.policies.policies, CONTROL_PLANE)
        if posture is Posture.OPEN:
            run = self._start_locally(posture)
        self._local = run
        self._has_plane_policies = posture is not Posture.OPEN and bool(self._governor.seen.live(tenant=self._facts.tenant))
        for said in self._history:
            said.record_in(run)
        lost = f"; the first {self._forgotten} calls are not counted" if self._forgotten else ""
        bypass = CheckBypassed(what=CONTROL_PLANE, problem=f"{error}{lost}", posture=posture)
        self._record_locally(_Said(bypass))
        self._governor.queue(self)
        return (bypass_verdict(bypass, is_enforced=self._is_enforced),)

    def _start_locally(self, posture: Posture) -> LocalRun:
        return self._governor.local(posture=posture).start(self._facts, policies=self._policies, is_enforced=self._is_enforced)

    def _posture(self) -> Posture:
        seen = self._governor.seen.live(tenant=self._facts.tenant)
        return strictest([stored.policy for stored in seen], CONTROL_PLANE)

    def _local_run(self) -> GovernedRun:
        if self._local is None:
            raise ServiceUnavailableError("the run was not started")
        return self._local


def _append_bounded(kept: list[_Said], said: _Said) -> int:
    """Keep a call and return how many had to be dropped for it."""
    kept.append(said)
    overflow = max(0, len(kept) - MAX_KEPT)
    del kept[:overflow]
    return overflow


# --- governor of a base ---
# From what a caller calls a base to who governs its runs: nothing, a directory, an open base, or a control plane.

BASE_VARIABLE: Final = "EVIDENTIA_BASE"
TOKEN_VARIABLE: Final = "EVIDENTIA_TOKEN"  # noqa: S105 - the name of a variable, not a token
_WEB: Final = ("http://", "https://")
_RUN_ID_BYTES: Final = 12


@runtime_checkable
class HasGovernor(Protocol):
    """An open base, which governs runs by its own policies and writes its own log."""

    def governor(self, *, durable: bool = False) -> Governor:
        """Return who governs runs; `durable` has every decision on disk before the call goes on."""
        ...


AnyBase = str | Path | HasGovernor


class GovernorSource(NamedTuple):
    """Who governs, and whether beginning and ending a run waits for nothing outside of this process."""

    open: Callable[[], Governor]
    is_quick: bool = False


def resolve_governor(base: AnyBase | None, *, durable: bool) -> GovernorSource:
    """Return who governs the runs under a base; without one, EVIDENTIA_BASE counts, and without that memory alone."""
    named = os.environ.get(BASE_VARIABLE, "") or None if base is None else base
    if named is None:
        return GovernorSource(_in_memory, is_quick=True)
    if isinstance(named, HasGovernor):
        return GovernorSource(lambda: named.governor(durable=durable))
    if isinstance(named, str) and named.lower().startswith(_WEB):
        return GovernorSource(lambda: _control_plane(named))
    if isinstance(named, str | Path):
        return GovernorSource(lambda: _directory(Path(named), durable=durable))
    raise InvalidRecordError("base", f"expected a path, a URL or an open base, not {type(named).__name__}")


def checked_bodies(policies: Iterable[PolicyBody | Mapping[str, Any]], *, tenant: str) -> Sequence[PolicyBody]:
    """Return policies given with a run as bodies that can be put in force, or raise PolicyInvalidError with every problem.

    Any: bodies as an author writes them.
    """
    _, _, compiled = _parts(os.getpid())
    return [policy.body for policy in compiled.checked(tuple(policies), tenant=tenant)]


def _in_memory() -> Governor:
    """Return a governor for one run, whose log ends with it; what it compiles is kept for the next."""
    clock, entropy, compiled = _parts(os.getpid())
    return LocalGovernor(None, MemoryLog(entropy=entropy), clock=clock, entropy=entropy, judge=ProcessJudge(), compiled=compiled)


class ProcessJudge(GroundingJudge):
    """Implements `GroundingJudge` with the keys of this process; it is made when it is asked first."""

    def judge(self, request: JudgeRequest, *, budget_ms: int) -> Judgement:
        """Return the judgement, or the status that says why there is none."""
        return _judge(os.getpid()).judge(request, budget_ms=budget_ms)


@lru_cache(maxsize=1)
def _judge(process: int) -> GroundingJudge:
    from evidentia.wiring.governance_runtime import model_judge

    del process
    made = model_judge()
    atexit.register(made.close)
    return made


def new_run_id() -> RunId:
    """Return an id that no other run has."""
    return RunId("run-" + _parts(os.getpid())[1].take(_RUN_ID_BYTES).hex())


@lru_cache(maxsize=1)
def _parts(process: int) -> tuple[SystemClock, SystemEntropy, CompiledPolicies]:
    # One per process: a forked one must not go on with its parent's bytes.
    del process
    return SystemClock(), SystemEntropy(), CompiledPolicies()


_directories: dict[tuple[int, str, int, bool], Governor] = {}
_planes: dict[tuple[int, str, str], FailoverGovernor] = {}
_lock = threading.Lock()


def _directory(path: Path, *, durable: bool) -> Governor:
    """Return who governs by the base in a directory, opened once per process; a directory that was made anew is another."""
    from evidentia.wiring.governance_runtime import open_control

    resolved = path.resolve()
    number = resolved.stat().st_ino if resolved.exists() else 0
    with _lock:
        key = (os.getpid(), str(resolved), number, durable)
        if key not in _directories:
            opened = open_control(resolved, is_durable=durable)
            atexit.register(opened.close)
            _directories[key] = opened
        return _directories[key]


def _control_plane(url: str) -> Governor:
    """Return the control plane at a URL, with what decides while it is out of reach."""
    from evidentia.wiring.governance_runtime import remote_governor

    token = os.environ.get(TOKEN_VARIABLE, "")
    with _lock:
        key = (os.getpid(), url, token)
        if key not in _planes:
            clock, entropy, compiled = _parts(os.getpid())
            remote = remote_governor(url, token=token)
            atexit.register(remote.close)
            _planes[key] = FailoverGovernor(remote, clock=clock, entropy=entropy, compiled=compiled)
        return _planes[key]
