"""`evidentia tokens` with facts, and tokens that were made before there were any."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from evidentia.backends.embedded.governance.governance_db import GOVERNANCE_NAME, GovernanceFile, digest_of
from evidentia.backends.embedded.governance.token_store import EmbeddedTokens
from evidentia.contracts.control import NO_FACTS, Role, TokenFacts, TokenId, TokenLimits
from evidentia.contracts.errors import BaseDamagedError
from evidentia.contracts.vocabulary import Classification
from evidentia.testing.determinism import RepeatableEntropy
from evidentia.testing.virtual_time import VirtualClock
from evidentia.wiring.embedded import create

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run

FACTS = ("--clearance", "confidential", "--group", "red", "--group", "blue", "--attribute", "site=north", "--delegate", "--rate", "60")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    create(tmp_path / "base")
    return tmp_path / "base"


def test_what_is_typed_about_a_holder_is_kept(run: Run, base: Path) -> None:
    added = run(
        "tokens", "add", "--name", "bob", "--role", "reader", "--tenant", "acme", *FACTS, "--quota", "1000", "--base", base, "--json"
    )
    listed = run("tokens", "list", "--base", base, "--json")

    assert 0 == added.exit_code, added.err
    info = json.loads(listed.out)[0]
    assert json.loads(added.out)["info"] == info
    assert TokenFacts(
        clearance=Classification.CONFIDENTIAL,
        groups=("blue", "red"),
        attributes={"site": "north"},
        is_delegate=True,
        limits=TokenLimits(requests_per_minute=60, requests_per_day=1_000),
    ) == msgspec.convert(info["facts"], TokenFacts)


def test_a_floor_and_agents_are_typed_kept_and_shown(run: Run, base: Path) -> None:
    words = ("--floor", "enforce", "--agent", "rag", "--agent", "web", "--agent", "rag")
    added = run("tokens", "add", "--name", "bob", "--role", "agent", *words, "--base", base, "--json")
    refused = run("tokens", "add", "--name", "bob", "--role", "agent", "--floor", "high", "--base", base)

    assert {"floor": "enforce", "agents": ["rag", "web"], "limits": {}} == json.loads(added.out)["info"]["facts"]
    assert "floor enforce, agent rag, agent web" in run("tokens", "list", "--base", base).out
    assert 2 == refused.exit_code
    assert "'high' is none of off, annotate, filter, enforce" in refused.err


def test_the_list_shows_what_is_true_of_each_holder(run: Run, base: Path) -> None:
    run("tokens", "add", "--name", "bob", "--role", "reader", *FACTS, "--quota", "1000", "--base", base)
    run("tokens", "add", "--name", "eve", "--role", "agent", "--base", base)
    header, bob, eve = sorted(
        run("tokens", "list", "--base", base).out.splitlines(), key=lambda line: (not line.startswith("id"), "eve" in line)
    )

    assert ["id", "tenant", "roles", "clearance", "facts"] == header.split()[:5]
    assert "confidential  group blue, group red, site=north, delegate, 60/min, 1000/day" in bob
    assert ["default", "agent", "internal", "-"] == eve.split()[1:5]


@pytest.mark.parametrize(
    "words",
    [
        ("--clearance", "top"),
        ("--attribute", "site"),
        ("--attribute", "=north"),
        ("--attribute", "site="),
        ("--attribute", "site=a", "--attribute", "site=b"),
        ("--group", ""),
        ("--group", "g" * 201),
        ("--rate", "0"),
        ("--rate", "-1"),
        ("--rate", "many"),
        ("--quota", "0"),
        ("--name", "jwt:alice"),
    ],
    ids=str,
)
def test_facts_that_cannot_be_right_are_refused(run: Run, base: Path, words: tuple[str, ...]) -> None:
    outcome = run("tokens", "add", "--name", "bob", "--role", "reader", *words, "--base", base)

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert words[0].removeprefix("--") in outcome.err.partition("hint: ")[0]
    assert not (base / GOVERNANCE_NAME).exists()


def tokens_in(directory: Path) -> EmbeddedTokens:
    return EmbeddedTokens(GovernanceFile(directory / GOVERNANCE_NAME), clock=VirtualClock(), entropy=RepeatableEntropy())


def rewrite(tokens: EmbeddedTokens, **changed: object) -> bytes:
    """Write the only row again with fields changed in its text; None leaves one out. Return what it was."""
    with tokens._file.transaction() as database:
        token_id, tenant, info, salt, hashed, _ = database.execute("SELECT * FROM tokens").fetchone()
        read = {name: value for name, value in {**json.loads(info), **changed}.items() if value is not None}
        written = msgspec.json.encode(read, order="deterministic")
        values = (written, digest_of(token_id, tenant, written, salt, hashed), token_id)
        database.execute("UPDATE tokens SET info = ?, digest = ? WHERE token_id = ?", values)
    return bytes(info)


def test_a_token_made_before_there_were_facts_still_opens_and_can_be_revoked(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path)
    issued = tokens.issue(name="old", roles=[Role.AGENT], tenant="acme", by="test")
    before = rewrite(tokens, facts=None)

    assert b'"facts"' in before
    with tokens._file.reading() as database:
        assert database is not None
        assert b"facts" not in database.execute("SELECT info FROM tokens").fetchone()[0]
    found = tokens_in(tmp_path).verify(issued.token)
    assert issued.info == found
    assert found is not None
    assert NO_FACTS == found.facts
    assert [issued.info] == list(tokens.tokens(tenant="acme"))
    assert tokens.revoke(issued.info.token_id, tenant="acme", by="test").revoked_at is not None
    assert tokens.verify(issued.token) is None


def test_facts_that_this_version_does_not_know_open_nothing(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path)
    issued = tokens.issue(name="new", roles=[Role.AGENT], tenant="acme", by="test")
    rewrite(tokens, facts={"only_on": "monday"})

    with pytest.raises(BaseDamagedError):
        tokens.verify(issued.token)


def test_a_hash_is_announced_and_may_be_spared(tmp_path: Path) -> None:
    tokens, announced = tokens_in(tmp_path), list[str]()
    issued = tokens.issue(name="bob", roles=[Role.AGENT], tenant="acme", by="test")

    def refuse() -> None:
        raise PermissionError

    assert tokens.verify("evt_nobody_secret", before_hash=refuse) is None
    with pytest.raises(PermissionError):
        tokens.verify(issued.token, before_hash=refuse)
    assert issued.info == tokens.verify(issued.token, before_hash=lambda: announced.append("hash"))
    assert issued.info == tokens.verify(issued.token, before_hash=refuse)
    assert ["hash"] == announced


def test_a_token_stands_by_its_id_until_it_is_revoked(tmp_path: Path) -> None:
    tokens = tokens_in(tmp_path)
    issued = tokens.issue(name="bob", roles=[Role.AGENT], tenant="acme", by="test")

    assert issued.info == tokens.standing(issued.info.token_id)
    tokens.revoke(issued.info.token_id, tenant=None, by="test")
    assert tokens.standing(issued.info.token_id) is None
    assert tokens.standing(TokenId("nobody")) is None
