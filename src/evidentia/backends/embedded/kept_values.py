"""Values held in memory in front of a file: the ones used last, those it has still to get, and what is known not to be there."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, NamedTuple

MAX_KEPT: Final = 4_096
MAX_BYTES: Final = 32 << 20


class KeptValue(NamedTuple):
    """A value and when it ends, in microseconds since 1970; None when it does not."""

    value: bytes
    expires_us: int | None


class KeptValues:
    """A least-recently-used memory. Not thread safe; who uses it holds a lock."""

    def __init__(self, *, max_kept: int = MAX_KEPT, max_bytes: int = MAX_BYTES) -> None:
        self._most_kept = max_kept
        self._most_bytes = max_bytes
        self._values: OrderedDict[str, KeptValue] = OrderedDict()
        self._bytes = 0

    def get(self, key: str) -> KeptValue | None:
        """Return what is held, which is then the one used last."""
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
        return found

    def put(self, key: str, value: bytes, expires_us: int | None) -> KeptValue:
        """Hold a value in place of what was there; what was not used for longest goes where there is no room."""
        self.forget(key)
        held = self._values[key] = KeptValue(value, expires_us)
        self._bytes += len(value)
        while len(self._values) > self._most_kept or self._bytes > self._most_bytes:
            _, dropped = self._values.popitem(last=False)
            self._bytes -= len(dropped.value)
        return held

    def forget(self, key: str) -> None:
        """Let go of a value, if it is held."""
        dropped = self._values.pop(key, None)
        if dropped is not None:
            self._bytes -= len(dropped.value)

    def clear(self) -> None:
        """Let go of everything."""
        self._values.clear()
        self._bytes = 0


class Hidden(NamedTuple):
    """A name, or all names that begin so, under which the file has something that is no longer true."""

    text: str
    is_prefix: bool


class Transaction:
    """What is written together: rows that the file does not have yet, and what has to be hidden if it never gets them."""

    def __init__(self, *, is_open: bool) -> None:
        self.is_open = is_open
        self.rows: dict[str, KeptValue] = {}
        self.changed: list[Hidden] = []


class Glance(threading.local):
    """Whether this thread has just looked for what others wrote, and what it then found not to be there."""

    def __init__(self) -> None:
        self.is_taken = False
        self.missing: set[str] = set()
