"""A trace of what an agent did, checked after the fact: the same session, fed from what was written down."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evidentia.agents.protocol.session import ProtocolSession
from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from evidentia.contracts.protocol import AgentTrace, Profile, TracedCall, TraceFinding


def lint_trace(
    trace: AgentTrace,
    *,
    profile: str | Mapping[str, Any] | Profile | None = None,  # Any: changes as an author writes them
) -> tuple[TraceFinding, ...]:
    """Return what a trace breaks: calls in the order in which they began, then the reply. The same trace gives the same findings.

    `profile` is used instead of the trace's own. A trace without a reply is judged by its calls alone.
    """
    session = ProtocolSession(
        trace.question,
        profile=trace.profile if profile is None else profile,
        skills=trace.skills,
        self_knowledge=trace.has_self_knowledge,
        task=trace.task,
        question_type=trace.question_type,
        breadth=trace.breadth,
        explicit_file=trace.explicit_file,
        raw_query_works=trace.raw_query_works,
    )
    numbers: dict[int, int] = {}
    for place, is_end in _events(trace.calls):
        traced = trace.calls[place]
        if is_end:
            session.answered(numbers[place], traced.result)
        else:
            numbers[place] = session.before(traced.name, traced.arguments, portion=traced.portion)
    return session.replied(trace.reply, is_checked=trace.is_self_checked) if trace.reply.strip() else session.findings


def _events(calls: Sequence[TracedCall]) -> list[tuple[int, bool]]:
    """Return the beginnings and ends of calls in their order; without an end one ends where it begins; without times the list counts."""
    for place, call in enumerate(calls):
        _check_times(call, f"calls[{place}]")
    if any(call.start is None for call in calls):
        return [(place, is_end) for place in range(len(calls)) for is_end in (False, True)]
    moments: list[tuple[float, int, int, bool]] = []
    for place, call in enumerate(calls):
        start = call.start or 0.0
        end = start if call.end is None else call.end
        # What ends when another begins has ended before; a call of no length begins before it ends.
        moments += [(start, 1, place, False), (end, 2 if end == start else 0, place, True)]
    moments.sort()
    return [(place, is_end) for _, _, place, is_end in moments]


def _check_times(call: TracedCall, path: str) -> None:
    for name, value in (("start", call.start), ("end", call.end)):
        if value is not None and not math.isfinite(value):
            raise InvalidFieldError(f"{path}.{name}", f"{value} is not a finite number")
    if call.start is not None and call.end is not None and call.end < call.start:
        raise InvalidFieldError(f"{path}.end", f"{call.end} lies before its start, {call.start}")
