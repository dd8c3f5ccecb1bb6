"""A base behind a URL is the same object: same methods, same answers, same errors as the base in its directory."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import pytest

import evidentia
from evidentia import AccessRule, AsyncBase, Base, aconnect, connect
from evidentia.base.remote_base import RemoteBase
from evidentia.contracts.control import Role
from evidentia.contracts.errors import (
    InvalidFieldError,
    NotAllowedError,
    PolicyInvalidError,
    PolicyViolationError,
    ServiceUnavailableError,
)
from evidentia.contracts.evidence import FinalResponse
from evidentia.contracts.runs import RetrievedDocument, RunFacts, RunId
from evidentia.contracts.vocabulary import Classification
from evidentia.engine.request_checks import request_from
from evidentia.wiring.embedded import create
from serving.remote_questions import OWNER_READS, QUESTION, READS, REQUESTS, WRONG, asked_of_both
from serving.remote_worlds import AS_OF, RemoteWorld, remote_world
from serving.rest_planes import SEED_BODY, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytest.importorskip("starlette", reason="the extra `server` is not installed")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteWorld]:
    with remote_world(tmp_path_factory.mktemp("remote")) as served:
        yield served


@pytest.fixture(scope="module")
def pair(world: RemoteWorld) -> Iterator[tuple[Base, Base]]:
    """Return the base in its directory and the one behind the URL, as the same somebody."""
    agent = world.holder("an agent", Role.AGENT)
    with connect(world.directory, principal=agent.principal) as local, connect(world.url, token=agent.token) as remote:
        yield local, remote


@pytest.fixture(scope="module")
def owners(world: RemoteWorld) -> Iterator[tuple[Base, Base]]:
    """Return the base as its owner and as an admin of the operator's tenant see it."""
    admin = world.holder("an admin", Role.ADMIN, clearance=Classification.RESTRICTED)
    with connect(world.directory) as local, connect(world.url, token=admin.token) as remote:
        yield local, remote


# --- the surface ---


def public_names() -> list[str]:
    return [name for name in vars(AsyncBase) if not name.startswith("_")]


def test_every_public_method_is_there_with_the_same_signature() -> None:
    assert len(public_names()) > 40
    assert [] == [name for name in public_names() if name not in vars(RemoteBase)]
    for name in public_names():
        local, remote = vars(AsyncBase)[name], vars(RemoteBase)[name]
        if isinstance(local, property):
            local, remote = local.fget, remote.fget
        assert inspect.signature(local) == inspect.signature(remote), name


def test_it_is_a_base(pair: tuple[Base, Base]) -> None:
    assert isinstance(pair[1], evidentia.Base)


# --- answers ---


@pytest.mark.parametrize("name", READS)
def test_what_anybody_may_ask_gives_the_same_answer(pair: tuple[Base, Base], name: str) -> None:
    local, remote = (READS[name](base) for base in pair)

    assert local == remote
    assert type(local) is type(remote)


@pytest.mark.parametrize("name", OWNER_READS)
def test_what_an_owner_may_ask_gives_an_admin_the_same_answer(owners: tuple[Base, Base], name: str) -> None:
    local, remote = asked_of_both(owners, OWNER_READS[name])

    assert local == remote


@pytest.mark.parametrize("fields", REQUESTS)
def test_a_question_gets_the_same_answer(pair: tuple[Base, Base], fields: dict[str, Any]) -> None:
    local, remote = (base.retrieve(QUESTION, as_of=AS_OF, **{"latency_deadline_ms": 20_000, **fields}) for base in pair)

    assert local.result_hash == remote.result_hash
    assert [each.chunk_id for each in local.fragments] == [each.chunk_id for each in remote.fragments]
    assert type(local) is type(remote)
    assert local.to_context() == remote.to_context()
    assert pair[1].verify(remote).ok


def test_a_request_that_is_made_already_is_sent_as_it_is(pair: tuple[Base, Base]) -> None:
    asked = request_from(QUESTION, {"as_of": AS_OF, "limit": 3, "latency_deadline_ms": 20_000})

    assert pair[0].retrieve(asked).result_hash == pair[1].retrieve(asked).result_hash


