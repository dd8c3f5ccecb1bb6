"""What a user does with sources: register, attach, try, see how they are, and what an agent writes down for itself."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from evidentia.base.visible_content import scope_of
from evidentia.contracts.errors import InvalidFieldError, NotFoundError
from evidentia.contracts.evidence import CoverageReport, EvidenceRequest, SubQuery
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import SourceAsk, SourceTrial, WarmReport
from evidentia.contracts.sources import FreshnessReport, Note, SourceConnection, SourceCount, SourceDescriptor, SourceStatus
from evidentia.contracts.vocabulary import AuthorityTier, ConnectionKind, CoverageState, LatencyTier, QueryCapability, SourceType
from evidentia.federation.source_health import freshness_report
from evidentia.policy.access import access_scope, may_ask
from evidentia.sources.objects import adapted
from evidentia.sources.registration import checked_descriptor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.policies import PolicyBody, StoredPolicy
    from evidentia.wiring.components import BaseComponents


MEMORY_SOURCES = {AuthorityTier.EPHEMERAL: SourceId("memory"), AuthorityTier.USER: SourceId("memory-user")}
"""The sources that hold agents' own notes, one per authority; each is registered with its first note."""
MAX_NOTE_CHARS = 100_000
_TRIAL_MS = 5_000
_NOTE_ID_BYTES = 8
_NOTE_TIERS = tuple(MEMORY_SOURCES)


def add_source(
    parts: BaseComponents, given: SourceDescriptor | Mapping[str, object], retriever: object | None, *, isolate: bool
) -> SourceDescriptor:
    """Register a source, and attach what asks it, in this process, where it is a Python object."""
    descriptor = checked_descriptor(given)
    known = parts.registry().descriptors().get(descriptor.source_id)
    if retriever is not None and descriptor.is_own:
        connection = msgspec.structs.replace(descriptor.connection, kind=ConnectionKind.PYTHON)
        descriptor = msgspec.structs.replace(descriptor, connection=connection)
    if retriever is not None and descriptor.connection.kind is not ConnectionKind.PYTHON:
        raise InvalidFieldError(
            "connection.kind", f"a retriever is attached to a source of kind 'python', not '{descriptor.connection.kind}'"
        )
    asking = None if retriever is None else adapted(retriever, isolate=isolate)
    if known != descriptor:
        parts.registry().register(descriptor)
    parts.federation().changed(descriptor.source_id)
    if asking is not None:
        parts.sources().attach(descriptor.source_id, asking)
    return descriptor


def remove_source(parts: BaseComponents, source_id: str) -> None:
    """Forget a source outside the base, and what was kept of it."""
    parts.registry().remove(SourceId(source_id))
    parts.sources().detach(SourceId(source_id))
    parts.federation().changed(SourceId(source_id))


def source_statuses(parts: BaseComponents, principal: Principal) -> list[SourceStatus]:
    """Return every source that a caller may know of, ordered by id, with how many of its documents the caller may see."""
    counts = parts.counts(scope_of(parts, principal))
    return [_status(parts, each, counts=counts) for each in _known_to(parts, principal, counts)]


def source_freshness(parts: BaseComponents, principal: Principal) -> list[FreshnessReport]:
    """Return how old every source's data is beside what it promises; the ages are for the owner, since they speak of all that it holds."""
    now = parts.clock.now()
    own = parts.counts(scope_of(parts, principal), is_dated=principal.is_owner)
    known = _known_to(parts, principal, own)
    if not principal.is_owner:
        return [freshness_report(each, newest_at=None, now=now) for each in known]
    outside = parts.federation().health
    return [
        freshness_report(each, newest_at=_newest(own.get(each.source_id)) if each.is_own else outside.newest_at(each.source_id), now=now)
        for each in known
    ]


async def try_source(parts: BaseComponents, principal: Principal, source_id: str, query: str, *, limit: int) -> SourceTrial:
    """Ask one source outside the base, now, whatever plans and breakers say; nothing of it is kept."""
    counts = {} if principal.is_owner else parts.counts(scope_of(parts, principal))
    descriptor = next((each for each in _known_to(parts, principal, counts) if each.source_id == source_id), None)
    if descriptor is None:
        raise NotFoundError("source", source_id)
    if descriptor.is_own:
        raise InvalidFieldError("source_id", f"'{source_id}' is in the base itself; `search` asks it")
    ask = SourceAsk(query=SubQuery(text=query), principal=principal, limit=limit, budget_ms=_TRIAL_MS, as_of=parts.clock.now())
    scope = access_scope(principal, acl_scope=None, rules=parts.settings.access.rules)
    return await parts.federation().try_one(descriptor, ask, scope=scope)


def remember(
    parts: BaseComponents,
    principal: Principal,
    text: str,
    *,
    title: str,
    agent: str,
    session: str,
    authority: str,
    ttl_s: int | None,
) -> Note:
    """Keep a note of an agent, found again by the same principal only."""
    if not text.strip():
        raise InvalidFieldError("text", "a note needs some text")
    if len(text) > MAX_NOTE_CHARS:
        raise InvalidFieldError("text", f"{len(text)} characters are more than {MAX_NOTE_CHARS}")
    if ttl_s is not None and ttl_s < 1:
        raise InvalidFieldError("ttl_s", f"{ttl_s} is less than 1")
    tier = _note_tier(authority)
    now = parts.clock.now()
    note = Note(
        note_id=parts.entropy.take(_NOTE_ID_BYTES).hex(),
        text=text,
        title=title,
        agent_name=agent,
        session=session,
        authority_tier=tier,
        owner=principal.principal_id,
        tenant=principal.tenant,
        written_at=now,
        expires_at=None if ttl_s is None else now + timedelta(seconds=ttl_s),
    )
    parts.notes().add(note)
    _open_memory(parts, principal, tier)
    return note


