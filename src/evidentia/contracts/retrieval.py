"""What retrievers and rewriters hand to the engine."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evidentia.contracts.ids import ChunkId, SourceId


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A fragment a source proposes, with its fixed-point score; external sources also carry the content."""

    chunk_id: ChunkId
    source_id: SourceId
    score: int
    content: str | None = None
    origin: str = ""
    metadata: Mapping[str, str] = msgspec.field(default_factory=dict)


class Rewriting(msgspec.Struct, frozen=True, kw_only=True):
    """What a rewriter made of a question; `problem` says why it is the question itself, and is empty when all went well."""

    query: str
    problem: str = ""