def test_a_stream_ends_with_the_same_answer(pair: tuple[Base, Base]) -> None:
    local, remote = (list(base.retrieve_stream(QUESTION, as_of=AS_OF, latency_deadline_ms=20_000)) for base in pair)

    assert [type(each) for each in local] == [type(each) for each in remote]
    last = remote[-1]
    assert isinstance(last, FinalResponse)
    assert isinstance(last.response, evidentia.EvidenceResponse)
    assert local[-1].response.result_hash == last.response.result_hash  # type: ignore[union-attr]  # the last of a stream is the answer


def test_it_is_the_same_for_async_callers(world: RemoteWorld) -> None:
    agent = world.holder("an async agent", Role.AGENT)

    async def asked() -> tuple[Any, Any, list[str]]:
        async with await aconnect(world.url, token=agent.token) as remote:
            answers = await asyncio.gather(*(remote.retrieve(QUESTION, as_of=AS_OF, latency_deadline_ms=20_000) for _ in range(5)))
            streamed = [type(event).__name__ async for event in remote.retrieve_stream(QUESTION)]
            return remote, {each.result_hash for each in answers}, streamed

    remote, hashes, streamed = asyncio.run(asked())

    assert isinstance(remote, AsyncBase)
    assert 1 == len(hashes)
    assert "FinalResponse" == streamed[-1]


def test_two_tokens_see_what_each_may(world: RemoteWorld) -> None:
    high = world.holder("high", Role.READER, clearance=Classification.RESTRICTED)
    low = world.holder("low", Role.READER)
    seen = {}
    for holder in (high, low):
        with connect(world.url, token=holder.token) as base:
            sources = {
                each.source_id for each in base.retrieve("how long are backups of the vault kept?", latency_deadline_ms=20_000).fragments
            }
            seen[str(holder.principal.principal_id)] = ("secrets" in sources, len(base.documents()))

    assert (True, False) == (seen["high"][0], seen["low"][0])
    assert 1 == seen["high"][1] - seen["low"][1]


# --- changes ---


def test_notes_are_written_listed_and_forgotten(pair: tuple[Base, Base]) -> None:
    local, remote = pair
    note = remote.remember("the vault is in the north wing", title="vault", agent="a", session="s", ttl_s=600)

    assert [note] == local.notes() == remote.notes(agent="a", session="s")
    assert (1, 0, 0) == (remote.forget([note.note_id]), remote.forget([note.note_id]), remote.forget([]))


def test_policies_come_in_force_in_versions_and_go(owners: tuple[Base, Base]) -> None:
    local, remote = owners
    first = remote.add_policy(SEED_BODY)
    second = remote.add_policy({**SEED_BODY, "enabled": False})

    assert (1, 2) == (first.policy.version, second.policy.version)
    assert local.policies() == remote.policies()
    assert remote.remove_policy("RAG Quality Guard").is_removed
    assert [] == local.policies()


def test_a_governor_decides_by_the_policies_of_the_base(owners: tuple[Base, Base]) -> None:
    remote = owners[1]
    remote.add_policy({**SEED_BODY, "scope": {}})
    run = remote.governor().start(RunFacts(run_id=RunId("remote-run"), agent_name="any"))
    verdicts = run.record(RetrievedDocument(relevance_score=0.9, source="manual.pdf", collection="knowledge_base", age_days=400))
    remote.remove_policy("RAG Quality Guard")

    assert ["Source age (400 days) exceeds max (90 days)"] == [each.decisive.reason for each in verdicts]


def test_access_changes_and_removals_reach_the_base(owners: tuple[Base, Base], tmp_path: Path) -> None:
    local, remote = owners
    (tmp_path / "passing.md").write_text("# Passing\n\nSomething that passes.\n")
    report = remote.ingest([tmp_path / "passing.md"], source="passing")
    (name,) = [each[0] for each in local.documents() if each[0].startswith("passing")]
    remote.set_access([name], AccessRule(classification=Classification.PUBLIC))

    assert 1 == report.added
    assert Classification.PUBLIC == {each[0]: each[1] for each in local.documents()}[name].classification
    remote.remove([name])
    assert name not in [each[0] for each in local.documents()]
    assert remote.gc(keep_versions=50).versions_removed == 0


