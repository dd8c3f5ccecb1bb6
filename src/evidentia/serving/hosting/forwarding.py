"""Who does what changes something: one process of several, which the others ask.

While a server is renewed there are two that write for a while: the new one, and the one before it, until its last run has ended.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.hosting.inner_client import AWAY, InnerClient, writer_away, writer_lost
from evidentia.serving.hosting.wire import forwarded, read_answered
from evidentia.serving.operations.api_errors import NOT_FOUND, ApiError
from evidentia.serving.operations.performing import perform

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evidentia.serving.operations.endpoint import Endpoint, OperationRequest, Reply
    from evidentia.serving.operations.server_context import ServerContext

FORWARD: Final = "/-/forward"
PING: Final = "/-/ping"
REACH_S: Final = 5
OF_A_RUN: Final = ("record_calls", "end_run")
"""The operations that are done where the run is open."""


class Writers:
    """Where the writing processes are, the present one first. Belongs to its event loop."""

    def __init__(self, paths: Sequence[Path] = ()) -> None:
        self._clients = [InnerClient(path) for path in paths]

    def replace(self, paths: Sequence[Path]) -> None:
        """Take others; connections to those that stay are kept."""
        known = {client.path: client for client in self._clients}
        self._clients = [known.pop(path) if path in known else InnerClient(path) for path in paths]
        for client in known.values():
            client.close()

    @property
    def present(self) -> InnerClient:
        """Return the one that takes what is new."""
        if not self._clients:
            raise writer_away()
        return self._clients[0]

    def besides(self, path: Path | None = None) -> list[InnerClient]:
        """Return all of them but one, in order."""
        return [client for client in self._clients if client.path != path]

    def close(self) -> None:
        """Let go of all connections."""
        self.replace(())


class Forwarder:
    """Implements `Forwarding` in a process that only reads."""

    def __init__(self, writers: Writers, *, timeout_s: float) -> None:
        self._writers = writers
        self._timeout_s = timeout_s

    async def forward(self, endpoint: Endpoint, asked: OperationRequest) -> Reply:
        """Return what the writing process answers; a run that it does not know may be open in one before it."""
        return await ask_in_turn(self._writers.besides(), endpoint, asked, timeout_s=self._timeout_s)

    async def reach(self) -> None:
        """Return once the writing process has answered."""
        try:
            await self._writers.present.ask("GET", PING, timeout_s=REACH_S)
        except TimeoutError:
            raise writer_away() from None


class OwnWriter:
    """Implements `Forwarding` in a process that writes: it does the work itself, and what it says was done is written down by then."""

    def __init__(self, context: ServerContext, writers: Writers, *, own: Path, timeout_s: float) -> None:
        self._context = context
        self._writers = writers
        self._own = own
        self._timeout_s = timeout_s

    async def forward(self, endpoint: Endpoint, asked: OperationRequest) -> Reply:
        """Return what is answered here; of runs that are open in another process, what that one answers."""
        others = self._writers.besides(self._own)
        is_of_a_run = endpoint.operation in OF_A_RUN
        is_retired = bool(others) and self._writers.present.path != self._own
        if is_retired and not is_of_a_run:
            return await ask_in_turn(others[:1], endpoint, asked, timeout_s=self._timeout_s)
        try:
            return await self.do(endpoint, asked)
        except ApiError as refusal:
            if not (others and is_of_a_run and refusal.status == NOT_FOUND):
                raise
        return await ask_in_turn(others, endpoint, asked, timeout_s=self._timeout_s)

    async def do(self, endpoint: Endpoint, asked: OperationRequest) -> Reply:
        """Do it here; other processes see all of it once this returns, and none of it is lost when this one is killed."""
        try:
            return await perform(self._context, endpoint, lambda: asked)
        finally:
            await asyncio.to_thread(_write_down, self._context)

    async def reach(self) -> None:
        """Return at once: the writing process is this one."""


async def ask_in_turn(clients: Sequence[InnerClient], endpoint: Endpoint, asked: OperationRequest, *, timeout_s: float) -> Reply:
    """Return what the first answers; for what is done where a run is open, the first that knows the run."""
    body = forwarded(endpoint, asked)
    unknown: ApiError | None = None
    for client in clients:
        try:
            return await _ask(client, endpoint, body, timeout_s=timeout_s)
        except ApiError as refusal:
            is_unknown = endpoint.operation in OF_A_RUN and refusal.status == NOT_FOUND
            is_gone = unknown is not None and refusal.fault.code == AWAY
            if not is_unknown and not is_gone:
                raise
            unknown = unknown or refusal
    raise unknown or writer_away()


async def _ask(client: InnerClient, endpoint: Endpoint, body: bytes, *, timeout_s: float) -> Reply:
    try:
        return read_answered(await client.ask("POST", FORWARD, body=body, timeout_s=timeout_s), endpoint)
    except (TimeoutError, msgspec.MsgspecError) as error:
        raise writer_lost() from error


def _write_down(context: ServerContext) -> None:
    """Hand the decisions that wait to the operating system."""
    try:
        context.parts.log.flush()
    except (EvidentiaError, OSError):
        return  # they stay in line, and the log's `problem` says why
