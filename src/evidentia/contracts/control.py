"""What travels to and from the control plane: bodies of its requests and replies, roles, tokens, and how it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, NewType

import msgspec

from evidentia.contracts.decisions import DecisionStatus, PolicyDecision, Verdict
from evidentia.contracts.ids import Sha256
from evidentia.contracts.policies import (
    DEFAULT_TENANT,
    Compat,
    Enforcement,
    Policy,
    PolicyAction,
    PolicyBody,
    PolicyId,
    PolicyScope,
    Posture,
    StoredPolicy,
)
from evidentia.contracts.protocol import Metadata
from evidentia.contracts.runs import Phase, RecordableCall, RunFacts, RunId, RunStatus, RunSummary
from evidentia.contracts.vocabulary import Classification, Vocabulary

TokenId = NewType("TokenId", str)

MAX_CALLS: Final = 1_000
"""In one request."""
MAX_PUSHED: Final = 1_000
NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
"""What runs, tenants and secrets may be called: they stand in addresses."""
SIGNED_PREFIX: Final = "jwt:"
"""How the names and ids of those begin who come with a signed token of an identity provider; no token of the base is called so."""

Name = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
ClientSeq = Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]


class Role(Vocabulary):
    """What the holder of a token may do, within one tenant."""

    READER = "reader"
    """Ask for evidence, and read policies, runs and decisions."""
    AGENT = "agent"
    """What a reader does; start, record and end runs; keep notes."""
    AUDITOR = "auditor"
    """What a reader does; everybody's receipts, who changed what, and whether base and log are what they were."""
    ADMIN = "admin"
    """Everything, changing documents, sources, policies, tokens and secrets included."""


class TokenLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How much the holder of a token may ask; None leaves it to the settings of the server."""

    requests_per_minute: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    requests_per_day: Annotated[int, msgspec.Meta(ge=1, le=10_000_000_000)] | None = None


class TokenFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is true of the holder of a token beyond its name, tenant and roles."""

    clearance: Classification = Classification.INTERNAL
    groups: Annotated[tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=200)], ...], msgspec.Meta(max_length=1_000)] = ()
    attributes: Mapping[str, str] = msgspec.field(default_factory=dict)
    is_delegate: bool = False
    """Whether its holder may ask in the name of others in its tenant, up to its own clearance: another server that has users."""
    limits: TokenLimits = TokenLimits()


NO_FACTS: Final = TokenFacts()


class TokenInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A token without its secret: who may do what, where, and until when."""

    token_id: TokenId
    name: str
    roles: tuple[Role, ...]
    tenant: str = DEFAULT_TENANT
    created_at: datetime
    created_by: str = ""
    expires_at: datetime | None = None
    """None is never."""
    revoked_at: datetime | None = None
    facts: TokenFacts = NO_FACTS


class IssuedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was just made; its secret is shown this once and kept nowhere."""

    token: str
    info: TokenInfo


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom a token is for; it belongs to the tenant of whoever asks."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    roles: Annotated[tuple[Role, ...], msgspec.Meta(min_length=1, max_length=4)]
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    facts: TokenFacts = NO_FACTS


class TokenList(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of a tenant, those that were revoked included, by the time they were made."""

    tokens: tuple[TokenInfo, ...]


class SecretValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A secret on its only way: in."""

    value: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]


class SecretNames(msgspec.Struct, frozen=True, kw_only=True):
    """What the secrets of a tenant are called; their values are never told."""

    names: tuple[str, ...]


class SecretKept(msgspec.Struct, frozen=True, kw_only=True):
    """That a secret of this name is kept, since when, and by whom."""

    name: str
    updated_at: datetime
    updated_by: str = ""


class FieldFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is wrong with one field, and the nearest name or word that would be right."""

    path: str
    problem: str
    suggestion: str = ""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Why something was refused: a stable code, what happened, what to do, and every field that is wrong."""

    code: str
    message: str
    hint: str
    problems: tuple[FieldFault, ...] = ()


class StoppedFault(Fault, frozen=True, kw_only=True):
    """Why a policy stopped something, with the whole decision."""

    decision: PolicyDecision
    decisions: tuple[PolicyDecision, ...] = ()
    """Every decision that stopped it, of all categories, the one that gives the reason first."""


