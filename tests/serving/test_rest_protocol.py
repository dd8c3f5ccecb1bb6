"""The agent protocol behind a control plane: calls are decided there, blocked there, and stand in its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.policies import PolicyBody
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy
from evidentia.wiring.embedded import create
from serving.rest_planes import Served, serving, started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.runs import RecordableCall

pytest.importorskip("starlette", reason="the extra `server` is not installed")

import msgspec

from evidentia.contracts import runs

POLICY: dict[str, Any] = {
    "name": "Protocol",
    "category": "protocol",
    "rules": {"action_on_violation": "block"},
    "scope": {"agents": ["rag-agent"]},
}
CALLS: tuple[dict[str, Any], ...] = (
    {"kind": "task", "task": "knowledge", "question_type": "price", "breadth": "lookup", "question_hash": "q"},
    {"kind": "ask", "call": 1, "name": "table_rag_retrieve", "role": "table", "query_hash": "a"},
    {"kind": "answer", "call": 1, "results": 3},
    {"kind": "ask", "call": 2, "name": "rag_retrieve", "role": "text", "top_k": 50, "query_hash": "b"},
    {"kind": "reply", "uses_evidence": True, "findings": [{"rule": "citation_missing", "reason": "a paragraph cites nothing"}]},
)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("plane") / "base"
    create(base)
    with serving(base) as served:
        assert 201 == served.admin.post("/v1/policies", json=POLICY).status_code
        yield served


def told(plane: Served, run_id: str, seq: int, call: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = plane.agent.post(f"/v1/runs/{run_id}/calls", json={"calls": [{"seq": seq, "call": call}]}).json()
    return answer


def decided_here(calls: tuple[dict[str, Any], ...]) -> list[list[tuple[str, str]]]:
    """Return what the evaluator says of each call without a plane between."""
    evaluator = RunEvaluator(PolicySet.of([check_policy(msgspec.convert(POLICY, PolicyBody))]))
    decoder: msgspec.json.Decoder[RecordableCall] = msgspec.json.Decoder(runs.RecordableCall)
    return [
        [(each.decisive.rule, each.decisive.action.value) for each in evaluator.record(decoder.decode(msgspec.json.encode(call)))]
        for call in calls
    ]


def test_the_plane_decides_as_the_evaluator_does(plane: Served) -> None:
    run_id = started(plane)

    answers = [told(plane, run_id, seq, call) for seq, call in enumerate(CALLS, start=1)]

    verdicts = [
        [(verdict["decisive"]["rule"], verdict["decisive"]["action"]) for verdict in answer["results"][0].get("verdicts", ())]
        for answer in answers[:4]
    ]
    assert decided_here(CALLS[:4]) == verdicts
    assert [[], [], [], [("needless_call", "block")]] == verdicts
    assert (4, "running") == (answers[3]["stopped_at"], answers[3]["status"])


def test_what_was_decided_stands_in_the_log_of_the_plane(plane: Served) -> None:
    run_id = started(plane)
    told(plane, run_id, 1, CALLS[0])
    told(plane, run_id, 2, {"kind": "ask", "call": 1, "name": "Bash", "role": "filesystem"})

    decisions = plane.agent.get(f"/v1/runs/{run_id}/decisions", params={"limit": 500}).json()["decisions"]

    [blocked] = [each for each in decisions if each["action"] == "block"]
    assert ("protocol", "filesystem_tools", "ask", "first_call.1") == (
        blocked["category"],
        blocked["rule"],
        blocked["kind"],
        blocked["metadata"]["section"],
    )
