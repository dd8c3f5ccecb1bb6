"""Runs that have begun and not ended: bounded in number, closed when nobody speaks of them, and deaf to what was said twice."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.control import NAME_PATTERN, CallResult, CallsReply, EndReply, EndRequest, NumberedCall
from evidentia.contracts.errors import BaseStateError, NotFoundError
from evidentia.contracts.runs import RunEnded, RunId, RunStatus
from evidentia.governance.log_scan import KeptLogs, tenants_of
from evidentia.serving.operations.api_errors import CONFLICT, TOO_MANY, ApiError, bad_field

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.decisions import PolicyDecision, Verdict
    from evidentia.contracts.ports import Clock
    from evidentia.governance.governed_runs import LocalRun


MAX_OPEN: Final = 10_000
MAX_ENDED: Final = 10_000
"""How many ends are remembered, for whoever ends a run twice."""
IDLE_NS: Final = 3_600_000_000_000
MAX_REPEATABLE: Final = 256
"""How many of a run's last calls can be sent again."""
EXPIRED: Final = "expired"
PLANE_STOPPED: Final = "plane_stopped"

_RunKey = tuple[str, RunId]


class OpenRun:
    """A run in this process with what its client has said so far. Its lock is held by whoever speaks to it."""

    def __init__(self, run: LocalRun, *, beginning: bytes, touched_ns: int) -> None:
        self.run = run
        self.beginning = beginning
        """The digest of the request that began it."""
        self.touched_ns = touched_ns
        self.lock = threading.Lock()
        self.last_seq = 0
        self.is_blocked = False
        self.end: EndReply | None = None
        self._said: OrderedDict[int, tuple[bytes, CallResult]] = OrderedDict()

    @property
    def status(self) -> RunStatus:
        """Return how the run stands."""
        if self.end is not None:
            return self.end.status
        return RunStatus.BLOCKED if self.is_blocked else RunStatus.RUNNING

    def record(self, numbered: NumberedCall) -> CallResult:
        """Decide about a call that follows the last one, or repeat what was decided about one that was sent before."""
        digest = digest_of(numbered)
        if numbered.seq <= self.last_seq:
            return self._repeat(numbered.seq, digest)
        if self.end is not None:
            raise _conflict("run_ended", f"run '{self.run.facts.run_id}' has ended, so nothing more is recorded in it")
        if numbered.seq != self.last_seq + 1:
            raise _conflict("sequence_gap", f"call {numbered.seq} came where {self.last_seq + 1} is next")
        verdicts = tuple(self.run.record(numbered.call, text=numbered.text, texts=numbered.texts))
        result = CallResult(seq=numbered.seq, verdicts=verdicts, decisions=decisions_of(self.run, verdicts))
        self.last_seq = numbered.seq
        self.is_blocked = self.is_blocked or (not numbered.call.is_announced and any(verdict.stops for verdict in verdicts))
        self._said[numbered.seq] = (digest, result)
        while len(self._said) > MAX_REPEATABLE:
            self._said.popitem(last=False)
        return result

    def finish(self, request: EndRequest) -> EndReply:
        """Decide about the whole run; an end that was sent before is answered as it was then."""
        if self.end is None:
            is_caught = self.is_blocked and request.status is RunStatus.SUCCESS
            status = RunStatus.BLOCKED if is_caught else request.status
            end = RunEnded(status=status, error_type=request.error_type, result_hash=request.result_hash)
            verdicts = tuple(self.run.finish(end, text=request.text))
            is_stopped = any(verdict.stops for verdict in verdicts)
            self.end = EndReply(
                run_id=self.run.facts.run_id,
                status=RunStatus.BLOCKED if is_stopped else status,
                verdicts=verdicts,
                decisions=decisions_of(self.run, verdicts),
            )
        return self.end

    def _repeat(self, seq: int, digest: bytes) -> CallResult:
        said = self._said.get(seq)
        if said is None:
            raise _conflict("sequence_forgotten", f"call {seq} was recorded too long ago to be repeated; go on with {self.last_seq + 1}")
        if said[0] != digest:
            raise _conflict("sequence_reused", f"call {seq} was recorded with another content; go on with {self.last_seq + 1}")
        return msgspec.structs.replace(said[1], is_repeated=True)


