"""The shapes in which a candidate may come, each read into the same fields. Refuses to guess at anything else.

Read are: `Candidate`; a mapping; a text, or bytes; a pair of one of these and its score; and objects with the attributes of a document
of LangChain (`page_content`), a node of LlamaIndex (`get_content()`, alone or under `node`) or a document of Haystack (`content`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from evidentia.contracts.retrieval import Candidate
from evidentia.sources.intake_faults import Fault, RefusedError

_ABSENT: Final = object()
_PAIR: Final = 2

_CONTENT_NAMES: Final = ("content", "text", "page_content", "body")
_ID_NAMES: Final = ("own_id", "chunk_id", "id", "_id")
_ORIGIN_NAMES: Final = ("origin", "source", "url", "uri")
_ORIGIN_IN_METADATA: Final = ("origin", "source", "url", "uri", "file_path")


class Fields(NamedTuple):
    """What a source says of a candidate, not yet believed."""

    content: object
    own_id: object = None
    score: object = None
    origin: object = None
    title: object = None
    updated_at: object = None
    media_type: object = None
    content_type: object = None
    confidence: object = None
    access: object = None
    metadata: object = None


def fields_of(proposed: object) -> Fields:
    """Return the fields of a proposal in any of the shapes, or raise RefusedError."""
    if isinstance(proposed, tuple) and len(proposed) == _PAIR:
        return _single_fields(proposed[0])._replace(score=proposed[1])
    return _single_fields(proposed)


def _single_fields(proposed: object) -> Fields:
    if isinstance(proposed, Candidate):
        return Fields(
            proposed.content,
            proposed.own_id,
            proposed.score,
            proposed.origin,
            proposed.title,
            proposed.updated_at,
            proposed.media_type,
            proposed.content_type,
            proposed.confidence,
            proposed.access,
            proposed.metadata,
        )
    if isinstance(proposed, (str, bytes, bytearray)):
        return Fields(content=proposed)
    if isinstance(proposed, Mapping):
        return _with_metadata(_mapping_fields(proposed))
    return _with_metadata(_object_fields(proposed))


def _mapping_fields(proposed: Mapping[object, object]) -> Fields:
    content = _first(proposed, _CONTENT_NAMES)
    if content is None:
        raise RefusedError(Fault.NOT_A_CANDIDATE)
    others = {name: proposed.get(name) for name in ("score", "title", "updated_at", "media_type", "content_type", "confidence", "access")}
    return Fields(
        content=content,
        own_id=_first(proposed, _ID_NAMES),
        origin=_first(proposed, _ORIGIN_NAMES),
        metadata=_first(proposed, ("metadata", "meta")),
        **others,
    )


def _object_fields(proposed: object) -> Fields:
    content = getattr(proposed, "page_content", _ABSENT)
    if content is not _ABSENT:
        return Fields(content=content, own_id=getattr(proposed, "id", None), metadata=getattr(proposed, "metadata", None))
    node = getattr(proposed, "node", proposed)
    get_content = getattr(node, "get_content", None)
    if callable(get_content):
        own_id, metadata = getattr(node, "node_id", None), getattr(node, "metadata", None)
        return Fields(content=get_content(), own_id=own_id, metadata=metadata, score=getattr(proposed, "score", None))
    content = getattr(proposed, "content", _ABSENT)
    if content is _ABSENT:
        raise RefusedError(Fault.NOT_A_CANDIDATE)
    own_id, metadata = getattr(proposed, "id", None), getattr(proposed, "meta", None)
    return Fields(content=content, own_id=own_id, metadata=metadata, score=getattr(proposed, "score", None))


def _with_metadata(fields: Fields) -> Fields:
    """Return the fields with what documents of these frameworks keep in their metadata."""
    metadata = fields.metadata
    if not isinstance(metadata, Mapping):
        return fields
    return fields._replace(
        origin=fields.origin if fields.origin is not None else _first(metadata, _ORIGIN_IN_METADATA),
        title=fields.title if fields.title is not None else metadata.get("title"),
        updated_at=fields.updated_at if fields.updated_at is not None else metadata.get("updated_at"),
    )


def _first(mapping: Mapping[object, object], names: tuple[str, ...]) -> object:
    """Return the first of the values that is there; None counts as absent."""
    return next((value for name in names if (value := mapping.get(name)) is not None), None)
