"""The rules of the category `protocol`: which profile holds, and what becomes of a call that breaks one of its rules.

Rules and profile are made into tables once, so that a call is decided by a few look-ups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Self

import msgspec

from evidentia.contracts.policies import PolicyAction, ViolationAction
from evidentia.contracts.protocol import Breadth, Profile, ProtocolRule, QuestionType, Shortfall, TaskKind, TaskOpened, ToolRole
from evidentia.contracts.vocabulary import Vocabulary
from evidentia.policy.handlers import Violation
from evidentia.policy.protocol_profiles import TOOL_NAMES, active_rules, profile_of, profile_problems
from evidentia.policy.rule_checks import shown

if TYPE_CHECKING:
    from evidentia.contracts.errors import FieldProblem
    from evidentia.contracts.protocol import Metadata, ToolAnswered


MILLION: Final = 1_000_000
"""Shares are compared as whole millionths."""


class RuleAction(Vocabulary):
    """What may become of a call that breaks a rule; `allow` is still written down."""

    ALLOW = "allow"
    WARN = "warn"
    BLOCK = "block"


class ProtocolRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of the category `protocol`."""

    profile: Annotated[
        str | Mapping[str, Any],  # Any: as an author writes it, checked against the profile's own fields
        msgspec.Meta(title="Profile", description="`first_call`, `thorough`, or a map with `based_on`, `name` and what is different."),
    ] = "first_call"
    action_on_violation: Annotated[
        ViolationAction, msgspec.Meta(title="When the protocol is broken", description="For every rule that `actions` does not name.")
    ] = ViolationAction.WARN
    actions: Annotated[
        Mapping[ProtocolRule, RuleAction],
        msgspec.Meta(title="Actions by rule", description="What becomes of a call that breaks this rule; `allow` is written down."),
    ] = msgspec.field(default_factory=dict)
    skill_tools: Annotated[
        tuple[str, ...],
        msgspec.Meta(title="Skill tools", description="Further tools that count as retrieval tools of skills, whatever a run says."),
    ] = ()
    self_knowledge: Annotated[
        bool | None,
        msgspec.Meta(title="Allow supplements", description="False forbids them in every run; null leaves it to the run and the profile."),
    ] = None


def check_protocol(rules: ProtocolRules) -> Iterable[FieldProblem]:
    """Return what the types of the rules cannot say."""
    return profile_problems(rules.profile)


class Terms(NamedTuple):
    """The rules of one policy as tables."""

    profile: Profile
    actions: Mapping[ProtocolRule, PolicyAction]
    """Every rule that can be broken; others are no part of it."""
    steps: Mapping[ToolRole, int]
    """Where each source stands in the order."""
    sources: tuple[ToolRole, ...]
    """Sources other than skills, in their order."""
    first_tools: Mapping[QuestionType, ToolRole]
    """What to begin with; where a type is missing, either will do."""
    top_k: Mapping[Breadth, int]
    skills: frozenset[str]
    forbidden: frozenset[str]
    least_containment: int
    self_knowledge: bool | None

    @classmethod
    def of(cls, rules: ProtocolRules) -> Self:
        """Return the tables of rules that were checked."""
        profile = profile_of(rules.profile)
        usual = rules.action_on_violation.value
        top_k = profile.top_k
        return cls(
            profile=profile,
            actions={rule: PolicyAction(rules.actions.get(rule, usual)) for rule in active_rules(profile)},
            steps={role: place for place, step in enumerate(profile.order) for role in step},
            sources=tuple(role for step in profile.order for role in step if role is not ToolRole.SKILL),
            first_tools={
                **dict.fromkeys(profile.table_first, ToolRole.TABLE),
                **dict.fromkeys(profile.text_first, ToolRole.TEXT),
            },
            top_k={
                Breadth.LOOKUP: top_k.lookup,
                Breadth.MODERATE: top_k.moderate,
                Breadth.BROAD: top_k.broad,
                Breadth.UNSURE: top_k.unsure,
            },
            skills=frozenset(rules.skill_tools),
            forbidden=frozenset(name.casefold() for name in profile.forbidden_tools),
            least_containment=round(profile.least_containment * MILLION),
            self_knowledge=rules.self_knowledge,
        )

    def violation(self, rule: ProtocolRule, reason: str, metadata: Metadata) -> Violation:
        """Return the violation of a rule that is part of the profile."""
        return Violation(
            rule=rule.value, action=self.actions[rule], reason=reason, metadata={**metadata, "section": self.profile.sections[rule]}
        )

    def allows_supplements(self, task: TaskOpened) -> bool:
        """Tell whether the model may add of its own: a policy that forbids it wins, then the run, the policy and the profile decide."""
        if self.self_knowledge is False:
            return False
        if task.has_self_knowledge is not None:
            return task.has_self_knowledge
        return self.self_knowledge or self.profile.self_knowledge.is_enabled


