"""An answer as text: a table of fragments, facets, what is missing and why, and a line to come back by."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.confidence_words import in_words
from evidentia.contracts.evidence import SCORE_ONE, FinalResponse, SourceFinished
from evidentia.contracts.ids import document_of
from evidentia.contracts.vectors import RAW_SCALE_BITS, UNIT_SCALE_BITS
from evidentia.contracts.vocabulary import CoverageState, Similarity
from evidentia.ranking.order_notes import order_notes
from evidentia.serving.cli.output import Figure, counted, note, put, put_facts, put_table
from evidentia.serving.cli.snippets import SnippetCutter
from evidentia.serving.cli.sources_report import OTHER_BASE, faults_in_words, short_origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.access import AccessRule
    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.evidence import CoverageReport, EvidenceFragment, EvidenceResponse, SignalScores, StreamEvent, TermScore
    from evidentia.contracts.receipts import ReplayReport, WhyReport
    from evidentia.serving.cli.invocation import Invocation


HASH_PREFIX = 16
BEGINNING_CHARS = 60
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
    "deprecated": "deprecated",
    "archived": "archived",
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
    put_footer(response)
    put_notes(call, response)


def put_fragments(response: EvidenceResponse, *, cutter: SnippetCutter) -> None:
    """Print the table of fragments, or that there are none; marks have a column where there are any.

    Why a row stands behind a less likely one is said below the table, in the words of `order_notes`.
    """
    if not response.fragments:
        put(response.verdict)
        return
    marks = [", ".join(dict.fromkeys(word for flag, word in MARKS.items() if flag in fragment.flags)) for fragment in response.fragments]
    has_marks = any(marks)
    rows = [
        (
            rank,
            fragment.rating,
            place_of(fragment),
            fragment.authority_tier.value,
            age_of(fragment, as_of=response.as_of),
            *((mark,) if has_marks else ()),
            cutter.cut(fragment.content),
        )
        for rank, (mark, fragment) in enumerate(zip(marks, response.fragments, strict=True), start=1)
    ]
    put_table(("#", CONFIDENCE_HEADER, "source", "authority", "age", *(("mark",) if has_marks else ()), "snippet"), rows)
    behind = [f"{rank} stands {why}" for rank, why in enumerate(order_notes(response.fragments), start=1) if why]
    if behind:
        put("", *behind)


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
        note(call, f"{counted(count, 'fragment was', 'fragments were')} withheld: {reason}")
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


def put_footer(response: EvidenceResponse) -> None:
    """Print how much there is, how to come back to it, and last what it is worth and what to do about it."""
    put(_footer(response))
    if response.fragments:
        put(f"{response.verdict}{'; try other words, or add what is missing' if response.is_doubtful else ''}")


def _footer(response: EvidenceResponse) -> str:
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


# What an answer is made of, as text: the signals of each fragment, what each word gave, and what was done on the way.

TERM_ONE: Final = 1 << 16
SCORE_HEADER: Final = "score"
CONFIDENCE_HEADER: Final = "confidence"
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
    confidence: float | None


def put_explanations(response: EvidenceResponse, *, similarity: Similarity) -> None:
    """Print what each fragment's place is made of, what each word gave, how the question was understood, and what each stage did."""
    if response.fragments:
        put()
        rows = [SignalRow(str(rank), each.score, each.scores, each.confidence) for rank, each in enumerate(response.fragments, start=1)]
        put_signals(rows, similarity=similarity)
    for fragment in response.fragments:
        if fragment.explanation:
            put("", fragment.chunk_id)
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
        *("#", CONFIDENCE_HEADER, SCORE_HEADER, "relevance", "authority", "freshness", "utility"),
        *(("fused", "reranker") if has_reranker else ()),
        "words",
        *((nearness.name,) if has_vectors else ()),
    ]
    table = []
    for row in rows:
        scores = row.scores
        table.append(
            (
                Figure(row.name),
                in_words(row.confidence),
                *(_score_share(value) for value in (row.score, scores.relevance, scores.authority, scores.freshness, scores.utility)),
                *((_score_share(scores.fused), _score_share(scores.reranked)) if has_reranker else ()),
                Figure(f"{scores.lexical / TERM_ONE:.2f}"),
                *((near_of(scores, nearness),) if has_vectors else ()),
            )
        )
    put_table(header, table)


