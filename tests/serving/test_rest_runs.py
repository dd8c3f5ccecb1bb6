"""Runs over a real socket: what is decided, what is recorded once, what is refused, and what is read back."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role
from evidentia.contracts.runs import RetrievedDocument, RunFacts, RunId
from evidentia.wiring.embedded import create
from serving.rest_planes import GOOD, SEED_BODY, STALE, STALE_REASON, Served, recorded, serving, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("starlette", reason="the extra `server` is not installed")

TENANTS = count(1)
GROUNDED = {"kind": "grounding", "grounding_scores": [0.9], "citations": ["a"]}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("plane") / "base"
    create(base)
    with serving(base) as served:
        yield served


@pytest.fixture
def plane(shared: Served) -> Served:
    """Return the plane as a tenant of its own sees it, with the seed's policy in force."""
    own = shared.within(f"t{next(TENANTS)}")
    assert 201 == own.admin.post("/v1/policies", json=SEED_BODY).status_code
    return own


def decisions_of(plane: Served, run_id: str) -> list[dict[str, Any]]:
    return list(plane.agent.get(f"/v1/runs/{run_id}/decisions", params={"limit": 500}).json()["decisions"])


def test_a_run_is_held_to_the_policies_in_scope(plane: Served) -> None:
    inside = plane.agent.post("/v1/runs", json={"facts": {"agent_name": "rag-agent"}}).json()
    outside = plane.agent.post("/v1/runs", json={"facts": {"agent_name": "other-agent"}}).json()

    assert ["RAG Quality Guard"] == [each["body"]["name"] for each in inside["policies"]]
    assert [] == outside["policies"]
    assert inside["is_enforced"]


def test_a_good_document_passes_and_a_stale_one_is_blocked_at_its_call(plane: Served) -> None:
    run_id = started(plane)

    passed, blocked = recorded(plane, run_id, 1, GOOD), recorded(plane, run_id, 2, STALE)

    assert (None, "running", [{"seq": 1}]) == (passed["stopped_at"], passed["status"], passed["results"])
    assert (2, "blocked") == (blocked["stopped_at"], blocked["status"])
    (result,) = blocked["results"]
    assert STALE_REASON == result["verdicts"][0]["decisive"]["reason"]
    (decision,) = result["decisions"]
    assert (STALE_REASON, "block", "mid_execution") == (decision["reason"], decision["action"], decision["phase"])
    assert {"age_days": 400, "max_age": 90} == decision["metadata"]
    assert decision["seq"] > 0
    assert 64 == len(decision["hash"])


def test_in_a_batch_nothing_after_the_stopped_call_is_recorded(plane: Served) -> None:
    run_id = started(plane)
    calls = [{"seq": seq, "call": call} for seq, call in enumerate((GOOD, STALE, GOOD), start=1)]

    reply = plane.agent.post(f"/v1/runs/{run_id}/calls", json={"calls": calls}).json()

    assert [1, 2] == [each["seq"] for each in reply["results"]]
    assert 2 == plane.agent.get(f"/v1/runs/{run_id}").json()["documents"]


def test_the_same_request_again_is_answered_and_not_recorded(plane: Served) -> None:
    run_id = started(plane)
    first, again = recorded(plane, run_id, 1, STALE), recorded(plane, run_id, 1, STALE)

    assert again["results"][0].pop("is_repeated")
    assert first["results"] == again["results"]
    assert 1 == plane.agent.get(f"/v1/runs/{run_id}").json()["documents"]


def test_numbers_out_of_order_are_conflicts(plane: Served) -> None:
    run_id = started(plane)
    recorded(plane, run_id, 1, GOOD)

    def sent(seq: int, call: dict[str, Any]) -> tuple[int, str]:
        reply = plane.agent.post(f"/v1/runs/{run_id}/calls", json={"calls": [{"seq": seq, "call": call}]})
        return reply.status_code, reply.json()["error"]["code"]

    assert (409, "sequence_gap") == sent(3, GOOD)
    assert (409, "sequence_reused") == sent(1, STALE)


