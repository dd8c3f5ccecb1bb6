"""A few threads that do what an answering thread would otherwise have to do by itself, one thing after the other."""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")
MOST_HELPERS: Final = 4
HAND_OVER_S: Final = 0.000_5
"""How long whoever asks stands aside for a helper to begin: until it does, Python runs one thread alone, and nothing happens beside it."""


class ThreadAside:
    """Implements `Aside` on as many threads as there are processors beside the answering one, started when they are needed.

    Work never waits in a line: where all threads are busy, or too slow to begin, whoever asked does it by itself. Thread safe.
    """

    def __init__(self, *, helpers: int | None = None) -> None:
        self._most = min(MOST_HELPERS, (os.cpu_count() or 1) - 1) if helpers is None else helpers
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._free = 0
        self._asked: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def begin(self, work: Callable[[], Answer]) -> Callable[[], Answer]:
        """Have the work begun by a thread that is free, and return what waits for it; else return the work."""
        with self._lock:
            if not (self._is_one_free() or self._start()):
                return work
            self._free -= 1
        piece = _Piece(work)
        self._asked.put(piece.do)
        piece.stand_aside()
        return piece.result

    def close(self) -> None:
        """Let the threads end; whoever asks from now on does the work by itself."""
        with self._lock:
            threads, self._threads = self._threads, []
            self._most = self._free = 0
        for _ in threads:
            self._asked.put(None)
        for thread in threads:
            thread.join()

    def _is_one_free(self) -> bool:
        return self._free > 0 and self._threads[0].is_alive()  # a forked process has the object without the threads

    def _start(self) -> bool:
        """Start another thread if there may be one."""
        alive = [thread for thread in self._threads if thread.is_alive()]
        if len(alive) >= self._most:
            return False
        thread = threading.Thread(target=self._help, name="evidentia-aside", daemon=True)
        thread.start()
        self._free = self._free + 1 if alive else 1
        self._threads = [*alive, thread]
        return True

    def _help(self) -> None:
        while (do := self._asked.get()) is not None:
            do()
            with self._lock:
                self._free += bool(self._most)


class _Piece(Generic[Answer]):
    """A piece of work, and what came of it: it is done once, by whoever takes it first."""

    def __init__(self, work: Callable[[], Answer]) -> None:
        self._work = work
        self._context = contextvars.copy_context()
        self._answer: list[Answer] = []
        self._error: BaseException | None = None
        self._taken, self._begun, self._done = threading.Lock(), threading.Lock(), threading.Lock()
        self._begun.acquire()
        self._done.acquire()

    def do(self) -> None:
        """Do it, unless it was taken back."""
        if not self._taken.acquire(blocking=False):
            return
        self._begun.release()
        try:
            self._answer.append(self._context.run(self._work))
        except BaseException as error:  # noqa: BLE001 (it is raised again where the work is waited for)
            self._error = error
        self._done.release()

    def stand_aside(self) -> None:
        """Wait until it is begun, for a moment."""
        self._begun.acquire(timeout=HAND_OVER_S)

    def result(self) -> Answer:
        """Wait for it, or do it where nobody has begun; return what it returned or raise what it raised."""
        if self._taken.acquire(blocking=False):
            return self._work()
        self._done.acquire()
        if self._error is not None:
            raise self._error
        return self._answer[0]
