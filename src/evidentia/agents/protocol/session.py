"""One question under the protocol: every tool call is checked before it runs and judged after it, and the reply before it goes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.agents.checks import checked_text, plain
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.protocol.advice import Step, Tried, first_step, next_step
from evidentia.agents.protocol.ledger import Ledger
from evidentia.agents.protocol.reading import Reading
from evidentia.agents.protocol.rewriting import rewrite
from evidentia.agents.protocol.sufficiency import evidence_text, shortfalls
from evidentia.agents.protocol.tools import TOOL_OF_ROLE, query_of, suits
from evidentia.agents.protocol.wrapping import wrapped
from evidentia.agents.recording import hash_of
from evidentia.agents.replies.audit import audit_reply
from evidentia.agents.results import read_result
from evidentia.agents.selfcheck import list_for_agent, self_check
from evidentia.contracts.protocol import Advice, NextStep, ReplyDrafted, ReplyReport, SkillTool, ToolAnswered, ToolRole
from evidentia.policy.protocol_profiles import profile_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evidentia.agents.context import Context
    from evidentia.agents.protocol.queries import AnySynonyms
    from evidentia.agents.results import ResultFacts
    from evidentia.contracts.evidence import Turn
    from evidentia.contracts.ports import Lexicon
    from evidentia.contracts.protocol import Breadth, PreparedQuery, Profile, QuestionType, TaskKind, ToolAsked, TraceFinding

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
        self._reading = Reading(
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
        self._tried: list[Tried] = []
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
            self._tried.append(Tried(self._tool(asked), asked.role, self._top_k(asked), lacks, is_sufficient))
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
            self._ledger.tell(drafted)
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

    def _advice(self, step: Step, query: str) -> Advice:
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
