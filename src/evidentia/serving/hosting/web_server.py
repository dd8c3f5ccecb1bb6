"""The web server under every door: its bounds, its log without content, and an orderly stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import h11
import uvicorn
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from evidentia.foundation.rate_limit import Shares
from evidentia.serving.hosting.readiness import LIVE, Readiness
from evidentia.serving.identity.admission import network_of
from evidentia.serving.identity.host_check import HSTS, refusal_response
from evidentia.serving.identity.pools import HOLD_BACK_S
from evidentia.serving.operations.api_errors import TOO_LARGE, TOO_MANY, UNAVAILABLE, ApiError

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Iterable, Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


GRACE_S: Final = 10
"""How long requests under way may take once the server is told to stop."""
KEEP_ALIVE_S: Final = 60
"""How long a connection may rest; longer than clients keep theirs, so that none is used while it closes."""
MAX_HEAD_BYTES: Final = 64 << 10
"""Of the head of a request."""


class WebServer(uvicorn.Server):
    """A web server that says first that it is not ready, then ends streams, then lets requests under way finish."""

    def __init__(self, config: uvicorn.Config, readiness: Readiness, *, drain_s: float = 0) -> None:
        super().__init__(config)
        self._readiness = readiness
        self._drain_s = drain_s
        self.is_begun = asyncio.Event()
        self.is_over = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. A connection is counted as soon as it is there, not only when it has said something or its handshake is over."""
        context, self.config.ssl = self.config.ssl, None
        await super().startup([])
        loop = asyncio.get_running_loop()
        for each in sockets or ():
            self.servers.append(await loop.create_server(lambda: _Newcomer(self, context), sock=each, backlog=self.config.backlog))
        self.is_begun.set()

    def connection(self) -> BoundedConnection:
        """Return what speaks to one client."""
        kind: type[BoundedConnection] = self.config.http_protocol_class  # type: ignore[assignment] # as `web_config` has it
        return kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop: not ready, but still listening, for a while; then no longer listening, until the last answer is given."""
        self._readiness.stop()
        try:
            await asyncio.sleep(self._drain_s)
            self._readiness.end_streams()
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


# --- how much a request may send, and how long it may take ---

MAX_BYTES: Final = 64 << 20
"""Of any body at any door; most operations take far less, and say so themselves."""
PART_S: Final = 30
"""How long the next part of a body may take."""
TOO_SLOW: Final = 408
TIMED_OUT: Final = 504
_DRAINED_S: Final = 2
_DRAINED_BYTES: Final = 8 << 20
_MAX_LENGTH_LENGTH: Final = 18
_LEAVING: Final = {"connection": "close"}


class RequestLimits:
    """An ASGI application that bounds what goes to the one behind it, and how long that may take to begin its answer.

    Once an answer has begun it may last, as streams do; but each part of it has to be taken within the same time.
    """

    def __init__(self, app: ASGIApp, *, request_s: float, max_bytes: int = MAX_BYTES) -> None:
        self._app = app
        self._request_s = request_s
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _length_in(scope) > self._max_bytes:
            await _throw_away(scope, receive)
            await refusal_response(_too_large(self._max_bytes))(scope, receive, send)
            return
        await _Exchange(scope, receive, send, request_s=self._request_s, max_bytes=self._max_bytes).run(self._app)


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, request_s: float, max_bytes: int) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._request_s = request_s
        self._max_bytes = max_bytes
        self._received = 0
        self._is_whole = False
        self._is_begun = False
        self._is_over = False
        self._until = 0.0
        self._time = asyncio.timeout(request_s)

    async def run(self, app: ASGIApp) -> None:
        self._until = asyncio.get_running_loop().time() + self._request_s
        try:
            async with self._time:
                try:
                    await app(self._scope, self._take, self._give)
                finally:
                    self._is_over = True
        except TimeoutError:
            if not self._time.expired():
                raise
            if self._is_begun:
                return  # the server closes a connection whose answer has no end
            await self._refuse(_given_up() if self._is_whole else _too_slow(self._request_s))
        except _TooMuchError:
            if not self._is_begun:
                await self._refuse(_too_large(self._max_bytes))

    async def _take(self) -> Message:
        # Once the body is whole, the next message says that the client left, which may come late or never.
        is_timed = not self._is_whole and not self._is_begun
        if is_timed:
            self._retime(min(self._until, asyncio.get_running_loop().time() + PART_S))
        message = await self._receive()
        if is_timed and not self._is_begun:
            self._retime(self._until)
        if message["type"] == "http.request":
            self._received += len(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
            if self._received > self._max_bytes:
                raise _TooMuchError
        return message

    async def _give(self, message: Message) -> None:
        if message.get("status") == TOO_MANY:
            await asyncio.sleep(HOLD_BACK_S)
        self._is_begun = True
        self._retime(asyncio.get_running_loop().time() + self._request_s)
        await self._send(message)
        self._retime(None)  # between two parts nobody waits for the client, so nothing is to be timed

    def _retime(self, until: float | None) -> None:
        if not self._is_over and not self._time.expired():
            self._time.reschedule(until)

    async def _refuse(self, refusal: ApiError) -> None:
        await refusal_response(refusal)(self._scope, self._receive, self._send)


class _TooMuchError(Exception):
    """A body without an announced length has become too long."""


def _length_in(scope: Scope) -> int:
    """Return the length that a request announces; 0 where it does not, and more than anything where it is absurd."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) <= _MAX_LENGTH_LENGTH else 1 << 62
    return 0


