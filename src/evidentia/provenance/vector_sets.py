"""What identifies the vectors of a version: the space they live in and the set of live chunks that have one.

    member  = canonical({"chunk_id", "vector": SHA-256 of the vector's little-endian 32-bit integers})
    set     = the sum of the members as in `corpus`, so that order, batches and time leave no trace
    vectors = SHA-256(canonical({"identity", "set": SHA-256(sum)})), empty where no live chunk has a vector

Verification recomputes this for every version that can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.canonical import encode_record, hash_record
from evidentia.contracts.provenance import BrokenLink
from evidentia.provenance.corpus import STATE_BYTES, CorpusState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.ports import SupportsVectorCustody
    from evidentia.contracts.provenance import CommitRecord
    from evidentia.contracts.vectors import StoredVector, VectorIdentity

_EMPTY = bytes(STATE_BYTES)
_PENDING_MEMBERS = 256


def vector_member(chunk_id: str, *, vector_hash: str) -> bytes:
    """Return the canonical bytes of a live chunk's vector."""
    return encode_record({"chunk_id": chunk_id, "vector": vector_hash})


def vectors_version(identity: VectorIdentity, state: CorpusState) -> str:
    """Return what a commit record says of the vectors of a version."""
    if state.state == _EMPTY:
        return ""
    described = {
        "dimension": identity.dimension,
        "model": identity.model,
        "name": identity.name,
        "normalisation": identity.normalisation,
    }
    return hash_record({"identity": described, "set": state.version})


def vector_faults(archive: SupportsVectorCustody, commits: Sequence[CommitRecord]) -> Iterator[BrokenLink]:
    """Recompute the vectors of every readable version from those that are stored."""
    oldest = commits[-1].oldest_readable
    sums = _SpaceSums(oldest=oldest)
    for vector in archive.vector_members():
        sums.count(vector)
    for sequence in sorted(sums.sequences - {record.sequence for record in commits}):
        yield BrokenLink(check="vectors", where=f"commit {sequence}", problem="vectors speak of a commit that is not there")
    reigns = {sequence: (space, identity) for sequence, space, identity in archive.vector_reigns()}
    early = [sequence for sequence in reigns if sequence <= oldest]
    if len(early) > 1 or any(sequence >= len(commits) for sequence in reigns):
        yield BrokenLink(check="vectors", where="spaces", problem="a space is in force where no version can tell")
        return
    ruling = reigns[early[0]] if early else None
    for record in commits[oldest:]:
        ruling = reigns.get(record.sequence, ruling)
        sums.apply(record.sequence)
        found = "" if ruling is None else vectors_version(ruling[1], sums.state(ruling[0]))
        if found != record.vectors:
            problem = "the live chunks do not have the committed vectors"
            yield BrokenLink(check="vectors", where=f"commit {record.sequence}", problem=problem)
            return
    stored = archive.vector_state()
    if stored != (b"" if ruling is None else sums.state(ruling[0]).state):
        yield BrokenLink(check="vectors", where="vector state", problem="the stored running sum is not that of the live vectors")


class _SpaceSums:
    """The running sum of each space, brought from one commit to the next; changes are kept as sums rather than lists."""

    def __init__(self, *, oldest: int) -> None:
        self._oldest = oldest
        self._changes: dict[int, dict[int, CorpusState]] = {}
        self._pending: dict[tuple[int, int], tuple[list[bytes], list[bytes]]] = {}
        self._states: dict[int, CorpusState] = {}

    @property
    def sequences(self) -> set[int]:
        """Return the commits that vectors speak of."""
        return set(self._changes)

    def count(self, vector: StoredVector) -> None:
        """Take a vector into account; what was there before the oldest version counts from there on."""
        added = max(vector.added_at, self._oldest)
        if vector.removed_at is not None and vector.removed_at <= added:
            return
        member = vector_member(vector.chunk_id, vector_hash=vector.vector_hash)
        self._note(added, vector.space, member, side=0)
        if vector.removed_at is not None:
            self._note(vector.removed_at, vector.space, member, side=1)

    def apply(self, sequence: int) -> None:
        """Bring every sum from the commit before to this one."""
        for space, total in self._changes.get(sequence, {}).items():
            self._settle(sequence, space)
            self.state(space).join(total)

    def state(self, space: int) -> CorpusState:
        """Return the running sum of a space."""
        return self._states.setdefault(space, CorpusState())

    def _note(self, sequence: int, space: int, member: bytes, *, side: int) -> None:
        self._changes.setdefault(sequence, {}).setdefault(space, CorpusState())
        pending = self._pending.setdefault((sequence, space), ([], []))
        pending[side].append(member)
        if len(pending[side]) >= _PENDING_MEMBERS:
            self._settle(sequence, space)

    def _settle(self, sequence: int, space: int) -> None:
        coming, going = self._pending.pop((sequence, space), ([], []))
        self._changes[sequence][space].add(coming)
        self._changes[sequence][space].remove(going)
