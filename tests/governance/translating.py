"""A door in front of a door: what an agent's client says over REST is asked through JSON-RPC or gRPC, and told back as REST tells it.

So the doors that have no client for agents of their own play the same cases with the same client.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import httpx2
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from evidentia.protobuf.methods import METHODS
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.grpc.grpc_server import CODES, FAULT
from evidentia.serving.jsonrpc.dispatch import CODE_OF
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel, flat_of
from web_servers import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from starlette.requests import Request

    from evidentia.serving.operations.endpoint import Endpoint

METHOD = {method.name: method for method in METHODS}
ASKED = [endpoint for endpoint in ENDPOINTS if endpoint.path.startswith(("/v1/runs", "/v1/policies"))]


class ByJsonRpc:
    """Asks a plane through JSON-RPC."""

    def __init__(self, url: str) -> None:
        self._client = httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False)
        self._statuses = {code: status for status, code in CODE_OF.items()}

    async def ask(self, endpoint: Endpoint, fields: dict[str, Any], authorization: str) -> Response:
        """Return what REST would."""
        body = {"jsonrpc": "2.0", "id": 1, "method": endpoint.name, "params": fields}
        told = (await self._client.post("/rpc", json=body, headers={"authorization": authorization})).json()
        if "error" in told:
            return JSONResponse({"error": told["error"]["data"]}, self._statuses[told["error"]["code"]])
        return JSONResponse(told["result"], endpoint.status)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class ByGrpc:
    """Asks a plane through gRPC."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._channel: grpc.aio.Channel | None = None
        self._statuses = {code: status for status, code in CODES.items()}

    async def ask(self, endpoint: Endpoint, fields: dict[str, Any], authorization: str) -> Response:
        """Return what REST would."""
        self._channel = self._channel or grpc.aio.insecure_channel(self._address)
        method = METHOD[camel(endpoint.name)]
        message = method.request(**method.write_request(msgspec.convert(fields, flat_of(endpoint).message, strict=False)))
        call = self._channel.unary_unary(
            method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString
        )
        try:
            reply = await call(message, metadata=(("authorization", authorization),), timeout=30)
        except grpc.aio.AioRpcError as error:
            trailing: dict[str, Any] = {name: value for name, value in error.trailing_metadata() or ()}  # noqa: C416 - typed pairs
            return JSONResponse({"error": msgspec.json.decode(trailing[FAULT])}, self._statuses[error.code()])
        kind: Any = endpoint.reply
        answer = msgspec.json.encode(msgspec.convert(method.read_response(reply), kind))
        return Response(answer, endpoint.status, media_type="application/json")

    async def close(self) -> None:
        """Close the channel."""
        if self._channel is not None:
            await self._channel.close()


@contextmanager
def translated(asker: ByJsonRpc | ByGrpc) -> Iterator[str]:
    """Serve the operations of runs and policies over REST by asking them otherwise; give the address."""
    paths: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ASKED:
        paths.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    routes = [Route(path, _answering(asker, methods), methods=list(methods)) for path, methods in paths.items()]

    @asynccontextmanager
    async def living(_: Starlette) -> AsyncIterator[None]:
        yield
        await asker.close()

    with bound_socket("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes, lifespan=living), log_config=None, access_log=False))
        with running(server, listening) as url:
            yield url


def _answering(asker: ByJsonRpc | ByGrpc, methods: dict[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        endpoint = methods[request.method]
        body = await request.body()
        fields = {**(msgspec.json.decode(body) if body else {}), **dict(request.query_params), **request.path_params}
        return await asker.ask(endpoint, fields, request.headers.get("authorization", ""))

    return answer
