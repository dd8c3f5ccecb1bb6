"""Who is let in over HTTP: a request for this host, from no foreign page, with a token whose holder may ask.

A base without any token is open to this machine alone, as the principal the server was started as.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.identity.callers import MAY_ASK, identity_of
from evidentia.serving.identity.host_check import HostRule, client_of, is_local, refusal_response
from evidentia.serving.operations.api_errors import UNAUTHORIZED, ApiError, refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from evidentia.contracts.access import Principal
    from evidentia.contracts.control import Role, TokenInfo
    from evidentia.serving.identity.admission import Admission
    from evidentia.wiring.governance_runtime import TokenStore

PRINCIPAL: Final = "evidentia.principal"
"""Where the principal stands in the scope of a request that was let in."""
TOKEN: Final = "evidentia.token"  # noqa: S105 - a name
"""Where the token stands by which it was let in; None where nobody needs one."""


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
            principal, token = await self._caller_of(request)
        except ApiError as refusal:
            await refusal_response(refusal)(scope, receive, send)
            return
        except EvidentiaError as error:
            await refusal_response(refusal_of(error))(scope, receive, send)
            return
        # With a user in the scope, a session answers nobody but who opened it.
        await self._app({**scope, PRINCIPAL: principal, TOKEN: token, "user": _user(principal)}, receive, send)

    async def _caller_of(self, request: Request) -> tuple[Principal, TokenInfo | None]:
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


class AskRequirement(NamedTuple):
    """What a token has to allow for its holder to ask."""

    roles: tuple[Role, ...] = MAY_ASK
    is_base_wide: bool = False


ASK: Final = AskRequirement()


def _user(principal: Principal) -> AuthenticatedUser:
    identity = hashlib.sha256(identity_of(principal)).hexdigest()
    return AuthenticatedUser(AccessToken(token="", client_id=principal.principal_id, scopes=[], subject=identity))
