"""One question under the protocol: every tool call is checked before it runs and judged after it, and the reply before it goes out."""

from __future__ import annotations

import functools
import inspect
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.record_values import checked_text, hash_of, plain
from evidentia.contracts.decisions import LogEntry, Verdict
from evidentia.contracts.errors import InvalidFieldError, PolicyViolationError
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.protocol import (
    Advice,
    NextStep,
    Profile,
    ProtocolRule,
    ReplyDrafted,
    ReplyReport,
    SkillTool,
    ToolAnswered,
    ToolRole,
    TraceFinding,
)
from evidentia.contracts.runs import AnyCall, RunId
from evidentia.governance.decision_expansion import expand, micros
from evidentia.governance.run_journal import unsealed
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.protocol_profiles import PROFILES, profile_of
from evidentia.policy.rules import check_policy
from evidentia.protocol.advice import PlannedStep, TriedCall, first_step, next_step, rewrite
from evidentia.protocol.classification import TOOL_OF_ROLE, query_of, suits
from evidentia.protocol.question_record import QuestionRecord
from evidentia.protocol.reply_audit import audit_reply
from evidentia.protocol.self_check import list_for_agent, self_check
from evidentia.protocol.sufficiency import evidence_text, shortfalls
from evidentia.protocol.tool_results import ResultFacts, read_result
from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evidentia.agents.context import Context
    from evidentia.contracts.evidence import Turn
    from evidentia.contracts.ports import Lexicon
    from evidentia.contracts.protocol import AgentTrace, Breadth, PreparedQuery, QuestionType, TaskKind, ToolAsked, TracedCall
    from evidentia.protocol.queries import AnySynonyms


_ACTIONS: Final = ("warn", "block")
_ASKS: Final = frozenset((NextStep.REWRITE, NextStep.SWITCH))


