"""Proofs about a log for somebody who keeps nothing but its head: that one record is in it, and that it only grew.

Whoever checks needs no more than the line, the path and SHA-256; docs/decision-log.md says how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.decisions import LogHead, RecordProof
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import Sha256
from evidentia.provenance import merkle
from evidentia.provenance.decision_chain import CHECKPOINT, Checkpoint, decode_checkpoint, leaf_of, split_line
from evidentia.provenance.decision_lines import decode_header

if TYPE_CHECKING:
    from collections.abc import Iterable


class GrowthProof(msgspec.Struct, frozen=True, kw_only=True):
    """The hashes that show an earlier head of a log to be the beginning of a later one."""

    first: LogHead
    second: LogHead
    path: tuple[Sha256, ...]


class LogTree:
    """The Merkle tree over one log, in memory: 32 bytes a record. Of what was retired only the largest subtrees are known."""

    def __init__(self, log: str, lines: Iterable[bytes]) -> None:
        self.log = log
        self._before = Checkpoint()
        self._leaves: list[bytes] = []
        self._lines: list[bytes] = []
        for line in lines:
            if line.startswith(CHECKPOINT):
                self._before = decode_checkpoint(line)
            else:
                self._leaves.append(leaf_of(split_line(line)))
                self._lines.append(line)
        self._known = _subtrees(self._before)

    @property
    def size(self) -> int:
        """Return how many records the log has, those that were retired among them."""
        return self._before.size + len(self._leaves)

    def root(self, size: int) -> bytes:
        """Return the root over the first records."""
        return merkle.range_root(0, size, complete=self._complete)

    def prove_record(self, seq: int, *, size: int | None = None) -> RecordProof:
        """Return the proof of one record against the head of that size; NotFoundError for one that is not there any more."""
        of = self.size if size is None else size
        if not self._before.size < seq <= of <= self.size:
            raise NotFoundError("record", f"{self.log}:{seq}")
        path = merkle.inclusion_path(seq - 1, of, complete=self._complete, ragged=lambda start: self._range(start, of))
        return RecordProof(
            log=self.log,
            seq=seq,
            size=of,
            root=Sha256(self.root(of).hex()),
            line=self._lines[seq - 1 - self._before.size].decode(),
            path=tuple(Sha256(each.hex()) for each in path),
        )

    def prove_growth(self, first: LogHead, second: LogHead) -> GrowthProof:
        """Return the proof that one head comes after the other; NotFoundError when what it takes was retired or never was."""
        if not 0 < first.size <= second.size <= self.size:
            raise NotFoundError("head", f"{self.log}:{first.size}")
        path = merkle.consistency_path(first.size, second.size, complete=self._complete)
        return GrowthProof(first=first, second=second, path=tuple(Sha256(each.hex()) for each in path))

    def _range(self, start: int, end: int) -> bytes:
        return merkle.range_root(start, end, complete=self._complete)

    def _complete(self, level: int, index: int) -> bytes:
        start, retired = index << level, self._before.size
        if start + (1 << level) <= retired:
            try:
                return self._known[level, index]
            except KeyError:
                raise NotFoundError("record", f"{self.log}:{start + 1}") from None
        if start < retired:
            return merkle.node_hash(self._complete(level - 1, index << 1), self._complete(level - 1, (index << 1) | 1))
        hashes = self._leaves[start - retired : start - retired + (1 << level)]
        while len(hashes) > 1:
            hashes = merkle.pair_level(hashes)
        return hashes[0]


def verify_record(proof: RecordProof, head: LogHead) -> bool:
    """Tell whether a record stands in the log with this head, at the seq it says."""
    try:
        line = split_line(proof.line.encode())
        path = [bytes.fromhex(each) for each in proof.path]
        is_there = (decode_header(line.header).seq, proof.size, proof.log) == (proof.seq, head.size, head.log)
        return is_there and merkle.verify_inclusion(
            leaf_of(line), index=proof.seq - 1, size=head.size, path=path, root=bytes.fromhex(head.root)
        )
    except ValueError:  # a MsgspecError is one
        return False


def verify_growth(proof: GrowthProof) -> bool:
    """Tell whether the later head has everything the earlier one had, in its place."""
    first, second = proof.first, proof.second
    try:
        return first.log == second.log and merkle.verify_consistency(
            first=first.size,
            second=second.size,
            path=[bytes.fromhex(each) for each in proof.path],
            first_root=bytes.fromhex(first.root),
            second_root=bytes.fromhex(second.root),
        )
    except ValueError:
        return False


def _subtrees(before: Checkpoint) -> dict[tuple[int, int], bytes]:
    """Return the retired subtrees whose roots were kept, by level and place."""
    known: dict[tuple[int, int], bytes] = {}
    start = 0
    for root in before.edge:
        level = (before.size - start).bit_length() - 1
        known[level, start >> level] = bytes.fromhex(root)
        start += 1 << level
    return known