class OpenRuns:
    """The open runs of all tenants. Thread safe."""

    def __init__(self, *, clock: Clock, max_open: int = MAX_OPEN, idle_ns: int = IDLE_NS) -> None:
        self._elapsed_ns = clock.elapsed_ns
        self._most_open = max_open
        self._idle_ns = idle_ns
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._open: dict[_RunKey, OpenRun] = {}
        self._ended: OrderedDict[_RunKey, OpenRun] = OrderedDict()

    def start(self, tenant: str, run_id: RunId, *, beginning: bytes, begin: Callable[[], LocalRun]) -> tuple[OpenRun, bool]:
        """Begin a run and say that it is new; one that began with the very same request goes on.

        Without an id nothing is the same: the run gets an id when it begins.
        """
        self._make_room()
        with self._starting:  # a request that is sent twice at once begins one run
            known = self._known((tenant, run_id)) if run_id else None
            if known is not None and known.beginning != beginning:
                raise _conflict("run_exists", f"run '{run_id}' has begun with another request; give this one an id of its own")
            if known is not None:
                return known, False
            run = begin()
            opened = OpenRun(run, beginning=beginning, touched_ns=self._elapsed_ns())
            with self._lock:
                self._open[tenant, run.facts.run_id] = opened
        return opened, True

    @property
    def count(self) -> int:
        """Return how many are open."""
        with self._lock:
            return len(self._open)

    def find(self, tenant: str, run_id: RunId) -> OpenRun:
        """Return a run that is open, or ended a while ago."""
        known = self._known((tenant, run_id))
        if known is None:
            raise NotFoundError("open run", run_id)
        known.touched_ns = self._elapsed_ns()
        return known

    def record(self, tenant: str, run_id: RunId, calls: Sequence[NumberedCall]) -> CallsReply:
        """Decide about calls in order; those after one that is stopped are not recorded."""
        opened = self.find(tenant, run_id)
        results: list[CallResult] = []
        with opened.lock:
            for numbered in calls:
                results.append(opened.record(numbered))
                if any(verdict.stops for verdict in results[-1].verdicts):
                    break
            is_stopped = any(verdict.stops for verdict in results[-1].verdicts)
            stopped_at = results[-1].seq if is_stopped else None
            return CallsReply(run_id=run_id, status=opened.status, results=tuple(results), stopped_at=stopped_at)

    def finish(self, tenant: str, run_id: RunId, request: EndRequest) -> EndReply:
        """Decide about a whole run and close it."""
        opened = self.find(tenant, run_id)
        with opened.lock:
            reply = opened.finish(request)
        self._retire((tenant, run_id), opened)
        return reply

    def close_idle(self) -> int:
        """Close the runs of which nobody has spoken for long, as errors, and return how many there were."""
        oldest_ns = self._elapsed_ns() - self._idle_ns
        return self._close(lambda opened: opened.touched_ns < oldest_ns, error_type=EXPIRED)

    def close_all(self) -> int:
        """Close every run, as errors: whoever goes on with one later finds that it is gone."""
        return self._close(lambda _: True, error_type=PLANE_STOPPED)

    def _close(self, is_due: Callable[[OpenRun], bool], *, error_type: str) -> int:
        with self._lock:
            due = [(key, opened) for key, opened in self._open.items() if is_due(opened)]
        for key, opened in due:
            with opened.lock:
                _end_as_error(opened, error_type)
            self._retire(key, opened)
        return len(due)

    def _known(self, key: _RunKey) -> OpenRun | None:
        with self._lock:
            return self._open.get(key) or self._ended.get(key)

    def _make_room(self) -> None:
        with self._lock:
            is_full = len(self._open) >= self._most_open
        if is_full and not self.close_idle():
            hint = "end runs that are over, and try again later"
            raise ApiError(TOO_MANY, "too_many_runs", f"{self._most_open} runs are open", hint=hint, headers={"retry-after": "10"})

    def _retire(self, key: _RunKey, opened: OpenRun) -> None:
        with self._lock:
            if self._open.pop(key, None) is not None:
                self._ended[key] = opened
            while len(self._ended) > MAX_ENDED:
                self._ended.popitem(last=False)


def digest_of(message: object) -> bytes:
    """Return what tells a message from another one."""
    return hashlib.sha256(msgspec.json.encode(message, order="deterministic")).digest()


def decisions_of(run: LocalRun, verdicts: Sequence[Verdict]) -> tuple[PolicyDecision, ...]:
    """Return the records of the verdicts that stop, as they stand in the log."""
    found = (run.decision_of(verdict) for verdict in verdicts if verdict.stops)
    return tuple(decision for decision in found if decision is not None)


def _end_as_error(opened: OpenRun, error_type: str) -> None:
    if opened.end is None:
        # A log that takes nothing must not keep the other runs from being closed.
        with suppress(BaseStateError, OSError):
            opened.run.finish(RunEnded(status=RunStatus.ERROR, error_type=error_type))
        opened.end = EndReply(run_id=opened.run.facts.run_id, status=RunStatus.ERROR)


def _conflict(code: str, message: str) -> ApiError:
    return ApiError(CONFLICT, code, message, hint="read the run, and go on where it stands")


# --- run names ---
# What runs are called in the log: the log is everybody's, so the tenant is part of the name.
#
# A client's own name holds no `~`, so nobody can begin a run in the place of another tenant's. Processes that write to the log without
# the plane name their runs as they like; those are found by that name.

MARK: Final = "~"


def new_run(name: str, *, tenant: str) -> RunId:
    """Return what a run that begins is called in the log; a name that is none is refused."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise bad_field("facts.run_id", "use at most 128 letters, digits and . _ : -, beginning with a letter or digit")
    return logged_run(name, tenant=tenant)


def logged_run(name: str, *, tenant: str) -> RunId:
    """Return what a run of the plane is called in the log, by that name or by the client's own; one of another tenant is not there."""
    owner, mark, _ = name.partition(MARK)
    if mark and owner != tenant:
        raise NotFoundError("run", name)
    return RunId(name if mark else f"{tenant}{MARK}{name}")


def find_run(log: KeptLogs, name: str, *, tenant: str) -> RunId:
    """Return what a run is called in the log, of the plane or of a process beside it; only one that is wholly the tenant's is there."""
    candidates = (logged_run(name, tenant=tenant), RunId(name))
    owners = tenants_of(log, candidates)
    found = next((candidate for candidate in candidates if owners.get(candidate) == {tenant}), None)
    if found is None:
        raise NotFoundError("run", name)
    return found
