"""A plane at work: its parts, the base it serves, the runs that are open in it, and who is let in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from starlette.concurrency import run_in_threadpool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from evidentia.contracts.control import AuditKind
    from evidentia.serving.identity.admission import Admission
    from evidentia.serving.operations.endpoint import Endpoint, OperationRequest, Reply
    from evidentia.serving.operations.open_runs import OpenRuns
    from evidentia.serving.operations.served_base import ServedBase
    from evidentia.wiring.governance_runtime import GovernanceRuntime


class Forwarding(Protocol):
    """Hands what only one process may do to that process."""

    async def forward(self, endpoint: Endpoint, request: OperationRequest) -> Reply:
        """Return what the writing process answers; its refusals are raised here."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """What every endpoint is handed."""

    parts: GovernanceRuntime
    served_base: ServedBase
    runs: OpenRuns
    admission: Admission
    writer: Forwarding | None = None
    """Who writes; None when this process does."""
    watch: Callable[[Endpoint, Coroutine[None, None, Reply]], Awaitable[Reply]] | None = None
    """What stands around each operation, such as what counts them; None for nothing."""


# --- audit ---
# What admins did, written into the audit.


async def write_audit(context: ServerContext, request: OperationRequest, kind: AuditKind, change: str, *, subject: str) -> None:
    """Write what whoever asks did to what."""
    await run_in_threadpool(context.parts.policies.note, kind, change, subject=subject, name=subject, tenant=request.tenant, by=request.by)
