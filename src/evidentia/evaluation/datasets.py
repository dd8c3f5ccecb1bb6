"""Judged collections in BEIR's layout: `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`.

A malformed line is refused with its file and number, never skipped. The corpus is read as a stream and never held in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec

from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.errors import InvalidFieldError
from evidentia.evaluation.measures import LARGEST_GRADE
from evidentia.evaluation.runs import line_error, numbered_lines

Identifier: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
QRELS_HEADER: Final = ("query-id", "corpus-id", "score")

_FIELD: Final = "dataset"
_GRADE: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_Record = TypeVar("_Record", bound=msgspec.Struct)


class CorpusDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document of the collection, under the id that the judgments use."""

    document_id: Identifier = msgspec.field(name="_id")
    title: str = ""
    text: str


class JudgedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query of the collection, under the id that the judgments use."""

    query_id: Identifier = msgspec.field(name="_id")
    text: str


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """One split of a collection: its judged queries in the order of the file, and their grades by document id."""

    folder: Path
    split: str
    queries: tuple[JudgedQuery, ...]
    qrels: Mapping[str, Mapping[str, int]]

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the corpus in the order of the file; reads it anew each time, and leaves repeated ids to the ingest."""
        for _, document in _read_records(self.folder / "corpus.jsonl", CorpusDocument):
            yield document


def load_dataset(folder: Path, *, split: str = "test", needs_corpus: bool = True) -> Dataset:
    """Return one split; refuses a judged query that `queries.jsonl` does not hold. The corpus is not read here, and may be elsewhere.

    Judgments of documents that the corpus does not hold stay: they count as relevant and cannot be found.
    """
    if not folder.is_dir():
        raise InvalidFieldError(_FIELD, f"'{folder}' is not a folder")
    for name in ("corpus.jsonl", "queries.jsonl") if needs_corpus else ("queries.jsonl",):
        if not (folder / name).is_file():
            raise InvalidFieldError(_FIELD, f"'{folder}' has no file '{name}'")
    qrels_path = _path_of_split(folder, split)
    texts = _read_queries(folder / "queries.jsonl")
    qrels = _read_qrels(qrels_path, texts)
    queries = tuple(query for query_id, query in texts.items() if query_id in qrels)
    return Dataset(folder=folder, split=split, queries=queries, qrels=qrels)


def available_splits(folder: Path) -> tuple[str, ...]:
    """Return the names of the splits that have judgments, sorted."""
    return tuple(sorted(path.stem for path in (folder / "qrels").glob("*.tsv") if path.is_file()))


def _path_of_split(folder: Path, split: str) -> Path:
    splits = available_splits(folder)
    if split not in splits:
        known = ", ".join(f"'{name}'" for name in splits) or "none"
        raise InvalidFieldError("split", f"'{split}' is not a split of '{folder}'; available: {known}")
    return folder / "qrels" / f"{split}.tsv"


def _read_queries(path: Path) -> dict[str, JudgedQuery]:
    queries: dict[str, JudgedQuery] = {}
    for number, query in _read_records(path, JudgedQuery):
        if query.query_id in queries:
            raise line_error(path, number, f"query '{query.query_id}' is there twice", field=_FIELD)
        queries[query.query_id] = query
    return queries


def _read_qrels(path: Path, queries: Mapping[str, JudgedQuery]) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    lines = numbered_lines(path, field=_FIELD)
    _check_header(path, next(lines, (1, "")))
    for number, line in lines:
        query_id, document_id, grade = _parse_judgment(path, number, line)
        if query_id not in queries:
            raise line_error(path, number, f"query '{query_id}' is not in 'queries.jsonl'", field=_FIELD)
        earlier = qrels.setdefault(query_id, {}).setdefault(document_id, grade)
        if earlier != grade:
            raise line_error(path, number, f"query '{query_id}', document '{document_id}': graded {grade}, before {earlier}", field=_FIELD)
    if not qrels:
        raise InvalidFieldError(_FIELD, f"'{path}' holds no judgments")
    return qrels


def _check_header(path: Path, numbered: tuple[int, str]) -> None:
    number, line = numbered
    if tuple(line.split("\t")) != QRELS_HEADER:
        # Without this check the first judgment of a file without a header would be lost.
        raise line_error(path, number, f"expected the header '{' '.join(QRELS_HEADER)}' with tabs, found '{line}'", field=_FIELD)


def _parse_judgment(path: Path, number: int, line: str) -> tuple[str, str, int]:
    columns = line.split("\t")
    if len(columns) != len(QRELS_HEADER):
        raise line_error(path, number, f"expected 3 columns with tabs, found {len(columns)}", field=_FIELD)
    query_id, document_id, grade = columns
    if not query_id or not document_id:
        raise line_error(path, number, "an id is empty", field=_FIELD)
    if not _GRADE.fullmatch(grade):
        raise line_error(path, number, f"score '{grade}' is not an integer", field=_FIELD)
    if int(grade) > LARGEST_GRADE:
        raise line_error(path, number, f"score '{grade}' is greater than {LARGEST_GRADE}", field=_FIELD)
    return query_id, document_id, int(grade)


def _read_records(path: Path, kind: type[_Record]) -> Iterator[tuple[int, _Record]]:
    decode = json_decoder(kind)
    for number, line in numbered_lines(path, field=_FIELD):
        try:
            record = decode(line)
        except msgspec.DecodeError as error:
            problem = str(error)
            raise line_error(path, number, problem[:1].lower() + problem[1:], field=_FIELD) from error
        yield number, record
