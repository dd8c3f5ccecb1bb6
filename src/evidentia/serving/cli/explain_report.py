"""What an answer is made of, as text: the signals of each fragment, what each word gave, and what was done on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.evidence import SCORE_ONE
from evidentia.contracts.vectors import RAW_SCALE_BITS, UNIT_SCALE_BITS
from evidentia.contracts.vocabulary import Similarity
from evidentia.serving.cli.output import Figure, put, put_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.evidence import EvidenceResponse, SignalScores, TermScore

TERM_ONE: Final = 1 << 16
SCORE_HEADER: Final = "score"
NO_VECTOR: Final = "-"


class Nearness(NamedTuple):
    """How the vectors' own score is read: what it is, and how many of its bits lie behind the point."""

    name: str
    bits: int


NEARNESS: Final = {
    Similarity.COSINE: Nearness("cosine", 2 * UNIT_SCALE_BITS),
    Similarity.DOT: Nearness("product", 2 * RAW_SCALE_BITS),
    Similarity.EUCLIDEAN: Nearness("nearness", 44),
}
"""By the setting `search.similarity`: a product of two rows has twice their bits, 1 / (1 + distance) has 44."""


class SignalRow(NamedTuple):
    """One fragment with its composite score, the signals behind it, and how likely it is relevant."""

    name: str
    score: int
    scores: SignalScores
    confidence: float


def put_explanations(response: EvidenceResponse, *, similarity: Similarity) -> None:
    """Print what each fragment's place is made of, what each word gave, how the question was understood, and what each stage did."""
    if response.fragments:
        put()
        rows = [SignalRow(str(rank), each.score, each.scores, each.confidence) for rank, each in enumerate(response.fragments, start=1)]
        put_signals(rows, similarity=similarity)
    for fragment in response.fragments:
        if fragment.explanation:
            put()
            put(fragment.chunk_id)
            put_terms(fragment.explanation)
    if response.understanding:
        put()
        put_table(
            ("understanding", "what it did", "added"),
            [(each.step.value, each.note, ", ".join(each.added)) for each in response.understanding],
        )
    put()
    put_table(("stage", "left", "what it did"), [(each.stage, each.remaining, each.note) for each in response.decisions])


def put_signals(rows: Sequence[SignalRow], *, similarity: Similarity) -> None:
    """Print composite scores with the signals they are made of; vectors and a reranker have a column where they took part."""
    nearness = NEARNESS[similarity]
    has_reranker = any(row.scores.reranked is not None for row in rows)
    has_vectors = any(row.scores.dense is not None for row in rows)
    header = [
        *("#", SCORE_HEADER, "relevance", "authority", "freshness", "utility"),
        *(("fused", "reranker") if has_reranker else ()),
        "words",
        *((nearness.name,) if has_vectors else ()),
        "confidence",
    ]
    table = []
    for row in rows:
        scores = row.scores
        table.append(
            (
                Figure(row.name),
                *(_share(value) for value in (row.score, scores.relevance, scores.authority, scores.freshness, scores.utility)),
                *((_share(scores.fused), _share(scores.reranked)) if has_reranker else ()),
                Figure(f"{scores.lexical / TERM_ONE:.2f}"),
                *((near_of(scores, nearness),) if has_vectors else ()),
                Figure(f"{row.confidence:.0%}"),
            )
        )
    put_table(header, table)


def near_of(scores: SignalScores, nearness: Nearness) -> Figure:
    """Return the vectors' own score as people read it."""
    return Figure(NO_VECTOR if scores.dense is None else f"{scores.dense / (1 << nearness.bits):.2f}")


def put_terms(terms: Sequence[TermScore]) -> None:
    """Print what each word of the query gave to one fragment."""
    rows = [
        (term.term, Figure(f"{term.score / TERM_ONE:.2f}"), term.frequency, f"{term.containing} of {term.documents}", term.length)
        for term in terms
    ]
    put_table(("term", SCORE_HEADER, "frequency", "containing", "length"), rows)


def _share(value: int | None) -> Figure:
    return Figure(NO_VECTOR if value is None else f"{value / SCORE_ONE:.3f}")
