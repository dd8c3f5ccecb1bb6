"""The rules of the category `protocol`: which profile holds, and what becomes of a call that breaks one of its rules.

Rules and profile are made into tables once, so that a call is decided by a few look-ups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Self

import msgspec

from evidentia.contracts.policies import PolicyAction, ViolationAction
from evidentia.contracts.protocol import Breadth, Profile, ProtocolRule, QuestionType, TaskKind, ToolRole
from evidentia.contracts.vocabulary import Vocabulary
from evidentia.policy.handling import Violation
from evidentia.policy.protocol_profiles import active_rules, profile_of, profile_problems

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evidentia.contracts.calls import Metadata
    from evidentia.contracts.errors import FieldProblem
    from evidentia.contracts.protocol import TaskOpened

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
        str | Mapping[str, Any],  # Any: what somebody wrote, checked against the profile's own fields
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
