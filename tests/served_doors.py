"""The doors of a served base for scenarios: REST, JSON-RPC, gRPC and MCP, on real sockets over one engine.

Whoever asks through REST, JSON-RPC and gRPC is spoken for by a token of their tenant that may do so; over MCP, everybody has a token
of their own, which is an agent's.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, get_args

import grpc
import httpx2
import msgspec
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from evidentia.contracts.control import Role, TokenFacts
from evidentia.protobuf.methods import METHODS
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.grpc.grpc_server import FAULT, GrpcDoor
from evidentia.serving.hosting.application import make_app
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import flat_of
from evidentia.wiring.governance_runtime import GovernanceRuntime
from web_servers import running

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Answer = dict[str, Any]
Caller = tuple[str, "Mapping[str, Any]"]

VISITOR: Caller = ("visitor", {"clearance": "restricted"})
"""Who asks when nobody is named: somebody who is cleared for everything and owns nothing."""
AGENT = "scenario"
"""The agent that asks when none is named; over MCP it would be the client."""
_METHOD = {method.name: method for method in METHODS}
_REPLY: dict[str, Any] = {endpoint.name: endpoint.reply for endpoint in ENDPOINTS}
_FLAT = {endpoint.name: flat_of(endpoint).message for endpoint in ENDPOINTS}


class Served:
    """A base that is served, and tokens for whoever comes."""

    def __init__(self, url: str, grpc_address: str, control: GovernanceRuntime) -> None:
        self.url = url
        self.grpc_address = grpc_address
        self._control = control
        self._tokens: dict[str, str] = {}

    def token(self, name: str, *roles: Role, tenant: str, facts: Mapping[str, Any]) -> str:
        """Return a token with these facts; the same for the same."""
        key = json.dumps([name, roles, tenant, facts], sort_keys=True)
        if key not in self._tokens:
            read = msgspec.convert(facts, TokenFacts)
            self._tokens[key] = self._control.tokens.issue(name=name, roles=roles, tenant=tenant, by="test", facts=read).token
        return self._tokens[key]

    def delegate(self, caller: Caller) -> str:
        """Return a token that may speak for a caller."""
        facts = {"clearance": "restricted", "is_delegate": True}
        return self.token("delegate", Role.READER, tenant=_tenant(caller), facts=facts)

    def auditor(self) -> str:
        """Return a token that may answer anybody's receipts of the first tenant again."""
        return self.token("auditor", Role.AUDITOR, tenant="default", facts={"clearance": "restricted"})


class Rest:
    """Plain HTTP."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def search(self, query: str, fields: Mapping[str, Any], caller: Caller) -> Answer:
        body = _request(query, fields, caller)
        return self._post("/v1/evidence", body, token=self._served.delegate(caller))

    def replay(self, receipt_id: str) -> Answer:
        return self._post(f"/v1/receipts/{receipt_id}/replay", None, token=self._served.auditor())

    def _post(self, path: str, body: Answer | None, *, token: str) -> Answer:
        headers = {"authorization": f"Bearer {token}"}
        reply = httpx2.post(f"{self._served.url}{path}", json=body, headers=headers, timeout=60, trust_env=False)
        assert reply.status_code < 500, reply.text
        return dict(reply.json())


class JsonRpc:
    """JSON-RPC 2.0."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def search(self, query: str, fields: Mapping[str, Any], caller: Caller) -> Answer:
        body = _request(query, fields, caller)
        return self._call("retrieve", body, token=self._served.delegate(caller))

    def replay(self, receipt_id: str) -> Answer:
        return self._call("replay", {"id": receipt_id}, token=self._served.auditor())

    def _call(self, method: str, params: Answer, *, token: str) -> Answer:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"authorization": f"Bearer {token}"}
        reply = httpx2.post(f"{self._served.url}/rpc", json=body, headers=headers, timeout=60, trust_env=False).json()
        return {"error": reply["error"]["data"]} if "error" in reply else dict(reply["result"])


