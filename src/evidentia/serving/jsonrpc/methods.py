"""Every operation as a method of JSON-RPC, called by whoever stands behind one HTTP request."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.control import Role
from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.jsonrpc.codes import METHOD_NOT_FOUND, failure, failure_of
from evidentia.serving.jsonrpc.dispatch import RpcMethod
from evidentia.serving.operations.api_errors import ApiError, refusal_of, too_large
from evidentia.serving.operations.flat import asked_flat, camel
from evidentia.serving.operations.performing import perform
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.rest.responding import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.serving.identity.admission import Identity
    from evidentia.serving.operations.endpoint import Endpoint, Needs
    from evidentia.serving.operations.server_context import ServerContext

DISCOVER: Final = "rpc.discover"
_BY_NAME: Final = {endpoint.operation: endpoint for endpoint in ENDPOINTS}


class _Anybody(NamedTuple):
    """What the description needs: a token."""

    roles: tuple[Role, ...] = tuple(Role)
    is_base_wide: bool = False


class Methods(Mapping[str, RpcMethod]):
    """What the holder of a token may try; each call is counted and let in, or not, by itself. A method is made when it is looked up."""

    def __init__(self, context: ServerContext, identity: Identity, *, description: bytes) -> None:
        self._context = context
        self._identity = identity
        self._description = description

    def __getitem__(self, name: str) -> RpcMethod:
        """Return the method of a name, bound to who calls it."""
        if name == DISCOVER:
            return RpcMethod(partial(_discover, self._context, self._identity, self._description))
        endpoint = _BY_NAME[name]
        if endpoint.is_stream:
            return RpcMethod(partial(_refuse_stream, endpoint))
        return RpcMethod(partial(_answer, self._context, endpoint, self._identity), is_writing=endpoint.is_writing)

    def __iter__(self) -> Iterator[str]:
        """Give the names of all methods."""
        yield from (*_BY_NAME, DISCOVER)

    def __len__(self) -> int:
        """Return how many methods there are."""
        return len(_BY_NAME) + 1


async def _discover(context: ServerContext, identity: Identity, description: bytes, _: bytes) -> bytes:
    _allow(context, identity, _Anybody())
    return description


async def _answer(context: ServerContext, endpoint: Endpoint, identity: Identity, params: bytes) -> bytes:
    _allow(context, identity, endpoint)
    try:
        if len(params) > endpoint.max_bytes:
            raise too_large("parameters are", max_bytes=endpoint.max_bytes)
        reply = await perform(context, endpoint, lambda: asked_flat(endpoint, params, identity))
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
    hint = (
        f"use REST, `{endpoint.method} {endpoint.path}`, or gRPC, `{camel(endpoint.operation)}`; `retrieve` gives the same answer at once"
    )
    raise failure(METHOD_NOT_FOUND, "not_over_json_rpc", "an answer that comes in parts is not offered over JSON-RPC", hint=hint)
