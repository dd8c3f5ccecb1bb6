"""Follows a run for the policies of the category `protocol`.

A run is a row of questions. Each is opened by a TaskOpened; what comes before the first belongs to an uncertain one. The same question
opened again before a reply goes on where it was, so that nobody gets new calls by asking it anew.
At the end of a run that succeeded only the self-check is looked at: a question that was opened and had no reply checked, and a reply
that broke a rule and was followed by no better one, were released without the check or against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.policies import Enforcement, PolicyAction
from evidentia.contracts.protocol import ProtocolRule, ReplyDrafted, TaskOpened, ToolAnswered, ToolAsked
from evidentia.contracts.runs import Phase, RunEnded, RunStatus
from evidentia.policy.handling import Category, Outcome, stored
from evidentia.policy.protocol_asks import judge_ask
from evidentia.policy.protocol_question import Question
from evidentia.policy.protocol_replies import judge_reply
from evidentia.policy.protocol_rules import ProtocolRules, Terms, check_protocol, is_bound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.calls import RunCall
    from evidentia.contracts.decisions import JudgeAsk
    from evidentia.policy.handling import TypedPolicy, Violation
    from evidentia.policy.protocol_asks import Judged

_TITLE: Final = "Protocol"
_BLOCK: Final = PolicyAction.BLOCK
_SELF_CHECK: Final = ProtocolRule.SELF_CHECK
_UNCERTAIN: Final = TaskOpened()


class _Group:
    """Policies with the same rules, and those rules as tables."""

    __slots__ = ("is_enforced", "places", "terms")

    def __init__(self, rules: ProtocolRules) -> None:
        self.terms = Terms.of(rules)
        self.places: list[int] = []
        self.is_enforced = False


class CompiledProtocol:
    """The tables of every policy; policies with the same rules share theirs."""

    listens_to: Final = (TaskOpened, ToolAsked, ToolAnswered, ReplyDrafted)

    def __init__(self, policies: Sequence[TypedPolicy]) -> None:
        groups: dict[bytes, _Group] = {}
        for place, (policy, rules) in enumerate(policies):
            key = msgspec.json.encode(rules, order="sorted")
            if key not in groups:
                groups[key] = _Group(rules)
            groups[key].places.append(place)
            groups[key].is_enforced = groups[key].is_enforced or policy.body.enforcement is Enforcement.ENFORCE
        self.groups = tuple(groups.values())

    def start(self) -> ProtocolRun:
        """Return what follows a new run."""
        return ProtocolRun(self)

    def begin(self) -> Outcome:
        """Return what is said before anything was recorded."""
        return stored(_TITLE)

    def asks(self, call: RunCall) -> Sequence[JudgeAsk]:
        """Return nothing: the protocol asks no judge."""
        del call
        return ()

    def passed(self, call: RunCall, *, count: int) -> Outcome | None:
        """Return what a call to a tool, or a reply, that passed stands for; of a task and a result nothing is said."""
        return _outcome({}, count=count) if isinstance(call, ToolAsked | ReplyDrafted) else None


class _Follower:
    """One group of policies and the question at hand."""

    __slots__ = ("against", "group", "is_opened", "question", "questions", "unchecked")

    def __init__(self, group: _Group) -> None:
        self.group = group
        self.question = Question(_UNCERTAIN)
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
        self.question, self.is_opened = Question(task), True

    def close(self) -> None:
        """Note how the question at hand ended."""
        question = self.question
        is_counted = self.is_opened and is_bound(question.task)
        self.questions += is_counted
        self.unchecked += is_counted and not question.replies
        self.against += question.last_is_faulty
        self.question, self.is_opened = Question(_UNCERTAIN), False

    def take(self, judged: Judged, *, is_stopped: bool) -> None:
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

    def record(self, call: RunCall) -> Outcome | None:
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

    def finish(self, end: RunEnded) -> Outcome:
        """Decide about the self-check of a run that succeeded; what failed or was stopped released nothing."""
        self.count = self._followers[0].question.asked
        found: dict[int, Sequence[Violation]] = {}
        for each in self._followers:
            each.close()
            violations = each.released() if end.status is RunStatus.SUCCESS else ()
            if violations:
                found.update(dict.fromkeys(each.group.places, violations))
        return _outcome(found, count=self.count, phase=Phase.AFTER_WORKFLOW)

    def _asked(self, call: ToolAsked) -> Outcome | None:
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

    def _replied(self, call: ReplyDrafted) -> Outcome | None:
        found: dict[int, Sequence[Violation]] = {}
        for each in self._followers:
            if violations := each.reply(call):
                found.update(dict.fromkeys(each.group.places, violations))
        self.count = self._followers[0].question.asked
        return _outcome(found, count=self.count) if found else None


def _outcome(found: Mapping[int, Sequence[Violation]], *, count: int, phase: Phase = Phase.MID_EXECUTION) -> Outcome:
    return Outcome(phase=phase, found=found, reason=f"Protocol followed ({count} retrieval calls)", metadata={"retrieval_calls": count})


PROTOCOL: Final = Category(name="protocol", title=_TITLE, rules=ProtocolRules, compile=CompiledProtocol, check=check_protocol)
