"""What is asked of a base in its directory and of the same base behind an address, and has to come out the same."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from evidentia.contracts.errors import EvidentiaError, FilterSyntaxError, InvalidFieldError, NotFoundError
from serving.remote_worlds import AS_OF

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia import Base

QUESTION = "how often are keys rotated?"


def first_chunk(base: Base) -> str:
    return str(base.chunks(base.documents()[0][0])[0].chunk_id)


def receipt_of(base: Base) -> str:
    receipt_id = base.retrieve(QUESTION, as_of=AS_OF).receipt_id
    assert receipt_id
    return str(receipt_id)


def asked_of_both(bases: tuple[Base, Base], read: Callable[[Base], Any]) -> tuple[Any, Any]:
    """Return what each says; traces of earlier requests are written behind their answers, so two that differ are asked again."""
    local, remote = read(bases[0]), read(bases[1])
    for _ in range(100):
        if local == remote:
            break
        time.sleep(0.02)
        local, remote = read(bases[0]), read(bases[1])
    return local, remote


READS: dict[str, Callable[[Base], Any]] = {
    "head": lambda base: base.head(),
    "versions": lambda base: base.versions(),
    "diff": lambda base: base.diff(1, base.head().sequence),
    "documents": lambda base: base.documents(),
    "pages of documents": lambda base: [base.documents(limit=2), base.documents(after=base.documents()[0][0], limit=700)],
    "chunks": lambda base: [base.chunks(name) for name, _, _ in base.documents()],
    "tables": lambda base: base.tables(),
    "open_table": lambda base: [base.open_table(each.table_id) for each in base.tables()],
    "ask_tables": lambda base: base.ask_tables("how many people does the security team have?"),
    "layout": lambda base: [base.layout(name) for name, _, _ in base.documents()],
    "image": lambda base: [
        base.image(image.image_hash) for name, _, _ in base.documents() if (layout := base.layout(name)) for image in layout.images
    ],
    "sources": lambda base: [each.descriptor for each in base.sources()],
    "source_freshness": lambda base: [each.source_id for each in base.source_freshness()],
    "notes": lambda base: base.notes(),
    "policies": lambda base: base.policies(),
    "verify a document": lambda base: base.verify(base.documents()[0][0]),
    "verify a chunk": lambda base: base.verify(first_chunk(base)),
    "verify an answer": lambda base: base.verify(base.retrieve(QUESTION, as_of=AS_OF)).fragments,
    "verify an export": lambda base: base.verify(base.export(first_chunk(base))),
    "export": lambda base: base.export(first_chunk(base)),
    "consistency": lambda base: base.consistency(1),
    "replay": lambda base: base.replay(receipt_of(base)).is_same,
    "why": lambda base: base.why(receipt_of(base), first_chunk(base)).stage,
}
"""What anybody may ask, and what of it has to be equal."""

OWNER_READS: dict[str, Callable[[Base], Any]] = {
    "doctor": lambda base: base.doctor(),
    "verify": lambda base: base.verify(),
    "traces": lambda base: [each.request_id for each in base.traces(limit=3)],
    "trace": lambda base: base.trace(base.traces(limit=1)[0].request_id),
    "cache_stats": lambda base: base.cache_stats().entries,
    "flush_cache": lambda base: base.flush_cache(),
    "warm": lambda base: base.warm([QUESTION]).questions,
}


REQUESTS: list[dict[str, Any]] = [
    {},
    {"limit": 2, "token_budget": 60},
    {"mode": "lexical", "explain": True},
    {"filter": 'source_id = "handbook"', "facets": ("media_type",)},
    {"time_window": {"start": "2001-01-01T00:00:00Z"}, "latency_deadline_ms": 30_000},
]


WRONG: dict[str, tuple[type[EvidentiaError], Callable[[Base], Any]]] = {
    "a document that is not there": (NotFoundError, lambda base: base.chunks("handbook/none.md")),
    "a chunk that is not there": (NotFoundError, lambda base: base.export("0" * 64)),
    "a receipt that is not there": (NotFoundError, lambda base: base.replay("rcp_none")),
    "an unknown field": (InvalidFieldError, lambda base: base.retrieve(QUESTION, limits=3)),
    "a value out of range": (InvalidFieldError, lambda base: base.retrieve(QUESTION, limit=0)),
    "an empty question": (InvalidFieldError, lambda base: base.retrieve("")),
    "a filter that does not parse": (FilterSyntaxError, lambda base: base.retrieve(QUESTION, filter="source_id = = 3")),
    "a log that is not that long": (InvalidFieldError, lambda base: base.consistency(10**6)),
    "an unknown version": (NotFoundError, lambda base: base.diff("deadbeef", "deadbeef")),
}
