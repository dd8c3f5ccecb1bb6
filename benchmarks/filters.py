"""When a filter is better decided before a search, when after it, and whether the choice takes the better way.

    make bench-filters

One chunk per document, 200,000 of them. Words match a share of them, and a filter keeps a share of them, each from one in 20,000 to nearly
all; the filter is over a field with 50 values (a language, a source) or over one with a value of its own in every document (a date, a
title). "First" is a filter that was never asked for, as a time window up to now; "again" is the tenth search with it. Figures are CPU
milliseconds of one search on one thread, the median of several; a filter's first time is measured on filters that are new.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from evidentia.backends.embedded.lexical.filter_choice import MEASURED, POST_FILTER, PRE_FILTER, FilterCosts, Narrowing
from evidentia.backends.embedded.lexical.view import ShownPlaces, View, kept_postings
from evidentia.backends.embedded.records.document_table import CodedLengths
from evidentia.backends.embedded.records.growing_array import GrowingArray
from evidentia.backends.embedded.records.metadata_columns import MetadataColumn
from evidentia.contracts.access import local_owner
from evidentia.contracts.predicates import Compare
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.policy.access import access_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DOCUMENTS: Final = 200_000
SHARES: Final = (1 / 20_000, 0.01, 0.3, 0.97)
FEW: Final = 50
LIMIT: Final = 100
REPEATS: Final = 3
LATER: Final = 9
TERMS: Final = 2
WAYS: Final = {"pre": PRE_FILTER, "post": POST_FILTER, "chosen": MEASURED}
TOLERANCE, NOISE_MS = 1.25, 0.5
"""The choice is right where it takes at most so much longer than the better way, or so little that it is not worth a name."""
RESULTS: Final = Path(__file__).parent / "results" / "filters.json"


class SyntheticTerms:
    """Terms `0` to `3` that stand in a share of the places, each once; stands for the dictionary of a base's segments."""

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return where a term stands, and how often; `1-0` is the first of the terms with the second share."""
        share, number = (int(part) for part in term.split("-"))
        drawn = np.random.default_rng(number).random(DOCUMENTS) < SHARES[share]
        drawn[number] = True
        places = np.flatnonzero(drawn).astype(np.int32)
        return places, np.ones(len(places), dtype=np.int32)


class SyntheticColumns:
    """A column of few values and one of many, spread over the documents at random."""

    def __init__(self) -> None:
        draw = np.random.default_rng(7)
        shares = np.diff([0.0, *sorted(SHARES), 1.0])
        few = np.searchsorted(np.cumsum(shares), draw.random(DOCUMENTS)).astype(np.int32)
        few[few == len(shares) - 1] += draw.integers(0, FEW - len(shares), size=DOCUMENTS).astype(np.int32)[few == len(shares) - 1]
        many = draw.permutation(DOCUMENTS).astype(np.int32)
        self._columns = {
            "title": MetadataColumn(GrowingArray(many), [f"{number:06}" for number in range(DOCUMENTS)]),
            "language": MetadataColumn(GrowingArray(few), [f"{number:06}" for number in range(FEW)]),
        }

    def column(self, field: str) -> MetadataColumn:
        """Return one of the two."""
        return self._columns[field]


class Case(NamedTuple):
    """A share of the documents that the words match, one that the filter keeps, and the field it is over."""

    matching: int
    keeping: int
    field: str

    @property
    def query(self) -> LexicalQuery:
        """Return words that match so many."""
        return LexicalQuery(terms={f"{self.matching}-{number}": 1 for number in range(TERMS)})

    @property
    def filter(self) -> Compare:
        """Return a filter that keeps so many."""
        if self.field == "title":
            return Compare("title", "<", f"{max(1, round(DOCUMENTS * SHARES[self.keeping])):06}")
        return Compare("language", "<=", f"{self.keeping:06}")


def measured(view: View, columns: SyntheticColumns, case: Case, costs: FilterCosts) -> tuple[dict[str, float], tuple[Any, ...]]:
    """Return the milliseconds of a filter's first search and of a later one, and what was found."""
    places = np.arange(DOCUMENTS, dtype=np.int32)
    first: list[float] = []
    again: list[float] = []
    for _ in range(REPEATS):
        narrowing = Narrowing(case.filter, columns=columns, document_of=places, documents=np.arange(DOCUMENTS, dtype=np.int32), costs=costs)  # type: ignore[arg-type]
        for taken in (first, *[[] for _ in range(LATER - 1)], again):
            started = time.thread_time_ns()
            found = view.match(case.query, keep=narrowing, limit=LIMIT, listed=True)
            taken.append((time.thread_time_ns() - started) / 1e6)
    result = (found.places.tolist(), found.scores.tolist(), found.total)
    return {"first": round(statistics.median(first), 3), "again": round(statistics.median(again), 3)}, result


