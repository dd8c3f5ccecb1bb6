"""Requests as lines of JSON in a log of the standard library. Needs no extra."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.ports import TraceSink

if TYPE_CHECKING:
    from evidentia.contracts.telemetry import RequestTrace, TraceSpan

LOGGER: Final = "evidentia.requests"

_log = logging.getLogger(LOGGER)
_encoder = msgspec.json.Encoder()


class RequestLog(TraceSink):
    """Implements `TraceSink`: one line per request at INFO, which the process sends where it sends its logs. Thread safe."""

    def record(self, trace: RequestTrace) -> None:
        """Log a request, if anybody listens."""
        if _log.isEnabledFor(logging.INFO):
            fields = line_of(trace)
            # Whoever writes lines of their own takes the fields; anybody else has them in the message.
            _log.info("%s", _encoder.encode(fields).decode(), extra={"fields": {"message": fields.pop("message"), "answer": fields}})


def line_of(trace: RequestTrace) -> dict[str, object]:
    """Return the fields of a line."""
    return {
        "message": "request answered",
        "request_id": trace.request_id,
        "receipt_id": trace.receipt_id,
        "started_at": trace.started_at,
        "latency_ms": trace.latency_ms,
        "deadline_ms": trace.deadline_ms,
        "is_late": trace.latency_ms > trace.deadline_ms,
        "degraded": trace.degraded,
        "tenant": trace.tenant,
        "principal_fingerprint": trace.principal_fingerprint,
        "agent_name": trace.agent_name,
        "mode": trace.mode,
        "limit": trace.limit,
        "fragments": trace.fragments,
        "candidates": trace.candidates,
        "tokens_used": trace.tokens_used,
        "cache_hit_ratio": trace.cache_hit_ratio,
        "result_hash": trace.result_hash,
        "stages_ms": {span.name: span.duration_ms for span in trace.spans if span.kind == "stage"},
        "sources": [_source(span) for span in trace.spans if span.kind == "source"],
    }


def _source(span: TraceSpan) -> dict[str, object]:
    return {
        "source": span.name,
        "state": span.state,
        "start_ms": span.start_ms,
        "duration_ms": span.duration_ms,
        "note": span.note,
        **span.attributes,
    }
