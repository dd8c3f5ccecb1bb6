"""An answer as text: a table of fragments, facets, what is missing and why, and a line to come back by."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from evidentia.contracts.evidence import SCORE_ONE
from evidentia.contracts.ids import document_of
from evidentia.contracts.vocabulary import CoverageState
from evidentia.serving.cli.explain_report import SCORE_HEADER, put_explanations
from evidentia.serving.cli.output import Figure, note, put, put_table
from evidentia.serving.cli.sources_report import OTHER_BASE, faults_in_words, short_origin

if TYPE_CHECKING:
    from evidentia.contracts.evidence import CoverageReport, EvidenceFragment, EvidenceResponse
    from evidentia.contracts.vocabulary import Similarity
    from evidentia.serving.cli.invocation import Invocation
    from evidentia.serving.cli.snippets import SnippetCutter

HASH_PREFIX = 16
MAX_VALUES = 10
"""Rows of a facet that are shown; `--json` has all."""
UNKNOWN_AGE = "unknown"
MARKS = {
    "policy_block": "policy: block",
    "policy_warn": "policy: warn",
    "outside": "outside",
    "stale": "stale",
    "inadmissible": "no origin",
    "conflict_won": "holds",
    "conflict_lost": "contradicted",
    "truncated": "cut",
    "cut_by_intake": "cut",
}
"""What is said of a fragment's flags, in this order; that it is undated shows in its age."""
_ANSWERED = (CoverageState.SEARCHED, CoverageState.CACHED)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_AGES = ((2 * _DAY, _HOUR, "h"), (60 * _DAY, _DAY, "d"), (730 * _DAY, 30 * _DAY, "mo"), (timedelta.max, 365 * _DAY, "y"))
"""Up to which age, which unit is counted; months have 30 days and years 365."""


def put_response(
    call: Invocation, response: EvidenceResponse, *, cutter: SnippetCutter, similarity: Similarity, is_explained: bool = False
) -> None:
    """Print an answer, and if it is to be explained, how it came about."""
    put_fragments(response, cutter=cutter)
    put_conflicts(response)
    if is_explained:
        put_explanations(response, similarity=similarity)
    _put_facets(response)
    put()
    put(footer(response))
    put_notes(call, response)


def put_fragments(response: EvidenceResponse, *, cutter: SnippetCutter) -> None:
    """Print the table of fragments, or that there are none; marks have a column where there are any."""
    if not response.fragments:
        put("nothing that you may see matches" if not response.withheld else "everything that matches was withheld")
        return
    marks = [", ".join(dict.fromkeys(word for flag, word in MARKS.items() if flag in fragment.flags)) for fragment in response.fragments]
    has_marks = any(marks)
    rows = [
        (
            rank,
            Figure(f"{fragment.score / SCORE_ONE:.2f}"),
            place_of(fragment),
            fragment.authority_tier.value,
            age_of(fragment, as_of=response.as_of),
            *((mark,) if has_marks else ()),
            cutter.cut(fragment.content),
        )
        for rank, (mark, fragment) in enumerate(zip(marks, response.fragments, strict=True), start=1)
    ]
    put_table(("#", SCORE_HEADER, "source", "authority", "age", *(("mark",) if has_marks else ()), "snippet"), rows)


def put_conflicts(response: EvidenceResponse) -> None:
    """Print what the fragments disagree about, which of them holds, and what decided."""
    if not response.conflicts:
        return
    put()
    put_table(
        ("conflict", "holds", "against", "decided by"),
        [
            (
                " ".join(filter(None, (each.subject, each.attribute))),
                f"{each.value} ({document_of(each.winner)})",
                ", ".join(f"{value} ({document_of(loser)})" for value, loser in zip(each.losing_values, each.losers, strict=False)),
                each.decided_by,
            )
            for each in response.conflicts
        ],
    )


def put_notes(call: Invocation, response: EvidenceResponse) -> None:
    """Print on stderr what the answer lacks."""
    told = {_trouble(source, report) for source, report in response.source_coverage.items()}
    for reason in response.degraded:
        if reason not in told:  # the accounts of sources below say the same
            note(call, reason)
    kept = {fragment.chunk_id for fragment in response.fragments}
    for said in response.governance:
        if said.chunk_id in kept:  # of the others it is said why they were withheld
            note(call, f"policy '{said.policy_name}' says {said.action.value} of {document_of(said.chunk_id)}: {said.reason}")
    withheld = [each.reason for each in response.withheld]
    for reason in dict.fromkeys(withheld):
        count = withheld.count(reason)
        note(call, f"{count} {'fragment was' if count == 1 else 'fragments were'} withheld: {reason}")
    put_coverage_notes(call, response)


def put_coverage_notes(call: Invocation, response: EvidenceResponse) -> None:
    """Print on stderr which sources did not answer in full, with the reason, and whose replies had faults."""
    accounts: dict[tuple[str, str], list[str]] = {}
    for source, report in response.source_coverage.items():
        if report.state not in _ANSWERED:
            reason = f"{report.state.value}: {report.reason}" if report.reason else report.state.value
            accounts.setdefault((_extent(report), reason), []).append(source)
    for (extent, reason), sources in accounts.items():
        note(call, f"{extent}: {', '.join(sources)} ({reason})")
    for source, report in response.source_coverage.items():
        if report.faults:
            note(call, f"faults in the reply of {source}: {faults_in_words(report.faults)}")


def footer(response: EvidenceResponse) -> str:
    """Return the line that says how much there is and how to come back to it."""
    receipt = f"receipt {response.receipt_id}" if response.receipt_id else "no receipt"
    count = f"{len(response.fragments)} of {response.total_candidates} matching fragments"
    return f"{count}, {receipt}, result {response.result_hash[:HASH_PREFIX]}, {response.latency_ms:.1f} ms"


def place_of(fragment: EvidenceFragment) -> str:
    """Return where a fragment can be found: its document in the base, or outside it the source with the origin that it names."""
    origin = fragment.metadata.get("origin", "")
    if fragment.event is not None or not origin or origin.startswith(OTHER_BASE):
        return fragment.document_id
    is_named = origin.startswith(f"{fragment.source_id}:")
    return short_origin(origin) if is_named else f"{fragment.source_id}: {short_origin(origin)}"


def age_of(fragment: EvidenceFragment, *, as_of: datetime) -> str:
    """Return how long before `as_of` a fragment's document was updated, in one unit; `unknown` when nobody said."""
    updated = fragment.metadata.get("updated_at")
    if updated is None:
        return UNKNOWN_AGE
    age = as_of - datetime.fromisoformat(updated)
    if age < timedelta(0):
        return "later"
    return next(f"{age // unit} {name}" for bound, unit, name in _AGES if age < bound)


def _extent(report: CoverageReport) -> str:
    if report.state is CoverageState.STALE:
        return "answered from what was kept past its time"
    return "partly searched" if report.candidates else "not searched"


def _trouble(source: str, report: CoverageReport) -> str:
    """Return the line in which an answer says of itself that a source is missing."""
    return f"sources: '{source}' is {report.state.value} ({report.reason})"


def _put_facets(response: EvidenceResponse) -> None:
    for field, counts in response.facets.items():
        put()
        put_table((field, "documents"), list(counts.items())[:MAX_VALUES])
        if len(counts) > MAX_VALUES:
            put(f"... and {len(counts) - MAX_VALUES} more; --json lists all")