def test_calls_at_once_are_recorded_one_after_the_other(plane: Served) -> None:
    run_id = started(plane)
    barrier, statuses = threading.Barrier(5), list[int]()

    def send() -> None:
        barrier.wait()
        reply = plane.agent.post(f"/v1/runs/{run_id}/calls", json={"calls": [{"seq": 1, "call": GOOD}]})
        statuses.append(reply.status_code)

    threads = [threading.Thread(target=send) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [200] * 5 == statuses
    assert 1 == plane.agent.get(f"/v1/runs/{run_id}").json()["documents"]


def test_beginning_the_same_run_twice_begins_one(plane: Served) -> None:
    request = {"facts": {"agent_name": "rag-agent", "run_id": "mine"}}

    first, again = plane.agent.post("/v1/runs", json=request), plane.agent.post("/v1/runs", json=request)
    other = plane.agent.post("/v1/runs", json={**request, "is_enforced": False})

    assert [201, 200] == [first.status_code, again.status_code]
    assert first.json() == again.json()
    assert (409, "run_exists") == (other.status_code, other.json()["error"]["code"])
    assert 1 == len(plane.reader.get("/v1/runs").json()["runs"])


def test_a_run_can_be_called_by_its_own_name_and_by_that_of_the_log(plane: Served) -> None:
    run_id = started(plane, run_id="mine")

    assert f"{plane.tenant}~mine" == run_id
    assert plane.reader.get("/v1/runs/mine").json() == plane.reader.get(f"/v1/runs/{run_id}").json()


def test_the_end_audits_the_run_and_can_be_told_twice(plane: Served) -> None:
    plane.admin.post("/v1/policies", json={"name": "cited", "category": "grounding", "rules": {"action_on_violation": "block"}})
    run_id = started(plane)
    recorded(plane, run_id, 1, GOOD)

    first = plane.agent.post(f"/v1/runs/{run_id}/end", json={"status": "success", "text": "an answer"})
    again = plane.agent.post(f"/v1/runs/{run_id}/end", json={"status": "success"})

    assert (200, "blocked") == (first.status_code, first.json()["status"])
    assert first.json() == again.json()
    reasons = [each["decisive"]["reason"] for each in first.json()["verdicts"]]
    assert "Citations (0) below minimum (1)" in reasons
    assert [("Citations (0) below minimum (1)", "after_workflow")] == [
        (each["reason"], each["phase"]) for each in first.json()["decisions"]
    ]
    assert (409, "run_ended") == _late(plane, run_id)


def _late(plane: Served, run_id: str) -> tuple[int, str]:
    reply = plane.agent.post(f"/v1/runs/{run_id}/calls", json={"calls": [{"seq": 2, "call": GOOD}]})
    return reply.status_code, reply.json()["error"]["code"]


def test_a_block_that_was_caught_still_ends_as_blocked(plane: Served) -> None:
    run_id = started(plane)
    recorded(plane, run_id, 1, STALE)

    end = plane.agent.post(f"/v1/runs/{run_id}/end", json={"status": "success"}).json()

    assert "blocked" == end["status"]
    assert [] == end["decisions"]
    assert "blocked" == plane.agent.get(f"/v1/runs/{run_id}").json()["status"]


def test_in_shadow_nothing_stops(plane: Served) -> None:
    reply = plane.agent.post("/v1/runs", json={"facts": {"agent_name": "rag-agent"}, "is_enforced": False})

    recorded_stale = recorded(plane, reply.json()["run_id"], 1, STALE)

    (verdict,) = recorded_stale["results"][0]["verdicts"]
    assert (None, "shadow", False) == (recorded_stale["stopped_at"], verdict["decisive"]["status"], verdict["is_enforced"])


def test_policies_given_with_a_run_are_in_force_for_it_alone(plane: Served) -> None:
    given = {"name": "no drafts", "category": "retrieval", "rules": {"blocked_sources": ["draft"]}}
    reply = plane.agent.post("/v1/runs", json={"facts": {"agent_name": "rag-agent"}, "policies": [given]}).json()

    blocked = recorded(plane, reply["run_id"], 1, {**GOOD, "source": "draft"})

    assert ["RAG Quality Guard", "no drafts"] == [each["body"]["name"] for each in reply["policies"]]
    assert "Retrieved from blocked source 'draft'" == blocked["results"][0]["verdicts"][0]["decisive"]["reason"]
    assert 1 == len(plane.reader.get("/v1/policies").json()["policies"])


def test_a_policy_changed_later_does_not_change_a_run(plane: Served) -> None:
    run_id = started(plane)
    plane.admin.patch("/v1/policies/RAG%20Quality%20Guard", json={"rules": {"max_source_age_days": 500}})

    assert 1 == recorded(plane, run_id, 1, STALE)["stopped_at"]
    assert recorded(plane, started(plane), 1, STALE)["stopped_at"] is None


BAD_STARTS: list[tuple[dict[str, Any], int, str]] = [
    ({}, 422, "facts"),
    ({"facts": {}}, 422, "facts.agent_name"),
    ({"facts": {"agent_name": ""}}, 422, "facts.agent_name"),
    ({"facts": {"agent_nme": "x"}}, 422, "facts.agent_nme"),
    ({"facts": {"agent_name": 3}}, 422, "facts.agent_name"),
    ({"facts": {"agent_name": "x", "run_id": "a/b"}}, 422, "facts.run_id"),
    ({"facts": {"agent_name": "x", "run_id": "default~x"}}, 422, "facts.run_id"),
    ({"facts": {"agent_name": "x"}, "policies": [{"name": "p", "category": "retrievall"}]}, 422, "policies[0].category"),
    ({"facts": {"agent_name": "x"}, "polices": []}, 422, "polices"),
]


def test_a_run_that_cannot_be_right_is_refused(plane: Served) -> None:
    replies = [plane.agent.post("/v1/runs", json=body) for body, _, _ in BAD_STARTS]

    told = [(reply.status_code, reply.json()["error"]["problems"][0]["path"]) for reply in replies]
    assert [(status, path) for _, status, path in BAD_STARTS] == told
    assert [] == plane.reader.get("/v1/runs").json()["runs"]


def test_a_run_of_another_tenant_cannot_be_begun(plane: Served) -> None:
    reply = plane.agent.post("/v1/runs", json={"facts": {"agent_name": "x", "tenant": "default"}})

    assert (403, "wrong_tenant") == (reply.status_code, reply.json()["error"]["code"])


BAD_CALLS: list[tuple[dict[str, Any], str]] = [
    ({**GOOD, "age_days": -1}, "calls[1].call.age_days"),
    ({**GOOD, "relevance_score": "high"}, "calls[1].call.relevance_score"),
    ({"kind": "retrievl"}, "calls[1].call.kind"),
    ({"kind": "end"}, "calls[1].call.kind"),
    ({"kind": "run", "facts": {"run_id": "x", "agent_name": "y"}}, "calls[1].call.kind"),
    ({**GROUNDED, "judgements": {"p": {"status": "judged", "score": 1.0, "model": "m"}}}, "calls[1].call.judgements"),
]


def test_when_one_call_cannot_be_right_none_is_recorded(plane: Served) -> None:
    run_id = started(plane)
    bodies = [{"calls": [{"seq": 1, "call": GOOD}, {"seq": 2, "call": call}]} for call, _ in BAD_CALLS]

    replies = [plane.agent.post(f"/v1/runs/{run_id}/calls", json=body) for body in bodies]

    assert [(422, path) for _, path in BAD_CALLS] == [(each.status_code, each.json()["error"]["problems"][0]["path"]) for each in replies]
    assert 0 == plane.agent.get(f"/v1/runs/{run_id}").json()["documents"]


def test_numbers_that_are_no_numbers_are_refused(plane: Served) -> None:
    run_id = started(plane)

    for number in ("NaN", "Infinity", "1e999"):
        raw = f'{{"calls": [{{"seq": 1, "call": {{"kind": "retrieval", "relevance_score": {number}}}}}]}}'
        reply = plane.agent.post(f"/v1/runs/{run_id}/calls", content=raw, headers={"content-type": "application/json"})
        assert reply.status_code in {400, 422}
    assert 0 == plane.agent.get(f"/v1/runs/{run_id}").json()["documents"]


def test_decisions_of_a_run_are_read_page_by_page(plane: Served) -> None:
    run_id = started(plane)
    for seq in range(1, 6):
        recorded(plane, run_id, seq, GOOD)

    whole = decisions_of(plane, run_id)
    paged: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = plane.agent.get(f"/v1/runs/{run_id}/decisions", params=query).json()
        paged += page["decisions"]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert whole == paged
    reasons = ["Retrieval rules stored", *(f"Retrieval quality within policy ({number} chunks)" for number in range(1, 6))]
    assert reasons == [each["reason"] for each in whole]


def test_the_trace_has_a_span_per_document_under_its_tool(plane: Served) -> None:
    run_id = started(plane)
    recorded(plane, run_id, 1, {"kind": "span", "opened": "s1", "name": "vector_search", "is_retrieval": True})
    recorded(plane, run_id, 2, {**GOOD, "span": "s1"})

    spans = plane.agent.get(f"/v1/runs/{run_id}/trace").json()["spans"]

    documents = [each for each in spans if each["kind"] == "document"]
    parents = {each["span_id"]: each["name"] for each in spans}
    assert ["vector_search"] == [parents[each["parent"]] for each in documents]


def test_runs_are_listed_newest_first_and_filtered(plane: Served) -> None:
    ids = [started(plane, run_id=f"r{number}") for number in range(4)]
    recorded(plane, ids[0], 1, STALE)
    plane.agent.post("/v1/runs", json={"facts": {"agent_name": "other-agent"}})

    def listed(**query: Any) -> list[str]:
        return [each["facts"]["run_id"] for each in plane.reader.get("/v1/runs", params=query).json()["runs"]]

    assert ids[::-1] == listed(agent="rag-agent")
    assert [ids[0]] == listed(status="blocked")
    first = plane.reader.get("/v1/runs", params={"limit": 3}).json()
    rest = plane.reader.get("/v1/runs", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert (5, None) == (len({each["facts"]["run_id"] for each in (*first["runs"], *rest["runs"])}), rest["next_cursor"])
    assert 5 == len(listed(minutes=5))


def test_a_run_of_another_tenant_is_not_there(plane: Served) -> None:
    run_id = started(plane, run_id="mine")
    recorded(plane, run_id, 1, GOOD)
    other = plane.within("stranger")

    for name in ("mine", run_id):
        for path in (f"/v1/runs/{name}", f"/v1/runs/{name}/trace", f"/v1/runs/{name}/decisions"):
            assert 404 == other.agent.get(path).status_code
        calls = {"calls": [{"seq": 2, "call": GOOD}]}
        assert 404 == other.agent.post(f"/v1/runs/{name}/calls", json=calls).status_code
        assert 404 == other.agent.post(f"/v1/runs/{name}/end", json={}).status_code
    assert [] == other.reader.get("/v1/runs").json()["runs"]
    assert [] == other.reader.get("/v1/decisions").json()["decisions"]


def test_a_run_of_a_process_beside_the_plane_is_read_by_its_tenant_alone(plane: Served) -> None:
    run = plane.control.start(RunFacts(run_id=RunId(f"local-{plane.tenant}"), agent_name="rag-agent", tenant=plane.tenant))
    run.record(RetrievedDocument(relevance_score=0.9, source="a", collection="knowledge_base", age_days=400))
    name = run.facts.run_id

    assert "blocked" == plane.reader.get(f"/v1/runs/{name}").json()["status"]
    assert 2 == len(decisions_of(plane, name))
    assert 404 == plane.within("stranger").reader.get(f"/v1/runs/{name}").status_code


def test_whoever_begins_a_run_with_anothers_name_reads_nothing_of_it(plane: Served, shared: Served) -> None:
    victim = plane.control.start(RunFacts(run_id=RunId(f"victim-{plane.tenant}"), agent_name="rag-agent", tenant=plane.tenant))
    name = victim.facts.run_id

    begun = shared.agent.post("/v1/runs", json={"facts": {"agent_name": "thief", "run_id": name}})

    victim.record(RetrievedDocument(relevance_score=0.9, source="a", collection="knowledge_base", age_days=400))

    assert f"default~{name}" == begun.json()["run_id"]
    assert ("thief", 0) == (shared.agent.get(f"/v1/runs/{name}").json()["facts"]["agent_name"], _documents(shared, name))
    assert [] == shared.agent.get("/v1/decisions", params={"policy": "RAG Quality Guard"}).json()["decisions"]
    assert ("rag-agent", 1) == (plane.agent.get(f"/v1/runs/{name}").json()["facts"]["agent_name"], _documents(plane, name))


def _documents(plane: Served, name: str) -> int:
    return int(plane.agent.get(f"/v1/runs/{name}").json()["documents"])


def test_a_run_called_admin_writes_nothing_as_one_who_cares_for_the_log(shared: Served) -> None:
    run_id = started(shared, run_id="admin")

    assert "default~admin" == run_id
    assert shared.admin.get("/v1/decisions/verify").json()["ok"]


# --- bounds ---


def test_a_run_of_which_nobody_speaks_is_closed_as_an_error(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base", idle_ns=0, max_open=1) as plane:
        expired, fresh = started(plane), started(plane)
        late = plane.agent.post(f"/v1/runs/{expired}/calls", json={"calls": [{"seq": 1, "call": GOOD}]})

        assert expired != fresh
        assert (409, "run_ended") == (late.status_code, late.json()["error"]["code"])
        assert "error" == plane.agent.get(f"/v1/runs/{expired}").json()["status"]


def test_too_many_open_runs_are_refused(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base", max_open=1) as plane:
        started(plane)
        reply = plane.agent.post("/v1/runs", json={"facts": {"agent_name": "x"}})

        assert (429, "too_many_runs") == (reply.status_code, reply.json()["error"]["code"])
        assert reply.headers["retry-after"].isdecimal()


def test_a_plane_that_stops_closes_its_runs_and_the_next_one_reads_them(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base") as plane:
        run_id = started(plane)
        recorded(plane, run_id, 1, GOOD)
        token = plane.token(Role.AGENT)
    with serving(tmp_path / "base") as later:
        headers = {"authorization": f"Bearer {token}"}
        run = later.nobody.get(f"/v1/runs/{run_id}", headers=headers).json()
        gone = later.nobody.post(f"/v1/runs/{run_id}/calls", json={"calls": [{"seq": 2, "call": GOOD}]}, headers=headers)

    assert ("error", 1) == (run["status"], run["documents"])
    assert 404 == gone.status_code


# --- what is told of a run is true ---


def test_a_run_that_is_stopped_at_its_end_is_stored_as_blocked_with_every_decision_that_stopped_it(plane: Served) -> None:
    cited = {"name": "cited", "category": "grounding", "rules": {"min_citations": 1, "action_on_violation": "block"}}
    few = {"name": "few", "category": "retrieval", "rules": {"min_chunks": 1, "action_on_chunk_violation": "block"}}
    start = {"facts": {"agent_name": "rag-agent"}, "policies": [cited, few]}
    run_id = plane.agent.post("/v1/runs", json=start).json()["run_id"]
    ended = plane.agent.post(f"/v1/runs/{run_id}/end", json={"status": "success"}).json()
    told = [plane.agent.get(f"/v1/runs/{run_id}").json()["status"], plane.agent.get(f"/v1/runs/{run_id}/trace").json()["summary"]["status"]]
    (end,) = {each["inputs"]["status"] for each in decisions_of(plane, run_id) if each["kind"] == "end"}

    assert ["blocked"] * 4 == [ended["status"], *told, end]
    assert ["retrieval", "grounding"] == [each["category"] for each in ended["decisions"]]


@pytest.mark.parametrize("confidence", [40, 1.001, -0.1])
def test_a_confidence_outside_its_range_is_refused_with_its_path_and_nothing_is_recorded(plane: Served, confidence: float) -> None:
    run_id = started(plane)
    calls = [{"seq": 1, "call": GOOD}, {"seq": 2, "call": {**GROUNDED, "output_confidence": confidence}}]
    reply = plane.agent.post(f"/v1/runs/{run_id}/calls", json={"calls": calls})

    assert (422, "calls[1].call.output_confidence") == (reply.status_code, reply.json()["error"]["problems"][0]["path"])
    assert "is not between 0 and 1" in reply.json()["error"]["problems"][0]["problem"]
    assert ["run"] == [each["kind"] for each in decisions_of(plane, run_id)]


def test_a_minimum_outside_its_range_is_refused_at_the_policy(plane: Served) -> None:
    reply = plane.admin.post("/v1/policies", json={"name": "p", "category": "retrieval", "rules": {"min_relevance_score": 75}})

    assert (422, "rules.min_relevance_score") == (reply.status_code, reply.json()["error"]["problems"][0]["path"])
