"""What is known of the request that is being answered: its id, its door, whose token it shows. The log tells it; nothing decides by it.

An id is taken from the client where it has the form of one (`x-request-id`, else the trace of a `traceparent`), otherwise made.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEADER: Final = "x-request-id"
TRACE_HEADER: Final = "traceparent"
FACTS: Final = "evidentia.facts"
"""Where they stand in the scope of a request over HTTP."""
ID_BYTES: Final = 12
_ID: Final = re.compile(r"[A-Za-z0-9._:\-]{1,128}")
_TRACE: Final = re.compile(r"[0-9a-f]{2}-(?P<trace>(?!0{32})[0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


class RequestFacts:
    """They fill up while the request goes its way, and are told when it ends."""

    __slots__ = ("door", "operation", "request_id", "token_id")

    def __init__(self, request_id: str, *, door: str) -> None:
        self.request_id = request_id
        self.door = door
        self.operation = ""
        self.token_id = ""


_current: ContextVar[RequestFacts | None] = ContextVar("evidentia_request", default=None)


def current_facts() -> RequestFacts | None:
    """Return the request that is being answered here; None outside of one."""
    return _current.get()


def note_token(token_id: str) -> None:
    """Take down whose token the request shows: its id, never the token."""
    facts = _current.get()
    if facts is not None:
        facts.token_id = token_id


@contextmanager
def answering(facts: RequestFacts) -> Iterator[None]:
    """Have everything that is logged meanwhile belong to a request."""
    before = _current.set(facts)
    try:
        yield
    finally:
        _current.reset(before)


def id_given(headers: Iterable[tuple[str, str]]) -> str:
    """Return the id that a client gave its request; empty where there is none, or none that could stand in a log."""
    given = dict(headers)
    if _ID.fullmatch(given.get(HEADER, "")):
        return given[HEADER]
    traced = _TRACE.fullmatch(given.get(TRACE_HEADER, ""))
    return traced["trace"] if traced else ""
