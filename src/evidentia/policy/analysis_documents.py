"""Documents that stand for all: one for every way in which the rules of some retrieval policies can tell documents apart.

A rule about a document compares one field with a threshold or a set, so its answer is the same within a cell of the grid that
all thresholds and sets cut. Asking about one document of each cell is asking about every document there is.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from evidentia.contracts.runs import RetrievedDocument
from evidentia.policy.analysis_globs import UndecidedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evidentia.policy.retrieval_rules import RetrievalLimits

LOWEST_SCORE: Final = 0.0
HIGHEST_SCORE: Final = 1.0
MAX_CELLS: Final = 20_000
_ELSEWHERE: Final = "elsewhere"


def cells(limits: Sequence[RetrievalLimits], *, is_bounded: bool = False) -> list[RetrievedDocument]:
    """Return one document of every cell; with `is_bounded` only those with scores from 0 to 1. Raises UndecidedError when too many."""
    return _documents(_scores(limits, is_bounded=is_bounded), _sources(limits), _collections(limits), _ages(limits))


def best_documents(limits: Sequence[RetrievalLimits]) -> list[RetrievedDocument]:
    """Return documents with scores from 0 to 1 such that, if all are blocked, every such document is.

    The best score, an unblocked source and no age are best for every rule at once; only the collection is a choice. Rules that
    are read literally can hide each other, so with those every cell is a choice.
    """
    if any(each.is_literal for each in limits):
        return cells(limits, is_bounded=True)
    return _documents([HIGHEST_SCORE], [fresh_source(limits)], _collections(limits), [0])


def fresh_source(limits: Iterable[RetrievalLimits]) -> str:
    """Return a source that no policy blocks."""
    return _fresh({source for each in limits for source in each.blocked})


def _documents(
    scores: Sequence[float], sources: Sequence[str], collections: Sequence[str], ages: Sequence[int | None]
) -> list[RetrievedDocument]:
    if len(scores) * len(sources) * len(collections) * len(ages) > MAX_CELLS:
        raise UndecidedError
    return [
        RetrievedDocument(relevance_score=score, source=source, collection=collection, age_days=age)
        for score, source, collection, age in product(scores, sources, collections, ages)
    ]


def _scores(limits: Iterable[RetrievalLimits], *, is_bounded: bool) -> list[float]:
    """Return every threshold and a score below all, which between them lie in every interval that thresholds cut."""
    thresholds = {each.min_relevance for each in limits}
    if is_bounded:
        return sorted({LOWEST_SCORE, HIGHEST_SCORE} | {each for each in thresholds if LOWEST_SCORE <= each <= HIGHEST_SCORE}, reverse=True)
    lowest = min(thresholds)
    return sorted(thresholds | {LOWEST_SCORE if lowest > LOWEST_SCORE else lowest - 1}, reverse=True)


def _ages(limits: Iterable[RetrievalLimits]) -> list[int | None]:
    return [*sorted({0} | {age for each in limits for age in (each.max_age, each.max_age + 1)}), None]


def _sources(limits: Sequence[RetrievalLimits]) -> list[str]:
    blocked = sorted({source for each in limits for source in each.blocked})
    return _classes([fresh_source(limits), *blocked], lambda source: tuple(source in each.blocked for each in limits))


def _collections(limits: Sequence[RetrievalLimits]) -> list[str]:
    allowed = sorted({collection for each in limits for collection in each.allowed})
    return _classes([*allowed, _fresh(set(allowed))], lambda collection: tuple(collection in each.allowed for each in limits))


def _classes(names: Iterable[str], kind_of: Callable[[str], tuple[bool, ...]]) -> list[str]:
    """Return the first name of each kind: names that are in the same sets are one to the rules."""
    found: dict[tuple[bool, ...], str] = {}
    for name in names:
        found.setdefault(kind_of(name), name)
    return list(found.values())


def _fresh(taken: set[str]) -> str:
    name = _ELSEWHERE
    while name in taken:
        name += "-x"
    return name
