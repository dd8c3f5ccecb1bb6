"""Traces as text: a table of requests, and one request with where its time went."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from rich.console import Console

from evidentia.serving.cli.output import Figure, put, put_facts, put_table
from evidentia.serving.cli.trace_waterfall import ANSWERED, glyphs_for, is_late, waterfall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.telemetry import RequestTrace

HASH_PREFIX: Final = 16
NONE: Final = "-"


def put_traces(traces: Sequence[RequestTrace]) -> None:
    """Print a table of requests."""
    rows = [
        (
            f"{trace.started_at:%Y-%m-%d %H:%M:%S}",
            trace.request_id,
            Figure(f"{trace.latency_ms:.1f} of {trace.deadline_ms} ms"),
            _answered_note(trace),
            trace.fragments,
            Figure(f"{trace.cache_hit_ratio:.0%}"),
            ", ".join((*(("late",) if is_late(trace) else ()), *trace.degraded)) or NONE,
        )
        for trace in traces
    ]
    put_table(("time", "id", "latency", "sources", "fragments", "cache", "degraded"), rows)


def put_trace(trace: RequestTrace) -> None:
    """Print one request: what is known of it, and where its time went."""
    put_facts(
        [
            ("request", trace.request_id),
            ("receipt", trace.receipt_id or NONE),
            ("time", f"{trace.started_at:%Y-%m-%d %H:%M:%S.%f}"),
            ("latency", f"{trace.latency_ms:.1f} of {trace.deadline_ms} ms{', late' if is_late(trace) else ''}"),
            ("caller", f"{trace.principal_fingerprint[:HASH_PREFIX]} in tenant {trace.tenant}"),
            *([("agent", trace.agent_name)] if trace.agent_name else []),
            ("mode", trace.mode),
            ("fragments", f"{trace.fragments} of {trace.candidates} candidates, at most {trace.limit}; {trace.tokens_used} tokens"),
            ("sources", f"{_answered_note(trace)} answered, {trace.cache_hit_ratio:.0%} from the cache"),
            ("degraded", ", ".join(trace.degraded) or NONE),
            ("result", trace.result_hash[:HASH_PREFIX]),
        ]
    )
    put()
    console = Console(markup=False, highlight=False, emoji=False)
    for line in waterfall(trace, width=console.width, glyphs=glyphs_for(sys.stdout.encoding)):
        console.print(line, soft_wrap=True)


def _answered_note(trace: RequestTrace) -> str:
    states = [span.state for span in trace.spans if span.kind == "source"]
    return f"{sum(state in ANSWERED for state in states)} of {len(states)}"
