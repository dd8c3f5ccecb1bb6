"""Arrays that successive versions share: a version that adds writes behind the end of the one before, in the same memory.

A version never looks beyond its own end, so those before it notice nothing. Of two that add to the same version, the second copies.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.segments import Array

_SPARE_SHARE, _SPARE = 8, 1_024
"""A copy leaves room for an eighth more, and this: pages that nobody writes to take no memory."""


class _Room:
    """The memory behind some arrays, and how much of it is taken."""

    __slots__ = ("buffer", "lock", "used")

    def __init__(self, buffer: Array, used: int) -> None:
        self.buffer = buffer
        self.used = used
        self.lock = threading.Lock()  # two versions may be made at once, and only one of them may have the room behind the end


class GrowingArray:
    """One version's array; nobody changes what is in it. Thread safe."""

    __slots__ = ("_room", "array")

    def __init__(self, array: Array, room: _Room | None = None) -> None:
        self.array = array
        self._room = room or _Room(array, len(array))

    def plus(self, tail: Array) -> GrowingArray:
        """Return the array with a tail; the cost is that of the tail, apart from a copy now and then."""
        if not len(tail):
            return self
        start, end, room = len(self.array), len(self.array) + len(tail), self._room
        with room.lock:
            if room.used != start or end > len(room.buffer):
                room = _Room(np.empty(end + end // _SPARE_SHARE + _SPARE, dtype=self.array.dtype), end)
                room.buffer[:start] = self.array
            room.buffer[start:end] = tail
            room.used = end
        return GrowingArray(room.buffer[:end], room)

    def cut(self, end: int) -> GrowingArray:
        """Return the beginning of the array."""
        return self if end == len(self.array) else GrowingArray(self.array[:end], self._room)


class GrowingTexts:
    """Texts one after the other as UTF-8: far smaller than as many objects."""

    __slots__ = ("_bytes", "_ends")

    def __init__(self, encoded: GrowingArray, ends: GrowingArray) -> None:
        self._bytes = encoded
        self._ends = ends

    @classmethod
    def of(cls, texts: Sequence[str]) -> GrowingTexts:
        """Return some texts."""
        return cls(GrowingArray(np.empty(0, dtype=np.uint8)), GrowingArray(np.zeros(1, dtype=np.int64))).plus(texts)

    def plus(self, texts: Sequence[str]) -> GrowingTexts:
        """Return these texts and more."""
        encoded = [text.encode() for text in texts]
        ends = np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))) + self._ends.array[-1]
        return GrowingTexts(self._bytes.plus(np.frombuffer(b"".join(encoded), dtype=np.uint8)), self._ends.plus(ends))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._ends.array) - 1

    def take(self, numbers: NDArray[np.integer]) -> list[str]:
        """Return some of them, by their numbers."""
        stored, ends = self._bytes.array.data, self._ends.array
        bounds = zip(ends.take(numbers).tolist(), ends.take(numbers + 1).tolist(), strict=True)
        return [str(stored[start:stop], "utf-8") for start, stop in bounds]

    @property
    def arrays(self) -> tuple[Array, Array]:
        """Return the bytes, and where each text begins and the last ends."""
        return self._bytes.array, self._ends.array
