"""Asks a search function every query of a dataset and measures the answers. Reads no clock: the timer is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.evaluation.measures import EvalReport, Gain, Measure, score_rankings
from evidentia.evaluation.runs import DEFAULT_SCORE_BITS, Run, ScoredDocument

if TYPE_CHECKING:
    from evidentia.evaluation.datasets import Dataset

Search: TypeAlias = Callable[[str], Sequence[tuple[str, int]]]
"""From a query's text to (document id, fixed-point score), best first; a document may occur more than once."""
TimerNs: TypeAlias = Callable[[], int]
"""A clock that never goes back, in nanoseconds."""

_NS_PER_MS = 1_000_000


class CollectedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to every query of a dataset, and how long each took, in the order of the queries."""

    run: Run
    depth: int
    latencies_ns: tuple[int, ...]


def evaluate(
    dataset: Dataset, search: Search, *, timer_ns: TimerNs, k: int = 10, depth: int = 100, gain: Gain = "exponential"
) -> EvalReport:
    """Search every query once, one after the other, and measure nDCG@k, P@k, R@k, R@depth, MRR and MAP.

    Steps: 1. collect the run; 2. measure it.
    """
    _check_depths(k=k, depth=depth)
    collected = collect_run(dataset, search, timer_ns=timer_ns, depth=depth)
    return measure_run(dataset, collected, k=k, gain=gain)


def collect_run(
    dataset: Dataset,
    search: Search,
    *,
    timer_ns: TimerNs,
    depth: int = 100,
    tag: str = "evidentia",
    score_bits: int = DEFAULT_SCORE_BITS,
    on_answer: Callable[[int, int], None] | None = None,
) -> CollectedRun:
    """Return the first `depth` documents for every query, each at its best rank; the time includes `search` and nothing else.

    `on_answer` is called between queries with how many are answered and how many there are.
    """
    rankings: dict[str, tuple[ScoredDocument, ...]] = {}
    latencies_ns = []
    for query in dataset.queries:
        start_ns = timer_ns()
        candidates = search(query.text)
        latencies_ns.append(timer_ns() - start_ns)
        rankings[query.query_id] = fold_to_documents(candidates, depth=depth)
        if on_answer is not None:
            on_answer(len(rankings), len(dataset.queries))
    return CollectedRun(
        run=Run(tag=tag, rankings=rankings, score_bits=score_bits),
        depth=depth,
        latencies_ns=tuple(latencies_ns),
    )


def measure_run(dataset: Dataset, collected: CollectedRun, *, k: int = 10, gain: Gain = "exponential") -> EvalReport:
    """Return the report of a collected run."""
    _check_depths(k=k, depth=collected.depth)
    rankings = collected.run.ranked_ids()
    scores = [score_rankings(rankings, dataset.qrels, measure=measure) for measure in _measures(k=k, depth=collected.depth, gain=gain)]
    return EvalReport(
        dataset=dataset.name,
        split=dataset.split,
        k=k,
        depth=collected.depth,
        gain=gain,
        queries=len(scores[0].per_query),
        without_results=len(scores[0].without_results),
        without_relevant=len(scores[0].without_relevant),
        p50_ms=nearest_rank(collected.latencies_ns, percent=50) / _NS_PER_MS,
        p99_ms=nearest_rank(collected.latencies_ns, percent=99) / _NS_PER_MS,
        measures={each.measure: each.mean for each in scores},
        per_query={each.measure: each.per_query for each in scores},
    )


def fold_to_documents(candidates: Sequence[tuple[str, int]], *, depth: int) -> tuple[ScoredDocument, ...]:
    """Return each document at its first occurrence, at most `depth` of them; the order is kept and scores are not compared."""
    if depth < 1:
        raise InvalidFieldError("depth", f"'{depth}' is less than 1")
    best: dict[str, int] = {}
    for document_id, score in candidates:
        if len(best) == depth:
            break
        best.setdefault(document_id, score)
    return tuple(ScoredDocument(document_id, score) for document_id, score in best.items())


def nearest_rank(values: Sequence[int], *, percent: int) -> int:
    """Return the smallest of at least one value that is not exceeded by `percent` of them: one of the values, never between two."""
    ordered = sorted(values)
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def _measures(*, k: int, depth: int, gain: Gain) -> tuple[Measure, ...]:
    return (
        Measure("nDCG", k, gain),
        Measure("P", k),
        Measure("R", k),
        Measure("R", depth),
        Measure("MRR"),
        Measure("MAP"),
    )


def _check_depths(*, k: int, depth: int) -> None:
    if k < 1:
        raise InvalidFieldError("k", f"'{k}' is less than 1")
    if depth < k:
        raise InvalidFieldError("depth", f"'{depth}' is less than k, '{k}'")
