"""An answer as text: a table of fragments, facets, what is missing and why, and a line to come back by."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from evidentia.contracts.vocabulary import CoverageState
from evidentia.serving.cli.output import note, put, put_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.evidence import EvidenceFragment, EvidenceResponse, TermScore
    from evidentia.serving.cli.invocation import Invocation
    from evidentia.serving.cli.snippets import SnippetCutter

SCORE_ONE = 1 << 16
SCORE_HEADER = "score"
HASH_PREFIX = 16
MOST_VALUES = 10
"""Rows of a facet that are shown; `--json` has all."""
UNKNOWN_AGE = "unknown"
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_AGES = ((2 * _DAY, _HOUR, "h"), (60 * _DAY, _DAY, "d"), (730 * _DAY, 30 * _DAY, "mo"), (timedelta.max, 365 * _DAY, "y"))
"""Up to which age, which unit is counted; months have 30 days and years 365."""


def put_response(call: Invocation, response: EvidenceResponse, *, cutter: SnippetCutter) -> None:
    """Print an answer."""
    put_fragments(response, cutter=cutter)
    _put_explanations(response)
    _put_facets(response)
    put()
    put(footer(response))
    put_notes(call, response)


def put_fragments(response: EvidenceResponse, *, cutter: SnippetCutter) -> None:
    """Print the table of fragments, or that there are none."""
    if not response.fragments:
        put("nothing that you may see matches" if not response.withheld else "nothing that matches fits the token budget")
        return
    scores = _aligned([f"{fragment.relevance_score:.2f}" for fragment in response.fragments])
    rows = [
        (
            rank,
            score,
            fragment.document_id,
            fragment.authority_tier.value,
            age_of(fragment, as_of=response.as_of),
            cutter.cut(fragment.content),
        )
        for rank, (score, fragment) in enumerate(zip(scores, response.fragments, strict=True), start=1)
    ]
    put_table(("#", SCORE_HEADER, "source", "authority", "age", "snippet"), rows)


def put_terms(terms: Sequence[TermScore]) -> None:
    """Print what each word of the query gave to one fragment."""
    scores = _aligned([f"{term.score / SCORE_ONE:.2f}" for term in terms])
    rows = [
        (term.term, score, term.frequency, f"{term.containing} of {term.documents}", term.length)
        for score, term in zip(scores, terms, strict=True)
    ]
    put_table(("term", SCORE_HEADER, "frequency", "containing", "length"), rows)


def put_notes(call: Invocation, response: EvidenceResponse) -> None:
    """Print on stderr what the answer lacks."""
    for reason in response.degraded:
        note(call, reason)
    withheld = [each.reason for each in response.withheld]
    for reason in dict.fromkeys(withheld):
        count = withheld.count(reason)
        note(call, f"{count} {'fragment was' if count == 1 else 'fragments were'} withheld: {reason}")
    missed: dict[str, list[str]] = {}
    for source, report in response.source_coverage.items():
        if report.state is not CoverageState.SEARCHED:
            missed.setdefault(f"{report.state.value}: {report.reason}" if report.reason else report.state.value, []).append(source)
    for reason, sources in missed.items():
        note(call, f"not searched: {', '.join(sources)} ({reason})")


def footer(response: EvidenceResponse) -> str:
    """Return the line that says how much there is and how to come back to it."""
    receipt = f"receipt {response.receipt_id}" if response.receipt_id else "no receipt"
    count = f"{len(response.fragments)} of {response.total_candidates} matching fragments"
    return f"{count}, {receipt}, result {response.result_hash[:HASH_PREFIX]}, {response.latency_ms:.1f} ms"


def age_of(fragment: EvidenceFragment, *, as_of: datetime) -> str:
    """Return how long before `as_of` a fragment's document was updated, in one unit; `unknown` when nobody said."""
    updated = fragment.metadata.get("updated_at")
    if updated is None:
        return UNKNOWN_AGE
    age = as_of - datetime.fromisoformat(updated)
    if age < timedelta(0):
        return "later"
    return next(f"{age // unit} {name}" for bound, unit, name in _AGES if age < bound)


def _put_explanations(response: EvidenceResponse) -> None:
    explained = [fragment for fragment in response.fragments if fragment.explanation]
    for fragment in explained:
        put()
        put(fragment.chunk_id)
        put_terms(fragment.explanation)
    if explained:
        put()
        put_table(("stage", "left", "what it did"), [(each.stage, each.remaining, each.note) for each in response.decisions])


def _put_facets(response: EvidenceResponse) -> None:
    for field, counts in response.facets.items():
        put()
        put_table((field, "documents"), list(counts.items())[:MOST_VALUES])
        if len(counts) > MOST_VALUES:
            put(f"... and {len(counts) - MOST_VALUES} more; --json lists all")


def _aligned(scores: Sequence[str]) -> list[str]:
    width = max(map(len, (SCORE_HEADER, *scores)))
    return [score.rjust(width) for score in scores]
