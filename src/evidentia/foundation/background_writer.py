"""A write-behind thread: what was put down in memory is written a little later, many pieces together, and nobody waits for it.

What waits, and how much of it may, is up to whoever puts it down; here is the thread that has it written.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_S: Final = 5.0
"""After so long without a notice the thread ends; the next notice starts another."""

_open: Final[WeakSet[BackgroundWriter]] = WeakSet()


class BackgroundWriter:
    """Has `write` called on a thread of its own soon after `notify`. Thread safe; `write` is never called twice at once.

    The first notice begins a pause of `pause_s` in which others join it. What `write` raises on the thread is dropped, and with
    `is_retrying` it is called again after the next pause; a caller of `flush` or `close` gets what it raises there.
    """

    def __init__(
        self,
        write: Callable[[], None],
        *,
        name: str,
        pause_s: float,
        idle_s: float | None = IDLE_S,
        is_retrying: bool = False,
    ) -> None:
        self._write = write
        self._name = name
        self._pause_s = pause_s
        self._idle_s = idle_s
        self._is_retrying = is_retrying
        self._begin()
        self.is_closed = False
        """Whether `close` was called: from then on nothing is written on the thread, and nothing starts it."""
        _open.add(self)

    def notify(self, *, hurry: bool = False) -> None:
        """Have what was put down written soon, or with `hurry` as soon as the thread can; costs nothing while the thread is at it."""
        if not self._arrived.is_set():
            self._arrived.set()
        if hurry and not self._hurry.is_set():
            self._hurry.set()
        thread = self._thread
        if thread is None or not thread.is_alive():
            self._start()

    def flush(self) -> None:
        """Write what was put down, in the caller's own time, after what is being written."""
        with self.writing:
            self._write()

    def close(self, *, timeout_s: float | None = None) -> bool:
        """Wait for the thread to end and write what is left; False, and nothing more, when the thread is not done in time."""
        self.is_closed = True
        self._hurry.set()
        self._arrived.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_s)
            if thread.is_alive():
                return False
        self.flush()
        return True

    def _begin(self) -> None:
        self.writing = threading.RLock()
        """Held while `write` runs; whoever holds it keeps the thread from writing."""
        self._starting = threading.Lock()
        self._arrived = threading.Event()
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None

    def _start(self) -> None:
        with self._starting:
            if not self.is_closed and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        # Asked before it waits: `close` may have set the events just before they were cleared.
        while not self.is_closed and self._arrived.wait(self._idle_s):
            self._hurry.wait(self._pause_s)
            # Before it is written, so that what arrives meanwhile is a notice for the next time.
            self._hurry.clear()
            self._arrived.clear()
            self._write_quietly()
        # In this order: whoever notifies after this line starts another thread, and whoever did before is seen here.
        self._thread = None
        if self._arrived.is_set():
            self._write_quietly()

    def _write_quietly(self) -> None:
        is_done = False
        with suppress(Exception):  # what cannot be written is its owner's loss, or its owner's to keep, and no reason to end
            self.flush()
            is_done = True
        if not is_done and self._is_retrying:
            self._arrived.set()


def _begin_again() -> None:
    """Leave what the parent process was writing to the parent: a forked process has the locks without the thread that held them."""
    for writer in tuple(_open):
        writer._begin()  # noqa: SLF001 - the fork is this module's business


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_begin_again)
