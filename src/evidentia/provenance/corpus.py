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
from evidentia.contracts.canonical import encode_struct, hash_record
from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, Sha256

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from evidentia.contracts.ids import SourceId

LANES = 1024
STATE_BYTES = 2 * LANES
_BATCH = 512


class Member(msgspec.Struct, frozen=True, kw_only=True):
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
    return encode_struct(Member(access=access, chunks=tuple(chunks), document_id=document_id, metadata=metadata))


def sources_hash(descriptors: Mapping[SourceId, bytes]) -> Sha256:
    """Return the hash of the registered sources, given the canonical bytes of each as stored, whatever their order.

    The bytes are those of the day on which it was registered, so that a field that descriptors gain later changes no hash.
    """
    ordered = [descriptor for _, descriptor in sorted(descriptors.items())]
    return Sha256(hashlib.sha256(b"[" + b",".join(ordered) + b"]").hexdigest())


def evidence_state(corpus_version: CorpusVersion, *, sources: Sha256, vectors: str = "") -> EvidenceState:
    """Return the hash of everything that, with configuration and request, determines an answer.

    `vectors` is what `vector_sets` says of them. Parts that a base does not have are empty strings: vectors before the
    first embedding, and annotations, usage, models and policies as yet.
    """
    record = {
        "annotations": "",
        "corpus_version": corpus_version,
        "models": "",
        "policies": "",
        "sources": sources,
        "usage": "",
        "vectors": vectors,
    }
    return EvidenceState(hash_record(record))


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
