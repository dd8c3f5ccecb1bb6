"""The upkeep of a base: is it well, is it what it was, what took how long, and what may be thrown away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.control import AuditKind
from evidentia.contracts.documents import CommitSummary
from evidentia.contracts.doors import Count, FlushRequest, GcRequest, TraceList, WarmRequest
from evidentia.contracts.provenance import ConsistencyProof, VerifyReport
from evidentia.contracts.reports import CacheStats, DoctorReport, GcReport
from evidentia.contracts.retrieval import WarmReport
from evidentia.contracts.telemetry import RequestTrace
from evidentia.contracts.vectors import EmbedReport
from evidentia.serving.operations.api_errors import NOT_FOUND
from evidentia.serving.operations.audit import note
from evidentia.serving.operations.endpoint import LIMIT, Endpoint, Group, OperationRequest, QueryField, Reply
from evidentia.serving.operations.roles import AUDITORS, READERS, WRITERS

if TYPE_CHECKING:
    from evidentia.serving.operations.server_context import ServerContext


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
    await note(context, operation, AuditKind.BASE, "flushed", subject=request.source_id or "cache")
    return Reply(Count(count=count))


async def warm_cache(context: ServerContext, operation: OperationRequest) -> Reply:
    """Ask questions ahead of time, so that what sources say is kept."""
    request: WarmRequest = operation.body
    return Reply(await context.served_base.base_of(operation.tenant).warm(request.questions))


async def embed(context: ServerContext, operation: OperationRequest) -> Reply:
    """Give every chunk that lacks one its vector."""
    report = await context.served_base.base_of(operation.tenant).embed()
    await note(context, operation, AuditKind.BASE, "embedded", subject="vectors")
    return Reply(report)


async def collect(context: ServerContext, operation: OperationRequest) -> Reply:
    """Remove all but the newest versions."""
    request: GcRequest = operation.body
    report = await context.served_base.base_of(operation.tenant).gc(keep_versions=request.keep_versions)
    await note(context, operation, AuditKind.BASE, "collected", subject="versions")
    return Reply(report)


_FIRST_SIZE: Final = QueryField("first_size", "How many entries the earlier log had.", int, default=0, least=0, most=10**12)
_A: Final = Group.ADMINISTRATION

ENDPOINTS: Final = (
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
