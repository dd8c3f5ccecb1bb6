"""What identifies a version: the set of live documents, and the state of everything that shapes an answer.

`corpus_version` depends on the set alone, not on order, batches or time, and is updated in constant time per change.
It is a homomorphic set hash (LtHash with 1024 lanes of 16 bits; Bellare and Micciancio 1997, Lewi et al. 2019):

    member = canonical({"access", "chunks": [[chunk id, content hash], ...], "document_id", "metadata"})
    lanes  = SHAKE-128(member, 2048 bytes) read as 1024 little-endian unsigned 16-bit integers
    state  = sum of lanes over the live documents, each lane modulo 2**16
    corpus_version = SHA-256(state)

docs/decisions/002 says why not a hash over a sorted list.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from evidentia.contracts.access import AccessRule
from evidentia.contracts.canonical import encode_record, encode_struct, hash_record
from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, Sha256
from evidentia.contracts.provenance import BrokenLink, CommitRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from evidentia.contracts.ports import SupportsVectorCustody
    from evidentia.contracts.vectors import StoredVector, VectorIdentity


LANES = 1024
STATE_BYTES = 2 * LANES
_BATCH = 512


class CorpusMember(msgspec.Struct, frozen=True, kw_only=True):
    """A live document as the corpus version sees it."""

    access: AccessRule
    chunks: tuple[tuple[str, str], ...]
    document_id: DocumentId
    metadata: DocumentMetadata


class CorpusState:
    """The running sum; add and remove cost the same and commute."""

    def __init__(self, state: bytes = bytes(STATE_BYTES)) -> None:
        self._lanes: NDArray[np.uint16] = np.frombuffer(state, dtype="<u2").copy()

    def add(self, members: Iterable[bytes]) -> None:
        """Count members in, each as its canonical bytes."""
        for total in _sums(members):
            self._lanes += total

    def remove(self, members: Iterable[bytes]) -> None:
        """Count members out."""
        for total in _sums(members):
            self._lanes -= total

    def join(self, other: CorpusState) -> None:
        """Count in everything that another sum has counted."""
        self._lanes += other._lanes

    @property
    def state(self) -> bytes:
        """Return the lanes as stored."""
        return self._lanes.astype("<u2").tobytes()

    @property
    def version(self) -> CorpusVersion:
        """Return the version that this set of members has."""
        return CorpusVersion(hashlib.sha256(self.state).hexdigest())


def member_bytes(document_id: DocumentId, *, metadata: DocumentMetadata, access: AccessRule, chunks: Sequence[tuple[str, str]]) -> bytes:
    """Return the canonical bytes of a live document; `chunks` are (chunk id, content hash) in order of position."""
    return encode_struct(CorpusMember(access=access, chunks=tuple(chunks), document_id=document_id, metadata=metadata))


def evidence_state(corpus_version: CorpusVersion, *, sources: Sha256, vectors: str = "", contexts: str = "") -> EvidenceState:
    """Return the hash of everything that, with configuration and request, determines an answer.

    `vectors` is what `vectors_version` says of them, `contexts` what `contexts_version` says; a base whose documents were all indexed
    before there were contexts does not mention them. Parts that a base does not have are empty strings: vectors before the
    first embedding, and annotations, usage, models and policies as yet.
    """
    record: dict[str, object] = {
        "annotations": "",
        "corpus_version": corpus_version,
        "models": "",
        "policies": "",
        "sources": sources,
        "usage": "",
        "vectors": vectors,
    }
    if contexts:
        record["contexts"] = contexts
    return EvidenceState(hash_record(record))


def contexts_version(form: str, *, without: Sequence[DocumentId]) -> str:
    """Return what names the contexts that live documents are indexed with: their form, and the documents that have none, where some do."""
    return hash_record({"form": form, "without": sorted(without)}) if without else form


def _sums(members: Iterable[bytes]) -> Iterable[NDArray[np.uint16]]:
    gathered: list[bytes] = []
    for member in members:
        gathered.append(hashlib.shake_128(member).digest(STATE_BYTES))
        if len(gathered) == _BATCH:
            yield _sum(gathered)
            gathered.clear()
    if gathered:
        yield _sum(gathered)


def _sum(expansions: Sequence[bytes]) -> NDArray[np.uint16]:
    lanes = np.frombuffer(b"".join(expansions), dtype="<u2").reshape(-1, LANES)
    total: NDArray[np.uint16] = lanes.sum(axis=0, dtype=np.uint16)
    return total


# --- vector sets ---
# What identifies the vectors of a version: the space they live in and the set of live chunks that have one.
#
#     member  = canonical({"chunk_id", "vector": SHA-256 of the vector's little-endian 32-bit integers})
#     set     = the sum of the members as in `CorpusState`, so that order, batches and time leave no trace
#     vectors = SHA-256(canonical({"identity", "set": SHA-256(sum)})), empty where no live chunk has a vector
#
# Verification recomputes this for every version that can be read.

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
    periods = {sequence: (space, identity) for sequence, space, identity in archive.vector_space_periods()}
    early = [sequence for sequence in periods if sequence <= oldest]
    if len(early) > 1 or any(sequence >= len(commits) for sequence in periods):
        yield BrokenLink(check="vectors", where="spaces", problem="a space is in force where no version can tell")
        return
    in_force = periods[early[0]] if early else None
    for record in commits[oldest:]:
        in_force = periods.get(record.sequence, in_force)
        sums.apply(record.sequence)
        found = "" if in_force is None else vectors_version(in_force[1], sums.state(in_force[0]))
        if found != record.vectors:
            problem = "the live chunks do not have the committed vectors"
            yield BrokenLink(check="vectors", where=f"commit {record.sequence}", problem=problem)
            return
    stored = archive.vector_state()
    if stored != (b"" if in_force is None else sums.state(in_force[0]).state):
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
