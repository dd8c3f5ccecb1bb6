"""Vectors as messages: which space they live in, which chunks still lack one, and how an embedding went.

A vector is a row of integers: each component times 2**SCALE_BITS, rounded half to even. Sums of products of such rows
are exact, so that every machine that holds the same rows finds the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from evidentia.contracts.documents import CommitSummary
from evidentia.contracts.ids import ChunkId, Sha256

if TYPE_CHECKING:
    from collections.abc import Mapping

UNIT_SCALE_BITS = 22
"""Components of unit vectors are integers at 2**-22."""
RAW_SCALE_BITS = 14
"""Components of vectors that keep their length are integers at 2**-14, which bounds them by LARGEST_COMPONENT / 2**14 = 256."""
LARGEST_COMPONENT = 1 << 22
"""No component is larger than this, in either scale."""

Normalisation = Literal["unit", "none"]

SCALE_BITS: Final[Mapping[Normalisation, int]] = {"unit": UNIT_SCALE_BITS, "none": RAW_SCALE_BITS}
"""How many bits of a component lie behind the point."""


class VectorIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What makes two vectors comparable; vectors of two identities never meet in one search."""

    model: Sha256
    """Hash of everything that decides a vector: weights, tokenizer, length limit, pooling, prefixes."""
    dimension: int
    normalisation: Normalisation
    name: str
    """For people; two identities with different names and the same rest are different all the same."""


class PendingChunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A live chunk without a vector; `key` is the store's own name for it."""

    key: int
    content_hash: Sha256
    text: str


class StoredVector(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The vector of a chunk in one of its document's versions; it counts from `added_at` on, until `removed_at`."""

    space: int
    """The store's own number for the vector's identity."""
    chunk_id: ChunkId
    vector_hash: Sha256
    added_at: int
    removed_at: int | None


class EmbeddingState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a base is embedded; identity None means that it holds no vectors."""

    identity: VectorIdentity | None
    embedded: int
    chunks: int


class EmbedProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far an embedding has come; `commit` is set when vectors have just become durable."""

    embedded: int
    chunks: int
    commit: CommitSummary | None = None


class EmbedReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an embedding did: chunks given a vector, how many of them by reusing that of the same text, and the state it left."""

    identity: VectorIdentity | None
    embedded: int
    reused: int
    remaining: int
    evidence_state: str
    sequence: int