def compared(view: View, columns: SyntheticColumns, case: Case) -> dict[str, Any]:
    """Return one line of the table: what either way and the choice take, having checked that they find the same."""
    view.match(case.query, keep=None, limit=LIMIT)  # postings are read once, whatever follows
    runs = {name: measured(view, columns, case, costs) for name, costs in WAYS.items()}
    results = [result for _, result in runs.values()]
    if any(result != results[0] for result in results):
        raise AssertionError(f"the ways differ: {case}")
    line: dict[str, Any] = {
        "words_match": SHARES[case.matching],
        "filter_keeps": SHARES[case.keeping],
        "values": DOCUMENTS if case.field == "title" else FEW,
        "matching": results[0][2],
    }
    for when in ("first", "again"):
        taken = {name: times[when] for name, (times, _) in runs.items()}
        best = min(taken["pre"], taken["post"])
        line[when] = taken | {
            "wins": "pre" if taken["pre"] < taken["post"] else "post",
            "is_right": taken["chosen"] <= TOLERANCE * best + NOISE_MS,
        }
    return line


def summary(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how often either way wins and the choice is right, and what each would take for all of them together."""
    parts = {}
    for when in ("first", "again"):
        told = [line[when] for line in lines]
        parts[when] = {
            "cases": len(told),
            "pre_wins": sum(each["wins"] == "pre" for each in told),
            "post_wins": sum(each["wins"] == "post" for each in told),
            "choice_is_right": sum(each["is_right"] for each in told),
        } | {f"{name}_ms": round(sum(each[name] for each in told), 1) for name in WAYS}
    return parts


def main() -> None:
    """Measure every case and write the table down."""
    lengths, everything = np.full(DOCUMENTS, 100, dtype=np.int32), np.ones(DOCUMENTS, dtype=np.bool_)
    scope = access_scope(local_owner(), acl_scope=None, rules=())
    view = View(
        SyntheticTerms(),  # type: ignore[arg-type]  # as far as a search without phrases asks it
        shown=ShownPlaces(scope, everything, everything, int(lengths.sum()), hides_nothing=True),
        table=SimpleNamespace(lengths=lengths, coded_lengths=CodedLengths.of(lengths)),  # type: ignore[arg-type]  # as far as a view asks it
        search=SearchSettings(),
        kept=kept_postings(),
    )
    columns = SyntheticColumns()
    shares = range(len(SHARES))
    lines = [
        compared(view, columns, Case(matching, keeping, field))
        for field in ("language", "title")
        for matching in shares
        for keeping in shares
    ]
    report = {
        "command": "make bench-filters",
        "machine": {"processor": platform.processor() or platform.machine(), "python": platform.python_version(), "numpy": np.__version__},
        "documents": DOCUMENTS,
        "summary": summary(lines),
        "cases": lines,
    }
    for line in lines:
        print(json.dumps(line))
    print(json.dumps(report["summary"], indent=1))
    if "--dry-run" not in sys.argv:
        RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
