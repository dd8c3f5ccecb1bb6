"""A call that is only announced is prevented by a block: the agent may do otherwise, and the run as a whole is still audited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidentia import connect
from evidentia.agents import Context, PolicyViolationError
from evidentia.contracts.protocol import ProtocolRule, ReplyDrafted, ReplyFinding, TaskKind, TaskOpened, ToolAnswered, ToolAsked, ToolRole
from evidentia.governance.decision_queries import runs
from evidentia.governance.decision_replay import replay
from evidentia.wiring.governance_runtime import open_control

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.runs import RecordableCall

PROTOCOL: dict[str, Any] = {"name": "Protocol", "category": "protocol", "rules": {"action_on_violation": "block"}}
CITED: dict[str, Any] = {
    "name": "Cited",
    "category": "grounding",
    "rules": {"require_source_grounding": True, "min_citations": 1, "action_on_violation": "block"},
}
TASK = TaskOpened(task=TaskKind.KNOWLEDGE)
FORBIDDEN = ToolAsked(call=1, name="Read", role=ToolRole.FILESYSTEM)
RIGHT = ToolAsked(call=2, name="table_rag_retrieve", role=ToolRole.TABLE)
FAULTY = ReplyDrafted(uses_evidence=True, findings=(ReplyFinding(rule=ProtocolRule.CITATION_MISSING, reason="it cites nothing"),))


def corrected(context: Context) -> None:
    """Do something that is prevented, then what is right."""
    context.record_call(TASK)
    with pytest.raises(PolicyViolationError, match="Read"):
        context.record_call(FORBIDDEN)
    context.record_call(RIGHT)
    context.record_call(ToolAnswered(call=2, results=3))


def test_a_run_that_did_otherwise_ends_well() -> None:
    with Context(agent_name="a", policies=[PROTOCOL]) as context:
        corrected(context)
        with pytest.raises(PolicyViolationError, match="cites nothing"):
            context.record_call(FAULTY)

        assert "running" == context.status
        assert not context.should_stop
        assert context.check_policy().allowed
        context.record_call(ReplyDrafted(uses_evidence=True))

    assert "success" == context.status
    assert 2 == sum(decision.action == "block" for decision in context.decisions)


def run_through(context: Context, *calls: RecordableCall) -> None:
    """Go through calls in a run of their own and catch nothing."""
    with context:
        for call in calls:
            context.record_call(call)


def test_the_end_of_such_a_run_is_still_enforced() -> None:
    context = Context(agent_name="a", policies=[PROTOCOL, CITED])

    with pytest.raises(PolicyViolationError, match="No source citations"):
        run_through(context, TASK, RIGHT, ToolAnswered(call=2, results=3), ReplyDrafted(uses_evidence=True))

    assert "blocked" == context.status


def test_an_agent_that_does_not_catch_it_is_blocked() -> None:
    context = Context(agent_name="a", policies=[PROTOCOL])

    with pytest.raises(PolicyViolationError):
        run_through(context, TASK, FORBIDDEN)

    assert "blocked" == context.status


def test_a_violation_of_another_run_is_an_error_of_this_one() -> None:
    outer, inner = Context(agent_name="outer", policies=[PROTOCOL]), Context(agent_name="inner", policies=[PROTOCOL])

    with pytest.raises(PolicyViolationError), outer:
        run_through(inner, TASK, FORBIDDEN)

    assert ("error", "blocked") == (outer.status, inner.status)


def test_the_log_tells_it_and_is_decided_alike_again(tmp_path: Path) -> None:
    with connect(tmp_path / "base", init=True) as base:
        base.add_policy(PROTOCOL)
        with Context(agent_name="a", base=base) as context:
            corrected(context)
            context.record_call(ReplyDrafted(uses_evidence=True))
    with open_control(tmp_path / "base") as control:
        [summary] = runs(control.log)
        report = replay(control.log)

    assert "success" == summary.status
    assert 1 == summary.blocks
    assert report.ok
