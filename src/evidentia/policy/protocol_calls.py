"""What a call to a tool breaks, decided before it runs, from what is remembered of the question and nothing else.

Where the documents leave room or contradict each other:
- In a mixed task only calls for the knowledge portion are bound, and any tool that is no source belongs to the code portion.
- Skills come first when one of those that suit was asked; all of them have to be asked only before "not found".
- A type of question that no list names leaves the choice between tables and text open.
- Under `same_tool` the same tool is asked twice, with another query, before the next source; the cap ends that wherever it stands.
- Under `next_source` a tool that was asked comes again only when no other is left, or when the text tool is asked for more results
  because what it gave was too little; that is also why the same query with a larger top_k is then no repetition.
- Of calls that are under way at the same time nothing is said that depends on a result.
- Where local files are the last source of a profile, a file-system tool is a search of local files: it keeps the order, and may take
  as many steps as it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.protocol import FirstRetry, ProtocolRule, TaskKind, ToolAsked, ToolRole
from evidentia.policy.protocol_profiles import TOOL_NAMES
from evidentia.policy.protocol_rules import MILLION, RAG, RAISABLE, AskedTool, QuestionState, Terms, is_bound, tool_key
from evidentia.policy.rule_checks import shortest, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.policy.handlers import Violation


MAX_STRAYS: Final = 0
"""Words of a query that nothing explains; more than these bring in another topic."""
_TRIES: Final = 2
"""How often a tool is asked before the next source: the first time and, with another query, once more."""

# Asking an enumeration for a member costs more than a comparison, and these are compared at every call.
_TEXT: Final = ToolRole.TEXT
_SKILL: Final = ToolRole.SKILL
_LOCAL: Final = ToolRole.LOCAL
_FILESYSTEM: Final = ToolRole.FILESYSTEM
_MIXED: Final = TaskKind.MIXED
_R: Final = ProtocolRule


class CallRuling(NamedTuple):
    """What was decided about a call."""

    violations: Sequence[Violation] = ()
    asked: AskedTool | None = None
    """The call, where it is one to a source."""
    reads_file: bool = False
    """It reads the file that the user asked for."""


_FREE: Final = CallRuling()


def judge_ask(terms: Terms, question: QuestionState, ask: ToolAsked) -> CallRuling:
    """Return what a call breaks; a call of the code portion is free, and so is a file that the user asked for."""
    if not is_bound(question.task) or (question.task.task is _MIXED and not ask.is_knowledge):
        return _FREE
    role = _SKILL if ask.name in terms.skills else ask.role
    if ask.is_explicit_file and terms.profile.allows_explicit_file and role not in RAG and role is not _SKILL:
        return CallRuling(reads_file=True)
    is_files = role is _FILESYSTEM and _LOCAL in terms.steps and _R.FILESYSTEM_TOOLS not in terms.actions
    if not is_files and role not in terms.steps:
        return CallRuling(tuple(_outside(terms, question, ask, role)))
    asked = _asked(terms, ask, _LOCAL if is_files else role)
    violations = [*_order(terms, question, asked, is_files=is_files)]
    if not is_files:
        violations += _query(terms, question, asked, ask)
        violations += judge_top_k(terms, question, asked, ask)
        violations += _further(terms, question, asked)
    return CallRuling(violations, asked)


def _asked(terms: Terms, ask: ToolAsked, role: ToolRole) -> AskedTool:
    top_k = None
    if role is _TEXT:
        top_k = terms.profile.top_k.unsure if ask.top_k is None else ask.top_k
    return AskedTool(call=ask.call, name=shown(ask.name), tool=tool_key(role, ask.name), role=role, top_k=top_k, query=ask.query_hash)


def _outside(terms: Terms, question: QuestionState, ask: ToolAsked, role: ToolRole) -> Iterator[Violation]:
    """Yield what is wrong with a tool that is no source of the profile."""
    name, notes = shown(ask.name), {"call": ask.call, "tool": ask.name, "role": role.value}
    allowed = _listed([*question.task.skills, *sorted(terms.skills), *(TOOL_NAMES[each] for each in terms.sources)])
    is_forbidden = role is _FILESYSTEM or ask.name.casefold() in terms.forbidden
    if question.task.task is _MIXED and _R.CODE_PORTION in terms.actions:
        reason = f"{name} is a tool for the code portion, used for the knowledge portion; look knowledge up with {allowed}"
        yield terms.violation(_R.CODE_PORTION, reason, notes)
    elif is_forbidden and _R.FILESYSTEM_TOOLS in terms.actions:
        reason = f"{name} looks into the file system, which is no source of knowledge here, even when nothing else was found; ask {allowed}"
        yield terms.violation(_R.FILESYSTEM_TOOLS, reason, notes)
    elif _R.ALLOWED_TOOLS in terms.actions:
        yield terms.violation(_R.ALLOWED_TOOLS, f"{name} is not among the tools that may answer a question; ask {allowed}", notes)


def _order(terms: Terms, question: QuestionState, asked: AskedTool, *, is_files: bool) -> Iterator[Violation]:
    """Yield what is wrong with a source at this moment: calls at the same time, skills, earlier sources, tables or text."""
    actions, tries, name, steps = terms.actions, question.tries, asked.name, terms.steps
    for other in question.open.values() if _R.SEQUENTIAL in actions else ():
        if not (is_files and other.role is _LOCAL):
            reason = f"{name} is asked while {other.label} has not answered; ask one source at a time"
            yield terms.violation(_R.SEQUENTIAL, reason, {"call": asked.call, "tool": name, "open_call": other.call})
            break
    if _R.SKILL_FIRST in actions and _passes_over_skills(terms, question, asked):
        skills = question.task.skills
        reason = f"{name} is asked before {_listed(skills)}, which suits the question; ask that first"
        yield terms.violation(_R.SKILL_FIRST, reason, {"call": asked.call, "tool": name, "skills": list(skills)})
    if _R.SOURCE_ORDER in actions:
        yield from _earlier_sources(terms, question, asked)
    if asked.role in RAG and _R.TOOL_CHOICE in actions and not any(role.value in tries for role in RAG):
        kind = question.task.question_type
        first = terms.first_tools.get(kind, asked.role)
        if first is not asked.role and steps.get(first) == steps[asked.role]:
            reason = f"{name} is asked first about a question of type {kind.value}; begin with {TOOL_NAMES[first]}"
            notes = {"call": asked.call, "tool": name, "question_type": kind.value, "expected": TOOL_NAMES[first]}
            yield terms.violation(_R.TOOL_CHOICE, reason, notes)


def _passes_over_skills(terms: Terms, question: QuestionState, asked: AskedTool) -> bool:
    steps = terms.steps
    is_later = bool(question.task.skills) and asked.role is not _SKILL and steps.get(_SKILL, len(steps)) < steps[asked.role]
    return is_later and not question.has_tried_skill()


def _earlier_sources(terms: Terms, question: QuestionState, asked: AskedTool) -> Iterator[Violation]:
    own = terms.steps[asked.role]
    missing = [TOOL_NAMES[role] for role in terms.sources if terms.steps[role] < own and role.value not in question.tries]
    has_earlier = any(terms.steps[role] < own for role in terms.sources)
    notes = {"call": asked.call, "tool": asked.name, "missing": missing}
    if missing:
        yield terms.violation(_R.SOURCE_ORDER, f"{asked.name} is asked before {_listed(missing)}; ask what comes earlier first", notes)
    elif has_earlier and question.is_sufficient and asked.tool not in question.tries:
        reason = f"{asked.name} is asked although an earlier source gave enough; answer from what is there"
        yield terms.violation(_R.SOURCE_ORDER, reason, notes)


def _query(terms: Terms, question: QuestionState, asked: AskedTool, ask: ToolAsked) -> Iterator[Violation]:
    """Yield what is wrong with the query itself."""
    actions, name = terms.actions, asked.name
    notes: dict[str, object] = {"call": asked.call, "tool": name}
    if ask.is_raw and not ask.works_raw and _R.RAW_QUERY in actions:
        reason = f"{name} gets the question as it was asked; rewrite it into entity, time, attributes and intent"
        yield terms.violation(_R.RAW_QUERY, reason, notes)
    kept = round(ask.containment * MILLION)
    if kept < terms.least_containment and _R.LOST_ENTITY in actions:
        least = terms.profile.least_containment
        reason = (
            f"the query to {name} keeps {shortest(ask.containment)} of the question's entities, least {shortest(least)}; "
            "name what the question is about"
        )
        yield terms.violation(_R.LOST_ENTITY, reason, {**notes, "containment": ask.containment, "least": least})
    if ask.strays > MAX_STRAYS and _R.FOREIGN_TOPIC in actions:
        reason = f"the query to {name} has {ask.strays} words that the question does not lead to; keep to its topic"
        yield terms.violation(_R.FOREIGN_TOPIC, reason, {**notes, "strays": ask.strays, "most": MAX_STRAYS})
    if asked.query is not None and _R.REPEATED_QUERY in actions:
        before = question.queries.get((asked.tool, asked.query))
        is_raised = terms.profile.top_k.retry is None and asked.role is _TEXT and (asked.top_k or 0) > (before or 0)
        if before is not None and not is_raised:
            reason = f"{name} was asked the same query before; put it in other words, or go on"
            yield terms.violation(_R.REPEATED_QUERY, reason, notes)


def _further(terms: Terms, question: QuestionState, asked: AskedTool) -> Iterator[Violation]:
    """Yield what is wrong with asking again: enough is there, the cap is reached, or another source is next."""
    if not question.asked:
        return
    actions, cap, name = terms.actions, terms.profile.call_cap, asked.name
    notes = {"call": asked.call, "tool": name}
    is_over = cap is not None and question.asked >= cap
    if is_over and _R.CALL_CAP in actions:
        reason = f"{name} would be retrieval call {question.asked + 1} of at most {cap} for this question; answer from what is there"
        yield terms.violation(_R.CALL_CAP, reason, {**notes, "retrieval_calls": question.asked + 1, "limit": cap})
    if question.is_sufficient:
        if _R.NEEDLESS_CALL in actions:
            reason = f"{name} is asked although {question.asked} calls gave enough; answer from what is there"
            yield terms.violation(_R.NEEDLESS_CALL, reason, {**notes, "retrieval_calls": question.asked + 1})
    elif not is_over and not question.open and question.last is not None and _R.RETRY_ORDER in actions:
        next_tool = _other_step(terms, question, asked, question.last)
        if next_tool:
            shortfalls = [each.value for each in question.last_shortfalls]
            reason = f"{question.last.label} fell short ({', '.join(shortfalls)}); {next_tool}, not {name}"
            yield terms.violation(_R.RETRY_ORDER, reason, {**notes, "last_tool": question.last.name, "shortfalls": shortfalls})


def _other_step(terms: Terms, question: QuestionState, asked: AskedTool, last: AskedTool) -> str:
    """Return what should come now instead of a call; empty when the call is right."""
    left = question.left(terms)
    if terms.profile.first_retry is FirstRetry.SAME_TOOL:
        tries = question.tries[last.tool]
        if asked.tool != last.tool:
            return f"rewrite the query and ask {last.name} once more first" if tries < _TRIES else ""
        return f"ask {left[0]} next" if tries >= _TRIES and left else ""
    if asked.tool not in question.tries or not left or _is_raised(terms, question, asked):
        return ""
    return f"ask {left[0]} next"


def _is_raised(terms: Terms, question: QuestionState, asked: AskedTool) -> bool:
    """Tell whether the text tool is asked for more because what it gave was too little."""
    before, fell_short = question.last_text, question.text_shortfalls
    return (
        terms.profile.top_k.retry is None
        and asked.role is _TEXT
        and before is not None
        and (asked.top_k or 0) > (before.top_k or 0)
        and bool(fell_short)
        and all(each in RAISABLE for each in fell_short)
    )


def _listed(names: Sequence[str]) -> str:
    """Return names as a choice."""
    return " or ".join(shown(name) for name in dict.fromkeys(names))


# --- top_k ---
# How many results a call may ask for: top_k, which belongs to the text tool alone.


def judge_top_k(terms: Terms, question: QuestionState, asked: AskedTool, ask: ToolAsked) -> Iterator[Violation]:
    """Yield what is wrong with top_k; one that is left out stands for the value of the unsure."""
    name = asked.name
    if asked.role is not _TEXT:
        if ask.top_k is not None and _R.TOP_K_TOOL in terms.actions:
            reason = f"{name} takes no top_k ({ask.top_k}); leave it out, it belongs to {TOOL_NAMES[_TEXT]} alone"
            yield terms.violation(_R.TOP_K_TOOL, reason, {"call": asked.call, "tool": name, "top_k": ask.top_k})
        return
    if _R.TOP_K_VALUE not in terms.actions:
        return
    expected = _expected_top_k(terms, question)
    if asked.top_k not in expected:
        breadth = question.task.breadth.value
        is_omitted = ask.top_k is None
        given = f"leaves top_k out, which stands for {asked.top_k}" if is_omitted else f"asks for top_k {asked.top_k}"
        reason = f"{name} {given}; for a question of breadth {breadth} after {question.asked} calls use {expected[-1]}"
        notes = {"call": asked.call, "tool": name, "top_k": asked.top_k, "expected": list(expected), "breadth": breadth}
        yield terms.violation(_R.TOP_K_VALUE, reason, {**notes, "omitted": True} if is_omitted else notes)


def _expected_top_k(terms: Terms, question: QuestionState) -> tuple[int, ...]:
    """Return the values of top_k that are right now, the best last.

    With a value for retries: it, after tables or text fell short; either, where skills alone did, or where that is not known yet.
    With steps: by breadth at first, then as before or one step more.
    """
    top_k = terms.profile.top_k
    usual = terms.top_k[question.task.breadth]
    if top_k.retry is not None:
        if not question.asked:
            return (usual,)
        is_retry = not question.open and not question.is_sufficient and any(role.value in question.tries for role in RAG)
        return (top_k.retry,) if is_retry else (top_k.retry, usual)
    if _TEXT.value not in question.tries:
        return (usual,)
    before = usual if question.last_text is None or question.last_text.top_k is None else question.last_text.top_k
    return (before, next((step for step in top_k.steps if step > before), before))
