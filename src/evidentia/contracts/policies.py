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
        return self in _STOPPING


_STOPPING: Final = (PolicyAction.SKIP, PolicyAction.THROTTLE, PolicyAction.BLOCK)


class ViolationAction(Vocabulary):
    """What a rule may do about a violation."""

    WARN = "warn"
    BLOCK = "block"


class UnknownAgeAction(Vocabulary):
    """What may become of a document whose age nobody gave; `allow` is recorded as unknown."""

    ALLOW = "allow"
    WARN = "warn"
    BLOCK = "block"


class ScoreEvalMode(Vocabulary):
    """Which of the scores above the floor must reach the minimum."""

    ALL = "all"
    AVERAGE = "average"
    TOP_N = "top_n"


class JudgePhase(Vocabulary):
    """When the judge is asked."""

    MID_EXECUTION = "mid_execution"
    AFTER_WORKFLOW = "after_workflow"
    BOTH = "both"


class ConfidenceMode(Vocabulary):
    """Which output confidence counts when several calls gave one."""

    LAST = "last"
    MIN = "min"


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


_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class RetrievalRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of the category `retrieval`."""

    min_relevance_score: Annotated[
        float, msgspec.Meta(title="Minimum relevance", description="A document with a lower score violates; an equal one passes.")
    ] = 0.7
    max_source_age_days: Annotated[
        int, msgspec.Meta(ge=0, title="Maximum age of a source in days", description="An older document violates.")
    ] = 90
    min_chunks: Annotated[
        int, msgspec.Meta(ge=0, title="Minimum number of results", description="Per batch where one is named, else per run.")
    ] = 1
    max_chunks: Annotated[
        int, msgspec.Meta(ge=1, title="Maximum number of results", description="Per batch where one is named, else per run.")
    ] = 10
    allowed_collections: Annotated[
        tuple[str, ...], msgspec.Meta(title="Allowed collections", description="When not empty, any other collection is blocked.")
    ] = ()
    blocked_sources: Annotated[
        tuple[str, ...], msgspec.Meta(title="Blocked sources", description="Blocked whatever their score; names must be equal.")
    ] = ()
    require_source_diversity: Annotated[
        bool, msgspec.Meta(title="Require several sources", description="Warn at the end when one source dominates the results.")
    ] = False
    max_single_source_ratio: Annotated[
        float, msgspec.Meta(ge=0, le=1, title="Largest share of one source", description="Asked only where several are required.")
    ] = 0.6
    action_on_low_relevance: Annotated[
        ViolationAction, msgspec.Meta(title="When relevance is low", description="What becomes of a document below the minimum.")
    ] = ViolationAction.WARN
    action_on_stale_source: Annotated[
        ViolationAction, msgspec.Meta(title="When a source is stale", description="What becomes of a document that is too old.")
    ] = ViolationAction.BLOCK
    action_on_chunk_violation: Annotated[
        ViolationAction, msgspec.Meta(title="When there are too few or too many results", description="Counts of results.")
    ] = ViolationAction.WARN
    action_on_unknown_age: Annotated[
        UnknownAgeAction, msgspec.Meta(title="When nobody knows the age", description="`allow` is still recorded as unknown.")
    ] = UnknownAgeAction.ALLOW


class GroundingRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of the category `grounding`."""

    require_source_grounding: Annotated[
        bool, msgspec.Meta(title="Require citations", description="An output without any citation violates.")
    ] = False
    min_grounding_score: Annotated[
        float, msgspec.Meta(ge=0, le=1, title="Minimum grounding score", description="Of each claim, as the mode says.")
    ] = 0.7
    min_citations: Annotated[
        int, msgspec.Meta(ge=0, title="Minimum number of citations", description="Over all calls of the run, at its end.")
    ] = 1
    max_unsupported_claims: Annotated[
        _Count | None, msgspec.Meta(title="Maximum number of unsupported claims", description="Null asks nothing; 0 allows none.")
    ] = None
    factual_consistency_check: Annotated[
        bool, msgspec.Meta(title="Check factual consistency", description="Reserved; it has no effect, and a notice says so.")
    ] = False
    abstention_threshold: Annotated[
        _Share | None, msgspec.Meta(title="Abstain below this confidence", description="Null, or no confidence given, asks nothing.")
    ] = None
    abstention_response: Annotated[
        str | None, msgspec.Meta(title="What to say instead", description="Goes with the decision when confidence is too low.")
    ] = None
    action_on_violation: Annotated[
        ViolationAction, msgspec.Meta(title="When grounding falls short", description="For every violation of this category.")
    ] = ViolationAction.WARN
    score_relevance_floor: Annotated[
        _Share | None, msgspec.Meta(title="Relevance floor", description="Lower scores are left out; if none is left, that violates.")
    ] = None
    score_eval_mode: Annotated[
        ScoreEvalMode, msgspec.Meta(title="Which scores must pass", description="Each, their mean, or the largest few.")
    ] = ScoreEvalMode.ALL
    score_top_n: Annotated[int, msgspec.Meta(ge=1, title="How many of the largest scores", description="For the mode `top_n`.")] = 3
    llm_grounding_check: Annotated[
        bool, msgspec.Meta(title="Ask a judge", description="A model reads the output and its sources, and scores them.")
    ] = False
    llm_grounding_model: Annotated[
        str, msgspec.Meta(title="Model of the judge", description="The beginning of its name says who runs it.")
    ] = "gpt-4o-mini"
    llm_grounding_threshold: Annotated[
        float, msgspec.Meta(ge=0, le=1, title="Minimum score of the judge", description="A lower score violates.")
    ] = 0.7
    llm_grounding_criteria: Annotated[str, msgspec.Meta(title="Further criteria", description="Added to what the judge is told.")] = ""
    llm_grounding_phase: Annotated[
        JudgePhase, msgspec.Meta(title="When to ask the judge", description="At each grounding entry, at the end, or both.")
    ] = JudgePhase.MID_EXECUTION
    unique_citations: Annotated[
        bool, msgspec.Meta(title="Count each citation once", description="Whether a citation that is given twice counts once.")
    ] = False
    confidence_mode: Annotated[
        ConfidenceMode, msgspec.Meta(title="Which confidence counts", description="When several calls gave one: the last, or the least.")
    ] = ConfidenceMode.LAST


# --- trials ---
# What is asked of recorded runs before a policy is put in force. Nothing of it changes anything.

MAX_TRIAL_MINUTES: Final = 60 * 24 * 366
MAX_TRIAL_RECORDS: Final = 300_000
"""Read for one trial; a longer time than holds as many is refused."""


class ShadowTrial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy to be tried over the runs that began in the last minutes."""

    policy: PolicyBody
    minutes: Annotated[int, msgspec.Meta(ge=1, le=MAX_TRIAL_MINUTES)] = 60 * 24 * 7
    is_whole: bool = False
    """Whether it is all there is; else other recorded policies stay in force beside it."""
