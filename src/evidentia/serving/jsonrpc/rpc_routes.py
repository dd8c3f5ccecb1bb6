"""`POST /rpc`: one call or a batch in the body, the answers in the reply; 204 and no body when nobody waits for one.

What is wrong with a call is an error in the reply, which has the status 200. What is wrong with the HTTP request itself (no token that
holds, too much, no JSON by its header) has the status that REST would give it, and the error of the same kind with the id null.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from evidentia.contracts.control import Role
from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.hosting.request_log import call_logged
from evidentia.serving.identity.admission import Identity, credential_in
from evidentia.serving.identity.host_check import client_of
from evidentia.serving.jsonrpc.dispatch import METHOD_NOT_FOUND, RpcMethod, dispatch, failure, failure_of, refused
from evidentia.serving.jsonrpc.openrpc import openrpc_document
from evidentia.serving.operations.api_errors import MALFORMED, ApiError, refusal_of, too_large
from evidentia.serving.operations.execution import disconnected, perform
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel, decode_flat, refuse_crowded_aside
from evidentia.serving.rest.http_exchange import HEADERS, encode, json_response, read_body

if TYPE_CHECKING:
    from evidentia.serving.identity.pools import Holding
    from evidentia.serving.operations.endpoint import Endpoint, Needs
    from evidentia.serving.operations.server_context import ServerContext


RPC: Final = "/rpc"


def rpc_routes(context: ServerContext) -> list[Route]:
    """Return the one route of JSON-RPC."""
    description = _description(context.parts.version)

    async def answer(request: Request) -> Response:
        try:
            identity = await _identified(context, request)
            async with context.admission.pools.entered(identity.token.token_id) as body:
                raw = await _received(request, identity, body)
                left = asyncio.ensure_future(disconnected(request.receive))
                try:
                    content = await dispatch(raw, Methods(context, identity, description=description, left=left))
                finally:
                    left.cancel()
        except ApiError as refusal:
            return json_response(refusal.status, refused(failure_of(refusal)), refusal.headers)
        return Response(status_code=204, headers=HEADERS) if content is None else json_response(200, content, {})

    return [Route(RPC, answer, methods=["POST"])]


@cache  # 40 ms of reading types, the same for every application of a process
def _description(version: str) -> bytes:
    return encode(openrpc_document(ENDPOINTS, version=version))


@cache
def _max_bytes(roles: frozenset[Role]) -> int:
    """Return the most that any operation takes which one of the roles may ask, however many calls a body holds."""
    return max((endpoint.max_bytes for endpoint in ENDPOINTS if roles & set(endpoint.roles)), default=0)


async def _identified(context: ServerContext, request: Request) -> Identity:
    """Return who asks; nothing is read from somebody who holds no token."""
    try:
        return await context.admission.identify(credential_in(request.headers.get("authorization", "")), client=client_of(request))
    except EvidentiaError as error:
        raise refusal_of(error) from error


async def _received(request: Request, identity: Identity, body: Holding) -> bytes:
    try:
        return await read_body(request, max_bytes=_max_bytes(frozenset(identity.token.roles)), body=body)
    except ClientDisconnect:
        raise ApiError(MALFORMED, "incomplete_body", "the body ended too early", hint="send it again") from None


# --- methods ---
# Every operation as a method of JSON-RPC, called by whoever stands behind one HTTP request.

DISCOVER: Final = "rpc.discover"
_BY_NAME: Final = {endpoint.name: endpoint for endpoint in ENDPOINTS}


class _Anybody(NamedTuple):
    """What the description needs: a token."""

    roles: tuple[Role, ...] = tuple(Role)
    is_base_wide: bool = False


class Methods(Mapping[str, RpcMethod]):
    """What the holder of a token may try; each call is counted and let in, or not, by itself. A method is made when it is looked up."""

    def __init__(self, context: ServerContext, identity: Identity, *, description: bytes, left: asyncio.Future[None] | None = None) -> None:
        self._context = context
        self._left = left
        self._identity = identity
        self._description = description

    def __getitem__(self, name: str) -> RpcMethod:
        """Return the method of a name, bound to who calls it."""
        if name == DISCOVER:
            return RpcMethod(partial(_discover, self._context, self._identity, self._description))
        endpoint = _BY_NAME[name]
        if endpoint.is_stream:
            return RpcMethod(partial(_refuse_stream, endpoint))
        return RpcMethod(partial(_answer, self._context, endpoint, self._identity, self._left), is_writing=endpoint.is_writing)

    def __iter__(self) -> Iterator[str]:
        """Give the names of all methods."""
        yield from (*_BY_NAME, DISCOVER)

    def __len__(self) -> int:
        """Return how many methods there are."""
        return len(_BY_NAME) + 1


async def _discover(context: ServerContext, identity: Identity, description: bytes, _: bytes) -> bytes:
    _allow(context, identity, _Anybody())
    return description


@call_logged
async def _answer(
    context: ServerContext, endpoint: Endpoint, identity: Identity, left: asyncio.Future[None] | None, params: bytes
) -> bytes:
    _allow(context, identity, endpoint)
    try:
        if len(params) > endpoint.max_bytes:
            raise too_large("parameters are", max_bytes=endpoint.max_bytes)
        await refuse_crowded_aside(params, endpoint.max_bytes)
        reply = await perform(context, endpoint, lambda: decode_flat(endpoint, params, identity), left=left)
    except ApiError as refusal:
        raise failure_of(refusal) from refusal
    return encode(reply.message)


def _allow(context: ServerContext, identity: Identity, needs: Needs) -> None:
    try:
        context.admission.allow(identity, needs)
    except ApiError as refusal:
        raise failure_of(refusal) from refusal
    except EvidentiaError as error:
        raise failure_of(refusal_of(error)) from error


async def _refuse_stream(endpoint: Endpoint, _: bytes) -> bytes:
    hint = f"use REST, `{endpoint.method} {endpoint.path}`, or gRPC, `{camel(endpoint.name)}`; `retrieve` gives the same answer at once"
    raise failure(METHOD_NOT_FOUND, "not_over_json_rpc", "an answer that comes in parts is not offered over JSON-RPC", hint=hint)
