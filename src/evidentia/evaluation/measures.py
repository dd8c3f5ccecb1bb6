"""How good one ranking is, given graded judgments: P, R, nDCG, MRR and MAP. Refuses to re-sort: the order given is the ranking.

A grade of 1 or more is relevant, and a document without a grade is not. Sums are exactly rounded, so they do not depend on the order of
the terms. Every measure lies between 0 and 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, get_args

import msgspec
import numpy as np

from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from numpy.typing import NDArray


Gain: TypeAlias = Literal["exponential", "linear"]
MeasureKind: TypeAlias = Literal["nDCG", "P", "R", "MRR", "MAP"]
Ranking: TypeAlias = Sequence[str]
Grades: TypeAlias = Mapping[str, int]
Qrels: TypeAlias = Mapping[str, Grades]

LARGEST_GRADE: Final = 30
"""2^30 - 1 is the largest gain; a greater grade is a mistake in the judgments."""

_MEASURE_NAME: Final = re.compile(r"(nDCG|P|R|MRR|MAP)(?:\((exponential|linear)\))?(?:@([1-9][0-9]{0,8}))?", re.ASCII)


class Measure(msgspec.Struct, frozen=True):
    """A measure with its cut: `P` and `R` need one, the others look at the whole ranking without it."""

    kind: MeasureKind
    cut: int | None = None
    gain: Gain = "exponential"

    def __post_init__(self) -> None:
        """Refuse what cannot be computed."""
        if self.kind not in get_args(MeasureKind):
            raise InvalidFieldError("measure", f"'{self.kind}' is not one of {', '.join(get_args(MeasureKind))}")
        if self.gain not in get_args(Gain):
            raise InvalidFieldError("gain", f"'{self.gain}' is not one of {', '.join(get_args(Gain))}")
        if self.gain != "exponential" and self.kind != "nDCG":
            raise InvalidFieldError("gain", f"'{self.kind}' has no gain; only nDCG has")
        if self.kind in {"P", "R"}:
            self._needed_cut()
        _check_cut(self.cut)

    @classmethod
    def parse(cls, name: str) -> Self:
        """Return the measure of a name such as `nDCG@10`, `nDCG(linear)@10`, `P@5` or `MAP`."""
        match = _MEASURE_NAME.fullmatch(name)
        if match is None:
            raise InvalidFieldError("measure", f"'{name}' is not a measure; expected one such as 'nDCG@10', 'R@100' or 'MRR'")
        kind, gain, cut = match.groups()
        return convert({"kind": kind, "cut": int(cut) if cut else None, "gain": gain or "exponential"}, cls)

    @property
    def name(self) -> str:
        """The name that `parse` reads back."""
        gain = "" if self.gain == "exponential" else f"({self.gain})"
        return f"{self.kind}{gain}" if self.cut is None else f"{self.kind}{gain}@{self.cut}"

    def score(self, ranking: Ranking, grades: Grades) -> float:
        """Return the value for one query, of which at least one document is relevant."""
        if self.kind == "nDCG":
            return ndcg(ranking, grades, cut=self.cut, gain=self.gain)
        if self.kind == "MRR":
            return reciprocal_rank(ranking, grades, cut=self.cut)
        if self.kind == "MAP":
            return average_precision(ranking, grades, cut=self.cut)
        at_cut = precision if self.kind == "P" else recall
        return at_cut(ranking, grades, cut=self._needed_cut())

    def _needed_cut(self) -> int:
        if self.cut is None:
            raise InvalidFieldError("measure", f"'{self.kind}' needs a cut, such as '{self.kind}@10'")
        return self.cut


class MeasureScores(msgspec.Struct, frozen=True, kw_only=True):
    """One measure over a set of queries; ids are sorted, and every query is in one of the fields."""

    measure: str
    mean: float
    per_query: Mapping[str, float]
    without_results: tuple[str, ...]
    """Judged queries that found nothing; they count as 0 in the mean."""
    without_relevant: tuple[str, ...]
    """Queries of which no document is relevant; they have no value and are left out of the mean."""
    unjudged: tuple[str, ...]
    """Queries that were ranked and never judged; they are left out of the mean."""


def score_rankings(rankings: Mapping[str, Ranking], qrels: Qrels, *, measure: Measure) -> MeasureScores:
    """Return the measure of every judged query and their mean; refuses judgments in which nothing is relevant."""
    judged = sorted(qrels)
    evaluated = [query_id for query_id in judged if has_relevant(qrels[query_id])]
    if not evaluated:
        raise InvalidFieldError("qrels", "no query has a relevant document, so there is nothing to measure")
    per_query = {query_id: measure.score(rankings.get(query_id, ()), qrels[query_id]) for query_id in evaluated}
    return MeasureScores(
        measure=measure.name,
        mean=mean_of(per_query),
        per_query=per_query,
        without_results=tuple(query_id for query_id in evaluated if not rankings.get(query_id)),
        without_relevant=tuple(query_id for query_id in judged if query_id not in per_query),
        unjudged=tuple(sorted(rankings.keys() - qrels.keys())),
    )


def mean_of(per_query: Mapping[str, float]) -> float:
    """Return the mean of at least one score, from an exactly rounded sum."""
    return math.fsum(per_query.values()) / len(per_query)


def has_relevant(grades: Grades) -> bool:
    """Whether at least one document is relevant."""
    return any(grade > 0 for grade in grades.values())


def precision(ranking: Ranking, grades: Grades, *, cut: int) -> float:
    """Return the share of the first `cut` places that hold a relevant document; places left empty count as not relevant."""
    return int(np.count_nonzero(_grades_by_rank(ranking, grades, cut=cut))) / cut


def recall(ranking: Ranking, grades: Grades, *, cut: int) -> float:
    """Return the share of the relevant documents that are in the first `cut` places."""
    found = _grades_by_rank(ranking, grades, cut=cut)
    return int(np.count_nonzero(found)) / _relevant(grades).size


def ndcg(ranking: Ranking, grades: Grades, *, cut: int | None = None, gain: Gain = "exponential") -> float:
    """Return the discounted gain as a share of the best possible one, with the discount log2(rank + 1).

    The gain of a grade is 2^grade - 1 (Burges et al. 2005), or the grade itself (Järvelin and Kekäläinen 2002, as in trec_eval).
    """
    found = _grades_by_rank(ranking, grades, cut=cut)
    ideal = np.sort(_relevant(grades))[::-1][:cut]
    return _discounted_gain(found, gain=gain) / _discounted_gain(ideal, gain=gain)


def reciprocal_rank(ranking: Ranking, grades: Grades, *, cut: int | None = None) -> float:
    """Return 1 / rank of the first relevant document, and 0 where there is none; its mean over queries is MRR."""
    relevant = np.flatnonzero(_grades_by_rank(ranking, grades, cut=cut))
    return 1 / (int(relevant[0]) + 1) if relevant.size else 0.0


def average_precision(ranking: Ranking, grades: Grades, *, cut: int | None = None) -> float:
    """Return the sum of the precisions at each relevant document over the number of relevant ones; its mean over queries is MAP."""
    ranks = np.flatnonzero(_grades_by_rank(ranking, grades, cut=cut)) + 1
    precisions = np.arange(1, ranks.size + 1) / ranks
    return math.fsum(precisions.tolist()) / _relevant(grades).size


def _grades_by_rank(ranking: Ranking, grades: Grades, *, cut: int | None) -> NDArray[np.int64]:
    _check_cut(cut)
    if not has_relevant(grades):
        raise InvalidFieldError("grades", "no document is relevant, so the measure has no value")
    if len(set(ranking)) != len(ranking):
        raise InvalidFieldError("ranking", _first_repetition(ranking))
    return np.array([max(0, grades.get(document_id, 0)) for document_id in ranking[:cut]], np.int64)


def _relevant(grades: Grades) -> NDArray[np.int64]:
    return np.array([grade for grade in grades.values() if grade > 0], np.int64)


def _discounted_gain(grades: NDArray[np.int64], *, gain: Gain) -> float:
    if grades.size and grades.max() > LARGEST_GRADE:
        raise InvalidFieldError("grades", f"'{grades.max()}' is greater than {LARGEST_GRADE}")
    gains = (1 << grades) - 1 if gain == "exponential" else grades
    return math.fsum((gains / np.log2(np.arange(2, grades.size + 2))).tolist())


def _first_repetition(ranking: Ranking) -> str:
    first_rank: dict[str, int] = {}
    for rank, document_id in enumerate(ranking, start=1):
        earlier = first_rank.setdefault(document_id, rank)
        if earlier != rank:
            return f"document '{document_id}' has two ranks, {earlier} and {rank}"
    return "a document has two ranks"


def _check_cut(cut: int | None) -> None:
    if cut is not None and cut < 1:
        raise InvalidFieldError("cut", f"'{cut}' is less than 1")


# --- report ---
# What an evaluation found, as one message.


class EvalReport(msgspec.Struct, frozen=True, kw_only=True):
    """Measures of one system on one split, with the score of every query so that two reports can be compared.

    `measures` and `per_query` are keyed by measure names such as `nDCG@10`; `per_query` then by query id.
    """

    dataset: str
    split: str
    k: int
    depth: int
    """How many documents were kept per query; MRR and MAP see no further."""
    gain: Gain
    queries: int
    """How many queries the means are over."""
    without_results: int
    """How many of them found nothing and count as 0."""
    without_relevant: int
    """How many more were searched and left out of the means, since no document is relevant."""
    p50_ms: float
    p99_ms: float
    measures: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]

    def summary(self) -> dict[str, float | int | str]:
        """Return the report in one flat mapping, without the scores of single queries."""
        return {
            "dataset": self.dataset,
            "split": self.split,
            **self.measures,
            "queries": self.queries,
            "without_results": self.without_results,
            "without_relevant": self.without_relevant,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
        }
