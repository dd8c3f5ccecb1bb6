"""What admins and auditors ask: who changed what, which secrets are kept, and who holds a token."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evidentia.contracts.control import (
    NAME_PATTERN,
    AuditKind,
    AuditPage,
    IssuedToken,
    SecretKept,
    SecretNames,
    SecretValue,
    TokenId,
    TokenInfo,
    TokenList,
    TokenRequest,
)
from evidentia.contracts.documents import CommitSummary, VersionDiff
from evidentia.contracts.doors import Count, FlushRequest, GcRequest, TraceList, VersionList, WarmRequest
from evidentia.contracts.errors import InvalidFieldError, MissingExtraError
from evidentia.contracts.provenance import ConsistencyProof, VerifyReport
from evidentia.contracts.reports import CacheStats, DoctorReport, GcReport
from evidentia.contracts.retrieval import WarmReport
from evidentia.contracts.telemetry import RequestTrace
from evidentia.contracts.vectors import EmbedReport
from evidentia.serving.operations.api_errors import CONFLICT, NOT_FOUND, ApiError, bad_field
from evidentia.serving.operations.endpoint import (
    AUDITORS,
    CURSOR,
    LIMIT,
    READERS,
    WRITERS,
    Endpoint,
    Group,
    OperationRequest,
    QueryField,
    Reply,
    decode_cursor,
    encode_cursor,
)
from evidentia.serving.operations.evidence_endpoints import needed
from evidentia.serving.operations.server_context import write_audit

if TYPE_CHECKING:
    from evidentia.serving.operations.server_context import ServerContext


def list_changes(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return who changed which policy, token or secret, the oldest first."""
    place = decode_cursor(operation.query["cursor"], (int,))
    limit = operation.query["limit"]
    found = context.parts.policies.audit(tenant=operation.tenant, after=0 if place is None else place[0], limit=limit + 1)
    page = found[:limit]
    return Reply(AuditPage(changes=tuple(page), next_cursor=encode_cursor((page[-1].seq,)) if len(found) > limit else None))


