"""The order of candidates that were found for another question: BM25 among themselves, for the question at hand.

What a source said to "how to enable it" is, in that order, the wrong answer to "how to disable it"; so nothing of the order in which
it came is used. Statistics are those of the candidates alone, and no others are known: they come from outside the base.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.text.weights import DEFAULT_B_MILLI, DEFAULT_K1_MILLI, LARGEST_LENGTH, Bm25, idf_fixed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.contracts.search import LexicalQuery
    from evidentia.text.tokens import Tokeniser

_ADDED_BITS: Final = 8
"""Weights of added terms are in 256ths."""


class _Passage(NamedTuple):
    frequencies: Counter[str]
    length: int


def order_for(
    query: LexicalQuery,
    candidates: Sequence[ExternalCandidate],
    *,
    tokeniser: Tokeniser,
    k1_milli: int = DEFAULT_K1_MILLI,
    b_milli: int = DEFAULT_B_MILLI,
) -> tuple[ExternalCandidate, ...]:
    """Return the candidates in the order of their scores, those that hold none of the terms last, equal ones by chunk id."""
    scores = scores_for(query, candidates, tokeniser=tokeniser, k1_milli=k1_milli, b_milli=b_milli)
    ranked = zip(scores, candidates, strict=True)
    return tuple(candidate for _, candidate in sorted(ranked, key=lambda pair: (-pair[0], pair[1].chunk_id, pair[1].content_hash)))


def scores_for(
    query: LexicalQuery,
    candidates: Sequence[ExternalCandidate],
    *,
    tokeniser: Tokeniser,
    k1_milli: int = DEFAULT_K1_MILLI,
    b_milli: int = DEFAULT_B_MILLI,
) -> tuple[int, ...]:
    """Return each candidate's BM25 among the candidates, at 2^-16 and from 0; 0 only for one that holds none of the terms.

    Title and content count alike. A term counts as often as it was asked for, an added one its weight.
    """
    if not candidates:
        return ()
    weights = _weights(query)
    passages = [_passage(candidate, terms=weights, tokeniser=tokeniser) for candidate in candidates]
    setting = Bm25.of(total_length=sum(passage.length for passage in passages), documents=len(passages), k1_milli=k1_milli, b_milli=b_milli)
    totals = [0] * len(passages)
    for term, weight in weights.items():
        holders = [index for index, passage in enumerate(passages) if term in passage.frequencies]
        idf = idf_fixed("lucene", documents=len(passages), containing=len(holders))
        for index in holders:
            passage = passages[index]
            impact = setting.impact(passage.frequencies[term], passage.length, idf=idf)
            totals[index] += max(1, (impact * weight) >> _ADDED_BITS)
    return tuple(totals)


def _weights(query: LexicalQuery) -> dict[str, int]:
    """Return what each term counts, in 256ths."""
    asked = {term: times << _ADDED_BITS for term, times in query.terms.items()}
    return {**query.expansions, **asked}


def _passage(candidate: ExternalCandidate, *, terms: Collection[str], tokeniser: Tokeniser) -> _Passage:
    """Return how often a candidate holds each of the terms, and how many positions it has."""
    frequencies: Counter[str] = Counter()
    length = 0
    for word, times in Counter(f"{candidate.title}\n{candidate.content}".split()).items():
        found, _, span = tokeniser.analyse(word)
        length += span * times
        for term in found:
            if term in terms:
                frequencies[term] += times
    return _Passage(frequencies, min(length, LARGEST_LENGTH))
