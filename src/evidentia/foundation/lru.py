"""Least recently used (LRU) caches: bounded by how many entries they hold, by how much those weigh, or by both."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

Key = TypeVar("Key", bound="Hashable")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Holds at most `max_count` entries and drops the one that was not used for longest. Not thread safe: whoever shares it locks.

    Where `weigh` is given, all entries together weigh at most `max_weight`, apart from the newest, which is held however heavy it is.
    """

    __slots__ = ("_entries", "_max_count", "_max_weight", "_weigh", "_weight")

    def __init__(self, max_count: int = sys.maxsize, *, max_weight: int = 0, weigh: Callable[[Value], int] | None = None) -> None:
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._max_count = max_count
        self._max_weight = max_weight
        self._weigh = weigh
        self._weight = 0

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, which is thereby used; None where there is none."""
        entries = self._entries
        if key not in entries:
            return None
        entries.move_to_end(key)
        return entries[key]

    def put(self, key: Key, value: Value) -> None:
        """Hold a value, in the place of the key's last one, and drop what there is no room for."""
        entries = self._entries
        if self._weigh is None:
            entries[key] = value
            entries.move_to_end(key)
            if len(entries) > self._max_count:
                entries.popitem(last=False)
            return
        self.pop(key)
        entries[key] = value
        self._weight += self._weigh(value)
        while len(entries) > self._max_count or (self._weight > self._max_weight and len(entries) > 1):
            self._weight -= self._weigh(entries.popitem(last=False)[1])

    def pop(self, key: Key) -> Value | None:
        """Drop a key and return its value; None where there is none."""
        if key not in self._entries:
            return None
        value = self._entries.pop(key)
        if self._weigh is not None:
            self._weight -= self._weigh(value)
        return value

    def clear(self) -> None:
        """Drop everything."""
        self._entries.clear()
        self._weight = 0

    def items(self) -> list[tuple[Key, Value]]:
        """Return all entries, the one that was not used for longest first; nothing is used by that."""
        return list(self._entries.items())

    def __contains__(self, key: Key) -> bool:
        """Tell whether there is a value of a key, which is not used by that."""
        return key in self._entries

    def __iter__(self) -> Iterator[Key]:
        """Return the keys, the one that was not used for longest first."""
        return iter(list(self._entries))

    def __len__(self) -> int:
        """Return how many entries are held."""
        return len(self._entries)


class SharedLruCache(LruCache[Key, Value]):
    """The same for several threads: each call is whole before the next."""

    __slots__ = ("_lock",)

    def __init__(self, max_count: int = sys.maxsize, *, max_weight: int = 0, weigh: Callable[[Value], int] | None = None) -> None:
        super().__init__(max_count, max_weight=max_weight, weigh=weigh)
        self._lock = threading.RLock()  # reentrant, since `put` calls `pop`

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, which is thereby used; None where there is none."""
        with self._lock:
            entries = self._entries
            if key not in entries:
                return None
            entries.move_to_end(key)
            return entries[key]

    def put(self, key: Key, value: Value) -> None:
        """Hold a value, in the place of the key's last one, and drop what there is no room for."""
        with self._lock:
            super().put(key, value)

    def pop(self, key: Key) -> Value | None:
        """Drop a key and return its value; None where there is none."""
        with self._lock:
            return super().pop(key)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            super().clear()

    def items(self) -> list[tuple[Key, Value]]:
        """Return all entries, the one that was not used for longest first; nothing is used by that."""
        with self._lock:
            return super().items()
