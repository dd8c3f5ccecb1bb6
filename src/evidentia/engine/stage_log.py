"""What each stage of one request did and how long it took; decisions are for receipts, times only for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.evidence import SCORE_ONE, CoverageReport, Decision, EvidenceFragment, EvidenceRequest, EvidenceResponse
from evidentia.contracts.ids import CHUNK_HASH_DIGITS, Sha256, SourceId
from evidentia.contracts.telemetry import RequestTrace, TraceSpan
from evidentia.contracts.vocabulary import CacheTier, CoverageState
from evidentia.foundation.offload import AbandonedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from evidentia.contracts.ports import Clock
    from evidentia.contracts.retrieval import SourceReply


_NS_PER_MS = 1_000_000
LATE: Final = "deadline:"
"""How the remark begins that an answer comes after its deadline."""
TOLD_STEP_MS: Final = 10
"""Others than the owner are told times in whole steps of this, rounded up; what single stages took, they are not told at all."""


class StageLog:
    """Collects the stages of one request in order. One that is patient gives each model its time from when it is asked."""

    def __init__(self, clock: Clock, *, deadline_ms: int, no_deadline: bool = False, remarks: Sequence[str] = ()) -> None:
        self._clock = clock
        self._remarks = tuple(remarks)
        self.no_deadline = no_deadline
        self.started_at = clock.now()
        self._started = self._last = clock.elapsed_ns()
        self.deadline_ms = deadline_ms
        self.decisions: list[Decision] = []
        self.latencies_ms: dict[str, float] = {}
        self.degraded: list[str] = list(remarks)
        self._is_cancelled = False

    @property
    def is_cancelled(self) -> bool:
        """Tell whether whoever asked has left."""
        return self._is_cancelled

    @property
    def started_ns(self) -> int:
        """Return the moment at which the request began, on the clock that never goes back."""
        return self._started

    def mark(self, stage: str, note: str, *, remaining: int = 0) -> None:
        """Close a stage: say what it did and how many candidates are left. Raises when whoever asked has left meanwhile."""
        self.check_cancelled()
        now = self._clock.elapsed_ns()
        self.decisions.append(Decision(stage=stage, note=note, remaining=remaining))
        self.latencies_ms[stage] = (now - self._last) / _NS_PER_MS
        self._last = now

    def check_cancelled(self) -> None:
        """Raise when whoever asked has left."""
        if self._is_cancelled:
            raise AbandonedError

    def cancel(self) -> None:
        """Let the stage that is open be the last one; may be called from any thread."""
        self._is_cancelled = True

    def degrade(self, reason: str) -> None:
        """Say what the answer lacks."""
        self.degraded.append(reason)

    def elapsed_ms(self) -> float:
        """Return how long the request has taken so far."""
        return (self._clock.elapsed_ns() - self._started) / _NS_PER_MS

    def left_ms(self) -> float:
        """Return how much of the deadline is left; less than 0 when it is over."""
        return self.deadline_ms - self.elapsed_ms()

    def left_until_ms(self, ends_ms: float) -> float:
        """Return how long a stage may be waited for that ends so many milliseconds after the request began; at least 1."""
        return max(1.0, ends_ms if self.no_deadline else ends_ms - self.elapsed_ms())

    def beside(self) -> StageLog:
        """Return an empty log of the same request, for a second attempt at it."""
        other = StageLog(self._clock, deadline_ms=self.deadline_ms, no_deadline=self.no_deadline, remarks=self._remarks)
        other.started_at, other._started, other._last = self.started_at, self._started, self._started
        return other

    def late_note(self, elapsed_ms: float) -> tuple[str, ...]:
        """Return what is said of an answer that comes after its deadline; nothing of one in time."""
        return (f"{LATE} the answer took longer than {self.deadline_ms} ms",) if elapsed_ms > self.deadline_ms else ()


def told(response: EvidenceResponse, *, is_owners: bool) -> EvidenceResponse:
    """Return an answer as it is handed out: others than the owner are told coarsely how long it took, which no hash covers."""
    return response if is_owners else msgspec.structs.replace(response, latency_ms=_coarse_ms(response.latency_ms))


def coarse(report: CoverageReport) -> CoverageReport:
    """Return what a source did, with the time it took as others than the owner are told it."""
    return msgspec.structs.replace(report, elapsed_ms=_coarse_ms(report.elapsed_ms)) if report.elapsed_ms else report


def _coarse_ms(elapsed_ms: float) -> float:
    """Return a time as others than the owner are told it."""
    return float(-(-elapsed_ms // TOLD_STEP_MS) * TOLD_STEP_MS)


# --- request trace ---
# A request as a trace: what took how long and what came of it. Refuses to take a word of what was asked or answered.
#
# Fragments are told apart by the beginning of their hash, as at the end of chunk ids; a receipt says which they were.

SEARCH: Final = "search"
"""The stage in which the base's own sources are searched."""
MAX_DOCUMENTS: Final = 20
"""So many fragments of an answer are named, best first."""
_PLACES: Final = 4
_SCORE_PLACES: Final = 6
_WITH_EXCEPTIONS: Final = frozenset({CoverageState.FAILED, CoverageState.STALE, CoverageState.BREAKER_OPEN})
"""States whose reason may quote what a source raised, which may quote anything."""
_OF_THE_BASE: Final = frozenset({CoverageState.SEARCHED, CoverageState.TIMED_OUT})
"""What becomes of a source of the base that takes part: all of them are searched in one stage."""


