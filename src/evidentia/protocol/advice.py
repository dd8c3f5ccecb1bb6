"""The next step after a result: answer, rewrite the query, switch to the next source, or abstain because nothing was found."""

from __future__ import annotations

from itertools import chain, permutations
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.protocol import Breadth, FirstRetry, NextStep, PreparedQuery, Profile, QuestionType, Shortfall, ToolRole
from evidentia.protocol.classification import TOOL_OF_ROLE
from evidentia.protocol.queries import INTENT_WORDS, MAX_VARIANTS_EXPANDED, category_terms, core_words, even, table_query, terse_table_query

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from evidentia.protocol.questions import QuestionFacts


_TRIES: Final = 2
_LITTLE: Final = frozenset((Shortfall.PARTIAL, Shortfall.TRUNCATED, Shortfall.MISSING_ENTITY))
"""There is something to answer from, though not all."""


class TriedCall(NamedTuple):
    """A call to a source that came back."""

    tool: str
    role: ToolRole
    top_k: int | None
    shortfalls: tuple[Shortfall, ...]
    is_sufficient: bool


class PlannedStep(NamedTuple):
    """A next step, and the tool it is for."""

    step: NextStep
    tool: str = ""
    top_k: int | None = None
    reason: str = ""


def first_step(profile: Profile, *, kind: QuestionType, breadth: Breadth, skills: Sequence[str]) -> PlannedStep:
    """Return what to begin with."""
    tool = sources_of(profile, kind=kind, skills=skills)[0]
    return PlannedStep(NextStep.SWITCH, tool, _top_k(profile, tool, (), breadth), "nothing was asked yet")


def next_step(
    profile: Profile,
    tried: Sequence[TriedCall],
    *,
    kind: QuestionType,
    breadth: Breadth,
    skills: Sequence[str],
    spent: Collection[str] = (),
) -> PlannedStep:
    """Return what to do after the last of the calls; `spent` are tools to which nothing new can be said."""
    last = tried[-1]
    if any(each.is_sufficient for each in tried):
        return PlannedStep(NextStep.ANSWER, reason="what was found is enough")
    lacks = ", ".join(each.value for each in last.shortfalls)
    if profile.call_cap is not None and len(tried) >= profile.call_cap:
        return _end(tried, f"the result is insufficient ({lacks}) and {profile.call_cap} calls were made")
    is_tried = sum(each.tool == last.tool for each in tried) >= _TRIES or last.tool in spent
    if profile.first_retry is FirstRetry.SAME_TOOL and not is_tried:
        return PlannedStep(NextStep.REWRITE, last.tool, _top_k(profile, last.tool, tried, breadth), f"the result is insufficient ({lacks})")
    asked = {*(each.tool for each in tried), *spent}
    left = [tool for tool in sources_of(profile, kind=kind, skills=skills) if tool not in asked]
    if left:
        return PlannedStep(NextStep.SWITCH, left[0], _top_k(profile, left[0], tried, breadth), f"the result is insufficient ({lacks})")
    return _end(tried, f"the result is insufficient ({lacks}) and no source is left")


def sources_of(profile: Profile, *, kind: QuestionType, skills: Sequence[str]) -> list[str]:
    """Return the sources in the order in which they are asked: those that suit among the skills, then by the kind of question."""
    first = ToolRole.TEXT if kind in profile.text_first else ToolRole.TABLE
    found: list[str] = []
    for step in profile.order:
        for role in sorted(step, key=lambda role: role is not first):
            found += skills if role is ToolRole.SKILL else [TOOL_OF_ROLE[role]] if role in TOOL_OF_ROLE else []
    return found or [TOOL_OF_ROLE[ToolRole.TEXT]]


def _end(tried: Sequence[TriedCall], reason: str) -> PlannedStep:
    has_some = any(each.shortfalls and all(lack in _LITTLE for lack in each.shortfalls) for each in tried)
    if has_some:
        return PlannedStep(NextStep.ANSWER, reason=f"{reason}; answer what can be answered, and say what is missing")
    return PlannedStep(NextStep.NOT_FOUND, reason=reason)


def _top_k(profile: Profile, tool: str, tried: Sequence[TriedCall], breadth: Breadth) -> int | None:
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


# --- rewritten queries ---
# A question put otherwise: queries for one tool that it was not asked before, the best first. Nothing is left to chance.
#
# After the prepared query come more variants, then fewer words, then words of the intent and words that name no topic of their own, one
# and two at a time. Queries for tables keep every condition and comparison in all of their forms.

_GENERAL: Final = ("overview", "details", "information", "summary", "description", "data", "documentation", "guide", "records", "reference")
"""Words that may be added to any query: they name no topic."""


def rewrite(
    facts: QuestionFacts,
    prepared: PreparedQuery,
    *,
    asked: Collection[str],
    for_tables: bool = False,
    is_fit: Callable[[str], bool] | None = None,
) -> str:
    """Return the best query for a question that is fit and was not asked; empty where nothing new can be said."""
    known = {even(query) for query in asked}
    choices = _table_choices(facts, prepared) if for_tables else _text_choices(facts, prepared)
    return next((each for each in choices if each and even(each) not in known and (is_fit is None or is_fit(each))), "")


def _table_choices(facts: QuestionFacts, prepared: PreparedQuery) -> Iterator[str]:
    if prepared.is_question:
        # It has nothing that only asks: without it a planner would read the same.
        yield facts.text
        yield from _added(facts.text, prepared)
    terse = terse_table_query(facts)
    yield table_query(facts)
    yield terse
    yield from _added(terse, prepared)


def _text_choices(facts: QuestionFacts, prepared: PreparedQuery) -> Iterator[str]:
    core = core_words(facts)
    names = prepared.entities
    near = category_terms(core, each=3)[:MAX_VARIANTS_EXPANDED]
    if not prepared.is_question:
        yield prepared.query
    else:
        yield facts.text
        yield " ".join((*core, *prepared.variants))
    yield " ".join(dict.fromkeys((*names, *facts.attributes, *prepared.variants, *near)))
    yield " ".join(dict.fromkeys((*names, *facts.attributes)))
    yield " ".join(names)
    yield " ".join(core)
    yield from _added(" ".join(core), prepared)


def _added(base: str, prepared: PreparedQuery) -> Iterator[str]:
    """Yield a query with further words behind it, one and two at a time; none that it has."""
    there = set(even(base).split())
    words = [word for word in dict.fromkeys((*INTENT_WORDS.get(prepared.intent, ()), *_GENERAL)) if word not in there]
    for further in chain(permutations(words, 1), permutations(words, 2)):
        yield " ".join((base, *further)).strip()
