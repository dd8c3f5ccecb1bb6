"""Which of many tables a question is about, from their cards alone.

Words of the question are looked for in the names of tables, files and columns and in samples (BM25F: Robertson, Zaragoza and Taylor 2004),
in integers. A second pass lifts the tables of a document that explains more: tables are asked together. Statistics are those
of the cards given, so nothing that the caller may not see decides. Scores compare within one ranking only.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.decoding import decode_json
from evidentia.query.words import words_of
from evidentia.text.english import FUNCTION_WORDS
from evidentia.text.tokens import Tokeniser
from evidentia.text.weights import idf_fixed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.tables import TableCard, TableId


MAX_WORDS: Final = 128
_MILLI: Final = 1000
_BITS: Final = 16
_ASKING: Final = frozenset(
    "show list find give tell display return get provide count number many total name names different distinct average maximum "  # noqa: SIM905
    "minimum highest lowest most least order ordered descending ascending sorted sort".split()
)
"""Words of questions that seldom say which table is meant; they count a quarter."""


class TableVectors(NamedTuple):
    """A question and the cards of tables as rows of integers of one encoder, of length one at 2^scale_bits."""

    question: NDArray[np.int32]
    cards: Mapping[TableId, NDArray[np.int32]]
    scale_bits: int = 22


class RankedTable(NamedTuple):
    """A table with its score (an integer, 0 or more; 2^16 is a word's whole weight) and what spoke for it."""

    table_id: TableId
    score: int
    reasons: tuple[str, ...]


def card_text(card: TableCard) -> str:
    """Return what an encoder is shown of a card."""
    named = " ".join(dict.fromkeys(part for part in (card.file_name, card.sheet_name, card.title) if part))
    return f"{named}. columns: {', '.join(column.name for column in card.columns)}"


class _Card(NamedTuple):
    table_id: TableId
    document: str
    names: Counter[str]
    files: Counter[str]
    columns: Counter[str]
    values: Counter[str]
    column_names: tuple[tuple[str, ...], ...]
    width: int


class TableIndex:
    """The words of some cards with their statistics; made once where many questions meet the same cards."""

    def __init__(self, cards: Sequence[TableCard]) -> None:
        self._tokeniser = Tokeniser()
        self._cards = [self._read(card) for card in sorted(cards, key=lambda card: card.table_id)]
        containing = Counter(term for card in self._cards for term in {**card.names, **card.columns, **card.values, **card.files})
        count = len(self._cards)
        self._idf = {term: idf_fixed("lucene", documents=count, containing=number) for term, number in containing.items()}
        self._mean_width = max(sum(card.width for card in self._cards) // max(count, 1), 1)

    def rank(self, question: str, *, vectors: TableVectors | None = None, model: ChoiceModel | None = None) -> tuple[RankedTable, ...]:
        """Return all tables, best first; equal scores by id."""
        models = packaged_models()
        model = model or (models.words if vectors is None else models.with_vectors)
        asked = self._asked(question)
        found = [self._contributions(card, asked, model) for card in self._cards]
        documents = self._documents(found)
        near = {} if vectors is None else _similarities(vectors)
        near_document: dict[str, int] = {}
        for card in self._cards:
            near_document[card.document] = max(near_document.get(card.document, 0), near.get(card.table_id, 0))
        ranked = []
        for card, parts in zip(self._cards, found, strict=True):
            score = sum(parts.values()) + self._name_bonus(card, asked, model)
            score += documents[card.document] * model.document // _MILLI
            score += near.get(card.table_id, 0) * model.similarity // _MILLI
            score += near_document[card.document] * model.document_similarity // _MILLI
            ranked.append(RankedTable(card.table_id, score, _reasons(card, parts)))
        return tuple(sorted(ranked, key=lambda each: (-each.score, each.table_id)))

    def _read(self, card: TableCard) -> _Card:
        names = [card.title, card.sheet_name, card.sql_name]
        own = Counter[str]()
        for name in names:
            for term in set(self._tokeniser.phrase_terms(name)):
                own[term] = 1
        columns = tuple(tuple(self._tokeniser.phrase_terms(column.name)) for column in card.columns)
        samples = {term for column in card.columns for sample in column.samples for term in self._tokeniser.terms(sample)}
        stem = card.file_name.rsplit(".", 1)[0] if "." in card.file_name else card.file_name
        return _Card(
            table_id=card.table_id,
            document=str(card.document_id),
            names=own,
            files=Counter(set(self._tokeniser.phrase_terms(stem))),
            columns=Counter(term for terms in columns for term in set(terms)),
            values=Counter(samples),
            column_names=columns,
            width=len(columns),
        )

    def _asked(self, question: str) -> dict[str, int]:
        """Return the terms of the question that a card holds, with their weight at 2^-16."""
        asked: dict[str, int] = {}
        for word in words_of(question, limit=MAX_WORDS):
            if word.plain in FUNCTION_WORDS:
                continue
            share = 1 if word.plain in _ASKING else 4
            for term in self._tokeniser.terms(word.text):
                if term in self._idf:
                    asked[term] = max(asked.get(term, 0), self._idf[term] * share // 4)
        return asked

    def _contributions(self, card: _Card, asked: Mapping[str, int], model: ChoiceModel) -> dict[str, int]:
        norm = model.saturation * (_MILLI - model.length + model.length * card.width // self._mean_width) // _MILLI
        parts = {}
        for term, weight in asked.items():
            frequency = (
                model.name * card.names[term]
                + model.file * card.files[term]
                + model.column * card.columns[term]
                + model.value * card.values[term]
            )
            if frequency:
                parts[term] = weight * frequency // (frequency + norm)
        return parts

    def _name_bonus(self, card: _Card, asked: Mapping[str, int], model: ChoiceModel) -> int:
        whole = sum(self._idf[term] for term in card.names)
        held = sum(self._idf[term] for term in card.names if term in asked)
        bonus = (held << _BITS) // whole * model.named // _MILLI if whole else 0
        complete = sum(
            max(asked[term] for term in terms) for terms in set(card.column_names) if terms and all(term in asked for term in terms)
        )
        return bonus + complete * model.column_named // _MILLI

    def _documents(self, found: Sequence[Mapping[str, int]]) -> dict[str, int]:
        """Return what the tables of each document explain together: each word once, by the table that explains it best."""
        best: dict[str, dict[str, int]] = {}
        for card, parts in zip(self._cards, found, strict=True):
            held = best.setdefault(card.document, {})
            for term, part in parts.items():
                held[term] = max(part, held.get(term, 0))
        return {document: sum(parts.values()) for document, parts in best.items()}


def _similarities(vectors: TableVectors) -> dict[TableId, int]:
    """Return the cosine of each card at 2^-16, 0 for an opposite."""
    question = vectors.question.astype("int64")
    shift = 2 * vectors.scale_bits - _BITS
    return {table_id: max(int(question @ card.astype("int64")), 0) >> shift for table_id, card in vectors.cards.items()}


def _reasons(card: _Card, parts: Mapping[str, int]) -> tuple[str, ...]:
    fields = (("name", card.names), ("file", card.files), ("column", card.columns), ("value", card.values))
    return tuple(f"{label}: {term}" for term in parts for label, field in fields if field[term])


# --- choice model ---
# The fitted numbers by which tables are ranked, read from the package.

_FILE: Final = "weights.json"


class ChoiceModel(msgspec.Struct, frozen=True, kw_only=True):
    """What each kind of evidence counts, in thousandths."""

    version: int = 1
    basis: str = ""
    name: int = 2000
    """A word of the title, the sheet's name or the name in statements."""
    column: int = 1000
    value: int = 500
    """A word of a sample."""
    file: int = 1000
    saturation: int = 1000
    """BM25's k1."""
    length: int = 300
    """BM25's b, over the number of columns."""
    named: int = 500
    """The share of a table's name that the question holds."""
    column_named: int = 200
    """A column whose whole name the question holds."""
    document: int = 500
    """What the tables of the document explain together."""
    similarity: int = 0
    document_similarity: int = 0
    """The vectors' cosines of the table, and of the best table of its document."""


class ChoiceModels(msgspec.Struct, frozen=True, kw_only=True):
    """One model for words alone, one for words and vectors."""

    words: ChoiceModel
    with_vectors: ChoiceModel


@cache
def packaged_models() -> ChoiceModels:
    """Return the models that come with Evidentia, as `tools/fit_tables.py` wrote them."""
    return decode_json((files("evidentia.tables") / _FILE).read_bytes(), ChoiceModels)
