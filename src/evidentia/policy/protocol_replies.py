"""What a reply breaks: when it comes, what it says about what was found, and what was found in it.

Where the documents leave room or contradict each other:
- A reply that says nothing was found, and nothing else, is judged by what was asked, not by what came back: every source that suits,
  or as many calls as the cap allows.
- A reply that uses evidence and says what is missing is an answer, not a "not found".
- Stopping early is only possible while a source and a call are left and no result sufficed.
- Who read the very file that the user asked for needs no retrieval.
- A supplement is needless when some result lacked nothing at all; a result that merely suffices may leave parts open.
- Whether supplements are allowed or needless, and when a reply comes, is decided here; findings of those rules only say where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.protocol import ProtocolRule
from evidentia.policy.protocol_builtin import FIRST_CALL
from evidentia.policy.protocol_rules import is_bound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.protocol import ReplyDrafted, ReplyFinding
    from evidentia.policy.handling import Violation
    from evidentia.policy.protocol_question import Question
    from evidentia.policy.protocol_rules import Terms

_R: Final = ProtocolRule
_KINDS: Final = FIRST_CALL.self_knowledge.forbidden
"""Kinds of facts that a profile may allow by not naming them."""


_DECIDED_HERE: Final = frozenset(
    {
        _R.ANSWER_BEFORE_RETRIEVAL,
        _R.EARLY_NOT_FOUND,
        _R.STOPPED_EARLY,
        _R.SELF_KNOWLEDGE_OFF,
        _R.SELF_KNOWLEDGE_NEEDLESS,
        _R.SELF_CHECK,
    }
)
_SUPPLEMENTS: Final = (_R.SELF_KNOWLEDGE_OFF, _R.SELF_KNOWLEDGE_NEEDLESS)
_MAX_REASON_LENGTH: Final = 1_000


def judge_reply(terms: Terms, question: Question, reply: ReplyDrafted) -> list[Violation]:
    """Return what a reply breaks, in the order: when it comes, supplements, what was found in it, the self-check."""
    if not is_bound(question.task):
        return []
    found = [*_timing(terms, question, reply), *_supplements(terms, question, reply)]
    found += [
        terms.violation(finding.rule, _line(finding.reason), _notes(finding))
        for finding in reply.findings
        if finding.rule in terms.actions and _counts(terms, finding)
    ]
    if not reply.is_checked and _R.SELF_CHECK in terms.actions:
        asked = len(terms.profile.self_check)
        reason = f"the reply goes out without a self-check; answer its {asked} questions first"
        found.append(terms.violation(_R.SELF_CHECK, reason, {"questions": asked}))
    return found


def _timing(terms: Terms, question: Question, reply: ReplyDrafted) -> Iterator[Violation]:
    if question.reads_file:
        return
    actions, asked, cap = terms.actions, question.asked, terms.profile.call_cap
    left = question.left(terms)
    notes = {"retrieval_calls": asked, "left": left}
    can_go_on = bool(left) and (cap is None or asked < cap)
    is_not_found = reply.says_not_found and not reply.uses_evidence
    if is_not_found:
        if can_go_on and _R.EARLY_NOT_FOUND in actions:
            reason = f"the reply says that nothing was found after {asked} calls; ask {' and '.join(left)} before that"
            yield terms.violation(_R.EARLY_NOT_FOUND, reason, notes)
    elif not asked:
        if _R.ANSWER_BEFORE_RETRIEVAL in actions:
            reason = f"the reply answers before anything was retrieved; ask {left[0] if left else 'a source'} first"
            yield terms.violation(_R.ANSWER_BEFORE_RETRIEVAL, reason, {"retrieval_calls": 0})
    elif can_go_on and not question.is_sufficient and _R.STOPPED_EARLY in actions:
        shortfalls = [each.value for each in question.last_shortfalls]
        reason = f"the reply comes although no result of {asked} calls sufficed, and {left[0]} was not asked; ask it before replying"
        yield terms.violation(_R.STOPPED_EARLY, reason, {**notes, "shortfalls": shortfalls})


def _supplements(terms: Terms, question: Question, reply: ReplyDrafted) -> Iterator[Violation]:
    if not reply.has_supplement:
        return
    places = [finding.block for finding in reply.findings if finding.rule in _SUPPLEMENTS and finding.block is not None]
    where = {"block": places[0]} if places else {}
    if not terms.allows_supplements(question.task):
        if _R.SELF_KNOWLEDGE_OFF in terms.actions:
            reason = "the reply adds knowledge of the model's own, which is off; take the supplement out"
            yield terms.violation(_R.SELF_KNOWLEDGE_OFF, reason, where)
    elif question.is_whole and _R.SELF_KNOWLEDGE_NEEDLESS in terms.actions:
        reason = (
            f"the reply adds knowledge of the model's own although the results of {question.asked} calls leave nothing open; take it out"
        )
        yield terms.violation(_R.SELF_KNOWLEDGE_NEEDLESS, reason, {"retrieval_calls": question.asked, **where})


def _counts(terms: Terms, finding: ReplyFinding) -> bool:
    """Tell whether a finding breaks the rule it names under this profile."""
    if finding.rule in _DECIDED_HERE:
        return False
    if finding.rule is _R.CITATION_COUNT:
        return finding.count is None or finding.count > terms.profile.most_citations
    if finding.rule is _R.SELF_KNOWLEDGE_SCOPE:
        kinds = finding.metadata.get("kinds", ())
        return not kinds or any(kind not in _KINDS or kind in terms.profile.self_knowledge.forbidden for kind in kinds)
    return True


def _line(reason: str) -> str:
    """Return the reason of a finding in one line; it may quote a reply, which may quote a document."""
    plain = reason[:_MAX_REASON_LENGTH]
    return plain if plain.isprintable() else plain.encode("unicode_escape").decode("ascii")


def _notes(finding: ReplyFinding) -> dict[str, object]:
    notes: dict[str, object] = dict(finding.metadata)
    if finding.block is not None:
        notes["block"] = finding.block
    if finding.count is not None:
        notes["count"] = finding.count
    return notes
