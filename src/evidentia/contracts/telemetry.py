"""One request as those who run the engine see it: what took how long, and what came of it; never what was asked or answered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from evidentia.contracts.ids import ReceiptId, RequestId, Sha256
from evidentia.contracts.vocabulary import CoverageState


class TraceSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of a request, or one source's part in it."""

    name: str
    kind: str
    """`stage` or `source`."""
    start_ms: float
    """Since the request began."""
    duration_ms: float
    note: str = ""
    state: CoverageState | None = None
    """What became of a source."""
    attributes: Mapping[str, str | int | float | bool] = msgspec.field(default_factory=dict)


class RequestTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A request from door to answer."""

    request_id: RequestId
    receipt_id: ReceiptId | None
    started_at: datetime
    latency_ms: float
    deadline_ms: int
    principal_fingerprint: Sha256
    tenant: str
    agent_name: str = ""
    mode: str = "hybrid"
    limit: int = 10
    fragments: int = 0
    candidates: int = 0
    tokens_used: int = 0
    cache_hit_ratio: float = 0.0
    degraded: tuple[str, ...] = ()
    result_hash: Sha256
    spans: tuple[TraceSpan, ...] = ()
