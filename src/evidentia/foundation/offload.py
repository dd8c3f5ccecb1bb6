"""Thread pools: one for pieces of work beside the thread that asks, and one for work that would block an event loop.

`InlineOffloader` is the executor for processes without a thread to spare.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar

from evidentia.contracts.ports import BlockingExecutor, Offloader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Answer = TypeVar("Answer")
Given = ParamSpec("Given")
Told = TypeVar("Told")
MAX_HELPERS: Final = 4
HAND_OVER_S: Final = 0.000_5
"""How long whoever asks stands aside for a helper to begin: until it does, Python runs one thread alone, and nothing happens beside it."""
_EXECUTOR_NAME: Final = "evidentia-engine"


class InlineOffloader(Offloader):
    """Implements `Offloader`: all work is done when it is waited for, by whoever waits."""

    def submit(self, work: Callable[[], Answer]) -> Callable[[], Answer]:
        """Return the work itself."""
        return work


INLINE: Final[Offloader] = InlineOffloader()


class ThreadPoolOffloader(Offloader):
    """Implements `Offloader` on as many threads as there are processors beside the answering one, started when they are needed.

    Work never waits in a line: where all threads are busy, or too slow to begin, whoever asked does it by itself. `shared` lends its
    threads, so that a process that does both kinds of work has one pool. Thread safe.
    """

    def __init__(self, *, helpers: int | None = None, shared: ThreadPoolBlockingExecutor | None = None) -> None:
        most = min(MAX_HELPERS, (os.cpu_count() or 1) - 1) if helpers is None else helpers
        self._free = threading.Semaphore(most)
        self._is_closed = False
        self._is_shared = shared is not None
        self._pool = shared or ThreadPoolBlockingExecutor(max_threads=max(1, most))

    def submit(self, work: Callable[[], Answer]) -> Callable[[], Answer]:
        """Have the work begun by a thread that is free, and return what waits for it; else return the work."""
        if self._is_closed or not self._free.acquire(blocking=False):
            return work
        begun = threading.Event()
        try:
            piece = self._pool.submit(partial(_do, work, begun))
        except RuntimeError:  # it was closed
            return work
        piece.add_done_callback(lambda _: self._free.release())
        begun.wait(HAND_OVER_S)
        return partial(_result, piece, work)

    def close(self) -> None:
        """Let the threads end; whoever asks from now on does the work by itself."""
        self._is_closed = True
        if not self._is_shared:
            self._pool.shutdown()


def _do(work: Callable[[], Answer], begun: threading.Event) -> Answer:
    begun.set()
    return work()


def _result(piece: Future[Answer], work: Callable[[], Answer]) -> Answer:
    """Wait for a piece of work, or take it back and do it where nobody has begun."""
    return work() if piece.cancel() else piece.result()


class ThreadPoolBlockingExecutor(BlockingExecutor):
    """Implements `BlockingExecutor` on a pool of threads of its own, which are started when they are needed.

    Work that is done `on_behalf_of` callers is shared out among them, so that nobody waits for all that another has asked for.
    """

    def __init__(self, *, max_threads: int | None = None) -> None:
        self._max_threads = max_threads or min(32, (os.cpu_count() or 1) + 4)
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._shares = _Shares(self._max_threads)

    def run(self, work: Callable[[], Answer]) -> asyncio.Future[Answer]:
        """Begin at once, and return what will have what the work returns or raises; nobody who stops waiting stops work that has begun."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[Answer] = loop.create_future()
        self._begin(_work, work, contextvars.copy_context(), loop, told)
        return told

    def submit(self, work: Callable[[], Answer]) -> Future[Answer]:
        """Begin a piece of work for a thread that will wait for it, in its context."""
        return self._begin(contextvars.copy_context().run, work)

    def _begin(self, work: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs) -> Future[Answer]:
        with self._lock:  # so that no pool is shut down between its being found and its being given the work
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._max_threads, thread_name_prefix=_EXECUTOR_NAME)
            caller = _caller.get()
            if caller is None:
                return self._pool.submit(work, *given, **named)
            piece = _Piece(caller, partial(work, *given, **named))
            self._shares.add(piece, time.monotonic())
            self._start()
            return piece.told

    def _start(self) -> None:
        """Hand pieces of work to threads as long as their callers have a share left; the lock is held."""
        while self._pool is not None and (piece := self._shares.next(time.monotonic())) is not None:
            self._pool.submit(self._run, piece)

    def _run(self, piece: _Piece[Any]) -> None:  # Any: whatever it returns
        try:
            piece.run()
        finally:
            with self._lock:
                self._shares.ended(piece)
                self._start()

    async def close(self) -> None:
        """Wait for the work that was begun, also for that which nobody waits for any more: it uses what is closed next."""
        pool = self._take()
        if pool is not None:
            await asyncio.to_thread(pool.shutdown)

    def shutdown(self) -> None:
        """Do what `close` does where no event loop runs."""
        pool = self._take()
        if pool is not None:
            pool.shutdown()

    def _take(self) -> ThreadPoolExecutor | None:
        with self._lock:
            pool, self._pool = self._pool, None
            if pool is not None:
                for piece in self._shares.taken():  # whoever waits for it would wait for ever
                    pool.submit(piece.run)
        return pool