def list_secrets(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the names of the secrets."""
    return Reply(SecretNames(names=tuple(context.parts.secrets.names(tenant=operation.tenant))))


def show_secret(context: ServerContext, operation: OperationRequest) -> Reply:
    """Say since when a secret is kept; never what it is."""
    return Reply(context.parts.secrets.kept(operation.path["name"], tenant=operation.tenant))


def put_secret(context: ServerContext, operation: OperationRequest) -> Reply:
    """Keep a secret, encrypted."""
    name = operation.path["name"]
    if not re.fullmatch(NAME_PATTERN, name):
        raise bad_field("name", "use at most 128 letters, digits and . _ : -, beginning with a letter or digit")
    value: SecretValue = operation.body
    try:
        return Reply(context.parts.secrets.put(name, value.value, tenant=operation.tenant, by=operation.by))
    except (InvalidFieldError, MissingExtraError) as error:
        hint = "whoever runs the plane sets EVIDENTIA_SECRET_KEY to a long random text and starts it again"
        raise ApiError(CONFLICT, "secrets_unavailable", str(error), hint=hint) from error


def remove_secret(context: ServerContext, operation: OperationRequest) -> Reply:
    """Forget a secret."""
    kept = context.parts.secrets.kept(operation.path["name"], tenant=operation.tenant)
    context.parts.secrets.remove(kept.name, tenant=operation.tenant, by=operation.by)
    return Reply(kept)


def list_tokens(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the tokens of the tenant, without their secrets."""
    return Reply(TokenList(tokens=tuple(context.parts.tokens.tokens(tenant=operation.tenant))))


def issue_token(context: ServerContext, operation: OperationRequest) -> Reply:
    """Make a token; its secret is in this answer and nowhere else."""
    request: TokenRequest = operation.body
    issued = context.parts.tokens.issue(
        name=request.name, roles=request.roles, tenant=operation.tenant, by=operation.by, expires_at=request.expires_at, facts=request.facts
    )
    return Reply(issued)


def revoke_token(context: ServerContext, operation: OperationRequest) -> Reply:
    """Make a token worthless from now on."""
    return Reply(context.parts.tokens.revoke(TokenId(operation.path["id"]), tenant=operation.tenant, by=operation.by))


_A: Final = Group.ADMINISTRATION

ENDPOINTS: Final = (
    Endpoint(
        "list_changes", "GET", "/v1/audit", "List who changed what", AUDITORS, list_changes, AuditPage, query=(CURSOR, LIMIT), group=_A
    ),
    Endpoint("list_secrets", "GET", "/v1/secrets", "List the names of secrets", WRITERS, list_secrets, SecretNames, group=_A),
    Endpoint(
        "show_secret",
        "GET",
        "/v1/secrets/{name}",
        "Say since when a secret is kept",
        WRITERS,
        show_secret,
        SecretKept,
        faults=(NOT_FOUND,),
        group=_A,
    ),
    Endpoint(
        "put_secret",
        "PUT",
        "/v1/secrets/{name}",
        "Keep a secret",
        WRITERS,
        put_secret,
        SecretKept,
        body=SecretValue,
        faults=(CONFLICT,),
        group=_A,
        is_writing=True,
    ),
    Endpoint(
        "remove_secret",
        "DELETE",
        "/v1/secrets/{name}",
        "Forget a secret",
        WRITERS,
        remove_secret,
        SecretKept,
        faults=(NOT_FOUND,),
        group=_A,
        is_writing=True,
    ),
    Endpoint("list_tokens", "GET", "/v1/tokens", "List tokens", WRITERS, list_tokens, TokenList, group=_A),
    Endpoint(
        "issue_token",
        "POST",
        "/v1/tokens",
        "Make a token",
        WRITERS,
        issue_token,
        IssuedToken,
        body=TokenRequest,
        status=201,
        group=_A,
        is_writing=True,
    ),
    Endpoint(
        "revoke_token",
        "DELETE",
        "/v1/tokens/{id}",
        "Revoke a token",
        WRITERS,
        revoke_token,
        TokenInfo,
        faults=(NOT_FOUND,),
        group=_A,
        is_writing=True,
    ),
)


# --- upkeep endpoints ---
# The upkeep of a base: is it well, is it what it was, what took how long, and what may be thrown away.


async def show_head(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the newest version."""
    return Reply(await context.served_base.base_for(operation.principal).head())


async def show_consistency(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the proof that an earlier event log is a prefix of the present one."""
    return Reply(await context.served_base.base_for(operation.principal).consistency(operation.query["first_size"]))


async def verify_base(context: ServerContext, operation: OperationRequest) -> Reply:
    """Recompute the custody of the whole base."""
    return Reply(await context.served_base.base_of(operation.tenant).verify())


async def doctor(context: ServerContext, operation: OperationRequest) -> Reply:
    """Check the installation and the base, quickly."""
    return Reply(await context.served_base.base_of(operation.tenant).doctor())


async def list_traces(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the newest requests with what took how long."""
    return Reply(TraceList(traces=tuple(await context.served_base.base_of(operation.tenant).traces(limit=operation.query["limit"]))))


async def show_request(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return one request by its id, the beginning of it, or its receipt."""
    return Reply(await context.served_base.base_of(operation.tenant).trace(operation.path["id"]))


async def show_cache(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return what is kept of what sources said, and how often it served."""
    return Reply(await context.served_base.base_of(operation.tenant).cache_stats())


async def flush_cache(context: ServerContext, operation: OperationRequest) -> Reply:
    """Forget what was kept, of one source or of all."""
    request: FlushRequest = operation.body
    count = await context.served_base.base_of(operation.tenant).flush_cache(request.source_id)
    await write_audit(context, operation, AuditKind.BASE, "flushed", subject=request.source_id or "cache")
    return Reply(Count(count=count))


async def warm_cache(context: ServerContext, operation: OperationRequest) -> Reply:
    """Ask questions ahead of time, so that what sources say is kept."""
    request: WarmRequest = operation.body
    return Reply(await context.served_base.base_of(operation.tenant).warm(request.questions))


async def embed(context: ServerContext, operation: OperationRequest) -> Reply:
    """Give every chunk that lacks one its vector."""
    report = await context.served_base.base_of(operation.tenant).embed()
    await write_audit(context, operation, AuditKind.BASE, "embedded", subject="vectors")
    return Reply(report)


async def collect(context: ServerContext, operation: OperationRequest) -> Reply:
    """Remove all but the newest versions."""
    request: GcRequest = operation.body
    report = await context.served_base.base_of(operation.tenant).gc(keep_versions=request.keep_versions)
    await write_audit(context, operation, AuditKind.BASE, "collected", subject="versions")
    return Reply(report)


_FIRST_SIZE: Final = QueryField("first_size", "How many entries the earlier log had.", int, default=0, least=0, most=10**12)

UPKEEP_ENDPOINTS: Final = (
    Endpoint("show_head", "GET", "/v1/base/head", "Show the newest version", READERS, show_head, CommitSummary, group=_A),
    Endpoint(
        "show_consistency",
        "GET",
        "/v1/base/consistency",
        "Prove that the log only grew",
        READERS,
        show_consistency,
        ConsistencyProof,
        query=(_FIRST_SIZE,),
        group=_A,
    ),
    Endpoint(
        "verify_base", "POST", "/v1/base/verify", "Verify the whole base", AUDITORS, verify_base, VerifyReport, group=_A, is_base_wide=True
    ),
    Endpoint("doctor", "GET", "/v1/base/doctor", "Check the base", AUDITORS, doctor, DoctorReport, group=_A, is_base_wide=True),
    Endpoint(
        "embed",
        "POST",
        "/v1/base/embed",
        "Embed what lacks a vector",
        WRITERS,
        embed,
        EmbedReport,
        group=_A,
        is_writing=True,
        is_base_wide=True,
    ),
    Endpoint(
        "collect",
        "POST",
        "/v1/base/gc",
        "Remove old versions",
        WRITERS,
        collect,
        GcReport,
        body=GcRequest,
        group=_A,
        is_writing=True,
        is_base_wide=True,
    ),
    Endpoint(
        "list_traces", "GET", "/v1/traces", "List requests", AUDITORS, list_traces, TraceList, query=(LIMIT,), group=_A, is_base_wide=True
    ),
    Endpoint(
        "show_request",
        "GET",
        "/v1/traces/{id}",
        "Show a request",
        AUDITORS,
        show_request,
        RequestTrace,
        group=_A,
        is_base_wide=True,
        faults=(NOT_FOUND,),
    ),
    Endpoint("show_cache", "GET", "/v1/cache", "Show what is kept", AUDITORS, show_cache, CacheStats, group=_A, is_base_wide=True),
    Endpoint(
        "flush_cache",
        "POST",
        "/v1/cache/flush",
        "Forget what is kept",
        WRITERS,
        flush_cache,
        Count,
        body=FlushRequest,
        group=_A,
        is_writing=True,
        is_base_wide=True,
    ),
    Endpoint(
        "warm_cache",
        "POST",
        "/v1/cache/warm",
        "Ask ahead of time",
        WRITERS,
        warm_cache,
        WarmReport,
        body=WarmRequest,
        group=_A,
        is_writing=True,
        is_base_wide=True,
    ),
)


# --- version endpoints ---
# The versions of a base: which there are, and what differs between two of them, each as the asker may see it.


async def list_versions(context: ServerContext, request: OperationRequest) -> Reply:
    """Return the newest versions with what each holds."""
    found = await context.served_base.base_for(request.principal).versions(limit=request.query["limit"])
    return Reply(VersionList(versions=tuple(found)))


async def show_diff(context: ServerContext, request: OperationRequest) -> Reply:
    """Return what differs between two versions."""
    older, newer = needed(request, "older"), needed(request, "newer")
    return Reply(await context.served_base.base_for(request.principal).diff(older, newer, limit=request.query["limit"]))


_OLDER: Final = QueryField("older", "The version to begin with: its number, a hash such as its `corpus_version`, or its beginning.")
_NEWER: Final = QueryField("newer", "The version to end with, named likewise.")

VERSION_ENDPOINTS: Final = (
    Endpoint("list_versions", "GET", "/v1/versions", "List versions", READERS, list_versions, VersionList, query=(LIMIT,), group=_A),
    Endpoint(
        "show_diff",
        "GET",
        "/v1/versions/diff",
        "Show what differs between two versions",
        READERS,
        show_diff,
        VersionDiff,
        query=(_OLDER, _NEWER, LIMIT),
        group=_A,
        faults=(NOT_FOUND,),
    ),
)