async def _throw_away(scope: Scope, receive: Receive) -> None:
    """Take some of what comes, for a client that reads the answer only once it has sent; not from one that waits to be asked."""
    if any(name == b"expect" for name, _ in scope["headers"]):
        return
    left = _DRAINED_BYTES
    try:
        async with asyncio.timeout(_DRAINED_S):
            while left > 0:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
                left -= len(message.get("body", b""))
    except TimeoutError:
        return


def _too_large(max_bytes: int) -> ApiError:
    message = f"the body is larger than {max_bytes} bytes"
    return ApiError(TOO_LARGE, "body_too_large", message, hint="send less at a time", headers=_LEAVING)


def _too_slow(request_s: float) -> ApiError:
    message = f"the body was not here after {request_s:g} s, or nothing of it came for {PART_S} s"
    return ApiError(TOO_SLOW, "request_too_slow", message, hint="send it faster, or raise server.request_s", headers=_LEAVING)


def _given_up() -> ApiError:
    hint = "it may have been done all the same, so look before you ask again; server.request_s says how long a request may take"
    return ApiError(TIMED_OUT, "request_timed_out", "the request took too long and was given up", hint=hint, headers=_LEAVING)


# --- one connection: how many there are, how long a head may take, and how one is closed without losing a request ---

HANDSHAKE_S: Final = 10
"""How long a TLS handshake may take."""
TURNED_AWAY_S: Final = 2
"""How long a connection that is one too many may take to ask, to be told so."""
MAX_TURNED_AWAY: Final = 64
"""How many of those are told; more are closed at once."""
UNREAD_S: Final = 2
"""How long what a client still sends is thrown away once it was answered; its answer could be lost if that were refused at once."""


class ConnectionTimeouts(NamedTuple):
    """How long a connection is waited for."""

    head_s: float = 20
    """For the head of a request, from its first byte, or from the connection's beginning."""
    linger_s: float = 0.5
    """For a request on a connection that rests when this process stops: it may be on its way."""


TIMEOUTS: Final = ConnectionTimeouts()


class Idle(Protocol):
    """A connection that can be closed while nobody waits for it."""

    def idle_rank(self) -> tuple[bool, float] | None:
        """Return how late it is to be closed: whether it ever asked something, and since when it rests; None while it is busy."""
        ...

    def close_idle(self) -> None:
        """Close it."""
        ...


