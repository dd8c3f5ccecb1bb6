"""Who is let in over HTTP: a request for this host, from no foreign page, with a token whose holder may ask.

A base without any token is open to this machine alone, as the principal the server was started as.
"""

from __future__ import annotations

import hashlib
import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from evidentia.contracts.control import FaultReply
from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.mcp.callers import MAY_ASK, identity_of
from evidentia.serving.rest.asking import Endpoint, Reply
from evidentia.serving.rest.receiving import admit
from evidentia.serving.rest.refusals import FORBIDDEN, UNAUTHORIZED, Refusal, refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from evidentia.contracts.access import Principal
    from evidentia.serving.mcp.callers import Grants
    from evidentia.serving.rest.asking import Asked
    from evidentia.serving.rest.parts import TokenKeeper
    from evidentia.serving.rest.plane import Plane

PRINCIPAL: Final = "evidentia.principal"
"""Where the principal stands in the scope of a request that was let in."""
LOCAL_HOSTS: Final = ("127.0.0.1", "localhost", "::1")
MISDIRECTED: Final = 421
_FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-real-ip")
_NO_HOST: Final = frozenset("@/\\?# \t")


class Guard:
    """An ASGI application in front of another."""

    def __init__(self, app: ASGIApp, *, tokens: TokenKeeper, grants: Grants, alone: Principal, hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._tokens = tokens
        self._grants = grants
        self._alone = alone
        self._hosts = frozenset((*LOCAL_HOSTS, *(host.lower() for host in hosts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in with its principal, or say why not."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        try:
            self._check_host(request)
            principal = await self._principal_of(request)
        except Refusal as refusal:
            await _refused(refusal)(scope, receive, send)
            return
        except EvidentiaError as error:
            await _refused(refusal_of(error))(scope, receive, send)
            return
        # With a user in the scope, a session answers nobody but who opened it.
        await self._app({**scope, PRINCIPAL: principal, "user": _user(principal)}, receive, send)

    def _check_host(self, request: Request) -> None:
        """Refuse what a page of another site may have sent: a name that was pointed at this machine, or a foreign origin."""
        if _host_in(f"//{request.headers.get('host', '')}") not in self._hosts:
            hint = "name the host with --allow-host if it is this server's"
            raise Refusal(MISDIRECTED, "wrong_host", "the Host header is none of this server's", hint=hint)
        origin = request.headers.get("origin")
        if origin is not None and _host_in(origin) not in self._hosts:
            raise Refusal(FORBIDDEN, "wrong_origin", "the Origin header is none of this server's", hint="ask from this server's own host")

    async def _principal_of(self, request: Request) -> Principal:
        if "authorization" in request.headers or await run_in_threadpool(self._has_tokens):
            return self._grants.principal_of(await admit(request, ASK, self._tokens))
        if not _is_local(request):
            headers = {"www-authenticate": 'Bearer realm="evidentia"'}
            hint = "make a token with `evidentia tokens add --role agent` and send it as a bearer token"
            raise Refusal(UNAUTHORIZED, "missing_token", "without tokens only this machine may ask", hint=hint, headers=headers)
        return self._alone

    def _has_tokens(self) -> bool:
        """Tell whether the base has ever had a token, revoked or not: from the first one on, everybody needs one."""
        return bool(self._tokens.tokens())


def _never(_: Plane, __: Asked) -> Reply:
    raise NotImplementedError


ASK: Final = Endpoint("ask", "POST", "/mcp", "Ask for evidence over MCP.", MAY_ASK, _never, None)
"""What a token has to allow; nothing is answered through it."""


def _host_in(address: str) -> str:
    """Return the host in an address in lower case; empty when there is none, or more than a host and a port."""
    scheme, _, rest = address.partition("//")
    if scheme not in {"", "http:", "https:"} or _NO_HOST & set(rest):
        return ""
    try:
        return (urlsplit(f"//{rest}").hostname or "").lower()
    except ValueError:
        return ""


def _is_local(request: Request) -> bool:
    """Tell whether a request came from this machine, and not through something that passes on what others send."""
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def _user(principal: Principal) -> AuthenticatedUser:
    identity = hashlib.sha256(identity_of(principal)).hexdigest()
    return AuthenticatedUser(AccessToken(token="", client_id=principal.principal_id, scopes=[], subject=identity))


def _refused(refusal: Refusal) -> Response:
    body = msgspec.json.encode(FaultReply(error=refusal.fault))
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff", **refusal.headers}
    return Response(body, status_code=refusal.status, media_type="application/json", headers=headers)
