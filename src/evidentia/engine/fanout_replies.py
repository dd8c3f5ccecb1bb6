"""Writes down what became of a call: the state, the reason in words, and what came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.evidence import CoverageReport
from evidentia.contracts.retrieval import SourceReply
from evidentia.contracts.vocabulary import CoverageState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from evidentia.contracts.retrieval import ExternalCandidate, SourceAsk
    from evidentia.engine.fanout_flights import Flight, SourceCall
    from evidentia.sources.intake import Taken

_NS_PER_MS = 1_000_000


GIVEN_UP = "given up: "
"""How the account of a source begins that was not waited for because enough had come."""


def finished_reply(flight: Flight, *, asked_ns: int, started_ns: int) -> SourceReply:
    """Return the reply of a call that ended by itself, well or not."""
    taken = flight.intake.finished()
    problem = flight.problem
    elapsed_ms = _in_ms(flight.ended_ns - asked_ns)
    asked_ms = _in_ms(asked_ns - started_ns)
    if problem is None:
        reason = "it proposed more than is read; the rest was left" if taken.is_cut else ""
        return _asked(flight.call, taken, CoverageState.SEARCHED, reason=reason, share=1.0, elapsed_ms=elapsed_ms, asked_ms=asked_ms)
    reason = _with_kept(problem.told, taken)
    share = _share(flight.call.ask, taken)
    return _asked(flight.call, taken, CoverageState.FAILED, reason=reason, share=share, elapsed_ms=elapsed_ms, asked_ms=asked_ms)


def late_reply(flight: Flight, *, asked_ns: int, started_ns: int, now_ns: int) -> SourceReply:
    """Return the reply of a call whose caller does not wait any longer."""
    taken = flight.intake.finished()
    return _asked(
        flight.call,
        taken,
        CoverageState.TIMED_OUT,
        reason=_with_kept(f"not finished within {flight.call.wait_ms} ms", taken),
        share=_share(flight.call.ask, taken),
        elapsed_ms=_in_ms(now_ns - asked_ns),
        asked_ms=_in_ms(asked_ns - started_ns),
    )


def stopped_reply(flight: Flight, reason: str, *, asked_ns: int, started_ns: int, now_ns: int) -> SourceReply:
    """Return the reply of a call that was given up because enough had come; what it had brought is left out, and counted."""
    dropped = len(flight.intake.finished().candidates)
    return refused_reply(
        flight.call,
        CoverageState.SKIPPED,
        f"{GIVEN_UP}{reason}; the {dropped} that had come were dropped" if dropped else f"{GIVEN_UP}{reason}",
        elapsed_ms=_in_ms(now_ns - asked_ns),
        asked_ms=_in_ms(asked_ns - started_ns),
    )


def refused_reply(call: SourceCall, state: CoverageState, reason: str, *, elapsed_ms: float = 0.0, asked_ms: float = 0.0) -> SourceReply:
    """Return the reply in place of a source that took no part."""
    report = CoverageReport(state=state, reason=reason, searched_share=0.0, elapsed_ms=elapsed_ms)
    return _reply(call, report, (), asked_ms=asked_ms)


def _asked(
    call: SourceCall, taken: Taken, state: CoverageState, *, reason: str, share: float, elapsed_ms: float, asked_ms: float
) -> SourceReply:
    report = CoverageReport(
        state=state,
        reason=reason,
        candidates=len(taken.candidates),
        searched_share=share,
        data_age_s=age_s(call.ask, taken.candidates),
        elapsed_ms=elapsed_ms,
        faults=taken.faults,
    )
    return _reply(call, report, taken.candidates, asked_ms=asked_ms)


def _reply(call: SourceCall, report: CoverageReport, candidates: tuple[ExternalCandidate, ...], *, asked_ms: float) -> SourceReply:
    descriptor = call.descriptor
    return SourceReply(
        source_id=descriptor.source_id,
        part=call.part,
        part_weight_milli=call.part_weight_milli,
        report=report,
        candidates=candidates,
        source_type=descriptor.source_type,
        version=descriptor.version,
        weight_milli=descriptor.weight_milli,
        freshness_tau_s=descriptor.freshness_tau_s,
        asked_ms=asked_ms,
    )


def _with_kept(reason: str, taken: Taken) -> str:
    kept = len(taken.candidates)
    return f"{reason}; the {kept} that had come were kept, the rest is missing" if kept else f"{reason}; nothing had come"


def _share(ask: SourceAsk, taken: Taken) -> float:
    """Return how much of a reply that did not end is there: of as many as were asked for, those that came.

    That is 0 when nothing came, and 1 when as many came as were asked for, though the state says that it did not end.
    """
    return min(1.0, len(taken.candidates) / ask.limit) if ask.limit > 0 else 0.0


def age_s(ask: SourceAsk, candidates: Sequence[ExternalCandidate]) -> int | None:
    """Return how old the newest of what came is; None where nothing has a date."""
    newest = newest_of(candidates)
    return None if newest is None else max(0, int((ask.as_of - newest).total_seconds()))


def newest_of(candidates: Sequence[ExternalCandidate]) -> datetime | None:
    """Return when the newest of what came was changed, as far as it says."""
    return max((candidate.updated_at for candidate in candidates if candidate.updated_at is not None), default=None)


def _in_ms(elapsed_ns: int) -> float:
    return round(elapsed_ns / _NS_PER_MS, 3)
