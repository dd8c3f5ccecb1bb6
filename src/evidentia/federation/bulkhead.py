"""A few threads per source that blocks, so that one that hangs holds up nobody but itself.

The threads are daemons of our own: those of an executor are joined when the interpreter exits, and one that hangs would keep it.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    _Work = tuple[Callable[[], None], Callable[[], None]]

IDLE_S = 5.0
"""How long a thread without work waits for some before it ends."""


class Bulkhead:
    """The threads of one source or model: started when needed, never more than `most_threads`, ended when idle. Thread safe.

    A thread that hangs in a source counts until the source lets go of it, whoever has stopped waiting.
    """

    def __init__(self, name: str, *, max_threads: int, idle_s: float = IDLE_S) -> None:
        self._name = name
        self._most_threads = max_threads
        self._idle_s = idle_s
        self._changed = threading.Condition()
        self._waiting: deque[_Work] = deque()
        self._idle = 0
        self._threads = 0
        self._is_closed = False

    @property
    def threads(self) -> int:
        """Return how many threads it has at present, busy or not."""
        with self._changed:
            return self._threads

    def submit(self, work: Callable[[], None], on_done: Callable[[], None]) -> str:
        """Start the work at once and return nothing, or return in words why it cannot; it is never kept waiting.

        Neither may raise. When `on_done` is called the thread is free again, so that whoever hears of it can submit more.
        """
        with self._changed:
            if self._is_closed:
                return "not asked: the base is closing"
            if self._idle > len(self._waiting):
                self._waiting.append((work, on_done))
                self._changed.notify()
                return ""
            if self._threads >= self._most_threads:
                return f"not asked: all of its {self._most_threads} threads are taken by earlier calls"
            return self._begin((work, on_done))

    def close(self) -> None:
        """Let idle threads end now and busy ones when the source lets go of them; no more work is taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _begin(self, work: _Work) -> str:
        self._waiting.append(work)
        thread = threading.Thread(target=self._serve, name=f"evidentia {self._name}", daemon=True)
        self._threads += 1
        self._idle += 1
        try:
            thread.start()
        except RuntimeError:
            self._waiting.pop()
            self._threads -= 1
            self._idle -= 1
            return "not asked: the system gives no more threads"
        return ""

    def _serve(self) -> None:
        while (work := self._next_work()) is not None:
            run, on_done = work
            run()
            with self._changed:
                self._idle += 1
            on_done()
            # Names that are still bound would keep the whole call alive until there is more work.
            del work, run, on_done

    def _next_work(self) -> _Work | None:
        """Return the next work, or None when this thread is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed, timeout=self._idle_s)
            self._idle -= 1
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None
