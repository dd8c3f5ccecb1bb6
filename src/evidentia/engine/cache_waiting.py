"""Answers that are kept in memory at once and written a little later, many together: nobody who asks waits for the store.

What is lost with the process was only kept for the next one who asks. What is forgotten meanwhile is never written.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evidentia.contracts.vocabulary import CacheTier
    from evidentia.engine.cache_entries import Entry
    from evidentia.engine.cache_tiers import Lookup

PAUSE_S: Final = 0.5
"""How long answers gather before they are written."""
IDLE_S: Final = 5.0
"""After so long without an answer the thread that writes ends; the next answer starts another."""
BATCH: Final = 64
"""At most so many answers are written in one transaction, so that nobody who reads waits long for it."""
MANY: Final = 512
"""When so many answers wait they are written without a pause."""
MAX_WAITING: Final = 4_096
MAX_CHARS: Final = 16 * 1024 * 1024
"""Of what waits; where the store takes it more slowly than it comes, the oldest are lost."""


class Waiting(NamedTuple):
    """An answer that is to be written: the question it answers, where it belongs, and how much text it has."""

    lookup: Lookup
    tier: CacheTier
    entry: Entry
    chars: int


class WriteBehind:
    """Holds what is to be written, and has it written from a thread of its own. Thread safe.

    `write` is given some of it at a time, never twice at once; when it raises, those are lost.
    """

    def __init__(self, write: Callable[[Sequence[tuple[str, Waiting]]], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: dict[str, Waiting] = {}
        self._chars = 0
        self._arrived = threading.Event()
        self._hurry = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def add(self, name: str, waiting: Waiting) -> None:
        """Keep an answer, in place of what waits under its name."""
        with self._lock:
            self._drop(name)
            self._waiting[name] = waiting
            self._chars += waiting.chars
            while len(self._waiting) > MAX_WAITING or self._chars > MAX_CHARS:
                self._drop(next(iter(self._waiting)))

    def get(self, name: str) -> Waiting | None:
        """Return what waits under a name."""
        return self._waiting.get(name)

    def start(self) -> None:
        """Have what waits written soon; after `close` at once."""
        if self._is_closed:
            self.flush()
            return
        if not self._arrived.is_set():
            self._arrived.set()
        if len(self._waiting) >= MANY:
            self._hurry.set()
        thread = self._thread
        if thread is None or not thread.is_alive():  # a forked process has the object without the thread
            self._begin()

    def flush(self) -> None:
        """Write what waits."""
        while self._waiting:
            with self._writing:
                self._write_some()

    @contextmanager
    def forgetting(self, prefix: str) -> Iterator[None]:
        """Drop what waits under names that begin so; within the context nothing is written."""
        with self._writing:
            with self._lock:
                for name in [name for name in self._waiting if name.startswith(prefix)]:
                    self._drop(name)
            yield

    def close(self) -> None:
        """Write what waits, and what comes later at once."""
        self._is_closed = True
        self._hurry.set()
        self._arrived.set()
        self.flush()

    def _write_some(self) -> None:
        with self._lock:
            some = list(islice(self._waiting.items(), BATCH))
        try:
            self._write(some)
        finally:
            with self._lock:
                for name, written in some:
                    if self._waiting.get(name) is written:  # else another answer came meanwhile
                        self._drop(name)

    def _drop(self, name: str) -> None:
        dropped = self._waiting.pop(name, None)
        if dropped is not None:
            self._chars -= dropped.chars

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="evidentia-cache", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        """Write what arrives until nothing has for a while."""
        while self._arrived.wait(IDLE_S) and not self._is_closed:
            self._hurry.wait(PAUSE_S)
            self._arrived.clear()
            self._hurry.clear()
            with suppress(Exception):  # a store that fails loses what was kept and nothing else
                self.flush()
        # In this order: whoever keeps an answer after this line starts another thread, and whoever did before is seen here.
        self._thread = None
        with suppress(Exception):
            self.flush()