def notes(parts: BaseComponents, principal: Principal, *, agent: str | None, session: str | None) -> list[Note]:
    """Return what a principal's agents wrote down and what has not expired."""
    found = parts.notes().of(
        tenant=principal.tenant, owner=principal.principal_id, agent_name=agent, session=session, now=parts.clock.now()
    )
    return list(found)


def forget(parts: BaseComponents, principal: Principal, note_ids: Iterable[str]) -> int:
    """Forget notes of a principal."""
    return parts.notes().remove(tuple(note_ids), tenant=principal.tenant, owner=principal.principal_id)


async def warm(parts: BaseComponents, principal: Principal, requests: Sequence[EvidenceRequest]) -> WarmReport:
    """Ask ahead of time, one question after the other."""
    coverage: dict[str, Mapping[SourceId, CoverageReport]] = {}
    kept = 0
    outside = {source for source, each in parts.registry().descriptors().items() if not each.is_own}
    for request in requests:
        quiet = msgspec.structs.replace(request, receipt=False)
        response = await parts.retrieve(quiet, principal=principal, prefetch=True)
        coverage[request.query.text] = {source: report for source, report in response.source_coverage.items() if source in outside}
        kept += sum(1 for report in coverage[request.query.text].values() if report.state is CoverageState.SEARCHED)
    return WarmReport(questions=len(requests), kept=kept, coverage=coverage)


def _open_memory(parts: BaseComponents, principal: Principal, tier: AuthorityTier) -> None:
    """Register the source that holds notes, and let it be asked by whoever has any: a note is shown to its owner alone."""
    known = parts.registry().descriptors().get(MEMORY_SOURCES[tier])
    wanted = known or _memory(tier)
    if principal.tenant not in wanted.access_policy.tenants:
        tenants = tuple(sorted({*wanted.access_policy.tenants, principal.tenant}))
        wanted = msgspec.structs.replace(wanted, access_policy=msgspec.structs.replace(wanted.access_policy, tenants=tenants))
    if wanted != known:
        parts.registry().register(wanted)


def _memory(tier: AuthorityTier) -> SourceDescriptor:
    return SourceDescriptor(
        source_id=MEMORY_SOURCES[tier],
        source_type=SourceType.MEMORY_LAYER,
        authority_tier=tier,
        latency_tier=LatencyTier.WARM,
        query_capabilities=(QueryCapability.EXACT_MATCH,),
        connection=SourceConnection(kind=ConnectionKind.MEMORY, options={"authority": tier.value}),
    )


def _note_tier(authority: str) -> AuthorityTier:
    try:
        tier = AuthorityTier(authority)
    except ValueError as error:
        raise InvalidFieldError("authority", f"'{authority}' is not one of {', '.join(_NOTE_TIERS)}") from error
    if tier not in _NOTE_TIERS:
        raise InvalidFieldError("authority", f"a note is {' or '.join(_NOTE_TIERS)}, not '{tier}'")
    return tier


def _known_to(parts: BaseComponents, principal: Principal, counts: Mapping[SourceId, SourceCount]) -> list[SourceDescriptor]:
    """Return the sources a caller may know of: those it sees something of, and those outside that it may ask."""
    descriptors = parts.registry().descriptors().values()
    scope = scope_of(parts, principal)
    if scope is None:
        return list(descriptors)
    return [each for each in descriptors if (each.source_id in counts if each.is_own else may_ask(each.access_policy, scope))]


def _newest(count: SourceCount | None) -> datetime | None:
    return None if count is None else count.newest_at


def _status(parts: BaseComponents, descriptor: SourceDescriptor, *, counts: Mapping[SourceId, SourceCount]) -> SourceStatus:
    source = descriptor.source_id
    own = counts.get(source)
    health = parts.federation().health.health(source, breaker=parts.federation().breaker(source))
    return SourceStatus(
        descriptor=descriptor,
        health=health,
        is_attached=descriptor.is_own or parts.sources().retriever(descriptor) is not None,
        documents=(0 if own is None else own.documents) if descriptor.is_own else None,
    )


# --- governing ---
# The policies of a base as its owner changes them.


def add_policy(parts: BaseComponents, principal: Principal, body: PolicyBody | Mapping[str, Any]) -> StoredPolicy:
    """Store a body as a new policy, or as the next version of the one with its name. Any: as an author writes it."""
    from evidentia.policy.rules import check_policy  # with the rules of every category, which nobody needs who only asks

    tenant = str(principal.tenant)
    checked = check_policy(body, tenant=tenant).body
    store = parts.policies()
    known = next((each.policy for each in store.live(tenant=tenant) if each.policy.body.name == checked.name), None)
    return store.put(
        checked,
        tenant=tenant,
        by=str(principal.principal_id),
        policy_id=known.policy_id if known else None,
        expected=known.version if known else None,
    )


def live_policies(parts: BaseComponents, principal: Principal) -> list[StoredPolicy]:
    """Return a tenant's policies."""
    return list(parts.policies().live(tenant=str(principal.tenant)))


def remove_policy(parts: BaseComponents, principal: Principal, name: str) -> StoredPolicy:
    """Take a policy out of force."""
    tenant = str(principal.tenant)
    store = parts.policies()
    found = store.find(name, tenant=tenant).policy
    return store.remove(found.policy_id, tenant=tenant, by=str(principal.principal_id), expected=found.version)