def near_of(scores: SignalScores, nearness: Nearness) -> Figure:
    """Return the vectors' own score as people read it."""
    return Figure(NO_VECTOR if scores.dense is None else f"{scores.dense / (1 << nearness.bits):.2f}")


def put_terms(terms: Sequence[TermScore]) -> None:
    """Print what each word of the query gave to one fragment."""
    rows = [
        (
            each.term,
            Figure(f"{each.score / TERM_ONE:.2f}"),
            each.frequency,
            each.in_context,
            f"{each.containing} of {each.documents}",
            each.length,
        )
        for each in terms
    ]
    put_table(("term", SCORE_HEADER, "frequency", "in context", "containing", "length"), rows)


def _score_share(value: int | None) -> Figure:
    return Figure(NO_VECTOR if value is None else f"{value / SCORE_ONE:.3f}")


# An answer as it comes about: every source on stderr when it has finished, then the answer itself.


def streamed(call: Invocation, events: Iterator[StreamEvent]) -> EvidenceResponse:
    """Tell of every source when it has finished, and return the answer."""
    for event in events:
        if isinstance(event, SourceFinished):
            note(call, f"{event.source_id}: {_source_account(event.report)}")
        elif isinstance(event, FinalResponse):
            return event.response
    raise AssertionError  # the last event is the answer


def _source_account(report: CoverageReport) -> str:
    reason = f" ({report.reason})" if report.reason else ""
    return f"{report.state.value}, {counted(report.candidates, 'candidate')}, {report.elapsed_ms:.1f} ms{reason}"


def put_documents(found: Sequence[tuple[str, AccessRule, int]]) -> None:
    """Print a table of documents with who may see them."""
    rows = [(document_id, access.classification.value, ", ".join(access.acl) or "-", count) for document_id, access, count in found]
    put_table(("document", "classification", "acl", "chunks"), rows)


def put_document(chunks: Sequence[StoredChunk]) -> None:
    """Print a document with its chunks."""
    metadata, access = chunks[0].metadata, chunks[0].access
    put_facts(
        [
            ("document", chunks[0].document_id),
            ("title", metadata.title or "-"),
            ("authority", metadata.authority_tier.value),
            ("classification", access.classification.value),
            ("tenant", access.tenant),
            ("acl", ", ".join(access.acl) or "-"),
            ("tags", ", ".join(metadata.tags) or "-"),
        ]
    )
    put()
    rows = [(chunk.chunk_id, chunk.start, chunk.end, _beginning(chunk.content)) for chunk in chunks]
    put_table(("chunk", "start", "end", "begins"), rows)


def _beginning(content: str) -> str:
    line = " ".join(content[: 4 * BEGINNING_CHARS].split())
    return line if len(line) <= BEGINNING_CHARS else f"{line[: BEGINNING_CHARS - 1]}…"


def put_replay(call: Invocation, report: ReplayReport, *, language: str) -> None:
    """Print whether the answer is the same, and as much of it as may be seen today."""
    put(f"receipt {report.receipt_id}: {'the same answer' if report.is_same else 'ANOTHER ANSWER'}")
    put_facts([("recorded", report.recorded_hash), ("computed", report.result_hash)])
    put()
    # A receipt's question belongs to whoever asked it, so the report does not repeat it and nothing is marked.
    put_fragments(report.response, cutter=SnippetCutter("", language=language))
    put_conflicts(report.response)
    if report.hidden:
        note(call, f"{counted(report.hidden, 'fragment is', 'fragments are')} not shown: not for you to see today")


def put_why(report: WhyReport, *, similarity: Similarity) -> None:
    """Print at which stage a chunk left an answer, or its place in it."""
    put_facts(
        [
            ("chunk", report.chunk_id),
            ("stage", report.stage),
            ("rank", report.rank or "-"),
            *([(CONFIDENCE_HEADER, in_words(report.confidence))] if report.confidence is not None else []),
            ("score", f"{report.score / SCORE_ONE:.2f}"),
            ("reason", report.reason),
            *([("smallest change", report.smallest_change)] if report.smallest_change else []),
        ]
    )
    if report.scores is not None:
        put()
        row = SignalRow(str(report.rank or "-"), report.score, report.scores, report.confidence)
        put_signals([row], similarity=similarity)
    if report.terms:
        put()
        put_terms(report.terms)
