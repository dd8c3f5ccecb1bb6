"""`POST /rpc`: one call or a batch in the body, the answers in the reply; 204 and no body when nobody waits for one.

What is wrong with a call is an error in the reply, which has the status 200. What is wrong with the HTTP request itself (no token that
holds, too much, no JSON by its header) has the status that REST would give it, and the error of the same kind with the id null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.identity.admission import credential_in
from evidentia.serving.identity.hosts import client_of
from evidentia.serving.jsonrpc.codes import failure_of
from evidentia.serving.jsonrpc.dispatch import dispatch, refused
from evidentia.serving.jsonrpc.methods import Methods
from evidentia.serving.jsonrpc.openrpc import openrpc_document
from evidentia.serving.operations.api_errors import MALFORMED, ApiError, refusal_of
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.rest.receiving import read_body
from evidentia.serving.rest.responding import HEADERS, encode, json_response

if TYPE_CHECKING:
    from starlette.requests import Request

    from evidentia.serving.identity.admission import Identity
    from evidentia.serving.operations.server_context import ServerContext

RPC: Final = "/rpc"
MAX_BYTES: Final = 64 << 20
"""Of a body, however many calls it holds; what one call may have is said by its operation."""


def rpc_routes(context: ServerContext) -> list[Route]:
    """Return the one route of JSON-RPC."""
    description = encode(openrpc_document(ENDPOINTS, version=context.parts.version))

    async def answer(request: Request) -> Response:
        try:
            identity, raw = await _received(context, request)
        except ApiError as refusal:
            return json_response(refusal.status, refused(failure_of(refusal)), refusal.headers)
        content = await dispatch(raw, Methods(context, identity, description=description))
        return Response(status_code=204, headers=HEADERS) if content is None else json_response(200, content, {})

    return [Route(RPC, answer, methods=["POST"])]


async def _received(context: ServerContext, request: Request) -> tuple[Identity, bytes]:
    """Return who asks, and the body; nothing is read from somebody who holds no token."""
    try:
        identity = await context.admission.identify(credential_in(request.headers.get("authorization", "")), client=client_of(request))
        return identity, await read_body(request, max_bytes=MAX_BYTES)
    except EvidentiaError as error:
        raise refusal_of(error) from error
    except ClientDisconnect:
        raise ApiError(MALFORMED, "incomplete_body", "the body ended too early", hint="send it again") from None
