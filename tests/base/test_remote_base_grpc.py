"""A base behind a `grpc://` address gives the answers and the errors of the base in its directory."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest

import evidentia
from evidentia import Base, connect
from evidentia.backends.remote.grpc_calls import GrpcCalls
from evidentia.base.remote_base import RemoteBase
from evidentia.contracts.control import Role
from evidentia.contracts.errors import InvalidFieldError, NotAllowedError, PolicyInvalidError, ServiceUnavailableError
from evidentia.contracts.evidence import FinalResponse
from evidentia.contracts.vocabulary import Classification
from serving.grpc_doors import GrpcServed, grpc_serving
from serving.remote_questions import OWNER_READS, QUESTION, READS, REQUESTS, WRONG, asked_of_both
from serving.remote_worlds import AS_OF, RemoteWorld, remote_world
from serving.rest_planes import SEED_BODY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("grpc", reason="the extra `grpc` is not installed")

TOKEN = "-".join(["t0ken", "that", "nobody", "may", "see"])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteWorld]:
    with remote_world(tmp_path_factory.mktemp("remote")) as served:
        yield served


@pytest.fixture(scope="module")
def door(world: RemoteWorld) -> Iterator[GrpcServed]:
    with grpc_serving(world.directory) as served:
        yield served


@pytest.fixture(scope="module")
def pair(world: RemoteWorld, door: GrpcServed) -> Iterator[tuple[Base, Base]]:
    agent = world.holder("an agent", Role.AGENT)
    with connect(world.directory, principal=agent.principal) as local, connect(f"grpc://{door.address}", token=agent.token) as remote:
        remote.retrieve("is anything open?")
        yield local, remote


@pytest.fixture(scope="module")
def owners(world: RemoteWorld, door: GrpcServed) -> Iterator[tuple[Base, Base]]:
    admin = world.holder("an admin", Role.ADMIN, clearance=Classification.RESTRICTED)
    with connect(world.directory) as local, connect(f"grpc://{door.address}", token=admin.token) as remote:
        yield local, remote


@pytest.mark.parametrize("name", READS)
def test_what_anybody_may_ask_gives_the_same_answer(pair: tuple[Base, Base], name: str) -> None:
    local, remote = (READS[name](base) for base in pair)

    assert local == remote


@pytest.mark.parametrize("name", OWNER_READS)
def test_what_an_owner_may_ask_gives_an_admin_the_same_answer(owners: tuple[Base, Base], name: str) -> None:
    local, remote = asked_of_both(owners, OWNER_READS[name])

    assert local == remote


@pytest.mark.parametrize("fields", REQUESTS)
def test_a_question_gets_the_same_answer(pair: tuple[Base, Base], fields: dict[str, Any]) -> None:
    local, remote = (base.retrieve(QUESTION, as_of=AS_OF, **{"latency_deadline_ms": 20_000, **fields}) for base in pair)

    assert local.result_hash == remote.result_hash
    assert local.to_context() == remote.to_context()
    assert pair[1].verify(remote).ok


def test_a_stream_ends_with_the_same_answer(pair: tuple[Base, Base]) -> None:
    local, remote = (list(base.retrieve_stream(QUESTION, as_of=AS_OF, latency_deadline_ms=20_000)) for base in pair)
    last = remote[-1]

    assert [type(each) for each in local] == [type(each) for each in remote]
    assert isinstance(last, FinalResponse)
    assert isinstance(last.response, evidentia.EvidenceResponse)
    assert local[-1].response.result_hash == last.response.result_hash  # type: ignore[union-attr]  # the last of a stream is the answer


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_the_same_error(pair: tuple[Base, Base], name: str) -> None:
    kind, ask = WRONG[name]
    told = []
    for base in pair:
        with pytest.raises(kind) as caught:
            ask(base)
        told.append((type(caught.value), str(caught.value), getattr(caught.value, "field", ""), getattr(caught.value, "column", 0)))

    assert told[0] == told[1]


def test_changes_reach_the_base(owners: tuple[Base, Base], tmp_path: Path) -> None:
    local, remote = owners
    (tmp_path / "passing.md").write_text("# Passing\n\nSomething that passes.\n")
    report = remote.ingest([tmp_path / "passing.md"], source="passing")
    (name,) = [each[0] for each in local.documents() if each[0].startswith("passing")]
    note = remote.remember("the vault is in the north wing", ttl_s=600)
    added = remote.add_policy(SEED_BODY)
    changed = remote.add_policy({**SEED_BODY, "enabled": False})
    told = (local.policies(), remote.notes())
    remote.remove([name])

    assert (1, [changed], [note], 2) == (report.added, *told, changed.policy.version)
    assert added.policy.policy_id == changed.policy.policy_id
    assert remote.remove_policy(added.policy.policy_id).is_removed
    assert 1 == remote.forget([note.note_id])
    assert name not in [each[0] for each in local.documents()]


def test_what_does_not_fit_a_message_is_refused_before_it_is_sent(owners: tuple[Base, Base]) -> None:
    with pytest.raises(PolicyInvalidError, match="enabled"):
        owners[1].add_policy({**SEED_BODY, "enabled": "perhaps"})
    with pytest.raises(InvalidFieldError, match="latency_tier"):
        owners[1].add_source({"source_id": "x", "latency_tier": "soon"})


def test_a_token_that_does_not_hold_is_not_allowed(door: GrpcServed) -> None:
    with pytest.raises(NotAllowedError, match="unknown, expired or revoked"):
        connect(f"grpc://{door.address}", token=TOKEN)


def test_a_governor_is_for_http(pair: tuple[Base, Base]) -> None:
    with pytest.raises(InvalidFieldError, match="http or https"):
        pair[1].governor()


def test_nobody_and_somebody_slow_are_services_that_are_unavailable() -> None:
    with pytest.raises(ServiceUnavailableError, match="UNAVAILABLE"):
        connect("grpc://127.0.0.1:1", token=TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as silent:

        async def scene() -> None:
            async with RemoteBase(GrpcCalls(f"grpc://127.0.0.1:{silent.getsockname()[1]}", token=TOKEN), margin_ms=100) as base:
                with pytest.raises(ServiceUnavailableError):
                    await base.retrieve("x", latency_deadline_ms=50)

        asyncio.run(scene())


@pytest.mark.parametrize("address", ["grpc://evidence.example:8322", "grpc://", "grpcs://ann:secret@host", "grpcs://host?x=y"])
def test_an_address_that_cannot_be_right_is_refused(address: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        connect(address, token=TOKEN)

    assert "path" == caught.value.field
    assert "secret" not in str(caught.value)