class ProtocolSession:
    """Follows an agent through one question. Not thread safe; overlapping calls are told apart by their numbers.

    With `context`, inside which it is made and used, everything is recorded there and its policies decide. Without one the profile
    itself does: `on_violation="block"` raises PolicyViolationError at the call, `"warn"` only notes what was broken.
    What is not given (`task`, `question_type`, `breadth`, `explicit_file`, `raw_query_works`) is judged from the question.
    """

    def __init__(
        self,
        question: str,
        *,
        profile: str | Mapping[str, Any] | Profile = "first_call",  # Any: changes as an author writes them
        skills: Iterable[SkillTool | str] = (),
        context: Context | None = None,
        turns: Sequence[Turn] = (),
        self_knowledge: bool | None = None,
        task: TaskKind | None = None,
        question_type: QuestionType | None = None,
        breadth: Breadth | None = None,
        explicit_file: str | None = None,
        raw_query_works: bool | None = None,
        synonyms: AnySynonyms | None = None,
        lexicon: Lexicon | None = None,
        on_violation: str = "warn",
    ) -> None:
        if on_violation not in _ACTIONS:
            raise InvalidRecordError("on_violation", f"'{on_violation}' is neither 'warn' nor 'block'")
        self.profile = profile_of(profile)
        self._reading = QuestionRecord(
            checked_text(question, "question"),
            skills=tuple(_skill(each) for each in skills),
            turns=turns,
            task=task,
            kind=question_type,
            size=breadth,
            file=explicit_file,
            is_query=raw_query_works,
            synonyms=synonyms,
            lexicon=lexicon,
        )
        self._has_self_knowledge = self_knowledge
        self._numbers = 0
        self._open: dict[int, ToolAsked] = {}
        self._queries: dict[str, list[str]] = {}
        """What each tool was asked."""
        self._tried: list[TriedCall] = []
        self._results: list[ResultFacts] = []
        self._evidence: list[str] = []
        self._found: list[TraceFinding] = []
        self._checked: tuple[str, ReplyReport] | None = None
        self._ledger = Ledger(self.profile, action=on_violation, context=context)
        self._ledger.record(self._reading.opening(has_self_knowledge=self_knowledge))

    @property
    def question(self) -> str:
        """Return the question."""
        return self._reading.question

    @property
    def task(self) -> TaskKind:
        """Return what kind of work it is."""
        return self._reading.task

    @property
    def question_type(self) -> QuestionType:
        """Return what the question is after."""
        return self._reading.question_type

    @property
    def breadth(self) -> Breadth:
        """Return how much the question needs to see."""
        return self._reading.breadth

    @property
    def prepared(self) -> PreparedQuery:
        """Return a query for the question, with what was read in it."""
        return self._reading.prepared

    @property
    def findings(self) -> tuple[TraceFinding, ...]:
        """Return what the calls so far break, in their order."""
        return tuple(self._found)

    @property
    def is_sufficient(self) -> bool:
        """Tell whether some result was enough to answer from."""
        return any(tried.is_sufficient for tried in self._tried)

    @property
    def advice(self) -> Advice:
        """Return what to do now: what to begin with, or what follows from the last result."""
        read = self._reading
        spent: list[str] = []
        while True:
            if not self._tried:
                step = first_step(self.profile, kind=read.question_type, breadth=read.breadth, skills=read.skills)
            else:
                step = next_step(self.profile, self._tried, kind=read.question_type, breadth=read.breadth, skills=read.skills, spent=spent)
            query = self._query(step.tool) if step.step in _ASKS else ""
            if query or step.step not in _ASKS or step.tool in spent:
                return self._advice(step, query)
            spent.append(step.tool)

    def suits(self, skill: SkillTool | str) -> bool:
        """Tell whether a skill's tool is good for the question; a name stands for a tool without topics or description."""
        return suits(_skill(skill), self._reading.facts)

    def before(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,  # Any: whatever the tool takes
        *,
        portion: TaskKind | None = None,
    ) -> int:
        """Check a tool call before it runs and return its number; raises PolicyViolationError where a policy stops it."""
        given = {} if arguments is None else arguments
        asked = self._reading.asked(
            checked_text(name, "name"),
            given,
            call=self._numbers + 1,
            portion=portion,
            forbidden=self.profile.forbidden_tools,
            evidence=self._evidence,
        )
        self._numbers = asked.call
        self._found += self._ledger.record(asked)
        self._open[asked.call] = asked
        if asked.role.retrieves and (query := query_of(given)) is not None:
            self._queries.setdefault(self._tool(asked), []).append(query)
        return asked.call

    def after(self, call: int, result: object) -> Advice:
        """Judge what a tool gave back and return what to do next; a result that is no text is read as JSON."""
        self.answered(call, result if isinstance(result, str) else msgspec.json.encode(plain(result)).decode())
        return self.advice

    def answered(self, call: int, text: str) -> None:
        """Take what a tool gave back without asking what to do next."""
        asked = self._open.pop(call, None)
        if asked is None:
            raise InvalidRecordError("call", f"{call} is no call under way; give the number that `before` returned, once")
        read = read_result(asked.name, text)
        said = evidence_text(read)
        lacks = shortfalls(self._reading.facts, read, kind=self._reading.question_type, earlier=self._evidence, text=said)
        answer = ToolAnswered(
            call=call,
            results=len(read.pieces) + len(read.rows),
            shortfalls=lacks,
            total=read.total,
            displayed=read.displayed,
            omitted=read.omitted,
            images=sum(len(piece.images) for piece in read.pieces),
        )
        self._found += self._ledger.record(answer)
        if asked.is_knowledge and asked.role is not ToolRole.OTHER:
            self._results.append(read)
        if asked.role.retrieves:
            is_sufficient = not any(lack in self.profile.insufficient for lack in lacks)
            self._tried.append(TriedCall(self._tool(asked), asked.role, self._top_k(asked), lacks, is_sufficient))
            self._evidence += [said] if said else []

    def tool(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:  # Any: whatever the tool takes and gives
        """Return a function that checks the call, makes it, and judges the result; `advice` then says what to do. Sync and async alike.

        It takes keywords. What the tool raises goes on to the caller, and counts as an error of the tool.
        """
        return wrapped(self, name, function)

    def check_reply(self, text: str) -> ReplyReport:
        """Check a reply before it goes out; a report that is not `ok` has the list for the agent. Nothing is stopped here.

        A reply without a finding is recorded as checked. One with findings is not: the agent corrects it first.
        """
        drafted = self._drafted(checked_text(text, "text"), is_checked=True)
        found = (*self._found, *self._ledger.draft(drafted))
        report = ReplyReport(ok=not found, findings=found, answers=self_check(self.profile, found), text=list_for_agent(found))
        self._checked = (text, report)
        if report.ok:
            self._ledger.hand_on(drafted)
        return report

    def release(self, text: str) -> str:
        """Return a reply that goes out; raises PolicyViolationError where a policy stops it. What was not checked is recorded as such."""
        is_checked = self._checked is not None and self._checked[0] == text
        if self._checked is None or not is_checked or not self._checked[1].ok:
            self._ledger.record(self._drafted(checked_text(text, "text"), is_checked=is_checked))
        return text

    def replied(self, text: str, *, is_checked: bool) -> tuple[TraceFinding, ...]:
        """Return everything that the calls and a reply break, for a trace that is looked at afterwards."""
        return (*self._found, *self._ledger.draft(self._drafted(text, is_checked=is_checked)))

    def _drafted(self, text: str, *, is_checked: bool) -> ReplyDrafted:
        is_enabled = self.profile.self_knowledge.is_enabled
        audit = audit_reply(
            text,
            question=self.question,
            results=self._results,
            has_supplement_allowed=is_enabled if self._has_self_knowledge is None else self._has_self_knowledge,
            is_sufficient=self.is_sufficient,
        )
        return ReplyDrafted(
            reply_hash=hash_of(text),
            says_not_found=audit.says_not_found,
            uses_evidence=audit.uses_evidence,
            has_supplement=audit.has_supplement,
            findings=audit.findings,
            is_checked=is_checked,
        )

    def _query(self, tool: str) -> str:
        """Return a query that a tool was not asked and that no rule is against; empty where there is none."""
        return rewrite(
            self._reading.facts,
            self.prepared,
            asked=self._queries.get(tool, ()),
            for_tables=tool == TOOL_OF_ROLE[ToolRole.TABLE],
            is_fit=lambda query: self._reading.fits(query, least=self.profile.least_containment, evidence=self._evidence),
        )

    def _advice(self, step: PlannedStep, query: str) -> Advice:
        return Advice(
            step=step.step,
            is_sufficient=self.is_sufficient,
            shortfalls=self._tried[-1].shortfalls if self._tried else (),
            tool=step.tool,
            top_k=step.top_k,
            query=query,
            reason=step.reason,
        )

    def _tool(self, asked: ToolAsked) -> str:
        return asked.name if asked.role is ToolRole.SKILL else TOOL_OF_ROLE[asked.role]

    def _top_k(self, asked: ToolAsked) -> int | None:
        return self.profile.top_k.unsure if asked.role is ToolRole.TEXT and asked.top_k is None else asked.top_k


def _skill(given: SkillTool | str) -> SkillTool:
    return SkillTool(name=given) if isinstance(given, str) else given


# --- ledger ---
# Where a session's calls are decided about: by its own evaluator of the profile, and by the policies of the run it belongs to.

_RULES: Final = {rule.value: rule for rule in ProtocolRule}
_PLACES: Final = frozenset(("section", "call", "block"))
_RUN: Final = RunId("protocol-session")


class Ledger:
    """Takes the calls of one question. Not thread safe.

    Without a context the profile's own policy decides, with one action for every rule; with one, its policies do, and the profile's only
    finds. A call that was stopped never ran, so it is forgotten.
    """

    __slots__ = ("_calls", "_context", "_evaluator", "_policies")

    def __init__(self, profile: Profile, *, action: str, context: Context | None) -> None:
        self._policies = _policies_of(profile, action="warn" if context is not None else action)
        self._context = context
        self._evaluator = RunEvaluator(self._policies)
        self._calls: list[AnyCall] = []

    def record(self, call: AnyCall) -> tuple[TraceFinding, ...]:
        """Decide about a call and return what it breaks; raises PolicyViolationError where a policy stops it."""
        verdicts = self._evaluator.record(call)
        if self._context is not None:
            try:
                self._context.record_call(call)
            except PolicyViolationError:
                self._forget_last()
                raise
            self._calls.append(call)
        elif verdicts:
            self._raise(call, verdicts)
        return findings_of(verdicts) if verdicts else ()

    def draft(self, call: AnyCall) -> tuple[TraceFinding, ...]:
        """Return what a call breaks under the profile; it stops nothing, and the run is not told."""
        return findings_of(self._evaluator.record(call))

    def hand_on(self, call: AnyCall) -> None:
        """Record a call in the run that was decided about here before; raises PolicyViolationError where a policy stops it."""
        if self._context is not None:
            self._context.record_call(call)

    def _forget_last(self) -> None:
        self._evaluator = RunEvaluator(self._policies)
        for call in self._calls:
            self._evaluator.record(call)

    def _raise(self, call: AnyCall, verdicts: Sequence[Verdict]) -> None:
        stopping = tuple(verdict for verdict in verdicts if verdict.stops)
        if not stopping:
            return
        at_us = micros(SystemClock().now(), field="at")
        entry = LogEntry(at_us=at_us, run_id=_RUN, policies=self._policies.digest, call=call, verdicts=stopping)
        decisions = tuple(expand([unsealed(entry)]))
        raise PolicyViolationError(decisions[0].reason, decisions[0], decisions)


def findings_of(verdicts: Sequence[Verdict]) -> tuple[TraceFinding, ...]:
    """Return what the rules of a protocol found, in their order."""
    return tuple(
        TraceFinding(
            rule=_RULES[said.rule],
            section=said.metadata.get("section", ""),
            reason=said.reason,
            call=said.metadata.get("call"),
            block=said.metadata.get("block"),
            metadata={name: value for name, value in said.metadata.items() if name not in _PLACES},
        )
        for verdict in verdicts
        for said in verdict.evaluations
        if said.action is not PolicyAction.ALLOW and said.rule in _RULES
    )


def _policies_of(profile: Profile, *, action: str) -> PolicySet:
    """Return the profile as a policy, compiled once."""
    if PROFILES.get(profile.name) is profile:
        return _compiled(profile.name, action)
    return _compiled(msgspec.json.encode(profile, order="sorted").decode(), action)


@lru_cache(maxsize=64)
def _compiled(profile: str, action: str) -> PolicySet:
    given: object = profile if profile in PROFILES else msgspec.json.decode(profile)
    body = {"name": "Protocol", "category": "protocol", "rules": {"profile": given, "action_on_violation": action}}
    return PolicySet.of([check_policy(body)])


# --- wrapped tools ---
# A tool as a session has it called: checked before, judged after, sync and async alike.

_FAILED: Final = "Error: the tool failed"


def wrapped(
    session: ProtocolSession, name: str, function: Callable[..., Any]
) -> Callable[..., Any]:  # Any: whatever the tool takes and gives
    """Return a function that checks the call, makes it, and judges the result; what the tool raises goes on to the caller."""
    if not inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        def run(**arguments: Any) -> Any:  # noqa: ANN401 - whatever the tool takes and gives
            call = session.before(name, arguments)
            try:
                result = function(**arguments)
            except BaseException:
                session.answered(call, _FAILED)
                raise
            session.after(call, result)
            return result

        return run

    @functools.wraps(function)
    async def run_async(**arguments: Any) -> Any:  # noqa: ANN401 - whatever the tool takes and gives
        call = session.before(name, arguments)
        try:
            result = await function(**arguments)
        except BaseException:
            session.answered(call, _FAILED)
            raise
        session.after(call, result)
        return result

    return run_async


# --- trace lint ---
# A trace of what an agent did, checked after the fact: the same session, fed from what was written down.


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