class ConnectionPool:
    """The open connections of one listener, of which one address has at most its share. Belongs to its event loop.

    A new connection takes the place of an idle one: of the same address where that has its share, else of the address that has most.
    Those that never asked anything go first, the oldest before the others.
    """

    def __init__(self, most: int, *, percent: int = 100) -> None:
        self._shares = Shares[str].by_percent(most, percent)
        self._addresses: dict[Idle, str] = {}
        self._open: dict[str, dict[Idle, None]] = {}
        """By address, the oldest first."""
        self._turned_away = 0

    def enter(self, connection: Idle, address: str) -> bool:
        """Give a connection a place, which it leaves with `leave`; False when there is none."""
        while not self._shares.take(address):
            is_share = self._shares.held(address) >= self._shares.of_one
            searched = [address] if is_share else sorted(self._open, key=lambda each: (-len(self._open[each]), each))
            oldest = next((found for each in searched if (found := _oldest(self._open[each]))), None)
            if oldest is None:
                return False
            self.leave(oldest)
            oldest.close_idle()
        self._addresses[connection] = address
        self._open.setdefault(address, {})[connection] = None
        return True

    def leave(self, connection: Idle) -> None:
        """Free the place of a connection, if it has one."""
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._shares.give_back(address)
            del self._open[address][connection]
            if not self._open[address]:
                del self._open[address]

    @property
    def is_full(self) -> bool:
        """Tell whether all places are taken."""
        return self._shares.taken >= self._shares.most

    def has(self, connection: Idle) -> bool:
        """Tell whether a connection has a place."""
        return connection in self._addresses

    def succeed(self, before: Idle, after: Idle) -> None:
        """Hand the place of a connection to what it has become."""
        address = self._addresses.pop(before, None)
        if address is not None:
            self._addresses[after] = address
            del self._open[address][before]
            self._open[address][after] = None

    @contextlib.contextmanager
    def turning_away(self) -> Iterator[bool]:
        """Tell whether there is somebody left to say that there is no place."""
        self._turned_away += 1
        try:
            yield self._turned_away <= MAX_TURNED_AWAY
        finally:
            self._turned_away -= 1


def _oldest(connections: Iterable[Idle]) -> Idle | None:
    """Return the idle connection that goes first; None where none is idle."""
    resting: list[tuple[float, Idle]] = []
    for each in connections:
        rank = each.idle_rank()
        if rank is not None and not rank[0]:
            return each
        if rank is not None:
            resting.append((rank[1], each))
    return min(resting, key=itemgetter(0))[1] if resting else None


