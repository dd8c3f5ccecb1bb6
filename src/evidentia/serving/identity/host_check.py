"""For whom a request is and which page sent it: names that were pointed at this machine, and foreign pages, are refused."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from evidentia.contracts.control import FaultReply
from evidentia.contracts.errors import InvalidFieldError
from evidentia.serving.operations.api_errors import FORBIDDEN, ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
HSTS: Final = ("strict-transport-security", "max-age=31536000")
LOCAL_HOSTS: Final = ("127.0.0.1", "localhost", "::1")
MISDIRECTED: Final = 421
_NO_HOST: Final = frozenset("@/\\?# \t")
_POLICY_VIOLATED: Final = 1008
"""What a web socket is closed with (RFC 6455, 7.4.1)."""


class HostRule:
    """The names under which a server is asked: this machine's own, and those it was given."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._hosts = frozenset((*LOCAL_HOSTS, *(host.lower() for host in hosts)))

    def check(self, headers: Headers) -> None:
        """Refuse a Host that is none of this server's, and an Origin that is there and is none."""
        if len(headers.getlist("host")) != 1 or host_in(f"//{headers['host']}") not in self._hosts:
            hint = "name the host in server.hosts or with --allow-host if it is this server's"
            raise ApiError(MISDIRECTED, "wrong_host", "the Host header is none of this server's", hint=hint)
        if any(host_in(origin) not in self._hosts for origin in headers.getlist("origin")):
            raise ApiError(FORBIDDEN, "wrong_origin", "the Origin header is none of this server's", hint="ask from this server's own host")


class HostCheck:
    """An ASGI middleware that holds the rule for every door behind it."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._rule = HostRule(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say why not."""
        if scope["type"] in {"http", "websocket"}:
            try:
                self._rule.check(Headers(scope=scope))
            except ApiError as refusal:
                if scope["type"] == "websocket":
                    await send({"type": "websocket.close", "code": _POLICY_VIOLATED, "reason": refusal.fault.code})
                else:
                    await refusal_response(refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class TrustedProxies:
    """An ASGI middleware that believes what a trusted reverse proxy says of a connection: who is at its other end, and whether by TLS.

    What came to the proxy encrypted is treated as if it had come so to this server: cookies are `Secure`, and browsers are told to stay
    with TLS. From any other address the same headers mean nothing.
    """

    def __init__(self, app: ASGIApp, *, networks: Sequence[Network]) -> None:
        self._app = app
        self._networks = networks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on as it came to the proxy."""
        client = scope.get("client")
        if scope["type"] != "http" or client is None or not self._trusts(client[0]):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hops = [hop.strip() for value in headers.getlist("x-forwarded-for") for hop in value.split(",")]
        seen = next((hop for hop in reversed(hops) if not self._trusts(hop)), None)
        is_encrypted = [value.strip().lower() for value in headers.getlist("x-forwarded-proto")] == ["https"]

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start" and is_encrypted:
                MutableHeaders(scope=message).setdefault(*HSTS)
            await send(message)

        scheme = "https" if is_encrypted else scope["scheme"]
        await self._app({**scope, "scheme": scheme, "client": client if seen is None else (seen, 0)}, receive, told)

    def _trusts(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)


def proxy_networks(texts: Iterable[str]) -> list[Network]:
    """Return the networks of `server.proxies`, or raise InvalidFieldError."""
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError as error:
            raise InvalidFieldError("server.proxies", f"'{text}' is neither an address nor a network such as 10.0.0.0/24") from error
    return found


def host_in(address: str) -> str:
    """Return the host in an address in lower case; empty when there is none, or more than a host and a port."""
    scheme, _, rest = address.partition("//")
    if scheme not in {"", "http:", "https:"} or _NO_HOST & set(rest):
        return ""
    try:
        return (urlsplit(f"//{rest}").hostname or "").lower()
    except ValueError:
        return ""


def is_local(request: Request) -> bool:
    """Tell whether a request came from this machine, and not through something that passes on what others send."""
    if request.client is None or any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def client_of(request: Request) -> str | None:
    """Return the address somebody asks from, where there is one."""
    return None if request.client is None else request.client.host


def refusal_response(refusal: ApiError) -> Response:
    """Return the response that tells a refusal; nobody keeps it."""
    body = msgspec.json.encode(FaultReply(error=refusal.fault))
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff", **refusal.headers}
    return Response(body, status_code=refusal.status, media_type="application/json", headers=headers)
