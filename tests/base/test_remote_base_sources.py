"""One base asks another over HTTP, in the name of whoever asked it: with a token that may do so, and with one that may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia import Principal, connect
from evidentia.contracts.control import Role
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vocabulary import Classification, CoverageState
from serving.remote_worlds import RemoteWorld, remote_world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.contracts.evidence import CoverageReport

pytest.importorskip("starlette", reason="the extra `server` is not installed")

KEY_VARIABLE = "EVIDENTIA_SOURCE_TEST_BRANCH"
QUESTION = "how long are backups of the vault kept?"
ANN = Principal(principal_id="ann", clearance=Classification.RESTRICTED)  # type: ignore[arg-type]  # a name as people write it
BOB = Principal(principal_id="bob", clearance=Classification.INTERNAL)  # type: ignore[arg-type]  # likewise


@pytest.fixture(scope="module")
def branch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteWorld]:
    with remote_world(tmp_path_factory.mktemp("branch")) as served:
        yield served


def described(branch: RemoteWorld) -> dict[str, object]:
    """Return the branch as a source that is given the most time, since the machine may have other things to do."""
    connection = {"kind": "remote", "address": branch.url, "key_variable": KEY_VARIABLE}
    return {"source_id": "branch", "latency_tier": "archive", "connection": connection}


@pytest.fixture
def home(branch: RemoteWorld, tmp_path: Path) -> Path:
    """Return a base of its own that knows the branch as a source."""
    with connect(tmp_path / "home", init=True) as owner:
        owner.add_source(described(branch))
    return tmp_path / "home"


def asked(home: Path, principal: Principal) -> tuple[list[str], CoverageReport]:
    """Return the texts that came from the branch, and what is said about it."""
    with connect(home, principal=principal) as base:
        response = base.retrieve(QUESTION, latency_deadline_ms=20_000)
    return [each.content for each in response.fragments], response.source_coverage["branch"]  # type: ignore[index]  # a name as people write it


def test_a_delegate_asks_for_each_with_what_each_may_see(branch: RemoteWorld, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delegate = branch.holder("home", Role.READER, clearance=Classification.RESTRICTED, is_delegate=True)
    monkeypatch.setenv(KEY_VARIABLE, delegate.token)
    found = {principal.principal_id: asked(home, principal) for principal in (ANN, BOB)}

    assert {CoverageState.SEARCHED} == {report.state for _, report in found.values()}
    assert "Backups of the vault are kept for seven years." in {text.strip() for text in found[ANN.principal_id][0]}
    assert found[ANN.principal_id][1].candidates > found[BOB.principal_id][1].candidates


def test_the_other_base_writes_down_who_asked(branch: RemoteWorld, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    delegate = branch.holder("home again", Role.READER, clearance=Classification.RESTRICTED, is_delegate=True)
    monkeypatch.setenv(KEY_VARIABLE, delegate.token)
    carol = Principal(principal_id="carol")  # type: ignore[arg-type]  # likewise
    asked(home, carol)
    auditor = branch.served.client(Role.AUDITOR)
    traces = auditor.get("/v1/traces?limit=5").json()["traces"]
    askers = [auditor.get(f"/v1/receipts/{each['receipt_id']}").json()["principal_id"] for each in traces]

    assert 1 == askers.count("carol")


@pytest.mark.parametrize("clearance", [Classification.RESTRICTED, Classification.PUBLIC])
def test_a_token_that_may_not_fails_with_a_reason_that_names_the_flag(
    branch: RemoteWorld, home: Path, monkeypatch: pytest.MonkeyPatch, clearance: Classification
) -> None:
    """A token that is no delegate, and a delegate whose own clearance is lower than the asker's."""
    holder = branch.holder("no delegate", Role.READER, clearance=clearance, is_delegate=clearance is Classification.PUBLIC)
    monkeypatch.setenv(KEY_VARIABLE, holder.token)
    texts, report = asked(home, ANN)

    assert ([], CoverageState.FAILED) == (texts, report.state)
    assert "--delegate" in report.reason
    for hidden in (holder.token, "ann", QUESTION, "vault"):
        assert hidden not in report.reason


def test_a_token_that_was_revoked_fails_with_a_reason(branch: RemoteWorld, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, branch.holder("x", Role.READER).token[:-3] + "xyz")
    _, report = asked(home, BOB)

    assert CoverageState.FAILED == report.state
    assert "does not hold" in report.reason


def test_a_served_base_takes_a_source_and_asks_it(branch: RemoteWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same over the wire: what a base is told of a source by `connect(url)` is asked by the server."""
    delegate = branch.holder("over the wire", Role.READER, clearance=Classification.RESTRICTED, is_delegate=True)
    monkeypatch.setenv(KEY_VARIABLE, delegate.token)
    with remote_world(tmp_path, settings='[server]\nsource_hosts = ["127.0.0.1"]\n') as other:
        admin = other.holder("an admin", Role.ADMIN)
        with connect(other.url, token=admin.token) as base:
            added = base.add_source(described(branch))
            trial = base.test_source("branch", QUESTION, limit=2)
            response = base.retrieve(QUESTION, latency_deadline_ms=20_000)
            base.source_changed("branch")
            base.remove_source("branch")
            left = [each.descriptor.source_id for each in base.sources()]

    assert "branch" == added.source_id
    assert (CoverageState.SEARCHED, CoverageState.SEARCHED) == (trial.report.state, response.source_coverage[added.source_id].state)
    assert added.source_id not in left


def test_a_source_in_the_server_s_own_network_is_refused_over_the_wire(branch: RemoteWorld) -> None:
    admin = branch.holder("an admin", Role.ADMIN)
    with connect(branch.url, token=admin.token) as base, pytest.raises(InvalidFieldError, match="source_hosts"):
        base.add_source({"source_id": "inner", "connection": {"kind": "remote", "address": "http://127.0.0.1:1"}})