def build_trace(
    *,
    response: EvidenceResponse,
    request: EvidenceRequest,
    fingerprint: Sha256,
    replies: Sequence[SourceReply],
    started_at: datetime,
    stages: Mapping[str, float],
    notes: Sequence[Decision] = (),
) -> RequestTrace:
    """Return the trace of an answered request; `stages` are in the order in which they ran, each beginning where the last ended.

    Its times are those that were measured: it is made before the answer is told its caller.
    """
    spans = _stage_spans(stages, notes, response.fragments)
    search_ms = next((span.start_ms for span in spans if span.name == SEARCH), 0.0)
    principal = request.principal
    return RequestTrace(
        request_id=response.request_id,
        receipt_id=response.receipt_id,
        started_at=started_at,
        latency_ms=round(response.latency_ms, _PLACES),
        deadline_ms=request.latency_deadline_ms,
        principal_fingerprint=fingerprint,
        tenant=principal.tenant if principal else DEFAULT_TENANT,
        agent_name=request.agent_name or "",
        mode=request.mode.value,
        limit=request.limit or 0,
        fragments=len(response.fragments),
        candidates=response.total_candidates,
        tokens_used=response.tokens_used,
        cache_hit_ratio=round(response.cache_hit_ratio, _PLACES),
        degraded=tuple(dict.fromkeys(_kind_of(reason) for reason in response.degraded)),
        result_hash=response.result_hash,
        spans=(*spans, *_source_spans(replies, response.source_coverage, search_ms=search_ms, searched_ms=stages.get(SEARCH, 0.0))),
    )


def _stage_spans(stages: Mapping[str, float], notes: Sequence[Decision], fragments: Sequence[EvidenceFragment]) -> list[TraceSpan]:
    """Return one span per stage; the last one names the fragments of the answer."""
    note_of = {decision.stage: decision.note for decision in notes}
    last = len(stages) - 1
    spans, start_ms = [], 0.0
    for place, (name, duration_ms) in enumerate(stages.items()):
        spans.append(
            TraceSpan(
                name=name,
                kind="stage",
                start_ms=round(start_ms, _PLACES),
                duration_ms=round(duration_ms, _PLACES),
                note=note_of.get(name, ""),
                attributes=_documents(fragments) if place == last else {},
            )
        )
        start_ms += duration_ms
    return spans


def _documents(fragments: Sequence[EvidenceFragment]) -> dict[str, str | int | float | bool]:
    named: dict[str, str | int | float | bool] = {}
    for place, fragment in enumerate(fragments[:MAX_DOCUMENTS]):
        named[f"document.{place}.id"] = fragment.content_hash[:CHUNK_HASH_DIGITS]
        named[f"document.{place}.score"] = round(fragment.score / SCORE_ONE, _SCORE_PLACES)
    return named


def _source_spans(
    replies: Sequence[SourceReply], coverage: Mapping[SourceId, CoverageReport], *, search_ms: float, searched_ms: float
) -> list[TraceSpan]:
    """Return one span per reply, and one per source that has none: those of the base itself and those that were not asked."""
    spans = [
        _source_span(
            reply.source_id,
            reply.report,
            start_ms=reply.asked_ms,
            duration_ms=reply.report.elapsed_ms,
            tier=reply.tier or reply.report.tier,
            part=reply.part,
        )
        for reply in sorted(replies, key=lambda reply: (reply.source_id, reply.part))
    ]
    replied = {reply.source_id for reply in replies}
    rest = ((source_id, report) for source_id, report in sorted(coverage.items()) if source_id not in replied)
    for source_id, report in rest:
        took_ms = searched_ms if report.state in _OF_THE_BASE else 0.0
        spans.append(_source_span(source_id, report, start_ms=search_ms, duration_ms=took_ms, tier=report.tier))
    return spans


def _source_span(
    source_id: SourceId, report: CoverageReport, *, start_ms: float, duration_ms: float, tier: CacheTier | None, part: int | None = None
) -> TraceSpan:
    attributes: dict[str, str | int | float | bool] = {"candidates": report.candidates, "faults": sum(report.faults.values())}
    if tier is not None:
        attributes["tier"] = tier.value
    if part is not None:
        attributes["part"] = part
    return TraceSpan(
        name=source_id,
        kind="source",
        start_ms=round(start_ms, _PLACES),
        duration_ms=round(duration_ms, _PLACES),
        note=_kind_of(report.reason) if report.state in _WITH_EXCEPTIONS else report.reason,
        state=report.state,
        attributes=attributes,
    )


def _kind_of(problem: str) -> str:
    """Return the kind of a problem, such as the type of an exception, without its words."""
    return problem.partition(":")[0].partition(";")[0].strip()
