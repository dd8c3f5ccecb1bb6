"""A gRPC server on a real port in front of a real base, and a client that speaks with a token."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import msgspec

from evidentia.contracts.control import Role, TokenFacts
from evidentia.protobuf.methods import METHODS
from evidentia.serving.grpc.grpc_server import FAULT, GrpcDoor
from evidentia.serving.identity.admission import Admission
from evidentia.serving.operations.open_runs import OpenRuns
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel, flat_of
from evidentia.serving.operations.served_base import ServedBase
from evidentia.serving.operations.server_context import ServerContext
from evidentia.wiring.governance_runtime import GovernanceRuntime

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from evidentia.serving.identity.pools import Pools

BY_NAME = {method.name: method for method in METHODS}
ENDPOINT = {camel(endpoint.name): endpoint for endpoint in ENDPOINTS}


class GrpcServed:
    """A server that runs, and what speaks to it."""

    def __init__(self, address: str, control: GovernanceRuntime, channel: grpc.Channel, *, pools: Pools) -> None:
        self.pools = pools
        self.address = address
        self.control = control
        self.channel = channel

    def token(self, name: str, *roles: Role, tenant: str = "default", facts: Mapping[str, Any] | None = None) -> str:
        read = msgspec.convert(facts or {}, TokenFacts)
        return self.control.tokens.issue(name=name, roles=roles, tenant=tenant, by="test", facts=read).token

    def call(self, name: str, fields: Mapping[str, Any], *, token: str | None, timeout: float | None = 30, metadata: Any = ()) -> Any:
        """Return the reply of a method, its fields given as JSON would give them."""
        method = BY_NAME[name]
        message = method.request(**method.write_request(msgspec.convert(fields, flat_of(ENDPOINT[name]).message)))
        sent = (*metadata, *(() if token is None else (("authorization", f"Bearer {token}"),)))
        make = self.channel.unary_stream if method.is_stream else self.channel.unary_unary
        ask = make(method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString)
        reply = ask(message, timeout=timeout, metadata=sent)
        kind: Any = ENDPOINT[name].reply
        if method.is_stream:
            return [msgspec.convert(method.read_response(part), kind) for part in reply]
        return msgspec.convert(method.read_response(reply), kind)


def fault_in(error: grpc.RpcError) -> dict[str, Any]:
    """Return the fault in the trailing metadata of a refusal."""
    trailing = {each.key: each.value for each in error.trailing_metadata() or ()}
    return dict(msgspec.json.decode(trailing[FAULT]))


@contextmanager
def grpc_serving(directory: Path) -> Iterator[GrpcServed]:
    """Run the door over the base in a directory."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    with GovernanceRuntime(directory) as control:
        plane = ServerContext(
            parts=control,
            served_base=ServedBase.open(directory, control=control),
            runs=OpenRuns(clock=control.clock),
            admission=Admission(control.tokens),
        )

        async def open_door() -> tuple[GrpcDoor, int]:
            door = GrpcDoor(plane)
            return door, await door.start("127.0.0.1:0")

        door, port = run(open_door())
        address = f"127.0.0.1:{port}"
        try:
            with grpc.insecure_channel(address) as channel:
                yield GrpcServed(address, control, channel, pools=plane.admission.pools)
        finally:
            run(door.stop(grace_s=5))
            plane.runs.close_all()
            run(plane.served_base.close())
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
