"""Doors on a port of their own, beside the one for HTTP: started once the base is open, stopped before it closes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from evidentia.contracts.errors import MissingExtraError
from evidentia.serving.hosting.metrics import MeasuredCalls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.serving.hosting.orders import Hosting
    from evidentia.serving.hosting.tls import TlsFiles
    from evidentia.serving.operations.server_context import ServerContext


class SideDoor(Protocol):
    """A server of its own over the same plane."""

    async def start(self, address: str) -> int:
        """Listen at `host:port` and return the port."""
        ...

    async def stop(self, *, grace_s: float) -> None:
        """Stop listening, and let requests under way finish within this time."""
        ...


def side_doors(context: ServerContext, hosting: Hosting, *, files: TlsFiles) -> list[tuple[SideDoor, str]]:
    """Return the doors that are asked for, each with the address where it is to listen."""
    if hosting.grpc_port is None:
        return []
    context = dataclasses.replace(context, watch=MeasuredCalls("grpc", clock=context.parts.clock))
    host = f"[{hosting.host}]" if ":" in hosting.host else hosting.host
    return [(_grpc_door(context, is_shared=hosting.is_supervised, files=files), f"{host}:{hosting.grpc_port}")]


class SideDoors:
    """Several of them, open while this is entered or until it is closed; one that cannot be opened closes those that were."""

    def __init__(self, doors: Sequence[tuple[SideDoor, str]], *, grace_s: float) -> None:
        self._doors = doors
        self._grace_s = grace_s
        self._opened: list[SideDoor] = []

    async def __aenter__(self) -> Self:
        """Open them."""
        try:
            for door, address in self._doors:
                await door.start(address)
                self._opened.append(door)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self.close()

    async def close(self) -> None:
        """Let what is under way finish, and close them; twice is once."""
        opened, self._opened = self._opened, []
        for door in reversed(opened):
            await door.stop(grace_s=self._grace_s)


def _grpc_door(context: ServerContext, *, is_shared: bool, files: TlsFiles) -> SideDoor:
    try:
        from evidentia.serving.grpc.server import GrpcDoor, credentials_of
    except ImportError as error:
        raise MissingExtraError("grpc", needed_for="`--grpc-port`") from error
    if not files.is_on:
        return GrpcDoor(context, is_shared=is_shared)
    authorities = Path(files.client_certificates).read_bytes() if files.client_certificates else None
    credentials = credentials_of(
        certificate=Path(files.certificate).read_bytes(), private_key=Path(files.private_key).read_bytes(), authorities=authorities
    )
    return GrpcDoor(context, credentials=credentials, is_shared=is_shared)
