"""Policies as their authors write them and as they are kept: rules of one category, a scope, a version and a digest.

Rule names, their defaults and their words are public API.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, NewType

import msgspec

from evidentia.contracts.ids import Sha256
from evidentia.contracts.vocabulary import RankedVocabulary, Vocabulary

PolicyId = NewType("PolicyId", str)

DEFAULT_PRIORITY: Final = 100
DEFAULT_TENANT: Final = "default"
ALL_RULES: Final = "*"
"""Names every rule that is not named itself."""


class PolicyAction(RankedVocabulary):
    """What becomes of a call, weakest first; the strongest of several wins."""

    ALLOW = "allow"
    WARN = "warn"
    REDACT = "redact"
    RETRY = "retry"
    SKIP = "skip"
    THROTTLE = "throttle"
    BLOCK = "block"

    @property
    def stops(self) -> bool:
        """Tell whether the call that caused it does not go on."""
        return self in {PolicyAction.SKIP, PolicyAction.THROTTLE, PolicyAction.BLOCK}


class Posture(Vocabulary):
    """What a rule does when it cannot be checked."""

    OPEN = "open"
    """The call goes on; the bypass is recorded."""
    DEGRADE = "degrade"
    """The call goes on with a warning; the bypass is recorded."""
    CLOSED = "closed"
    """The call is blocked; the bypass is recorded."""


class Compat(Vocabulary):
    """How a policy is read where the written rules of its category contradict themselves."""

    RESOLVED = "resolved"
    LITERAL = "literal"


class Enforcement(Vocabulary):
    """Whether a policy's actions take effect."""

    ENFORCE = "enforce"
    SHADOW = "shadow"


class PolicyScope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which runs and calls a policy is for: a facet with glob characters is matched, others are equal; exclusions win; empty is all."""

    agents: tuple[str, ...] = ()
    agent_ids: tuple[str, ...] = ()
    agent_groups: tuple[str, ...] = ()
    agent_types: tuple[str, ...] = ()
    workflows: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    exclude_agents: tuple[str, ...] = ()
    exclude_users: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    exclude_models: tuple[str, ...] = ()


class PolicyBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an author writes: the body of the REST call, one entry of `policies=[...]`, one policy file."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    category: str
    rules: Mapping[str, Any] = msgspec.field(default_factory=dict)  # Any: typed by the category, which checks it
    scope: PolicyScope = PolicyScope()
    enabled: bool = True
    priority: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = DEFAULT_PRIORITY
    description: str = ""
    compat: Compat = Compat.RESOLVED
    posture: Mapping[str, Posture] = msgspec.field(default_factory=dict)
    """By rule name; `*` is for all that are not named."""
    enforcement: Enforcement = Enforcement.ENFORCE


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A checked policy: its rules complete with their defaults, and a digest of everything that can change a decision."""

    policy_id: PolicyId
    version: Annotated[int, msgspec.Meta(ge=1)] = 1
    digest: Sha256
    tenant: str = DEFAULT_TENANT
    body: PolicyBody


class StoredPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy with who last changed it and when; one that was removed stays readable by its version."""

    policy: Policy
    created_at: datetime
    updated_at: datetime
    updated_by: str = ""
    is_removed: bool = False


class ChangeKind(Vocabulary):
    """What somebody did to a policy."""

    CREATED = "created"
    UPDATED = "updated"
    REMOVED = "removed"


class PolicyChange(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the audit: who did what to which policy, and when."""

    seq: int
    at: datetime
    by: str
    change: ChangeKind
    policy_id: PolicyId
    name: str
    version: int
    digest: Sha256


class RetrievalRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of the category `retrieval`."""

    min_relevance_score: float = 0.7
    max_source_age_days: Annotated[int, msgspec.Meta(ge=0)] = 90
    min_chunks: Annotated[int, msgspec.Meta(ge=0)] = 1
    max_chunks: Annotated[int, msgspec.Meta(ge=1)] = 10
    allowed_collections: tuple[str, ...] = ()
    blocked_sources: tuple[str, ...] = ()
    require_source_diversity: bool = False
    max_single_source_ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.6
    action_on_low_relevance: PolicyAction = PolicyAction.WARN
    action_on_stale_source: PolicyAction = PolicyAction.BLOCK
    action_on_chunk_violation: PolicyAction = PolicyAction.WARN
    action_on_unknown_age: PolicyAction = PolicyAction.ALLOW
    """For documents whose age nobody gave: `allow` (recorded as unknown), `warn` or `block`."""


class GroundingRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of the category `grounding`."""

    require_source_grounding: bool = False
    min_grounding_score: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.7
    min_citations: Annotated[int, msgspec.Meta(ge=0)] = 1
    max_unsupported_claims: Annotated[int, msgspec.Meta(ge=0)] | None = None
    factual_consistency_check: bool = False
    """Reserved; it has no effect, and a notice says so."""
    abstention_threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    abstention_response: str | None = None
    action_on_violation: PolicyAction = PolicyAction.WARN
    score_relevance_floor: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    score_eval_mode: str = "all"
    """`all`, `average` or `top_n`."""
    score_top_n: Annotated[int, msgspec.Meta(ge=1)] = 3
    llm_grounding_check: bool = False
    llm_grounding_model: str = "gpt-4o-mini"
    llm_grounding_threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.7
    llm_grounding_criteria: str = ""
    llm_grounding_phase: str = "mid_execution"
    """`mid_execution`, `after_workflow` or `both`."""
    unique_citations: bool = False
    """Whether a citation that is given twice counts once."""
    confidence_mode: str = "last"
    """Which output confidence counts when several calls gave one: the `last`, or the `min`."""
