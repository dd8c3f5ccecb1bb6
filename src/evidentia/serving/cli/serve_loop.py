"""The event loop under `evidentia serve`: a socket that is bound before anything is promised, and an orderly stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import EvidentiaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evidentia.contracts.settings import Settings
    from evidentia.serving.hosting.supervisor import FirstLink
    from evidentia.serving.hosting.worker_messages import Hosting
    from evidentia.wiring.governance_runtime import GovernanceRuntime

_WAITING: Final = 1_024


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; an address that is taken or not ours is refused here."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, the event loop turns off the delay of small packets, which costs 40 ms a request.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_WAITING)
    except OSError as error:
        listening.close()
        raise OSError(error.errno, error.strerror or str(error), f"{host}:{port}") from error
    return listening


async def serve_alone(
    control: GovernanceRuntime,
    hosting: Hosting,
    listening: socket.socket,
    *,
    settings: Settings,
    link: FirstLink,
    announce: Callable[[], None],
    tell: Callable[[str], None],
) -> None:
    """Serve in this process until SIGTERM or SIGINT, then let requests under way finish; SIGHUP has the certificate read again."""
    from evidentia.contracts.control import TokenId
    from evidentia.serving.hosting.host import Host

    host = Host(control, hosting, settings=settings)
    if link.hashed:
        host.app.state.links.expect(link.hashed, token_id=TokenId(link.token_id))
    stopped = asyncio.Event()

    def stop() -> None:
        if stopped.is_set():
            host.hurry()
        stopped.set()

    def renew() -> None:
        try:
            host.renew_certificate()
        except (EvidentiaError, OSError) as error:
            tell(f"the certificate stays as it was: {error}")

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, renew)
    async with host.open([listening]):
        announce()
        await stopped.wait()


async def serve_with_workers(hosting: Hosting, listening: socket.socket, *, link: FirstLink, announce: Callable[[], None]) -> None:
    """Serve in other processes until SIGTERM or SIGINT; SIGHUP replaces them."""
    from evidentia.serving.hosting.supervisor import Supervisor

    await Supervisor(hosting, listening, link=link).run(announce=announce)


def write_privately(file: Path, line: str) -> None:
    """Write a line into a file that only its owner may read; one that is there is refused."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(f"{line}\n")
