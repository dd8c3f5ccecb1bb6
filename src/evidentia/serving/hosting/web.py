"""The web server under every door: its bounds, its log without content, and an orderly stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

import uvicorn

from evidentia.serving.hosting.tls import HSTS

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Iterator

    from starlette.types import ASGIApp

    from evidentia.serving.hosting.connections import BoundedConnection
    from evidentia.serving.hosting.readiness import Readiness

GRACE_S: Final = 10
"""How long requests under way may take once the server is told to stop."""
KEEP_ALIVE_S: Final = 60
"""How long a connection may rest; longer than clients keep theirs, so that none is used while it closes."""
MAX_HEAD_BYTES: Final = 64 << 10
"""Of the head of a request."""


class Web(uvicorn.Server):
    """A web server that says first that it is not ready, then ends streams, then lets requests under way finish."""

    def __init__(self, config: uvicorn.Config, readiness: Readiness, *, drain_s: float = 0) -> None:
        super().__init__(config)
        self._standing = readiness
        self._drain_s = drain_s
        self.is_begun = asyncio.Event()
        self.is_over = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self.is_begun.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop: not ready, but still listening, for a while; then no longer listening, until the last answer is given."""
        self._standing.stop()
        try:
            await asyncio.sleep(self._drain_s)
            self._standing.end_streams()
            await super().shutdown(sockets)
        finally:
            self.is_over.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs this."""
        yield


def web_config(app: ASGIApp, *, connection: type[BoundedConnection], context: ssl.SSLContext | None = None) -> uvicorn.Config:
    """Return how an application is served, once it lives."""
    quiet_log()
    return uvicorn.Config(
        app,
        http=connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # Who asks is who is connected: what a header says about that could have been written by anybody.
        proxy_headers=False,
        headers=[HSTS] if context is not None else [],
        ssl_context_factory=None if context is None else lambda *_: context,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        lifespan="off",
    )


class _WithoutContent(logging.Filter):
    """Keeps of an error its kind alone: its words and its trace may quote what was sent."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change a record, and let it through."""
        if record.exc_info:
            kind = record.exc_info[0]
            name = "an error" if kind is None else kind.__name__
            record.msg, record.args = f"{record.getMessage().strip()}: {name}", ()
            record.exc_info = record.exc_text = None
        return True


_FILTER: Final = _WithoutContent()


def quiet_log() -> None:
    """Keep what was sent out of the server's log."""
    logging.getLogger("uvicorn.error").addFilter(_FILTER)
