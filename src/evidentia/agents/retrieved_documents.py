"""The shapes in which retrieved documents come, each read into the fields of `record_retrieval_result`.

Refuses what names no source: a document without one would pass a list of blocked sources unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.record_values import checked_numbers, checked_text, checked_texts, listed
from evidentia.contracts.judging import NO_TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evidentia.sources.intake import Fields

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "relevance_score": ("relevance_score", "score", "similarity"),
    "source": ("source",),
    "collection": ("collection",),
    "age_days": ("age_days",),
    "created_at": ("created_at",),
    "chunk_id": ("chunk_id",),
    "title": ("title",),
}
"""The fields of a document, and what other libraries call them."""
_IDS: Final = ("id", "document_id", "source_id")
"""What names the source of a document that says no other."""
_ORIGINS: Final = ("source", "origin", "url", "uri", "file_path", "file_name")
"""What names it in the metadata of a framework's document, which goes before its id."""
_TYPED: Final[Mapping[str, type | tuple[type, ...]]] = {"relevance_score": Real, "age_days": Real, "created_at": date}
"""Of metadata, which is anybody's, only values of these types are read."""
_PAIR: Final = 2
_EXPECTED: Final = (
    "expected the name of a source, a mapping or an object with `source` and `relevance_score`, a (document, score) pair, or a document "
    "of LangChain, LlamaIndex or Haystack that names its source or id"
)
_DISTANCES: Final = "what Chroma returns holds distances, which are no relevance; give `scores`, one from 0 to 1 for each of {count}"


def described_documents(documents: object, *, source: str, scores: Iterable[float] | None) -> list[dict[str, Any]]:
    """Return documents in the names of `record_retrieval_result`; `source` is for those that do not name their own.

    Raises InvalidRecordError for a shape that is not known, for a document without a source, and for a number of scores that is another.
    """
    ranked = checked_numbers(scores, "scores")
    given = _chroma_documents(documents) if isinstance(documents, Mapping) else [*_listed_documents(documents)]
    if ranked and len(ranked) != len(given):
        raise InvalidRecordError("scores", f"there are {len(ranked)} for {len(given)} documents; give one for each")
    if isinstance(documents, Mapping) and not ranked and given:
        raise InvalidRecordError("scores", _DISTANCES.format(count=len(given)))
    described = [_described(each, f"documents[{place}]", source=source) for place, each in enumerate(given)]
    return [{**each, "relevance_score": score} for each, score in zip(described, ranked, strict=True)] if ranked else described


def texts_by_name(text: str, names: Iterable[object]) -> Mapping[str, str]:
    """Return a text under every name that it may be cited by."""
    checked = checked_text(text, "text")
    return {name: checked for name in names if isinstance(name, str) and name}


def cited_texts(texts: object, citations: Sequence[str]) -> Mapping[str, str]:
    """Return what cited sources say: by citation, or one text for each citation in order."""
    if texts is None:
        return NO_TEXTS
    if isinstance(texts, Mapping):
        return {checked_text(name, "texts"): checked_text(text, f"texts[{name!r}]") for name, text in texts.items()}
    given = checked_texts(texts, "texts")
    if len(given) != len(citations):
        raise InvalidRecordError("texts", f"there are {len(given)} for {len(citations)} citations; give one for each, or a mapping")
    joined: dict[str, str] = {}
    for citation, text in zip(citations, given, strict=True):
        joined[citation] = f"{joined[citation]}\n{text}" if citation in joined else text
    return joined


def named_passages(passages: object) -> list[tuple[str, str]]:
    """Return passages as pairs of a name and a text: from texts, texts by their names, or documents that hold a text."""
    if isinstance(passages, Mapping) and all(isinstance(text, str) for text in passages.values()):
        return [(checked_text(name, "passages"), checked_text(text, f"passages[{name!r}]")) for name, text in passages.items()]
    given = _chroma_documents(passages) if isinstance(passages, Mapping) else [*_listed_documents(passages)]
    return [_passage(each, number) for number, each in enumerate(given, start=1)]


