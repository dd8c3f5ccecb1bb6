"""Decisions over a real socket: events with the fields of the governance tab, pages, proofs that a stranger checks, and damage."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evidentia.contracts.control import Role
from evidentia.contracts.decisions import LogHead, RecordProof
from evidentia.provenance.decision_proofs import verify_record
from evidentia.wiring.embedded import create
from serving.rest_planes import GOOD, SEED_BODY, STALE, STALE_REASON, Served, recorded, serving, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("starlette", reason="the extra `server` is not installed")

TENANTS = count(1)
LOW = {**GOOD, "relevance_score": 0.41}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("plane") / "base"
    create(base)
    with serving(base) as served:
        yield served


@pytest.fixture
def plane(shared: Served) -> Served:
    """Return the plane as a tenant of its own sees it, after a run that passed, was warned and was blocked."""
    own = shared.within(f"t{next(TENANTS)}")
    assert 201 == own.admin.post("/v1/policies", json=SEED_BODY).status_code
    run_id = started(own, run_id="mine")
    for seq, call in enumerate((GOOD, LOW, STALE), start=1):
        recorded(own, run_id, seq, call)
    return own


def events(plane: Served, **query: Any) -> list[dict[str, Any]]:
    return list(plane.agent.get("/v1/governance/events", params=query).json()["events"])


def test_an_event_has_the_fields_of_the_governance_tab(plane: Served) -> None:
    blocked, warned, passed, begun = events(plane)

    fields = ("policy_name", "phase", "action", "category", "reason", "metadata")
    assert ("RAG Quality Guard", "mid_execution", "block", "retrieval", STALE_REASON, {"age_days": 400, "max_age": 90}) == tuple(
        blocked[field] for field in fields
    )
    assert "Retrieval relevance (0.41) below threshold (0.75)" == warned["reason"]
    assert {"relevance_score": 0.41, "threshold": 0.75} == warned["metadata"]
    assert ("allow", "Retrieval quality within policy (1 chunks)", {"chunk_count": 1}) == (
        passed["action"],
        passed["reason"],
        passed["metadata"],
    )
    assert "before_workflow" == begun["phase"]


def test_events_are_filtered(plane: Served) -> None:
    assert [STALE_REASON] == [each["reason"] for each in events(plane, action="block")]
    assert 4 == len(events(plane, agent="rag-agent", category="retrieval", policy="RAG Quality Guard", minutes=5, run="mine"))
    assert 1 == len(events(plane, phase="before_workflow"))
    for query in ({"agent": "x"}, {"category": "grounding"}, {"policy": "x"}, {"action": "redact"}, {"status": "bypassed"}, {"run": "x"}):
        assert [] == events(plane, **query)


def test_decisions_are_paged_newest_first(plane: Served) -> None:
    whole = plane.agent.get("/v1/decisions", params={"limit": 500}).json()["decisions"]
    paged: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": 1}
    while True:
        page = plane.agent.get("/v1/decisions", params=query).json()
        paged += page["decisions"]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert whole == paged
    assert [STALE_REASON] == [each["reason"] for each in whole][:1]
    assert sorted((each["seq"] for each in whole), reverse=True) == [each["seq"] for each in whole]


def test_a_proof_holds_for_whoever_has_the_head_of_the_log(plane: Served) -> None:
    decision = plane.agent.get("/v1/decisions").json()["decisions"][0]
    path = f"/v1/decisions/{decision['log']}/{decision['seq']}/proof"

    proof = msgspec.convert(plane.agent.get(path).json(), RecordProof)
    report = plane.client(Role.AUDITOR).get("/v1/decisions/verify").json()

    head = msgspec.convert(next(each for each in report["heads"] if each["log"] == decision["log"]), LogHead)
    assert report["ok"]
    assert verify_record(proof, head)
    assert proof.line.startswith(decision["hash"])
    assert STALE["source"] in proof.line


def test_a_record_of_another_tenant_is_not_proved(plane: Served) -> None:
    decision = plane.agent.get("/v1/decisions").json()["decisions"][0]
    path = f"/v1/decisions/{decision['log']}/{decision['seq']}/proof"

    assert 404 == plane.within("stranger").reader.get(path).status_code


def test_a_record_that_is_not_there_is_not_proved(plane: Served) -> None:
    log = plane.agent.get("/v1/decisions").json()["decisions"][0]["log"]
    statuses = {
        path: plane.agent.get(f"/v1/decisions/{path}/proof").status_code
        for path in (f"{log}/999999", f"{log}/0", f"{log}/-1", f"{log}/x", f"{log}/{'9' * 40}", "..%2F..%2Fevidentia.sqlite/1", "nolog/1")
    }

    assert {404, 422} == set(statuses.values())
    assert 404 == statuses[f"{log}/999999"] == statuses["nolog/1"]


def test_only_an_auditor_or_admin_verifies(plane: Served) -> None:
    statuses = {role: plane.client(role).get("/v1/decisions/verify").status_code for role in Role}

    assert {Role.READER: 403, Role.AGENT: 403, Role.AUDITOR: 200, Role.ADMIN: 200} == statuses


def test_a_changed_byte_shows_in_the_report(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base") as plane:
        plane.admin.post("/v1/policies", json=SEED_BODY)
        recorded(plane, started(plane), 1, STALE)
        plane.admin.get("/v1/decisions")
        (file,) = [each for each in (tmp_path / "base" / "decisions").iterdir() if each.is_file() and b"manual.pdf" in each.read_bytes()]
        file.write_bytes(file.read_bytes().replace(b"manual.pdf", b"manuel.pdf"))

        report = plane.admin.get("/v1/decisions/verify").json()

    assert not report["ok"]
    assert report["faults"]
