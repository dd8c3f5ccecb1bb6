"""What a session knows of its question before anything was asked, and what that says of a tool call."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evidentia.agents.record_values import hash_of
from evidentia.contracts.protocol import Breadth, PreparedQuery, QuestionType, SkillTool, TaskKind, TaskOpened, ToolAsked, ToolRole
from evidentia.protocol.classification import (
    MAX_QUESTION_LENGTH,
    breadth,
    classify_task,
    explicit_file,
    label_of,
    query_of,
    question_type,
    reads_file,
    role_of,
    serves_knowledge,
    suits,
    top_k_of,
)
from evidentia.protocol.queries import AnySynonyms, even, explained_stems, judge_query, prepare, works_raw
from evidentia.protocol.questions import QuestionFacts, read_question

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.evidence import Turn
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.ports import Lexicon

_REMEMBERED: Final = 512
"""Questions whose reading is kept: the same one is often asked again, or linted in many traces."""


class JudgedQuestion(NamedTuple):
    """What a question is by its words alone."""

    facts: QuestionFacts
    task: TaskKind
    kind: QuestionType
    file: str | None
    is_query: bool
    digest: Sha256 | None


class QuestionRecord:
    """A question with its labels: those that were given, the others judged."""

    def __init__(
        self,
        question: str,
        *,
        skills: Sequence[SkillTool] = (),
        turns: Sequence[Turn] = (),
        task: TaskKind | None = None,
        kind: QuestionType | None = None,
        size: Breadth | None = None,
        file: str | None = None,
        is_query: bool | None = None,
        synonyms: AnySynonyms | None = None,
        lexicon: Lexicon | None = None,
    ) -> None:
        self.question = question
        judged = _judged(question) if len(question) <= MAX_QUESTION_LENGTH else _judge(question)
        self.facts = read_question(question, turns=turns) if turns else judged.facts
        self.task = judged.task if task is None else task
        self.question_type = judged.kind if kind is None else kind
        self.breadth = breadth(question, kind=self.question_type) if size is None else size
        self.file = judged.file if file is None else file
        self.is_query = judged.is_query if is_query is None else is_query
        self.skills = tuple(skill.name for skill in skills if suits(skill, self.facts))
        """The tools of skills that suit."""
        self._skills = tuple(sorted(skill.name for skill in skills))
        self._digest = judged.digest
        self._synonyms = synonyms
        self._lexicon = lexicon
        self._prepared: PreparedQuery | None = None
        self._stems: frozenset[str] | None = None

    @property
    def prepared(self) -> PreparedQuery:
        """Return a query for the question; made when it is first asked for."""
        if self._prepared is None:
            self._prepared = prepare(self.facts, kind=self.question_type, synonyms=self._synonyms, lexicon=self._lexicon)
        return self._prepared

    def opening(self, *, has_self_knowledge: bool | None) -> TaskOpened:
        """Return what is recorded of the question."""
        return TaskOpened(
            task=self.task,
            question_type=self.question_type,
            breadth=self.breadth,
            question_hash=self._digest,
            skills=self.skills,
            has_self_knowledge=has_self_knowledge,
        )

    def asked(
        self,
        name: str,
        arguments: Mapping[str, Any],  # Any: whatever the tool takes
        *,
        call: int,
        portion: TaskKind | None,
        forbidden: Sequence[str],
        evidence: Sequence[str],
    ) -> ToolAsked:
        """Return what is recorded of a call; words that earlier evidence has are no strays of a query."""
        role = role_of(name, skills=self._skills, forbidden=forbidden)
        is_knowledge = serves_knowledge(self.task, role, arguments) if portion is None else portion is not TaskKind.CODE
        if not role.retrieves:
            is_file = self.file is not None and reads_file(self.file, arguments)
            label = label_of(name, arguments)
            return ToolAsked(call=call, name=label, role=role, is_knowledge=is_knowledge, is_explicit_file=is_file)
        shown = self._registered(name) if role is ToolRole.SKILL else name
        query, top_k = query_of(arguments), top_k_of(arguments)
        if query is None:
            return ToolAsked(call=call, name=shown, role=role, is_knowledge=is_knowledge, top_k=top_k)
        judged = judge_query(query, facts=self.facts, explained=self._explained(), evidence=evidence, synonyms=self._synonyms)
        return ToolAsked(
            call=call,
            name=shown,
            role=role,
            is_knowledge=is_knowledge,
            top_k=top_k,
            query_hash=hash_of(" ".join(query.casefold().split())),
            is_raw=judged.is_raw,
            works_raw=self.is_query,
            containment=judged.containment,
            strays=judged.strays,
        )

    def fits(self, query: str, *, least: float, evidence: Sequence[str]) -> bool:
        """Tell whether nothing is to be said against a query: it is not the bare question, and keeps its subject and to its topic."""
        judged = judge_query(query, facts=self.facts, explained=self._explained(), evidence=evidence, synonyms=self._synonyms)
        return (self.is_query or not judged.is_raw) and judged.containment >= least and not judged.strays

    def _registered(self, name: str) -> str:
        """Return the name under which a skill's tool is registered, whatever prefix it was called with."""
        return next((skill for skill in self._skills if role_of(name, skills=(skill,)) is ToolRole.SKILL), name)

    def _explained(self) -> frozenset[str]:
        if self._stems is None:
            self._stems = explained_stems(self.facts, synonyms=self._synonyms, lexicon=self._lexicon)
        return self._stems


def _judge(question: str) -> JudgedQuestion:
    facts = read_question(question)
    return JudgedQuestion(
        facts=facts,
        task=classify_task(question),
        kind=question_type(question),
        file=explicit_file(question),
        is_query=works_raw(facts),
        digest=hash_of(even(question)),
    )


_judged = lru_cache(maxsize=_REMEMBERED)(_judge)
