"""Who is let in over HTTP: a request for this host, from no foreign page, with a token whose holder may ask.

A base without any token is open to this machine alone, as the principal the server was started as.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.identity.callers import MAY_ASK, identity_of
from evidentia.serving.identity.host_check import HostRule, client_of, is_local, refusal_response
from evidentia.serving.operations.api_errors import UNAUTHORIZED, ApiError, refusal_of
from evidentia.serving.operations.request_decoding import refuse_crowded_aside

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from evidentia.contracts.access import Principal
    from evidentia.contracts.control import Role, TokenInfo
    from evidentia.serving.identity.admission import Admission
    from evidentia.serving.identity.pools import Holding, SharedPool
    from evidentia.wiring.governance_runtime import TokenStore

MAX_BYTES: Final = 4 << 20
"""Of a body; a whole answer of `retrieve` has to fit, to be verified."""
PRINCIPAL: Final = "evidentia.principal"
"""Where the principal stands in the scope of a request that was let in."""
LEFT: Final = "evidentia.left"
"""Where the event stands that is set when the client of a request has left: the package reads on while it answers."""
TURN: Final = "evidentia.turn"
"""Where that stands which a tool holds while it works: a token has its share of the worker threads."""
_SESSION: Final = b"mcp-session-id"
TOKEN: Final = "evidentia.token"  # noqa: S105 - a name
"""Where the token stands by which it was let in; None where nobody needs one."""
_REVISION: Final = b"mcp-protocol-version"


class McpGuard:
    """An ASGI application in front of another."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: TokenStore,
        admission: Admission,
        alone: Principal | None,
        hosts: Iterable[str] = (),
        live: Callable[[], Container[str]] = tuple,
    ) -> None:
        self._app = app
        self._sessions = _SessionShares(admission.pools.mcp_sessions, live)
        self._tokens = tokens
        self._admission = admission
        self._alone = alone
        self._hosts = HostRule(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in with its principal, or say why not."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        exchange = _Exchange(receive, send)
        try:
            self._hosts.check(request.headers)
            principal, token = await self._caller_of(request)
            holder = "" if token is None else token.token_id
            pools = self._admission.pools
            # With a user in the scope, a session answers nobody but who opened it.
            turn = partial(pools.turns.held, holder)
            added = {PRINCIPAL: principal, TOKEN: token, LEFT: exchange.left, TURN: turn, "user": _user(principal)}
            with (pools.streams if request.method == "GET" else pools.requests).holding(holder, 1), pools.bytes.holding(holder) as body:
                exchange.body = body
                if request.method == "POST":
                    await exchange.take_body()
                await self._sessions.opened(holder, {**scope, **added}, exchange, self._app)
        except ApiError as refusal:
            if exchange.is_begun:
                raise
            await refusal_response(refusal)(scope, receive, send)
        except EvidentiaError as error:
            if exchange.is_begun:
                raise
            await refusal_response(refusal_of(error))(scope, receive, send)

    async def _caller_of(self, request: Request) -> tuple[Principal, TokenInfo | None]:
        """Return who asks, and with which token: whose share of what is shared it counts against."""
        if self._alone is None or "authorization" in request.headers or await run_in_threadpool(self._has_tokens):
            token, principal = await self._admission.admit(request.headers.get("authorization", ""), ASK, client=client_of(request))
            return principal, token
        if not is_local(request):
            headers = {"www-authenticate": 'Bearer realm="evidentia"'}
            hint = "make a token with `evidentia tokens add --role agent` and send it as a bearer token"
            raise ApiError(UNAUTHORIZED, "missing_token", "without tokens only this machine may ask", hint=hint, headers=headers)
        return self._alone, None

    def _has_tokens(self) -> bool:
        """Tell whether the base has ever had a token, revoked or not: from the first one on, everybody needs one."""
        return bool(self._tokens.tokens())


class _Exchange:
    """What comes and goes with one request: the body counts against a share, and a session that is made is noticed by its header."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._taken: deque[Message] = deque()
        self.body: Holding | None = None
        self.left = asyncio.Event()
        self.is_begun = False
        self.session = ""

    async def take_body(self) -> None:
        """Receive the body, for whoever reads it next; one of too many values is refused before it is read as JSON.

        Of one that is too long, only the beginning is taken: the package refuses it while it comes.
        """
        length, is_whole = 0, False
        while not is_whole and length <= MAX_BYTES:
            message = await self._next()
            self._taken.append(message)
            length += len(message.get("body", b""))
            is_whole = message["type"] != "http.request" or not message.get("more_body", False)
        if is_whole:
            await refuse_crowded_aside(b"".join(message.get("body", b"") for message in self._taken), MAX_BYTES)

    async def receive(self) -> Message:
        return self._taken.popleft() if self._taken else await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.left.set()
        if self.body is not None:
            self.body.grow(len(message.get("body", b"")))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_begun = True
            self.session = next((value.decode() for name, value in message["headers"] if name.lower() == _SESSION), "")
        await self._send(message)


class _SessionShares:
    """Whose the sessions are. The package keeps them and tells nobody when one ends; those that are gone are found when one begins."""

    def __init__(self, pool: SharedPool, live: Callable[[], Container[str]]) -> None:
        self._pool = pool
        self._live = live
        self._holders: dict[str, str] = {}

    async def opened(self, holder: str, scope: Scope, exchange: _Exchange, app: ASGIApp) -> None:
        """Pass a request on; one that begins a session needs a place for it, and keeps it when there is a session afterwards."""
        headers = {name for name, _ in scope["headers"]}
        if scope["method"] != "POST" or _SESSION in headers:
            await app(scope, exchange.receive, exchange.send)
            return
        self._forget()
        self._pool.take(holder)
        try:
            # Only a handshake names no revision of the protocol; any other request may listen for as long as it likes.
            async with nullcontext() if _REVISION in headers else scope[TURN]():
                await app(scope, exchange.receive, exchange.send)
        finally:
            if exchange.session in self._live():
                self._holders[exchange.session] = holder
            else:
                self._pool.shares.give_back(holder)

    def _forget(self) -> None:
        live = self._live()
        for session in [each for each in self._holders if each not in live]:
            self._pool.shares.give_back(self._holders.pop(session))


class AskRequirement(NamedTuple):
    """What a token has to allow for its holder to ask."""

    roles: tuple[Role, ...] = MAY_ASK
    is_base_wide: bool = False


ASK: Final = AskRequirement()


def _user(principal: Principal) -> AuthenticatedUser:
    identity = hashlib.sha256(identity_of(principal)).hexdigest()
    return AuthenticatedUser(AccessToken(token="", client_id=principal.principal_id, scopes=[], subject=identity))
