"""gRPC over a real port: the same answers, credentials at every method, deadlines, health, reflection, hostile messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import evidentia
from evidentia.contracts.control import Role
from evidentia.protobuf.methods import METHODS
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel
from serving.grpc_doors import BY_NAME, GrpcServed, fault_in, grpc_serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AS_OF = "2026-01-01T00:00:00Z"
ASK = {"query": {"text": "signing keys"}, "mode": "lexical", "as_of": AS_OF, "latency_deadline_ms": 20_000}
CODE = grpc.StatusCode


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grpc")
    documents = folder / "documents"
    documents.mkdir()
    (documents / "keys.md").write_text("# Keys\n\nSigning keys are rotated every quarter.\n", encoding="utf-8")
    (documents / "safe.md").write_text("# Safe\n\nThe signing keys lie in the safe.\n", encoding="utf-8")
    with evidentia.connect(folder / "base", init=True) as opened:
        opened.ingest([documents], embed=False)
    return folder / "base"


@pytest.fixture(scope="module")
def door(base: Path) -> Iterator[GrpcServed]:
    with grpc_serving(base) as served:
        yield served


@pytest.fixture(scope="module")
def admin(door: GrpcServed) -> str:
    return door.token("ann", Role.ADMIN)


@pytest.fixture(scope="module")
def reader(door: GrpcServed) -> str:
    return door.token("rae", Role.READER)


def refusal(door: GrpcServed, name: str, fields: dict[str, Any], **how: Any) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        door.call(name, fields, **how)
    return caught.value


def test_every_operation_is_a_method() -> None:
    assert {camel(endpoint.name) for endpoint in ENDPOINTS} == set(BY_NAME)


def test_an_answer_is_the_one_that_a_local_base_gives(base: Path, door: GrpcServed, reader: str) -> None:
    answer = door.call("Retrieve", ASK, token=reader)
    holder = evidentia.Principal(principal_id="rae", clearance="internal", roles=("reader",))  # type: ignore[arg-type]  # a word
    with evidentia.connect(base, principal=holder) as local:
        own = local.retrieve("signing keys", mode="lexical", as_of=AS_OF, latency_deadline_ms=20_000)

        assert own.result_hash == answer.result_hash
        assert 2 == len(answer.fragments)
        assert local.verify(answer).ok


def test_a_stream_ends_in_the_same_answer(door: GrpcServed, reader: str) -> None:
    events = door.call("RetrieveStream", ASK, token=reader)

    assert door.call("Retrieve", ASK, token=reader).result_hash == events[-1].response.result_hash


def test_a_policy_is_put_in_force_and_seen(door: GrpcServed, admin: str, reader: str) -> None:
    body = {"name": "gRPC guard", "category": "retrieval", "rules": {"max_chunks": 3}}
    stored = door.call("CreatePolicy", body, token=admin)

    assert "gRPC guard" in [each.policy.body.name for each in door.call("ListPolicies", {}, token=reader).policies]
    assert CODE.PERMISSION_DENIED == refusal(door, "RemovePolicy", {"id": stored.policy.policy_id}, token=reader).code()
    door.call("RemovePolicy", {"id": stored.policy.policy_id}, token=admin)


def test_a_bad_field_is_named(door: GrpcServed, reader: str) -> None:
    error = refusal(door, "Retrieve", {**ASK, "filter": "colour = "}, token=reader)

    assert CODE.INVALID_ARGUMENT == error.code()
    assert "filter" in fault_in(error)["message"]


@pytest.mark.parametrize("token", [None, "", "evt_0123456789ab_wrong", "x" * 10_000])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_no_method_answers_without_a_token_that_holds(door: GrpcServed, method: Any, token: str | None) -> None:
    make = door.channel.unary_stream if method.is_stream else door.channel.unary_unary
    ask = make(method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString)
    metadata = () if token is None else (("authorization", f"Bearer {token}"),)

    with pytest.raises(grpc.RpcError) as caught:
        list(ask(method.request(), metadata=metadata, timeout=30)) if method.is_stream else ask(
            method.request(), metadata=metadata, timeout=30
        )

    assert CODE.UNAUTHENTICATED == caught.value.code()


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_a_role_that_is_not_enough_is_refused(door: GrpcServed, role: Role, endpoint: Any, tokens: dict[Role, str]) -> None:
    if role in endpoint.roles:
        return
    method = BY_NAME[camel(endpoint.name)]
    make = door.channel.unary_stream if method.is_stream else door.channel.unary_unary
    ask = make(method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString)

    with pytest.raises(grpc.RpcError) as caught:
        ask(method.request(), metadata=(("authorization", f"Bearer {tokens[role]}"),), timeout=30)

    assert CODE.PERMISSION_DENIED == caught.value.code()


@pytest.fixture(scope="module")
def tokens(door: GrpcServed) -> dict[Role, str]:
    return {role: door.token(f"a {role.value}", role) for role in Role}


def test_two_credentials_are_none(door: GrpcServed, reader: str) -> None:
    twice = (("authorization", f"Bearer {reader}"),)

    assert CODE.UNAUTHENTICATED == refusal(door, "ListSources", {}, token=reader, metadata=twice).code()


def test_nobody_asks_in_the_name_of_another(door: GrpcServed, reader: str) -> None:
    claimed = {"principal_id": "boss", "clearance": "restricted"}
    error = refusal(door, "Retrieve", {**ASK, "principal": claimed}, token=reader)

    assert (CODE.PERMISSION_DENIED, "not_your_principal") == (error.code(), fault_in(error)["code"])


def test_a_deadline_that_is_short_gives_a_degraded_answer_or_ends_in_time(door: GrpcServed, reader: str) -> None:
    seen: set[Any] = set()
    for timeout_ms in (1, 2, 5, 10, 20, 50, 100, 200):
        try:
            answer = door.call("Retrieve", ASK, token=reader, timeout=timeout_ms / 1_000)
            seen.add("answered" if not answer.degraded else "degraded")
        except grpc.RpcError as error:
            seen.add(error.code())

    assert seen <= {"answered", "degraded", CODE.DEADLINE_EXCEEDED}


def test_the_callers_deadline_reaches_a_source_that_hangs(tmp_path: Path) -> None:
    """A source that would take a minute is left behind, and the answer says so before the caller leaves."""
    with evidentia.connect(tmp_path / "base", init=True) as opened:
        opened.ingest([_written(tmp_path / "a.md", "Signing keys are rotated.")], embed=False)
        opened.add_source(
            {"source_id": "far", "source_type": "api", "connection": {"kind": "remote", "address": "http://127.0.0.1:9"}},
        )
    with grpc_serving(tmp_path / "base") as served, _silent_socket() as address:
        with evidentia.connect(tmp_path / "base") as opened:
            opened.remove_source("far")
            opened.add_source({"source_id": "far", "source_type": "api", "connection": {"kind": "remote", "address": address}})
        token = served.token("rae", Role.READER)
        served.call("Retrieve", {**ASK, "source_policy": {"denied_sources": ["far"]}}, token=token)
        answer = served.call("Retrieve", {**ASK, "latency_deadline_ms": 60_000}, token=token, timeout=2)

    assert "searched" == answer.source_coverage["documents"].state.value
    assert "searched" != answer.source_coverage["far"].state.value


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _silent_socket() -> Any:
    import socket
    from contextlib import contextmanager

    @contextmanager
    def listening() -> Iterator[str]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"

    return listening()


def test_health_is_told_for_every_service(door: GrpcServed) -> None:
    stub: Any = health_pb2_grpc.HealthStub(door.channel)  # Any: the stubs know nothing of its methods
    for service in ("", *sorted({method.full_service for method in METHODS})):
        assert health_pb2.HealthCheckResponse.SERVING == stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=30).status


def test_reflection_lists_the_services(door: GrpcServed) -> None:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(door.channel)  # Any: likewise
    replies = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=30)
    listed = {service.name for service in next(iter(replies)).list_services_response.service}

    assert {"evidentia.v1.EvidenceService", "evidentia.v1.GovernanceService", "grpc.health.v1.Health"} <= listed


def test_a_message_that_is_too_large_is_refused(door: GrpcServed, reader: str) -> None:
    error = refusal(door, "Retrieve", {**ASK, "query": {"text": "x" * (2 << 20)}}, token=reader)

    assert (CODE.RESOURCE_EXHAUSTED, "body_too_large") == (error.code(), fault_in(error)["code"])


@pytest.mark.parametrize("raw", [b"\xff" * 20, b"\x0a\xff\xff\xff\xff\x0f", b"\x00", b"{}" * 100])
def test_bytes_that_are_no_message_are_refused_and_the_server_goes_on(door: GrpcServed, reader: str, raw: bytes) -> None:
    ask: Any = door.channel.unary_unary(BY_NAME["Retrieve"].path)  # Any: bytes in, bytes out
    with pytest.raises(grpc.RpcError):
        ask(raw, metadata=(("authorization", f"Bearer {reader}"),), timeout=30)

    assert door.call("Retrieve", ASK, token=reader).fragments


def test_a_run_is_governed_over_grpc(door: GrpcServed, admin: str) -> None:
    body = {"name": "fresh only", "category": "retrieval", "rules": {"max_source_age_days": 90, "action_on_stale_source": "block"}}
    stored = door.call("CreatePolicy", body, token=admin)
    run_id = door.call("StartRun", {"facts": {"run_id": "r1", "agent_name": "a"}}, token=admin).run_id
    call = {"kind": "retrieval", "relevance_score": 0.9, "source": "manual.pdf", "age_days": 400}
    reply = door.call("RecordCalls", {"id": run_id, "calls": [{"seq": 1, "call": call}]}, token=admin)

    assert 1 == reply.stopped_at
    assert "block" == reply.results[0].decisions[0].action.value
    door.call("RemovePolicy", {"id": stored.policy.policy_id}, token=admin)
