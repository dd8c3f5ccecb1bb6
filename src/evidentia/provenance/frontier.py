"""A Merkle root over leaves that arrive one after the other, in logarithmic memory."""

from __future__ import annotations

from evidentia.provenance.merkle import EMPTY_ROOT, node_hash


class Frontier:
    """The complete subtrees on the right edge of a growing tree, largest first."""

    def __init__(self) -> None:
        self.size = 0
        self._edge: list[bytes] = []

    def append(self, leaf_hash: bytes) -> None:
        """Add the hash of the next leaf."""
        carried, size = leaf_hash, self.size
        while size & 1:
            carried = node_hash(self._edge.pop(), carried)
            size >>= 1
        self._edge.append(carried)
        self.size += 1

    def root(self) -> bytes:
        """Return the root over everything appended so far."""
        if not self._edge:
            return EMPTY_ROOT
        root = self._edge[-1]
        for left in reversed(self._edge[:-1]):
            root = node_hash(left, root)
        return root
