"""What a gRPC caller may cost: nothing is read before a token holds, and what is read is bounded by operation, token and address."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import evidentia
from evidentia.contracts.control import Role
from evidentia.contracts.operations import OPERATION_BY_NAME
from evidentia.protobuf.methods import METHODS
from evidentia.serving.grpc.grpc_server import MAX_MESSAGE_BYTES, MAX_OPEN_OF_ONE
from serving.grpc_doors import BY_NAME, GrpcServed, fault_in, grpc_serving

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE = grpc.StatusCode
MB = 1 << 20
PATIENCE_S = 30


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrpcServed]:
    folder = tmp_path_factory.mktemp("grpc") / "base"
    evidentia.connect(folder, init=True).close()
    with grpc_serving(folder) as served:
        yield served


@pytest.fixture(scope="module")
def admin(door: GrpcServed) -> str:
    return door.token("ann", Role.ADMIN)


def silent(until: threading.Event) -> Iterator[bytes]:
    """Send nothing, and end only once the test does."""
    until.wait(PATIENCE_S)
    yield from ()


def streamed(door: GrpcServed, name: str, pieces: Iterator[bytes], *, token: str | None) -> Any:
    method = BY_NAME[name]
    ask: Any = door.channel.stream_unary(method.path, response_deserializer=method.response.FromString)
    return ask(pieces, timeout=PATIENCE_S, metadata=() if token is None else (("authorization", f"Bearer {token}"),))


def ingested(name: str, text: str) -> bytes:
    kind = BY_NAME["Ingest"].request
    return bytes(kind(documents=[{"id": name, "text": text}], embed=False).SerializeToString())


def documents(door: GrpcServed, token: str) -> list[str]:
    return sorted(str(each.document_id).rpartition(":")[2] for each in door.call("ListDocuments", {}, token=token).documents)


@pytest.mark.parametrize("method", [each for each in METHODS if not each.is_stream], ids=lambda each: each.name)
def test_a_call_without_a_token_is_refused_before_it_sends_a_message(door: GrpcServed, method: Any) -> None:
    over = threading.Event()
    try:
        with pytest.raises(grpc.RpcError) as caught:
            streamed(door, method.name, silent(over), token=None)
    finally:
        over.set()

    assert CODE.UNAUTHENTICATED == caught.value.code()


def test_a_stream_without_a_token_is_refused_before_it_sends_a_message(door: GrpcServed) -> None:
    over = threading.Event()
    asked: list[Any] = [door.channel.stream_stream(method.path) for method in METHODS if method.is_stream]
    for ask in asked:
        with pytest.raises(grpc.RpcError) as caught:
            list(ask(silent(over), timeout=PATIENCE_S))

        assert CODE.UNAUTHENTICATED == caught.value.code()
    over.set()


def test_messages_of_a_call_are_joined(door: GrpcServed, admin: str) -> None:
    streamed(door, "Ingest", iter([ingested("joined-1", "one"), ingested("joined-2", "two")]), token=admin)
    whole = ingested("joined-3", "three " * MB)
    streamed(door, "Ingest", iter([whole[begin : begin + MB] for begin in range(0, len(whole), MB)]), token=admin)

    assert {"joined-1", "joined-2", "joined-3"} <= set(documents(door, admin))


def test_messages_together_are_held_to_what_the_operation_takes(door: GrpcServed, admin: str) -> None:
    most = OPERATION_BY_NAME["retrieve"].max_bytes
    with pytest.raises(grpc.RpcError) as caught:
        streamed(door, "Retrieve", iter([b"\x00" * (most // 2)] * 3), token=admin)

    assert (CODE.RESOURCE_EXHAUSTED, "body_too_large") == (caught.value.code(), fault_in(caught.value)["code"])


def test_a_message_beyond_the_limit_takes_those_before_it_along(door: GrpcServed, admin: str) -> None:
    pieces = [ingested("partial-1", "one"), ingested("partial-2", "x" * (MAX_MESSAGE_BYTES + MB))]
    with pytest.raises(grpc.RpcError) as caught:
        streamed(door, "Ingest", iter(pieces), token=admin)

    assert CODE.RESOURCE_EXHAUSTED == caught.value.code()
    assert not {"partial-1", "partial-2"} & set(documents(door, admin))


def test_a_token_with_its_share_of_requests_is_told_to_come_back_and_others_go_on(door: GrpcServed, admin: str) -> None:
    other = door.token("bob", Role.ADMIN)
    pool = door.pools.requests
    holder = next(each.token_id for each in door.control.tokens.tokens() if each.name == "ann")
    with pool.holding(holder, pool.shares.of_one):
        with pytest.raises(grpc.RpcError) as caught:
            door.call("ListDocuments", {}, token=admin)
        assert door.call("ListDocuments", {}, token=other) is not None

    assert (CODE.RESOURCE_EXHAUSTED, "too_many_requests") == (caught.value.code(), fault_in(caught.value)["code"])
    trailing: Any = caught.value.trailing_metadata()
    assert "1" == {each.key: each.value for each in trailing}["retry-after"]


def test_calls_without_a_token_are_bounded_and_leave_the_others_alone(door: GrpcServed, admin: str) -> None:
    stub: Any = health_pb2_grpc.HealthStub(door.channel)
    watching = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(MAX_OPEN_OF_ONE)]
    told = [next(each).status for each in watching]
    with pytest.raises(grpc.RpcError) as caught:
        next(stub.Watch(health_pb2.HealthCheckRequest()))
    goes_on = door.call("ListDocuments", {}, token=admin)
    for each in watching:
        each.cancel()

    assert [health_pb2.HealthCheckResponse.SERVING] * MAX_OPEN_OF_ONE == told
    assert CODE.RESOURCE_EXHAUSTED == caught.value.code()
    assert goes_on is not None