def is_bound(task: TaskOpened) -> bool:
    """Tell whether the protocol speaks about a task; one that is only about code is free, and what is uncertain is not."""
    return task.task is not TaskKind.CODE


# --- state of a question ---
# What is remembered of one question: which sources were asked, what they lacked, and what is still under way.
#
# A call that this category stopped is set aside: it never ran, so it counts for nothing. Should its answer come after all (in a run where
# nothing is enforced), it counts from then on.

RAG: Final = frozenset({ToolRole.TABLE, ToolRole.TEXT})
RAISABLE: Final = frozenset({Shortfall.PARTIAL, Shortfall.TRUNCATED, Shortfall.MISSING_ENTITY})
"""What asking for more results may cure: there is something, and it is too little or too narrow."""


def tool_key(role: ToolRole, name: str) -> str:
    """Return what a tool is remembered by: the name of a skill's tool, the role of the others."""
    return f"skill {name}" if role is ToolRole.SKILL else role.value


class AskedTool(NamedTuple):
    """A call to a source."""

    call: int
    name: str
    """As a reason shows it."""
    tool: str
    """What makes two calls calls to the same tool."""
    role: ToolRole
    top_k: int | None
    """Of the text tool: what was asked for, or what an omitted one stands for."""
    query: str | None

    @property
    def label(self) -> str:
        """Return the call as a reason names it."""
        return f"{self.name} (call {self.call})"


@dataclass(slots=True, eq=False)
class QuestionState:
    """The state of one question under one set of terms. Its size grows with the number of queries and tools alone."""

    task: TaskOpened
    asked: int = 0
    """Calls to sources, whether or not they have answered."""
    open: dict[int, AskedTool] = field(default_factory=dict)
    set_aside: dict[int, AskedTool] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    """Calls by tool."""
    queries: dict[tuple[str, str], int] = field(default_factory=dict)
    """The largest top_k that a tool was asked a query with."""
    last: AskedTool | None = None
    """The call that answered last."""
    last_shortfalls: tuple[Shortfall, ...] = ()
    last_text: AskedTool | None = None
    text_shortfalls: tuple[Shortfall, ...] = ()
    is_sufficient: bool = False
    """Whether some result sufficed."""
    is_whole: bool = False
    """Whether some result lacked nothing at all."""
    reads_file: bool = False
    """Whether the file was read that the user asked for."""
    replies: int = 0
    last_is_faulty: bool = False
    """Whether the last reply broke a rule."""

    def ask(self, asked: AskedTool, *, is_stopped: bool) -> None:
        """Take a call to a source that was decided about."""
        if is_stopped:
            self.set_aside[asked.call] = asked
            return
        self.open[asked.call] = asked
        self._count(asked)

    def answer(self, answered: ToolAnswered, insufficient: Iterable[Shortfall]) -> None:
        """Take what came back; what answers no call to a source changes nothing."""
        asked = self.open.pop(answered.call, None)
        if asked is None:
            asked = self.set_aside.pop(answered.call, None)
            if asked is None:
                return
            self._count(asked)
        self.last, self.last_shortfalls = asked, answered.shortfalls
        if asked.role is ToolRole.TEXT:
            self.last_text, self.text_shortfalls = asked, answered.shortfalls
        self.is_sufficient = self.is_sufficient or not any(each in answered.shortfalls for each in insufficient)
        self.is_whole = self.is_whole or not answered.shortfalls

    def left(self, terms: Terms) -> list[str]:
        """Return the sources that suit and were not asked, as they are called, in their order."""
        tries = self.tries
        skills = self.task.skills if ToolRole.SKILL in terms.steps else ()
        unasked = (shown(name) for name in skills if tool_key(ToolRole.SKILL, name) not in tries)
        return [*unasked, *(TOOL_NAMES[role] for role in terms.sources if role.value not in tries)]

    def has_tried_skill(self) -> bool:
        """Tell whether a skill's tool that suits was asked."""
        return any(tool_key(ToolRole.SKILL, name) in self.tries for name in self.task.skills)

    def _count(self, asked: AskedTool) -> None:
        self.asked += 1
        self.tries[asked.tool] = self.tries.get(asked.tool, 0) + 1
        if asked.query is not None:
            key = (asked.tool, asked.query)
            self.queries[key] = max(self.queries.get(key, 0), asked.top_k or 0)