class _Newcomer(asyncio.Protocol):
    """A connection that has said nothing yet, or whose TLS handshake is under way; it costs little, and becomes one that answers."""

    def __init__(self, server: WebServer, context: ssl.SSLContext | None) -> None:
        self._server = server
        self._context = context
        self._kind: type[BoundedConnection] = server.config.http_protocol_class  # type: ignore[assignment] # as `web_config` has it
        self._loop = asyncio.get_running_loop()
        self._begun_s = self._loop.time()
        self._early: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place; without one, a client without TLS is told so, and one with TLS is cut off, since nothing can be told before."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - sockets have it
        self._transport = transport
        is_in = self._kind.pool.enter(self, _address_of(transport))
        if is_in and self._context is not None:
            transport.pause_reading()  # nothing may be read before the handshake reads it
            self._handshake = self._loop.create_task(self._secure(transport, self._context))
        elif is_in:
            self._timer = self._loop.call_later(self._kind.timeouts.head_s, transport.abort)
        elif self._context is not None:
            transport.abort()
            return
        else:
            self._become(transport)
            return
        self._server.server_state.connections.add(self)  # type: ignore[arg-type] # what is told to shut down

    def data_received(self, data: bytes) -> None:
        """Become what answers; what comes with the end of a handshake is kept for it."""
        if self._context is None and self._transport is not None:
            self._become(self._transport).data_received(data)
        else:
            self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        del exc
        self._end()
        self._kind.pool.leave(self)

    def shutdown(self) -> None:
        """Leave soon: a request may be on its way."""
        self._end()
        self._timer = self._loop.call_later(self._kind.timeouts.linger_s, self.close_idle)

    def idle_rank(self) -> tuple[bool, float] | None:
        """Return since when it has said nothing."""
        return (False, self._begun_s)

    def close_idle(self) -> None:
        """Close it."""
        if self._transport is not None:
            self._transport.abort()

    async def _secure(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        try:
            secured = await self._loop.start_tls(transport, self, context, server_side=True, ssl_handshake_timeout=HANDSHAKE_S)
        except OSError:  # an SSLError is one
            secured = None
        if secured is None:
            self.connection_lost(None)
            transport.abort()
            return
        made = self._become(secured)
        for each in self._early:
            made.data_received(each)

    def _become(self, transport: asyncio.Transport) -> BoundedConnection:
        self._end()
        made = self._server.connection()
        self._kind.pool.succeed(self, made)
        transport.set_protocol(made)
        made.connection_made(transport)
        return made

    def _end(self) -> None:
        self._server.server_state.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()


class BoundedConnection(H11Protocol):
    """A connection that is told to come back when there are too many, and is cut off when it dawdles."""

    pool: ConnectionPool = ConnectionPool(1_000)
    timeouts: ConnectionTimeouts = TIMEOUTS
    readiness: Readiness | None = None

    _head_timer: asyncio.TimerHandle | None = None
    _is_leaving = False
    _rests_since = 0.0
    _turned_away: contextlib.ExitStack | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the parent has it
        """Begin; one too many is answered, but not served."""
        super().connection_made(transport)
        self._rests_since = self.loop.time()
        if not self.pool.has(self) and not self.pool.enter(self, _address_of(transport)):
            self._turn_away(UNAVAILABLE if self.pool.is_full else TOO_MANY)
        self._watch_head()
        if self.readiness is not None and self.readiness.is_stopping:
            self.shutdown()  # it was taken a moment ago, when there was still somebody to take it

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.pool.leave(self)
        if self._turned_away is not None:
            self._turned_away.close()
        self._unwatch_head()
        super().connection_lost(exc)

    def idle_rank(self) -> tuple[bool, float] | None:
        """Return since when it rests, behind those that never asked; None while it is answered."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first, whatever the parent says
        return (cycle is not None, self._rests_since) if self._is_waiting() else None

    def close_idle(self) -> None:
        """Close it."""
        self.transport.close()

    def _turn_away(self, status: int) -> None:
        self._turned_away = contextlib.ExitStack()
        self.timeouts = self.timeouts._replace(head_s=min(TURNED_AWAY_S, self.timeouts.head_s))
        self.app = _busy(self.app, status)
        if not self._turned_away.enter_context(self.pool.turning_away()):
            self.transport.abort()

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
        self._rests_since = self.loop.time()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._unwatch_head()
            self._head_timer = self.loop.call_later(UNREAD_S, self._cut_off)

    def shutdown(self) -> None:
        """Leave after the answer under way, or soon when there is none."""
        self._is_leaving = True
        if self._is_waiting():
            self.loop.call_later(self.timeouts.linger_s, self._leave_if_waiting)
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
            self._head_timer = self.loop.call_later(self.timeouts.head_s, self._cut_off)

    def _unwatch_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _cut_off(self) -> None:
        self._head_timer = None
        if self._is_waiting():
            self.transport.abort()


def bounded(readiness: Readiness | None, *, pool: ConnectionPool, timeouts: ConnectionTimeouts = TIMEOUTS) -> type[BoundedConnection]:
    """Return the kind of connection that has these bounds."""
    return type("BoundedConnection", (BoundedConnection,), {"readiness": readiness, "pool": pool, "timeouts": timeouts})


def _address_of(transport: asyncio.Transport) -> str:
    peer = transport.get_extra_info("peername")
    return network_of(str(peer[0]) if isinstance(peer, tuple) and peer else None)


def _busy(app: ASGIApp, status: int) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == LIVE:
            await app(scope, receive, send)
            return
        headers = {"retry-after": "1", "connection": "close"}
        hint = "close connections that you do not need, or try again later"
        whose = "too many connections are open" if status == UNAVAILABLE else "this address has as many connections as it may"
        refusal = ApiError(status, "too_many_connections", whose, hint=hint, headers=headers)
        await refusal_response(refusal)(scope, receive, send)

    return answer
