"""Judged sets of other people in one plain form: documents, questions with their earlier turns, graded judgements.

Each lies in a folder of `EVIDENTIA_DATA` in BEIR's layout and is read as it stands. What may be fitted to is marked as a development set;
all else is for reporting only. Refuses a set whose folder is absent, by name.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evidentia.evaluation.datasets import load_dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))


class Document(NamedTuple):
    """A document under the id that the judgements use; its path is the id, where ids are paths."""

    document_id: str
    title: str
    text: str
    metadata: Mapping[str, Any]  # Any: every set has fields of its own

    @property
    def path(self) -> str:
        """Return the path of a document whose id is one, else nothing."""
        return self.document_id if "/" in self.document_id else ""


class Question(NamedTuple):
    """A question with the turns before it, oldest first, and the grades of its documents; without any it is not judged."""

    question_id: str
    text: str
    turns: tuple[Mapping[str, str], ...]
    grades: Mapping[str, int]
    metadata: Mapping[str, Any]  # Any: every set has fields of its own

    @property
    def is_judged(self) -> bool:
        """Tell whether a document is relevant to it."""
        return any(grade > 0 for grade in self.grades.values())


class Layout(NamedTuple):
    """Where a set lies and what of it is asked."""

    folder: str
    split: str
    is_dev: bool
    what: str
    with_turns: bool = False
    keep: Callable[[Mapping[str, Any], Mapping[str, int]], bool] | None = None
    """Which questions belong to it, by their metadata and the databases' places; None: all."""


def _place(metadata: Mapping[str, Any], places: Mapping[str, int]) -> int:
    return places[metadata["db_id"]] % 2


SETS: dict[str, Layout] = {
    "scifact": Layout("scifact", "train", is_dev=True, what="claims to abstracts, train split"),
    "covidqa": Layout("questions_dev/covidqa", "dev", is_dev=True, what="expert questions to passages of articles"),
    "xquad": Layout("questions_dev/xquad", "dev", is_dev=True, what="questions to Wikipedia paragraphs"),
    "conversations": Layout(
        "conversations_dev", "dev", is_dev=True, what="last turns of conversations, with the earlier turns", with_turns=True
    ),
    "conversations_alone": Layout("conversations_dev", "dev", is_dev=True, what="the same without the earlier turns"),
    "wikitables": Layout("wikitables_dev/retrieval", "dev", is_dev=True, what="questions to tables"),
    "quotes": Layout("quotes_dev", "dev", is_dev=True, what="commit messages with quotations to source files"),
    "spider": Layout(
        "spider_schema", "test", is_dev=True, what="questions to tables' schemas, even databases", keep=lambda *of: _place(*of) == 0
    ),
    "scifact_test": Layout("scifact", "test", is_dev=False, what="claims to abstracts, test split"),
    "limit_small": Layout("limit_small", "test", is_dev=False, what="who likes what: exact words among 46 documents"),
    "spider_test": Layout(
        "spider_schema", "test", is_dev=False, what="questions to tables' schemas, odd databases", keep=lambda *of: _place(*of) == 1
    ),
}


class AbsentSetError(Exception):
    """A set is not where it should be."""


class JudgedSet:
    """One set, read when it is asked for."""

    def __init__(self, name: str, *, data: Path = DATA) -> None:
        if name not in SETS:
            raise AbsentSetError(f"'{name}' is not a judged set; there are {', '.join(SETS)}")
        self.name = name
        self.layout = SETS[name]
        self.folder = data / self.layout.folder
        if not (self.folder / "corpus.jsonl").is_file():
            raise AbsentSetError(
                f"set '{name}' is not in '{self.folder}'; put the judged sets there, or name their folder in EVIDENTIA_DATA"
            )

    @property
    def corpus(self) -> Path:
        """Return the file of the documents, one a line, which a base takes in as it is."""
        return self.folder / "corpus.jsonl"

    @cached_property
    def corpus_digest(self) -> str:
        """Return what tells this corpus from any other."""
        return hashlib.sha256(self.corpus.read_bytes()).hexdigest()

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """Return the documents in the order of the file."""
        return tuple(
            Document(line["_id"], line.get("title") or "", line.get("text") or "", line.get("metadata") or {})
            for line in _lines(self.corpus)
        )

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """Return every question of the set; those of other splits are left out, those that nobody judged stay where the set labels them."""
        dataset = load_dataset(self.folder, split=self.layout.split)
        lines = list(_lines(self.folder / "queries.jsonl"))
        databases = sorted({str(line["metadata"]["db_id"]) for line in lines}) if self.layout.keep else []
        places = {database: place for place, database in enumerate(databases)}
        return tuple(
            self._question(line, dataset.qrels.get(line["_id"], {}))
            for line in lines
            if line["_id"] in dataset.qrels or "answerability" in line.get("metadata", {})
            if self.layout.keep is None or self.layout.keep(line["metadata"], places)
        )

    def _question(self, line: Mapping[str, Any], grades: Mapping[str, int]) -> Question:
        metadata = line.get("metadata") or {}
        turns = tuple(metadata.get("turns", ())) if self.layout.with_turns else ()
        return Question(line["_id"], line["text"], turns, grades, metadata)


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
