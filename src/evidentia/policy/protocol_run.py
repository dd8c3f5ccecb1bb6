"""Follows a run for the policies of the category `protocol`.

A run is a row of questions. Each is opened by a TaskOpened; what comes before the first belongs to an uncertain one. The same question
opened again before a reply goes on where it was, so that asking it anew gives no new calls.
At the end of a run that succeeded only the self-check is looked at: a question that was opened and had no reply checked, and a reply
that broke a rule and was followed by no better one, were released without the check or against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.policies import Enforcement, PolicyAction
from evidentia.contracts.protocol import ProtocolRule, ReplyDrafted, ReplyFinding, RunCall, TaskOpened, ToolAnswered, ToolAsked
from evidentia.contracts.runs import Phase, RunEnded, RunStatus
from evidentia.policy.handlers import Category, CategoryOutcome, TypedPolicy, Unjudged, Violation
from evidentia.policy.protocol_calls import CallRuling, judge_ask
from evidentia.policy.protocol_profiles import FIRST_CALL
from evidentia.policy.protocol_rules import ProtocolRules, QuestionState, Terms, check_protocol, is_bound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_TITLE: Final = "Protocol"
_BLOCK: Final = PolicyAction.BLOCK
_SELF_CHECK: Final = ProtocolRule.SELF_CHECK
_UNCERTAIN: Final = TaskOpened()


class _ProfileGroup:
    """Policies with the same rules, and those rules as tables."""

    __slots__ = ("is_enforced", "places", "terms")

    def __init__(self, rules: ProtocolRules) -> None:
        self.terms = Terms.of(rules)
        self.places: list[int] = []
        self.is_enforced = False


class CompiledProtocol(Unjudged):
    """The tables of every policy; policies with the same rules share theirs."""

    title = _TITLE
    listens_to: Final = (TaskOpened, ToolAsked, ToolAnswered, ReplyDrafted)

    def __init__(self, policies: Sequence[TypedPolicy]) -> None:
        groups: dict[bytes, _ProfileGroup] = {}
        for place, (policy, rules) in enumerate(policies):
            key = msgspec.json.encode(rules, order="sorted")
            if key not in groups:
                groups[key] = _ProfileGroup(rules)
            groups[key].places.append(place)
            groups[key].is_enforced = groups[key].is_enforced or policy.body.enforcement is Enforcement.ENFORCE
        self.groups = tuple(groups.values())

    def start(self) -> ProtocolRun:
        """Return what follows a new run."""
        return ProtocolRun(self)

    def passed(self, call: RunCall, *, count: int) -> CategoryOutcome | None:
        """Return what a call to a tool, or a reply, that passed stands for; of a task and a result nothing is said."""
        return _outcome({}, count=count) if isinstance(call, ToolAsked | ReplyDrafted) else None


class _Follower:
    """One group of policies and the question at hand."""

    __slots__ = ("against", "group", "is_opened", "question", "questions", "unchecked")

    def __init__(self, group: _ProfileGroup) -> None:
        self.group = group
        self.question = QuestionState(_UNCERTAIN)
        self.is_opened = False
        self.questions = 0
        self.unchecked = 0
        self.against = 0

    def open(self, task: TaskOpened) -> None:
        """Begin a question, or go on with it."""
        question = self.question
        is_same = self.is_opened and task.question_hash is not None and task.question_hash == question.task.question_hash
        if is_same and not question.replies:
            question.task = task
            return
        self.close()
        self.question, self.is_opened = QuestionState(task), True

    def close(self) -> None:
        """Note how the question at hand ended."""
        question = self.question
        is_counted = self.is_opened and is_bound(question.task)
        self.questions += is_counted
        self.unchecked += is_counted and not question.replies
        self.against += question.last_is_faulty
        self.question, self.is_opened = QuestionState(_UNCERTAIN), False

    def take(self, judged: CallRuling, *, is_stopped: bool) -> None:
        """Remember a call that was decided about."""
        if judged.reads_file:
            self.question.reads_file = True
        if judged.asked is not None:
            self.question.ask(judged.asked, is_stopped=is_stopped)

    def reply(self, reply: ReplyDrafted) -> list[Violation]:
        """Decide about a reply, and remember how it stands."""
        violations = judge_reply(self.group.terms, self.question, reply)
        self.question.replies += 1
        self.question.last_is_faulty = any(each.action.rank and each.rule != _SELF_CHECK for each in violations)
        return violations

    def released(self) -> list[Violation]:
        """Return what the whole run says about the self-check."""
        terms = self.group.terms
        if _SELF_CHECK not in terms.actions:
            return []
        found: list[Violation] = []
        if self.unchecked:
            reason = f"{self.unchecked} of {self.questions} questions ended without a check of the reply; check each before it goes out"
            found.append(terms.violation(_SELF_CHECK, reason, {"unchecked": self.unchecked, "questions": self.questions}))
        if self.against:
            reason = f"{self.against} replies broke a rule and were not put right; correct what the check lists before a reply goes out"
            found.append(terms.violation(_SELF_CHECK, reason, {"against": self.against}))
        return found


class ProtocolRun:
    """Follows the questions of a run and decides about each call. Cost per call does not grow with the run."""

    __slots__ = ("_followers", "count")

    def __init__(self, compiled: CompiledProtocol) -> None:
        self._followers = tuple(_Follower(group) for group in compiled.groups)
        self.count = 0

    def record(self, call: RunCall) -> CategoryOutcome | None:
        """Take a call: a tool and a reply are decided about, a task and a result remembered."""
        if isinstance(call, ToolAsked):
            return self._asked(call)
        if isinstance(call, ToolAnswered):
            for each in self._followers:
                each.question.answer(call, each.group.terms.profile.insufficient)
        elif isinstance(call, ReplyDrafted):
            return self._replied(call)
        elif isinstance(call, TaskOpened):
            for each in self._followers:
                each.open(call)
        self.count = self._followers[0].question.asked
        return None

    def finish(self, end: RunEnded) -> CategoryOutcome:
        """Decide about the self-check of a run that succeeded; what failed or was stopped released nothing."""
        self.count = self._followers[0].question.asked
        found: dict[int, Sequence[Violation]] = {}
        for each in self._followers:
            each.close()
            violations = each.released() if end.status is RunStatus.SUCCESS else ()
            if violations:
                found.update(dict.fromkeys(each.group.places, violations))
        return _outcome(found, count=self.count, phase=Phase.AFTER_WORKFLOW)

    def _asked(self, call: ToolAsked) -> CategoryOutcome | None:
        if not 0 <= call.containment <= 1:
            raise InvalidFieldError("containment", f"{call.containment} is not a share between 0 and 1")
        judged = [judge_ask(each.group.terms, each.question, call) for each in self._followers]
        is_stopped = False
        found: dict[int, Sequence[Violation]] = {}
        for each, one in zip(self._followers, judged, strict=True):
            if one.violations:
                found.update(dict.fromkeys(each.group.places, one.violations))
                is_stopped = is_stopped or (each.group.is_enforced and any(every.action is _BLOCK for every in one.violations))
        for each, one in zip(self._followers, judged, strict=True):
            each.take(one, is_stopped=is_stopped)
        self.count = self._followers[0].question.asked
        return _outcome(found, count=self.count) if found else None

    def _replied(self, call: ReplyDrafted) -> CategoryOutcome | None:
        found: dict[int, Sequence[Violation]] = {}
        for each in self._followers:
            if violations := each.reply(call):
                found.update(dict.fromkeys(each.group.places, violations))
        self.count = self._followers[0].question.asked
        return _outcome(found, count=self.count) if found else None


def _outcome(found: Mapping[int, Sequence[Violation]], *, count: int, phase: Phase = Phase.MID_EXECUTION) -> CategoryOutcome:
    return CategoryOutcome(
        phase=phase, found=found, reason=f"Protocol followed ({count} retrieval calls)", metadata={"retrieval_calls": count}
    )


PROTOCOL: Final = Category(name="protocol", title=_TITLE, rules=ProtocolRules, compile=CompiledProtocol, check=check_protocol)


# --- replies ---
# What a reply breaks: when it comes, what it says about what was found, and what was found in it.
#
# Where the documents leave room or contradict each other:
# - A reply that says nothing was found, and nothing else, is judged by what was asked, not by what came back: every source that suits,
#   or as many calls as the cap allows.
# - A reply that uses evidence and says what is missing is an answer, not a "not found".
# - Stopping early is only possible while a source and a call are left and no result sufficed.
# - Who read the very file that the user asked for needs no retrieval.
# - A supplement is needless when some result lacked nothing at all; a result that merely suffices may leave parts open.
# - Whether supplements are allowed or needless, and when a reply comes, is decided here; findings of those rules only say where.

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


def judge_reply(terms: Terms, question: QuestionState, reply: ReplyDrafted) -> list[Violation]:
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


def _timing(terms: Terms, question: QuestionState, reply: ReplyDrafted) -> Iterator[Violation]:
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


def _supplements(terms: Terms, question: QuestionState, reply: ReplyDrafted) -> Iterator[Violation]:
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
