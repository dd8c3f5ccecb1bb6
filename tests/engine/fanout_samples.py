"""A fan-out with everything it reports written down, and calls to give it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.access import local_owner
from evidentia.contracts.evidence import SubQuery
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import SourceAsk
from evidentia.contracts.settings import FanoutSettings, SourceSettings
from evidentia.contracts.sources import SourceDescriptor
from evidentia.federation.fanout import FanOut, SourceCall
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from evidentia.contracts.ports import BlockingRetriever, Clock, Retriever
    from evidentia.contracts.retrieval import SourceReply
    from evidentia.contracts.vocabulary import CoverageState


class Watched:
    """A fan-out and what it said to its listeners."""

    def __init__(self, clock: Clock, *, settings: FanoutSettings | None = None, limits: SourceSettings | None = None) -> None:
        self.records: list[tuple[str, CoverageState, float, str]] = []
        self.late: list[tuple[SourceCall, SourceReply]] = []
        self.fan_out = FanOut(
            clock=clock,
            settings=settings or FanoutSettings(),
            limits=limits or SourceSettings(),
            record=lambda *outcome: self.records.append(outcome),
            on_late=lambda call, reply: self.late.append((call, reply)),
        )


def call_of(
    retriever: Retriever | BlockingRetriever, name: str = "source", *, wait_ms: int = 200, limit: int = 10, part: int = 0
) -> SourceCall:
    return SourceCall(
        descriptor=SourceDescriptor(source_id=SourceId(name)),
        retriever=retriever,
        ask=SourceAsk(query=SubQuery(text="harbour"), principal=local_owner(), limit=limit, budget_ms=wait_ms, as_of=START),
        wait_ms=wait_ms,
        part=part,
    )


def without_times(reply: SourceReply) -> SourceReply:
    """Return a reply without what depends on how quick the machine was."""
    replace = msgspec.structs.replace
    candidates = tuple(replace(candidate, retrieved_at=START) for candidate in reply.candidates)
    return replace(reply, report=replace(reply.report, elapsed_ms=0.0), asked_ms=0.0, candidates=candidates)
