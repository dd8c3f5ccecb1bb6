"""Who is let in over HTTP: a request for this host, from no foreign page, with a token whose holder may ask.

A base without any token is open to this machine alone, as the principal the server was started as.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
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
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from evidentia.contracts.access import Principal
    from evidentia.contracts.control import Role
    from evidentia.serving.identity.admission import Admission
    from evidentia.wiring.governance_runtime import TokenStore

MAX_BYTES: Final = 4 << 20
"""Of a body; a whole answer of `retrieve` has to fit, to be verified."""
PRINCIPAL: Final = "evidentia.principal"
"""Where the principal stands in the scope of a request that was let in."""
LEFT: Final = "evidentia.left"
"""Where the event stands that is set when the client of a request has left: the package reads on while it answers."""


class McpGuard:
    """An ASGI application in front of another."""

    def __init__(
        self, app: ASGIApp, *, tokens: TokenStore, admission: Admission, alone: Principal | None, hosts: Iterable[str] = ()
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._admission = admission
        self._alone = alone
        self._hosts = HostRule(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in with its principal, or say why not."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        try:
            self._hosts.check(request.headers)
            principal = await self._principal_of(request)
            taken = await _body(receive) if scope["method"] == "POST" else deque()
        except ApiError as refusal:
            await refusal_response(refusal)(scope, receive, send)
            return
        except EvidentiaError as error:
            await refusal_response(refusal_of(error))(scope, receive, send)
            return
        # With a user in the scope, a session answers nobody but who opened it.
        left = asyncio.Event()

        async def receive_and_note() -> Message:
            message = taken.popleft() if taken else await receive()
            if message["type"] == "http.disconnect":
                left.set()
            return message

        await self._app({**scope, PRINCIPAL: principal, LEFT: left, "user": _user(principal)}, receive_and_note, send)

    async def _principal_of(self, request: Request) -> Principal:
        if self._alone is None or "authorization" in request.headers or await run_in_threadpool(self._has_tokens):
            return (await self._admission.admit(request.headers.get("authorization", ""), ASK, client=client_of(request))).principal
        if not is_local(request):
            headers = {"www-authenticate": 'Bearer realm="evidentia"'}
            hint = "make a token with `evidentia tokens add --role agent` and send it as a bearer token"
            raise ApiError(UNAUTHORIZED, "missing_token", "without tokens only this machine may ask", hint=hint, headers=headers)
        return self._alone

    def _has_tokens(self) -> bool:
        """Tell whether the base has ever had a token, revoked or not: from the first one on, everybody needs one."""
        return bool(self._tokens.tokens())


async def _body(receive: Receive) -> deque[Message]:
    """Return what makes up the body, for whoever reads it next; one of too many values is refused before it is read as JSON.

    Of one that is too long, only the beginning is taken: the package refuses it while it comes.
    """
    taken: deque[Message] = deque()
    length, is_whole = 0, False
    while not is_whole and length <= MAX_BYTES:
        message = await receive()
        taken.append(message)
        length += len(message.get("body", b""))
        is_whole = message["type"] != "http.request" or not message.get("more_body", False)
    if is_whole:
        await refuse_crowded_aside(b"".join(message.get("body", b"") for message in taken), MAX_BYTES)
    return taken


class AskRequirement(NamedTuple):
    """What a token has to allow for its holder to ask."""

    roles: tuple[Role, ...] = MAY_ASK
    is_base_wide: bool = False


ASK: Final = AskRequirement()


def _user(principal: Principal) -> AuthenticatedUser:
    identity = hashlib.sha256(identity_of(principal)).hexdigest()
    return AuthenticatedUser(AccessToken(token="", client_id=principal.principal_id, scopes=[], subject=identity))
