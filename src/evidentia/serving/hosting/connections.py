"""One HTTP connection, bounded: how many there are, how long a request's head may take, and how it is let go without losing a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import h11
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from evidentia.serving.hosting.health import LIVE
from evidentia.serving.identity.refusing import refusal_response
from evidentia.serving.operations.api_errors import UNAVAILABLE, ApiError

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp, Receive, Scope, Send
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

    from evidentia.serving.hosting.readiness import Readiness

UNREAD_S: Final = 2
"""How long what a client still sends is thrown away once it was answered; its answer could be lost if that were refused at once."""


class Patience(NamedTuple):
    """How long a connection is waited for."""

    head_s: float = 20
    """For the head of a request, from its first byte, or from the connection's beginning."""
    linger_s: float = 0.5
    """For a request on a connection that rests when this process stops: it may be on its way."""


PATIENCE: Final = Patience()


class BoundedConnection(H11Protocol):
    """A connection that is told to come back when there are too many, and is cut off when it dawdles."""

    most_connections: int = 1_000
    patience: Patience = PATIENCE
    readiness: Readiness | None = None

    _head_timer: asyncio.TimerHandle | None = None
    _is_leaving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the parent has it
        """Begin; one too many is answered, but not served."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self.app = _busy(self.app)
        self._watch_head()
        if self.readiness is not None and self.readiness.is_stopping:
            self.shutdown()  # it was taken a moment ago, when there was still somebody to take it

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._unwatch_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; the time of a head runs from its first byte, however slowly the others follow."""
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._is_waiting():
            self._unwatch_head()
            if self._is_leaving:
                self._part()
        elif self.conn.their_state is not h11.SEND_BODY:
            self._watch_head()

    def on_response_complete(self) -> None:
        """Wait for the next request, or a little for what the client still sends although it was answered already."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._unwatch_head()
            self._head_timer = self.loop.call_later(UNREAD_S, self._cut_off)

    def shutdown(self) -> None:
        """Leave after the answer under way, or soon when there is none."""
        self._is_leaving = True
        if self._is_waiting():
            self.loop.call_later(self.patience.linger_s, self._leave_if_waiting)
        else:
            self._part()

    def _part(self) -> None:
        """Have the answer to the present request say that the connection ends with it."""
        self.cycle.keep_alive = False
        if CLOSE_HEADER not in self.scope["headers"]:
            self.scope["headers"] = [*self.scope["headers"], CLOSE_HEADER]

    def _leave_if_waiting(self) -> None:
        if self._is_waiting() and not self.transport.is_closing():
            super().shutdown()

    def _is_waiting(self) -> bool:
        """Tell whether no request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first, whatever the parent says
        return cycle is None or cycle.response_complete

    def _watch_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.patience.head_s, self._cut_off)

    def _unwatch_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _cut_off(self) -> None:
        self._head_timer = None
        if self._is_waiting():
            self.transport.abort()


def bounded(readiness: Readiness, *, most_connections: int, patience: Patience = PATIENCE) -> type[BoundedConnection]:
    """Return the kind of connection that has these bounds."""
    bounds = {"standing": readiness, "most_connections": most_connections, "patience": patience}
    return type("BoundedConnection", (BoundedConnection,), bounds)


def _busy(app: ASGIApp) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == LIVE:
            await app(scope, receive, send)
            return
        headers = {"retry-after": "1", "connection": "close"}
        hint = "close connections that you do not need, or try again later"
        refusal = ApiError(UNAVAILABLE, "too_many_connections", "too many connections are open", hint=hint, headers=headers)
        await refusal_response(refusal)(scope, receive, send)

    return answer