def _passage(passage: object, number: int) -> tuple[str, str]:
    field, name = f"passages[{number - 1}]", f"passage-{number}"
    if isinstance(passage, str):
        return name, checked_text(passage, field)
    described = _described(passage, field, source=name)
    if not described.get("text"):
        raise InvalidRecordError(field, "it holds no text to compare with; give a text, or a document with its content")
    return described.get("chunk_id") or described["source"], checked_text(described["text"], field)


def _listed_documents(documents: object) -> Iterable[object]:
    """Return a list of documents; one document of a framework is none, though iterating over it would give its fields."""
    if any(hasattr(documents, name) for name in ("page_content", "get_content", "node", "model_fields")):
        raise InvalidRecordError("documents", f"expected a list of documents, not one {type(documents).__name__}")
    return listed(documents, "documents")


def _described(document: object, field: str, *, source: str) -> dict[str, Any]:
    """Return one document in the names of `record_retrieval_result`."""
    if isinstance(document, str):
        return {"source": document or source} if document or source else _refuse(document, field)
    if isinstance(document, tuple) and len(document) == _PAIR and not isinstance(document[0], Real):
        return {**_described(document[0], field, source=source), "relevance_score": document[1]}
    read = _read(document)
    metadata = read.metadata if read is not None and isinstance(read.metadata, Mapping) else {}
    described = {**_named(metadata, is_typed=True), **_named(document, is_typed=False)}
    if read is not None:
        own = {"relevance_score": read.score, "title": read.title, "text": read.content}
        described = {**{name: value for name, value in own.items() if value is not None}, **described}
    own_id = _first(document, _IDS) or (None if read is None else read.own_id)
    described["source"] = _first(document, ("source",)) or _first(metadata, _ORIGINS) or _first(document, _ORIGINS) or own_id or source
    if not described["source"]:
        return _refuse(document, field)
    if "chunk_id" not in described and isinstance(own_id, str) and own_id != described["source"]:
        described["chunk_id"] = own_id
    return described


def _read(document: object) -> Fields | None:
    """Return what a document of a framework holds; None for one that holds no text."""
    from evidentia.sources.intake import fields_of
    from evidentia.sources.intake_fields import RefusedError

    try:
        return fields_of(document)
    except RefusedError:
        return None


def _named(document: object, *, is_typed: bool) -> dict[str, Any]:
    found = {field: _first(document, names) for field, names in _FIELDS.items()}
    return {
        field: value
        for field, value in found.items()
        if value is not None and not (is_typed and not isinstance(value, _TYPED.get(field, str)))
    }


def _first(document: object, names: Iterable[str]) -> Any:  # noqa: ANN401 - the record method checks it
    values = (document.get(name) if hasattr(document, "get") else getattr(document, name, None) for name in names)
    return next((value for value in values if value is not None and value != ""), None)


def _chroma_documents(result: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Return what a query of Chroma found, over all its questions; any other mapping is no list of documents."""
    ids = result.get("ids")
    if not isinstance(ids, list):
        raise InvalidRecordError("documents", f"expected a list of documents, not a mapping; {_EXPECTED}")
    columns = {name: _flat(result.get(name)) for name in ("ids", "documents", "metadatas")}
    rows = [{name: column[place] for name, column in columns.items() if place < len(column)} for place in range(len(columns["ids"]))]
    return [{"id": row["ids"], "content": row.get("documents"), "metadata": row.get("metadatas") or {}} for row in rows]


def _flat(column: object) -> list[Any]:
    if not isinstance(column, list):
        return []
    return [each for row in column for each in row] if column and isinstance(column[0], list) else list(column)


def _refuse(document: object, field: str) -> dict[str, Any]:
    raise InvalidRecordError(field, f"it names no source: {_EXPECTED}; this is a {type(document).__name__}")
