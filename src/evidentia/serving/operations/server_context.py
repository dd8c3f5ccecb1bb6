"""A plane at work: its parts, the base it serves, the runs that are open in it, and who is let in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from evidentia.serving.identity.admission import Admission
    from evidentia.serving.operations.endpoint import Endpoint, OperationRequest, Reply
    from evidentia.serving.operations.open_runs import OpenRuns
    from evidentia.serving.operations.parts import ControlParts
    from evidentia.serving.operations.served_base import ServedBase


class Forwarding(Protocol):
    """Hands what only one process may do to that process."""

    async def forward(self, endpoint: Endpoint, request: OperationRequest) -> Reply:
        """Return what the writing process answers; its refusals are raised here."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """What every endpoint is handed."""

    parts: ControlParts
    served_base: ServedBase
    runs: OpenRuns
    admission: Admission
    writer: Forwarding | None = None
    """Who writes; None when this process does."""
    watch: Callable[[Endpoint, Coroutine[None, None, Reply]], Awaitable[Reply]] | None = None
    """What stands around each operation, such as what counts them; None for nothing."""
