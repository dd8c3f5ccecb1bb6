"""What admins did, written into the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

if TYPE_CHECKING:
    from evidentia.contracts.control import AuditKind
    from evidentia.serving.operations.endpoint import OperationRequest
    from evidentia.serving.operations.server_context import ServerContext


async def note(context: ServerContext, request: OperationRequest, kind: AuditKind, change: str, *, subject: str) -> None:
    """Write what whoever asks did to what."""
    await run_in_threadpool(context.parts.policies.note, kind, change, subject=subject, name=subject, tenant=request.tenant, by=request.by)
