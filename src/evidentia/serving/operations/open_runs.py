"""Runs that have begun and not ended: bounded in number, closed when nobody speaks of them, and deaf to what was said twice."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.control import CallResult, CallsReply, EndReply, EndRequest, NumberedCall
from evidentia.contracts.errors import BaseStateError, NotFoundError
from evidentia.contracts.runs import RunEnded, RunId, RunStatus
from evidentia.foundation.rate_limit import Shares
from evidentia.serving.operations.api_errors import CONFLICT, TOO_MANY, ApiError

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

    def __init__(self, run: LocalRun, *, beginning: bytes, touched_ns: int, holder: str = "") -> None:
        self.run = run
        self.holder = holder
        """The token whose share of the open runs it counts against."""
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
    """The open runs of all tenants, of which one token has at most its share. Thread safe."""

    def __init__(self, *, clock: Clock, max_open: int = MAX_OPEN, idle_ns: int = IDLE_NS, share_percent: int = 100) -> None:
        self._elapsed_ns = clock.elapsed_ns
        self._shares = Shares[str].by_percent(max_open, share_percent)
        self._ends = Shares[str].by_percent(MAX_ENDED, share_percent)
        self._idle_ns = idle_ns
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._open: dict[_RunKey, OpenRun] = {}
        self._ended: OrderedDict[_RunKey, OpenRun] = OrderedDict()

    def start(
        self, tenant: str, run_id: RunId, *, beginning: bytes, begin: Callable[[], LocalRun], holder: str = ""
    ) -> tuple[OpenRun, bool]:
        """Begin a run and say that it is new; one that began with the very same request goes on.

        Without an id nothing is the same: the run gets an id when it begins. It counts against the share of `holder`, a token.
        """
        self._take_place(holder)
        is_begun = False
        try:
            with self._starting:  # a request that is sent twice at once begins one run
                known = self._known((tenant, run_id)) if run_id else None
                if known is not None and known.beginning != beginning:
                    raise _conflict("run_exists", f"run '{run_id}' has begun with another request; give this one an id of its own")
                if known is not None:
                    return known, False
                run = begin()
                opened = OpenRun(run, beginning=beginning, touched_ns=self._elapsed_ns(), holder=holder)
                with self._lock:
                    self._open[tenant, run.facts.run_id] = opened
                is_begun = True
        finally:
            if not is_begun:
                self._shares.give_back(holder)
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
            raise NotFoundError("run", run_id)
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

    def _take_place(self, holder: str) -> None:
        shares = self._shares
        if shares.take(holder) or (self.close_idle() and shares.take(holder)):
            return
        hint = "end runs that are over, and try again later; server.share_percent sets the share of a token"
        message = f"{shares.taken} runs are open, {shares.held(holder)} of them of this token, which may have {shares.of_one}"
        raise ApiError(TOO_MANY, "too_many_runs", message, hint=hint, headers={"retry-after": "10"})

    def _retire(self, key: _RunKey, opened: OpenRun) -> None:
        """Remember a run that has ended, in the place of the same token's oldest where that has its share."""
        with self._lock:
            if self._open.pop(key, None) is None:
                return
            self._shares.give_back(opened.holder)
            while not self._ends.take(opened.holder):
                is_share = self._ends.held(opened.holder) >= self._ends.of_one
                oldest = next(key for key, ended in self._ended.items() if not is_share or ended.holder == opened.holder)
                self._ends.give_back(self._ended.pop(oldest).holder)
            self._ended[key] = opened


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
