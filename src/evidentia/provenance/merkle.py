"""The Merkle tree of RFC 6962 section 2.1: hashes, roots, proofs and their verification.

Everything here is a pure function of hashes. Subtrees are the half-open ranges `[start, end)` whose start is a
multiple of the smallest power of two that covers them; the whole tree is the subtree that starts at 0.
Verification never raises for a bad proof: it answers False.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Hash = TypeVar("Hash")

HASH_SIZE = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()

_sha256 = hashlib.sha256


def leaf_hash(leaf: bytes) -> bytes:
    """Return the hash of a leaf."""
    return _sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return _sha256(b"\x01" + left + right).digest()


def pair_level(hashes: Sequence[bytes]) -> list[bytes]:
    """Return the parents of all complete pairs."""
    return [_sha256(b"\x01" + hashes[i] + hashes[i + 1]).digest() for i in range(0, len(hashes) - 1, 2)]


def range_root(start: int, end: int, *, complete: Callable[[int, int], bytes]) -> bytes:
    """Return the root over leaves `[start, end)` of a larger tree.

    `complete(level, index)` gives the hash of the complete subtree of `2**level` leaves that starts at
    `index * 2**level`. Cost: one call per set bit of the range's length.
    """
    if end == start:
        return EMPTY_ROOT
    parts: list[bytes] = []
    position = start
    while position < end:
        level = (end - position).bit_length() - 1
        parts.append(complete(level, position >> level))
        position += 1 << level
    root = parts.pop()
    while parts:
        root = node_hash(parts.pop(), root)
    return root


def inclusion_path(
    index: int, size: int, *, complete: Callable[[int, int], Hash], ragged: Callable[[int], Hash], first_level: int = 0
) -> tuple[Hash, ...]:
    """Return the audit path of leaf `index` in the tree of `size` leaves, nearest sibling first.

    `complete(level, index)` gives the hash of a complete subtree as in `range_root`, `ragged(start)` the root over all
    leaves from `start` on; both may give hashes in any form the caller likes.
    `first_level` leaves out the part below, for callers that have it at hand.
    """
    path: list[Hash] = []
    for level in range(first_level, (size - 1).bit_length()):
        sibling = (index >> level) ^ 1
        start = sibling << level
        if start + (1 << level) <= size:
            path.append(complete(level, sibling))
        elif start < size:
            path.append(ragged(start))
    return tuple(path)


def consistency_path(first: int, second: int, *, complete: Callable[[int, int], bytes]) -> tuple[bytes, ...]:
    """Return the proof that the tree of `first` leaves is a prefix of the tree of `second`."""
    if first in (0, second):
        return ()
    path: list[bytes] = []
    start, end, is_whole = 0, second, True
    while first != end:
        split = start + _largest_power_below(end - start)
        if first <= split:
            path.append(range_root(split, end, complete=complete))
            end = split
        else:
            path.append(range_root(start, split, complete=complete))
            start, is_whole = split, False
    if not is_whole:
        path.append(range_root(start, end, complete=complete))
    return tuple(reversed(path))


def verify_inclusion(leaf: bytes, *, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Tell whether the leaf hash stands at `index` in the tree of `size` leaves with this root."""
    return verify_subtree_inclusion(leaf, index=index, start=0, end=size, path=path, root=root)


def verify_subtree_inclusion(leaf: bytes, *, index: int, start: int, end: int, path: Sequence[bytes], root: bytes) -> bool:
    """Tell whether the leaf hash stands at `index` in the subtree `[start, end)` with this root."""
    if not is_subtree(start, end) or not start <= index < end or len(leaf) != HASH_SIZE:
        return False
    node, last, current = index - start, end - start - 1, leaf
    for sibling in path:
        if last == 0 or len(sibling) != HASH_SIZE:
            return False
        if node & 1 or node == last:
            current = node_hash(sibling, current)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            current = node_hash(current, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and current == root


def verify_consistency(*, first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes) -> bool:
    """Tell whether the tree of `first` leaves is a prefix of the tree of `second`, with these roots."""
    if first == 0:  # everything extends the empty tree, so only its equality with itself says anything
        return second == 0 and not path and first_root == second_root == EMPTY_ROOT
    if first == second:
        return not path and first_root == second_root
    return verify_subtree_consistency(start=0, end=first, size=second, path=path, subtree_root=first_root, root=second_root)


def verify_subtree_consistency(*, start: int, end: int, size: int, path: Sequence[bytes], subtree_root: bytes, root: bytes) -> bool:
    """Tell whether the subtree `[start, end)` with its root lies in the tree of `size` leaves with its root."""
    if start == end <= size:
        return not path and subtree_root == EMPTY_ROOT
    if not is_subtree(start, end) or end > size or any(len(each) != HASH_SIZE for each in path):
        return False
    first, last, edge = start, end - 1, size - 1
    while first != last and (last == edge or last & 1):
        first, last, edge = first >> 1, last >> 1, edge >> 1
    remaining = list(path)
    if first == last:
        inner = outer = subtree_root
    elif remaining:
        inner = outer = remaining.pop(0)
    else:
        return False
    for sibling in remaining:
        if edge == 0:
            return False
        if last & 1 or last == edge:
            if first < last:
                inner = node_hash(sibling, inner)
            outer = node_hash(sibling, outer)
            while not last & 1 and last:
                first, last, edge = first >> 1, last >> 1, edge >> 1
        else:
            outer = node_hash(outer, sibling)
        first, last, edge = first >> 1, last >> 1, edge >> 1
    return edge == 0 and inner == subtree_root and outer == root


def is_subtree(start: int, end: int) -> bool:
    """Tell whether `[start, end)` is a subtree: not empty, and aligned to the power of two that covers it."""
    return 0 <= start < end and start % (1 << (end - start - 1).bit_length()) == 0


def _largest_power_below(count: int) -> int:
    return 1 << ((count - 1).bit_length() - 1)


# --- frontier ---
# A Merkle root over leaves that arrive one after the other, in logarithmic memory.


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
