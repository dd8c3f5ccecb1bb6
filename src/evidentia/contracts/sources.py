"""Sources as the registry knows them, and what a request allows of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, NamedTuple

import msgspec

from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.ids import SemanticVersion, SourceId
from evidentia.contracts.vocabulary import (
    AuthorityTier,
    BreakerState,
    Classification,
    ConnectionKind,
    LatencyTier,
    QueryCapability,
    SourceType,
)


class SchemaField(msgspec.Struct, frozen=True, kw_only=True):
    """One field a source can be asked about."""

    name: str
    type: str
    is_indexed: bool = False
    description: str = ""


class SchemaDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """What a source holds: its fields and, for structured sources, its tables."""

    fields: tuple[SchemaField, ...] = ()
    tables: Mapping[str, tuple[SchemaField, ...]] = msgspec.field(default_factory=dict)


class SourceAccessPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Who may ask a source at all; documents inside it carry rules of their own.

    Lists that are empty ask nothing; of those that are not, the caller has to be in one. `tenants` holds for sources outside
    the base: what they return without a rule of its own belongs to the tenant of whoever asked.
    """

    tenants: tuple[str, ...] = (DEFAULT_TENANT,)
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    minimum_clearance: Classification = Classification.PUBLIC
    predicate: str = ""
    """A filter over the caller's attributes in its text form; empty allows."""


REACH: Final = "reach"
"""The option of a connection that says how far it may reach."""
PUBLIC: Final = "public"
"""The value of that option for a connection that leads nowhere but to public addresses."""


OUTBOUND: Final = "outbound."
"""How the options of a connection begin that say how it is reached, in the place of the table `[outbound]` of the settings."""


class SourceConnection(msgspec.Struct, frozen=True, kw_only=True):
    """Where a source is. A key is never stored, only the name of the environment variable that holds it."""

    kind: ConnectionKind = ConnectionKind.OWN
    address: str = ""
    """A directory, an address, or the command of an MCP server."""
    tool: str = ""
    """The tool of an MCP server that is asked."""
    key_variable: str = ""
    options: Mapping[str, str] = msgspec.field(default_factory=dict)


class SourceDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """A source in the registry."""

    source_id: SourceId
    source_type: SourceType = SourceType.INVERTED_INDEX
    schema: SchemaDefinition = SchemaDefinition()
    authority_tier: AuthorityTier = AuthorityTier.CURATED
    freshness_sla_s: Annotated[int, msgspec.Meta(ge=0)] | None = None
    latency_tier: LatencyTier = LatencyTier.WARM
    access_policy: SourceAccessPolicy = SourceAccessPolicy()
    query_capabilities: tuple[QueryCapability, ...] = (QueryCapability.EXACT_MATCH,)
    cost_per_query_micros: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Cost of one query in millionths of the accounting currency, an integer so that it can be hashed."""
    max_qps: Annotated[int, msgspec.Meta(ge=1)] | None = None
    version: SemanticVersion = SemanticVersion("1.0.0")
    """The version of the schema; a schema that changes needs a higher one."""
    connection: SourceConnection = SourceConnection()
    expected_p99_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How soon 99 of 100 answers come, where that is known; else the latency tier says."""
    freshness_tau_s: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """After this many seconds the freshness of what it says has fallen to 1/e; else the settings say."""
    weight_milli: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 1_000
    """How much its order counts, in thousandths, where the orders of several sources are merged."""

    @property
    def is_own(self) -> bool:
        """Tell whether its documents are in the base itself."""
        return self.connection.kind is ConnectionKind.OWN


class SourcePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a request allows: sources, the lowest tier, and a narrowing of the caller's own rights."""

    allowed_sources: tuple[SourceId, ...] | None = None
    denied_sources: tuple[SourceId, ...] = ()
    minimum_authority: AuthorityTier = AuthorityTier.EPHEMERAL
    most_sources: Annotated[int, msgspec.Meta(ge=0, le=1_000)] | None = None
    """How many sources outside the base may be asked per part of the question; None leaves it to the settings."""
    acl_scope: tuple[str, ...] | None = None
    """Entries of the caller's own rights to keep; None keeps all. It narrows, never widens."""


class SourceHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a source: how often it was asked, how often in vain, and how long it took."""

    calls: int = 0
    failures: int = 0
    timeouts: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    last_problem: str = ""
    breaker: BreakerState = BreakerState.CLOSED


class SourceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A registered source with its health; one outside the base is asked only where something is attached that can ask it."""

    descriptor: SourceDescriptor
    health: SourceHealth
    is_attached: bool
    documents: int | None = None
    """How many live documents it has in the base; None for a source outside, and for a caller who is not the owner."""


class FreshnessReport(msgspec.Struct, frozen=True, kw_only=True):
    """How old a source's data is beside what it promises."""

    source_id: SourceId
    freshness_sla_s: int | None
    age_s: int | None
    """None: nothing it holds or said has a date."""
    is_fresh: bool | None
    """None: it promises nothing, or its age is not known."""
    newest_at: datetime | None = None
    """When the newest of its data was changed, as far as it says."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent wrote down for itself."""

    note_id: str
    text: str
    title: str = ""
    agent_name: str = ""
    session: str = ""
    """Empty: for every session of the agent."""
    authority_tier: AuthorityTier = AuthorityTier.EPHEMERAL
    owner: str
    """Who wrote it: a note is found by the same principal in the same tenant only."""
    tenant: str = DEFAULT_TENANT
    written_at: datetime
    expires_at: datetime | None = None


class SourceCount(NamedTuple):
    """The live documents of a source, and when the newest of them was changed, as far as they say."""

    documents: int
    newest_at: datetime | None
