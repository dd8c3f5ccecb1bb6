"""What an evaluation found, as one message."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evidentia.evaluation.measures import Gain


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
