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
from evidentia.serving.operations.asking import LIMIT, Asked, Endpoint, Group, QueryField, Reply
from evidentia.serving.operations.noting import note
from evidentia.serving.operations.refusals import NOT_FOUND
from evidentia.serving.operations.roles import AUDITORS, READERS, WRITERS

if TYPE_CHECKING:
    from evidentia.serving.operations.plane import Plane


async def show_head(plane: Plane, asked: Asked) -> Reply:
    """Return the newest version."""
    return Reply(await plane.office.base_for(asked.principal).head())


async def show_consistency(plane: Plane, asked: Asked) -> Reply:
    """Return the proof that an earlier event log is a prefix of the present one."""
    return Reply(await plane.office.base_for(asked.principal).consistency(asked.query["first_size"]))


async def verify_base(plane: Plane, asked: Asked) -> Reply:
    """Recompute the custody of the whole base."""
    return Reply(await plane.office.base_of(asked.tenant).verify())


async def doctor(plane: Plane, asked: Asked) -> Reply:
    """Check the installation and the base, quickly."""
    return Reply(await plane.office.base_of(asked.tenant).doctor())


async def list_traces(plane: Plane, asked: Asked) -> Reply:
    """Return the newest requests with what took how long."""
    return Reply(TraceList(traces=tuple(await plane.office.base_of(asked.tenant).traces(limit=asked.query["limit"]))))


async def show_request(plane: Plane, asked: Asked) -> Reply:
    """Return one request by its id, the beginning of it, or its receipt."""
    return Reply(await plane.office.base_of(asked.tenant).trace(asked.path["id"]))


async def show_cache(plane: Plane, asked: Asked) -> Reply:
    """Return what is kept of what sources said, and how often it served."""
    return Reply(await plane.office.base_of(asked.tenant).cache_stats())


async def flush_cache(plane: Plane, asked: Asked) -> Reply:
    """Forget what was kept, of one source or of all."""
    request: FlushRequest = asked.body
    count = await plane.office.base_of(asked.tenant).flush_cache(request.source_id)
    await note(plane, asked, AuditKind.BASE, "flushed", subject=request.source_id or "cache")
    return Reply(Count(count=count))


async def warm_cache(plane: Plane, asked: Asked) -> Reply:
    """Ask questions ahead of time, so that what sources say is kept."""
    request: WarmRequest = asked.body
    return Reply(await plane.office.base_of(asked.tenant).warm(request.questions))


async def embed(plane: Plane, asked: Asked) -> Reply:
    """Give every chunk that lacks one its vector."""
    report = await plane.office.base_of(asked.tenant).embed()
    await note(plane, asked, AuditKind.BASE, "embedded", subject="vectors")
    return Reply(report)


async def collect(plane: Plane, asked: Asked) -> Reply:
    """Remove all but the newest versions."""
    request: GcRequest = asked.body
    report = await plane.office.base_of(asked.tenant).gc(keep_versions=request.keep_versions)
    await note(plane, asked, AuditKind.BASE, "collected", subject="versions")
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
