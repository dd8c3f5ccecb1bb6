"""What admins did, written into the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

if TYPE_CHECKING:
    from evidentia.contracts.control import AuditKind
    from evidentia.serving.operations.asking import Asked
    from evidentia.serving.operations.plane import Plane


async def note(plane: Plane, asked: Asked, kind: AuditKind, change: str, *, subject: str) -> None:
    """Write what whoever asks did to what."""
    await run_in_threadpool(plane.parts.policies.note, kind, change, subject=subject, name=subject, tenant=asked.tenant, by=asked.by)
