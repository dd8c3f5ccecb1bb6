"""A Merkle root over leaves that arrive one after the other, in logarithmic memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.provenance.merkle import EMPTY_ROOT, node_hash, pair_level

if TYPE_CHECKING:
    from collections.abc import Sequence


class Frontier:
    """The complete subtrees on the right edge of a growing tree, largest first; one per set bit of its size."""

    def __init__(self, size: int = 0, edge: Sequence[bytes] = ()) -> None:
        self.size = size
        self._edge = list(edge)

    @property
    def edge(self) -> tuple[bytes, ...]:
        """Return the roots of the complete subtrees; with the size, all that is needed to go on."""
        return tuple(self._edge)

    def append(self, leaf_hash: bytes) -> None:
        """Add the hash of the next leaf."""
        self._add(leaf_hash, level=0)

    def extend(self, leaf_hashes: Sequence[bytes]) -> None:
        """Add the hashes of the next leaves, subtree by subtree; faster than one by one."""
        start, end = 0, len(leaf_hashes)
        while start < end:
            level = (end - start).bit_length() - 1
            if self.size:  # a subtree begins at a multiple of its own size
                level = min(level, (self.size & -self.size).bit_length() - 1)
            hashes = list(leaf_hashes[start : start + (1 << level)])
            while len(hashes) > 1:
                hashes = pair_level(hashes)
            self._add(hashes[0], level=level)
            start += 1 << level

    def _add(self, subtree: bytes, *, level: int) -> None:
        """Add a complete subtree of `2**level` leaves, and join it with those of its size."""
        places = self.size >> level
        while places & 1:
            subtree = node_hash(self._edge.pop(), subtree)
            places >>= 1
        self._edge.append(subtree)
        self.size += 1 << level

    def root(self) -> bytes:
        """Return the root over everything appended so far."""
        if not self._edge:
            return EMPTY_ROOT
        root = self._edge[-1]
        for left in reversed(self._edge[:-1]):
            root = node_hash(left, root)
        return root
