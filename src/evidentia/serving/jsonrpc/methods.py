"""Every operation as a method of JSON-RPC, called by whoever stands behind one HTTP request."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.control import Role
from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.jsonrpc.codes import METHOD_NOT_FOUND, failure, failure_of
from evidentia.serving.jsonrpc.dispatch import RpcMethod
from evidentia.serving.operations.flat import asked_flat, camel
from evidentia.serving.operations.performing import perform
from evidentia.serving.operations.refusals import TOO_LARGE, Refusal, refusal_of
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.rest.responding import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.serving.identity.admission import Identity
    from evidentia.serving.operations.asking import Endpoint, Needs
    from evidentia.serving.operations.plane import Plane

DISCOVER: Final = "rpc.discover"


class _Anybody(NamedTuple):
    """What the description needs: a token."""

    roles: tuple[Role, ...] = tuple(Role)
    is_base_wide: bool = False


def methods_for(plane: Plane, identity: Identity, *, description: bytes) -> Mapping[str, RpcMethod]:
    """Return what the holder of a token may try; each call is counted and let in, or not, by itself."""
    methods = {endpoint.operation: _method(plane, endpoint, identity) for endpoint in ENDPOINTS}
    return {**methods, DISCOVER: RpcMethod(partial(_discover, plane, identity, description))}


def _method(plane: Plane, endpoint: Endpoint, identity: Identity) -> RpcMethod:
    if endpoint.is_stream:
        return RpcMethod(partial(_refuse_stream, endpoint))
    return RpcMethod(partial(_answer, plane, endpoint, identity), is_writing=endpoint.is_writing)


async def _discover(plane: Plane, identity: Identity, description: bytes, _: bytes) -> bytes:
    _allow(plane, identity, _Anybody())
    return description


async def _answer(plane: Plane, endpoint: Endpoint, identity: Identity, params: bytes) -> bytes:
    _allow(plane, identity, endpoint)
    try:
        _require_small(params, endpoint)
        reply = await perform(plane, endpoint, lambda: asked_flat(endpoint, params, identity))
    except Refusal as refusal:
        raise failure_of(refusal) from refusal
    return encode(reply.message)


def _allow(plane: Plane, identity: Identity, needs: Needs) -> None:
    try:
        plane.admission.allow(identity, needs)
    except Refusal as refusal:
        raise failure_of(refusal) from refusal
    except EvidentiaError as error:
        raise failure_of(refusal_of(error)) from error


def _require_small(params: bytes, endpoint: Endpoint) -> None:
    if len(params) > endpoint.most_bytes:
        message = f"the parameters are larger than {endpoint.most_bytes} bytes"
        raise Refusal(TOO_LARGE, "body_too_large", message, hint="send less at once")


async def _refuse_stream(endpoint: Endpoint, _: bytes) -> bytes:
    hint = (
        f"use REST, `{endpoint.method} {endpoint.path}`, or gRPC, `{camel(endpoint.operation)}`; `retrieve` gives the same answer at once"
    )
    raise failure(METHOD_NOT_FOUND, "not_over_json_rpc", "an answer that comes in parts is not offered over JSON-RPC", hint=hint)