def test_a_policy_that_stops_an_answer_is_the_same_error_with_its_decision(owners: tuple[Base, Base]) -> None:
    remote = owners[1]
    body = {"name": "none of it", "category": "retrieval", "rules": {"min_relevance_score": 1.0, "action_on_low_relevance": "block"}}
    remote.add_policy(body)
    try:
        stopped = []
        for base in owners:
            with pytest.raises(PolicyViolationError) as caught:
                base.retrieve(QUESTION, as_of=AS_OF, governance="enforce")
            stopped.append(caught.value)
    finally:
        remote.remove_policy("none of it")

    assert str(stopped[0]) == str(stopped[1])
    assert stopped[0].decision.rule == stopped[1].decision.rule


# --- errors ---


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_the_same_error(pair: tuple[Base, Base], name: str) -> None:
    kind, ask = WRONG[name]
    told = []
    for base in pair:
        with pytest.raises(kind) as caught:
            ask(base)
        told.append((type(caught.value), str(caught.value), getattr(caught.value, "field", ""), getattr(caught.value, "column", 0)))

    assert told[0] == told[1]


def test_a_policy_that_cannot_be_right_names_every_field(owners: tuple[Base, Base]) -> None:
    problems = []
    for base in owners:
        with pytest.raises(PolicyInvalidError) as caught:
            base.add_policy({"name": "x", "category": "retrieval", "rules": {"min_relevance": 1, "max_chunks": "many"}})
        problems.append(caught.value.problems)

    assert problems[0] == problems[1]
    assert len(problems[0]) > 1


def test_a_token_that_does_not_hold_is_not_allowed(world: RemoteWorld) -> None:
    holder = world.holder("soon gone", Role.READER)
    with pytest.raises(NotAllowedError, match="unknown, expired or revoked"):
        connect(world.url, token=holder.token[:-4] + "xxxx")
    with connect(world.url, token=holder.token) as base:
        world.served.control.tokens.revoke(holder.token.split("_")[1], tenant="default", by="test")  # type: ignore[arg-type]  # its id
        with pytest.raises(NotAllowedError, match="unknown, expired or revoked") as caught:
            base.head()

    assert "evidentia tokens add" in caught.value.hint


def test_a_server_that_went_is_a_service_that_is_unavailable(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base") as served:
        base = connect(served.url, token=served.token(Role.READER))
        assert 0 == base.head().log_size
    for act in (base.head, lambda: base.retrieve(QUESTION), lambda: list(base.retrieve_stream(QUESTION)), base.documents):
        with pytest.raises(ServiceUnavailableError, match=r"'127\.0\.0\.1' cannot be spoken to"):
            act()
    base.close()


def test_a_role_that_is_too_small_is_not_allowed(pair: tuple[Base, Base], tmp_path: Path) -> None:
    remote = pair[1]
    (tmp_path / "x.md").write_text("x")
    for act in (lambda: remote.ingest([tmp_path]), remote.gc, remote.doctor, lambda: remote.remove_policy("x"), remote.verify):
        with pytest.raises(NotAllowedError, match="role"):
            act()


def test_what_belongs_beside_the_base_is_refused_with_what_to_do(owners: tuple[Base, Base], tmp_path: Path) -> None:
    remote = owners[1]
    acts: list[Callable[[], Any]] = [
        lambda: remote.path,
        lambda: remote.settings,
        lambda: remote.backup(tmp_path / "copy"),
        lambda: remote.ingest([tmp_path], prune=True),
        lambda: remote.ingest([tmp_path], tenant="other"),
        lambda: remote.add_source({"source_id": "x"}, retriever=object()),
        lambda: remote.governor(durable=True),
        lambda: remote.warm(["x"], limit=3),
        lambda: remote.set_access(["x"], AccessRule(tenant="other")),  # type: ignore[arg-type]  # a tenant as people write it
    ]
    for act in acts:
        with pytest.raises(InvalidFieldError, match=r"the base at '127\.0\.0\.1' "):
            act()