class FaultReply(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every refusal."""

    error: Fault


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """That the plane is up, and of which version."""

    status: str
    version: str


class PolicyPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the policies, by priority and then name; `next_cursor` asks for those that follow."""

    policies: tuple[StoredPolicy, ...]
    next_cursor: str | None = None


class PolicyVersions(msgspec.Struct, frozen=True, kw_only=True):
    """Every version of one policy, the oldest first."""

    versions: tuple[StoredPolicy, ...]


class PolicyPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The fields of a policy that change; rules that are not named stay as they are."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | msgspec.UnsetType = msgspec.UNSET
    category: str | msgspec.UnsetType = msgspec.UNSET
    rules: Mapping[str, Any] | msgspec.UnsetType = msgspec.UNSET  # Any: typed by the category, which checks it
    scope: PolicyScope | msgspec.UnsetType = msgspec.UNSET
    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    priority: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | msgspec.UnsetType = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET
    compat: Compat | msgspec.UnsetType = msgspec.UNSET
    posture: Mapping[str, Posture] | msgspec.UnsetType = msgspec.UNSET
    enforcement: Enforcement | msgspec.UnsetType = msgspec.UNSET


class PushAction(Vocabulary):
    """What a push does to one policy."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


class PushRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Policies to be put in force by their names, all or none; a dry run only says what would happen."""

    policies: Annotated[tuple[PolicyBody, ...], msgspec.Meta(min_length=1, max_length=MAX_PUSHED)]
    dry_run: bool = False


class PushResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one policy that was pushed."""

    name: str
    action: PushAction
    policy_id: PolicyId
    version: int


class PushReply(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each, in the order in which they were given."""

    results: tuple[PushResult, ...]
    dry_run: bool = False


class PolicyTemplates(msgspec.Struct, frozen=True, kw_only=True):
    """Policies to begin with, by name."""

    templates: Mapping[str, PolicyBody]


class StartRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run that begins; without a `run_id` in its facts it is given one, and its tenant is that of the token."""

    facts: RunFacts
    policies: Annotated[tuple[PolicyBody, ...], msgspec.Meta(max_length=MAX_PUSHED)] = ()
    """In force for this run alone, beside those of the tenant."""
    is_enforced: bool = True


class StartReply(msgspec.Struct, frozen=True, kw_only=True):
    """A run that began, and all that is needed to go on deciding when the plane is out of reach."""

    run_id: RunId
    is_enforced: bool
    policies: tuple[Policy, ...]
    """Those in scope, in the order in which they are asked; they stay the same for the whole run."""


class NumberedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call with the number its client gave it, from 1 without gaps, so that sending it again records it once."""

    seq: ClientSeq
    call: RecordableCall
    text: str = ""
    """What a model or the agent said, for a judge to read; it is not kept."""
    texts: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What sources say, by the names they are cited by, for a judge to read; they are kept in memory until the run ends."""


class CallsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls in order; those after one that a policy stops are not recorded."""

    calls: Annotated[tuple[NumberedCall, ...], msgspec.Meta(min_length=1, max_length=MAX_CALLS)]


class CallResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was decided about one call; no verdicts when everything passed."""

    seq: int
    verdicts: tuple[Verdict, ...] = ()
    decisions: tuple[PolicyDecision, ...] = ()
    """Of the verdicts that stop, as they stand in the log."""
    is_repeated: bool = False
    """It had been recorded before; this is what was decided then."""


class CallsReply(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided, call by call."""

    run_id: RunId
    status: RunStatus
    results: tuple[CallResult, ...]
    stopped_at: int | None = None
    """The number of the call that a policy stopped."""


class EndRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run ended; `text` is its final output, for a judge to read, and is not kept."""

    status: RunStatus = RunStatus.SUCCESS
    error_type: str = ""
    result_hash: Sha256 | None = None
    text: str = ""


class EndReply(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about the whole run."""

    run_id: RunId
    status: RunStatus
    verdicts: tuple[Verdict, ...] = ()
    decisions: tuple[PolicyDecision, ...] = ()
    """Of the verdicts that stop, as they stand in the log."""


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the runs, the newest first."""

    runs: tuple[RunSummary, ...]
    next_cursor: str | None = None


class DecisionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the decisions: of one run in their order, else the newest first."""

    decisions: tuple[PolicyDecision, ...]
    next_cursor: str | None = None


class GovernanceEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as a line of a list: which policy, when, what, and why."""

    at: datetime
    run_id: RunId
    agent_name: str
    policy_id: PolicyId
    policy_name: str
    policy_version: int
    phase: Phase
    action: PolicyAction
    category: str
    rule: str
    reason: str
    metadata: Metadata
    status: DecisionStatus
    is_enforced: bool
    log: str
    seq: int
    part: int


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the events of the last minutes, the newest first."""

    events: tuple[GovernanceEvent, ...]
    minutes: int
    next_cursor: str | None = None


class AuditKind(Vocabulary):
    """What was changed."""

    POLICY = "policy"
    TOKEN = "token"  # noqa: S105 - the word, not one of them
    SECRET = "secret"  # noqa: S105 - likewise
    DOCUMENT = "document"
    SOURCE = "source"
    BASE = "base"
    """The whole of it: embedding, collecting old versions, backups."""
    SESSION = "session"
    """Somebody who came in by the dashboard."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the audit: who did what to which policy, token, secret, document or source, and when."""

    seq: int
    at: datetime
    by: str
    kind: AuditKind
    change: str
    """`created`, `updated` or `removed`; for a token `created` or `revoked`."""
    subject: str
    """The id of the policy or token, the name of the secret."""
    name: str
    version: int | None = None
    digest: Sha256 | None = None


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the changes, the oldest first."""

    changes: tuple[AuditEntry, ...]
    next_cursor: str | None = None
