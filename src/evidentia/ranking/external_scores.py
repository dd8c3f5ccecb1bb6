"""What the words of a question say of candidates from outside the base: BM25, as of the base's own.

Candidates that were found for another question are ordered by it alone: what a source said to "how to enable it" is, in that order, the
wrong answer to "how to disable it". All others are scored so that what has nothing to do with the question cannot rank by its source's
word. Statistics are those of what the caller may see in the base, else those of the candidates alone.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.text.weights import DEFAULT_B_MILLI, DEFAULT_K1_MILLI, LARGEST_LENGTH, Bm25, idf_fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from evidentia.contracts.retrieval import ExternalCandidate
    from evidentia.contracts.search import LexicalQuery
    from evidentia.text.tokens import Tokeniser

_ADDED_BITS: Final = 8
"""Weights of added terms are in 256ths."""


class _Passage(NamedTuple):
    frequencies: Counter[str]
    length: int


class OwnStatistics(NamedTuple):
    """What the base knows of the caller's own chunks: how many there are, how many hold a term, and how long those at hand are."""

    documents: int
    containing: Callable[[str], int]
    lengths: Sequence[int]


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
    own: OwnStatistics | None = None,
) -> tuple[int, ...]:
    """Return each candidate's BM25 by the caller's own statistics, at 2^-16 and from 0; 0 only for one that holds none of the terms.

    Title and content count alike. A term counts as often as it was asked for, an added one its weight.
    """
    if not candidates:
        return ()
    weights = _weights(query)
    passages = [_passage(candidate, terms=weights, tokeniser=tokeniser) for candidate in candidates]
    lengths = own.lengths if own and own.lengths else [passage.length for passage in passages]
    setting = Bm25.of(total_length=sum(lengths), documents=len(lengths), k1_milli=k1_milli, b_milli=b_milli)
    totals = [0] * len(passages)
    for term, weight in weights.items():
        holders = [index for index, passage in enumerate(passages) if term in passage.frequencies]
        if not holders:
            continue
        if own and own.documents:
            # Like one that is in a single chunk: were it rarer, the words that only a stranger has would outweigh all others.
            idf = idf_fixed("lucene", documents=own.documents, containing=max(1, own.containing(term)))
        else:
            idf = idf_fixed("lucene", documents=len(passages), containing=len(holders))
        for index in holders:
            passage = passages[index]
            impact = setting.impact(passage.frequencies[term], passage.length, idf=idf)
            totals[index] += max(1, (impact * weight) >> _ADDED_BITS)
    return tuple(totals)


def _weights(query: LexicalQuery) -> dict[str, int]:
    """Return what each term counts, in 256ths."""
    asked = {term: times * query.weights.get(term, 1 << _ADDED_BITS) for term, times in query.terms.items()}
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