class _Piece(Generic[Answer]):
    """Work of one caller that waits for a thread."""

    def __init__(self, caller: str, work: Callable[[], Answer]) -> None:
        self.caller = caller
        self.told: Future[Answer] = Future()
        self._work = work

    def run(self) -> None:
        """Do the work, unless nobody wants it any more."""
        if not self.told.set_running_or_notify_cancel():
            return
        try:
            self.told.set_result(self._work())
        except BaseException as error:  # noqa: BLE001 (it is raised again where somebody waits for the work)
            self.told.set_exception(error)


class _Shares:
    """Who may have the next thread: a caller who is not alone has a third of them, at least two, however much it asks for at once."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Piece[Any]]] = {}  # Any: whatever a piece returns
        self._seen: dict[str, float] = {}
        """When each caller last asked for something; those of the last second count as present."""

    def add(self, piece: _Piece[Any], now_s: float) -> None:
        self._seen[piece.caller] = now_s
        self._waiting.setdefault(piece.caller, deque()).append(piece)

    def next(self, now_s: float) -> _Piece[Any] | None:
        """Return the piece that may begin, of the caller who has the fewest threads; None where nobody has a share left."""
        self._seen = {caller: seen_s for caller, seen_s in self._seen.items() if now_s - seen_s <= PRESENT_S}
        share = self._threads if len(self._seen) <= 1 else max(2, self._threads // 3)
        free = [caller for caller in self._waiting if self._running[caller] < share]
        if not free:
            return None
        caller = min(free, key=lambda each: self._running[each])
        piece = self._waiting[caller].popleft()
        if not self._waiting[caller]:
            del self._waiting[caller]
        self._running[caller] += 1
        return piece

    def taken(self) -> list[_Piece[Any]]:
        """Return everything that waits, which waits no more."""
        pieces = [piece for queue in self._waiting.values() for piece in queue]
        self._waiting.clear()
        return pieces

    def ended(self, piece: _Piece[Any]) -> None:
        self._running[piece.caller] -= 1
        if not self._running[piece.caller]:
            del self._running[piece.caller]


PRESENT_S: Final = 1.0
_caller: Final[ContextVar[str | None]] = ContextVar("caller", default=None)


@contextmanager
def on_behalf_of(caller: str) -> Iterator[None]:
    """Have the work of this context count for a caller, who shares threads with others."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


def _work(work: Callable[[], Answer], context: contextvars.Context, loop: asyncio.AbstractEventLoop, told: asyncio.Future[Answer]) -> None:
    """Do the work, unless nobody waits any more before it begins, and tell the event loop what came of it."""
    if told.cancelled():
        return
    try:
        tell = partial(_tell, told.set_result, context.run(work))
    except BaseException as error:  # noqa: BLE001 (it is raised again where somebody waits for the work)
        tell = partial(_tell, told.set_exception, error)
    with suppress(RuntimeError):  # the loop was closed meanwhile, and nobody waits
        loop.call_soon_threadsafe(tell)


def _tell(tell: Callable[[Told], None], what: Told) -> None:
    with suppress(asyncio.InvalidStateError):  # nobody waits any more
        tell(what)


# --- cancellation ---
# Whether work is still wanted goes with the context that it is handed over in, so that long loops can ask without being told by whom.


class AbandonedError(Exception):
    """Whoever asked has left, so the next step does not begin; it ends the thread's work and reaches nobody."""


_is_abandoned: Final[ContextVar[Callable[[], bool] | None]] = ContextVar("is_abandoned", default=None)


@contextmanager
def abandonable(is_abandoned: Callable[[], bool]) -> Iterator[None]:
    """Have the loops of this context, and of work that is handed over from it, end once nobody waits for them any more."""
    token = _is_abandoned.set(is_abandoned)
    try:
        yield
    finally:
        _is_abandoned.reset(token)


def is_abandoned() -> bool:
    """Tell whether nobody waits any more for the work of this context; never where nobody said that it can be left."""
    ask = _is_abandoned.get()
    return ask is not None and ask()


def check_abandoned() -> None:
    """Raise AbandonedError where nobody waits any more for the work of this context; for the turns of long loops."""
    if is_abandoned():
        raise AbandonedError


# --- deadlines ---
# How long blocking calls to the outside may take goes with the context that work is handed over in.

_until: Final[ContextVar[float | None]] = ContextVar("outbound_until", default=None)


@contextmanager
def outbound_deadline(seconds: float | None) -> Iterator[None]:
    """Have blocking exchanges of this context end within so many seconds, and within those of a context around it."""
    around = _until.get()
    until = around if seconds is None else time.monotonic() + seconds
    token = _until.set(until if around is None or until is None else min(around, until))
    try:
        yield
    finally:
        _until.reset(token)


def outbound_left_ms() -> int | None:
    """Return how much time blocking exchanges of this context have left, never less than 0; None where nobody set a deadline."""
    until = _until.get()
    return None if until is None else max(0, int((until - time.monotonic()) * 1000))