class Grpc:
    """gRPC."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def search(self, query: str, fields: Mapping[str, Any], caller: Caller) -> Answer:
        body = _request(query, fields, caller)
        return self._call("Retrieve", "retrieve", body, token=self._served.delegate(caller))

    def replay(self, receipt_id: str) -> Answer:
        return self._call("Replay", "replay", {"id": receipt_id}, token=self._served.auditor())

    def _call(self, name: str, operation: str, fields: Answer, *, token: str) -> Answer:
        method = _METHOD[name]
        # Without a check: what the contract refuses is for the server to refuse.
        message = method.request(**method.write_request(_unchecked(_FLAT[operation], fields)))
        with grpc.insecure_channel(self._served.grpc_address) as channel:
            ask = channel.unary_unary(
                method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString
            )
            try:
                reply = ask(message, metadata=(("authorization", f"Bearer {token}"),), timeout=60)
            except grpc.RpcError as error:
                trailing = {each.key: each.value for each in error.trailing_metadata() or ()}
                return {"error": msgspec.json.decode(trailing[FAULT])}
        answer: Answer = msgspec.to_builtins(msgspec.convert(method.read_response(reply), _REPLY[operation]))
        return answer


class Mcp:
    """The tool `retrieve` of MCP; who asks is whose token it is."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def search(self, query: str, fields: Mapping[str, Any], caller: Caller) -> Answer:
        name, facts = caller
        own = {key: value for key, value in facts.items() if key in {"clearance", "groups", "attributes"}}
        token = self._served.token(name, Role.AGENT, tenant=_tenant((name, facts)), facts=own)
        return asyncio.run(self._retrieve({"query": query, **fields}, token=token))

    def replay(self, receipt_id: str) -> Answer:
        raise NotImplementedError

    async def _retrieve(self, arguments: Answer, *, token: str) -> Answer:
        headers = {"authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as web,
            Client(streamable_http_client(f"{self._served.url}/mcp", http_client=web), mode="2026-07-28") as client,
        ):
            result = await client.call_tool("retrieve", arguments)
        if result.is_error:
            return {"error": {"text": getattr(result.content[0], "text", "")}}
        return dict(result.structured_content or {})


@contextmanager
def served(base: Path) -> Iterator[Served]:
    """Serve the base in a directory through every door."""
    with ExitStack() as stack:
        control = stack.enter_context(GovernanceRuntime(base))
        app = make_app(control)
        listening = stack.enter_context(bound_socket("127.0.0.1", 0))
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5)
        ports: list[int] = []
        server = WithGrpc(config, app.state.context, ports)
        with running(server, listening, is_up=lambda: bool(ports)) as url:
            yield Served(url, f"127.0.0.1:{ports[0]}", control)


class WithGrpc(uvicorn.Server):
    """A web server with the gRPC door beside it on the same loop."""

    def __init__(self, config: uvicorn.Config, plane: Any, ports: list[int]) -> None:
        super().__init__(config)
        self._plane = plane
        self._ports = ports

    async def main_loop(self) -> None:
        door = GrpcDoor(self._plane)
        self._ports.append(await door.start("127.0.0.1:0"))
        try:
            await super().main_loop()
        finally:
            await door.stop(grace_s=1)


def _request(query: str, fields: Mapping[str, Any], caller: Caller) -> Answer:
    name, facts = caller
    return {"query": {"text": query}, **fields, "principal": {"principal_id": name, **facts}}


def _unchecked(kind: type[msgspec.Struct], fields: Mapping[str, Any]) -> Any:
    """Return a message whose numbers are whatever they are; everything else is read as the contract says."""
    types = {field.name: next(iter(get_args(field.type)), field.type) for field in msgspec.structs.fields(kind)}
    loose = {
        name: types[name](**value) if isinstance(value, dict) else value
        for name, value in fields.items()
        if _is_number(value) or (isinstance(value, dict) and value and all(map(_is_number, value.values())))
    }
    read = msgspec.convert({name: value for name, value in fields.items() if name not in loose}, kind)
    return msgspec.structs.replace(read, **loose)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _tenant(caller: Caller) -> str:
    return str(caller[1].get("tenant", "default"))
