"""Sources as the registry knows them, and what a request allows of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from evidentia.contracts.ids import SemanticVersion, SourceId
from evidentia.contracts.vocabulary import AuthorityTier, Classification, LatencyTier, QueryCapability, SourceType


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
    """Who may ask a source at all; documents inside it carry rules of their own."""

    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    minimum_clearance: Classification = Classification.PUBLIC
    predicate: str = ""
    """A filter over the caller's attributes in its text form; empty allows."""


class SourceDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """A source in the registry."""

    source_id: SourceId
    source_type: SourceType = SourceType.INVERTED_INDEX
    schema: SchemaDefinition = SchemaDefinition()
    authority_tier: AuthorityTier = AuthorityTier.CURATED
    freshness_sla_s: Annotated[int, msgspec.Meta(ge=0)] | None = None
    latency_tier: LatencyTier = LatencyTier.HOT
    access_policy: SourceAccessPolicy = SourceAccessPolicy()
    query_capabilities: tuple[QueryCapability, ...] = (QueryCapability.EXACT_MATCH,)
    cost_per_query_micros: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Cost of one query in millionths of the accounting currency, an integer so that it can be hashed."""
    max_qps: Annotated[int, msgspec.Meta(ge=1)] | None = None
    version: SemanticVersion = SemanticVersion("1.0.0")


class SourcePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a request allows: sources, the lowest tier, and a narrowing of the caller's own rights."""

    allowed_sources: tuple[SourceId, ...] | None = None
    denied_sources: tuple[SourceId, ...] = ()
    minimum_authority: AuthorityTier = AuthorityTier.EPHEMERAL
    acl_scope: tuple[str, ...] | None = None
    """Entries of the caller's own rights to keep; None keeps all. It narrows, never widens."""
