"""What to do after a result: answer, rewrite and ask again, ask the next source, or say that nothing was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.agents.protocol.tools import TOOL_OF_ROLE
from evidentia.contracts.protocol import Breadth, FirstRetry, NextStep, Shortfall, ToolRole

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from evidentia.contracts.protocol import Profile, QuestionType

_TRIES: Final = 2
_LITTLE: Final = frozenset((Shortfall.PARTIAL, Shortfall.TRUNCATED, Shortfall.MISSING_ENTITY))
"""There is something to answer from, though not all."""


class Tried(NamedTuple):
    """A call to a source that came back."""

    tool: str
    role: ToolRole
    top_k: int | None
    shortfalls: tuple[Shortfall, ...]
    is_sufficient: bool


class Step(NamedTuple):
    """A next step, and the tool it is for."""

    step: NextStep
    tool: str = ""
    top_k: int | None = None
    reason: str = ""


def first_step(profile: Profile, *, kind: QuestionType, breadth: Breadth, skills: Sequence[str]) -> Step:
    """Return what to begin with."""
    tool = sources_of(profile, kind=kind, skills=skills)[0]
    return Step(NextStep.SWITCH, tool, _top_k(profile, tool, (), breadth), "nothing was asked yet")


def next_step(
    profile: Profile,
    tried: Sequence[Tried],
    *,
    kind: QuestionType,
    breadth: Breadth,
    skills: Sequence[str],
    spent: Collection[str] = (),
) -> Step:
    """Return what to do after the last of the calls; `spent` are tools to which nothing new can be said."""
    last = tried[-1]
    if any(each.is_sufficient for each in tried):
        return Step(NextStep.ANSWER, reason="what was found is enough")
    lacks = ", ".join(each.value for each in last.shortfalls)
    if profile.call_cap is not None and len(tried) >= profile.call_cap:
        return _end(tried, f"the result is insufficient ({lacks}) and {profile.call_cap} calls were made")
    is_tried = sum(each.tool == last.tool for each in tried) >= _TRIES or last.tool in spent
    if profile.first_retry is FirstRetry.SAME_TOOL and not is_tried:
        return Step(NextStep.REWRITE, last.tool, _top_k(profile, last.tool, tried, breadth), f"the result is insufficient ({lacks})")
    asked = {*(each.tool for each in tried), *spent}
    left = [tool for tool in sources_of(profile, kind=kind, skills=skills) if tool not in asked]
    if left:
        return Step(NextStep.SWITCH, left[0], _top_k(profile, left[0], tried, breadth), f"the result is insufficient ({lacks})")
    return _end(tried, f"the result is insufficient ({lacks}) and no source is left")


def sources_of(profile: Profile, *, kind: QuestionType, skills: Sequence[str]) -> list[str]:
    """Return the sources in the order in which they are asked: those that suit among the skills, then by the kind of question."""
    first = ToolRole.TEXT if kind in profile.text_first else ToolRole.TABLE
    found: list[str] = []
    for step in profile.order:
        for role in sorted(step, key=lambda role: role is not first):
            found += skills if role is ToolRole.SKILL else [TOOL_OF_ROLE[role]] if role in TOOL_OF_ROLE else []
    return found or [TOOL_OF_ROLE[ToolRole.TEXT]]


def _end(tried: Sequence[Tried], reason: str) -> Step:
    has_some = any(each.shortfalls and all(lack in _LITTLE for lack in each.shortfalls) for each in tried)
    if has_some:
        return Step(NextStep.ANSWER, reason=f"{reason}; answer what can be answered, and say what is missing")
    return Step(NextStep.NOT_FOUND, reason=reason)


def _top_k(profile: Profile, tool: str, tried: Sequence[Tried], breadth: Breadth) -> int | None:
    """Return how many results to ask for; None for every tool but the text tool."""
    if tool != TOOL_OF_ROLE[ToolRole.TEXT]:
        return None
    rule = profile.top_k
    usual = {
        Breadth.LOOKUP: rule.lookup,
        Breadth.MODERATE: rule.moderate,
        Breadth.BROAD: rule.broad,
        Breadth.UNSURE: rule.unsure,
    }[breadth]
    if not tried:
        return usual
    if rule.retry is not None:
        return rule.retry
    before = next((each.top_k for each in reversed(tried) if each.role is ToolRole.TEXT and each.top_k), None)
    return usual if before is None else next((step for step in rule.steps if step > before), before)
