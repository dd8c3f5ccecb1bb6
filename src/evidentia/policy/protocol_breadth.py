"""How many results a call may ask for: top_k, which belongs to the text tool alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.protocol import ProtocolRule, ToolRole
from evidentia.policy.protocol_builtin import TOOL_NAMES
from evidentia.policy.protocol_question import RAG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.protocol import ToolAsked
    from evidentia.policy.handling import Violation
    from evidentia.policy.protocol_question import Asked, Question
    from evidentia.policy.protocol_rules import Terms

# Asking an enumeration for a member costs more than a comparison, and these are compared at every call.
_TEXT: Final = ToolRole.TEXT
_R: Final = ProtocolRule


def judge_top_k(terms: Terms, question: Question, asked: Asked, ask: ToolAsked) -> Iterator[Violation]:
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


def _expected_top_k(terms: Terms, question: Question) -> tuple[int, ...]:
    """Return the values of top_k that are right now, the best last.

    With a value for retries: it, after tables or text fell short; either, where skills alone did, or where nobody knows yet.
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
