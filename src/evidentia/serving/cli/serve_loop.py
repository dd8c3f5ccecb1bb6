"""The event loop under `evidentia serve`: a socket that is bound before anything is promised, and an orderly stop."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

    from evidentia.serving.rest.parts import ControlParts

GRACE_S: Final = 10
"""How long requests under way may take once the plane is told to stop."""
KEEP_ALIVE_S: Final = 60
"""How long a connection may rest; longer than clients keep theirs, so that none is used while it closes."""
_WAITING: Final = 128


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


def run_until_stopped(parts: ControlParts, listening: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT, then let requests under way finish."""
    try:
        import uvicorn

        from evidentia.serving.rest.app import make_app
    except ImportError as error:
        raise MissingExtraError("server", needed_for="`evidentia serve`") from error
    config = uvicorn.Config(
        make_app(parts),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        lifespan="on",
    )
    before = {number: signal.signal(number, _already_stopped) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # The server takes the signals over while it runs, and raises them again for whoever had them before: that is nobody now.
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def write_privately(file: Path, line: str) -> None:
    """Write a line into a file that only its owner may read; one that is there is refused."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(f"{line}\n")


def _already_stopped(number: int, frame: FrameType | None) -> None:
    del number, frame
