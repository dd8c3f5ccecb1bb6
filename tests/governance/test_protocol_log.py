"""Runs under the protocol in the decision log: replayed to the letter, and tried under stricter candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.decisions import LogEntry
from evidentia.contracts.ids import Sha256
from evidentia.contracts.protocol import (
    Breadth,
    ProtocolRule,
    QuestionType,
    ReplyDrafted,
    ReplyFinding,
    Shortfall,
    TaskKind,
    TaskOpened,
    ToolAnswered,
    ToolAsked,
    ToolRole,
)
from evidentia.contracts.runs import PoliciesRecorded, RetrievedDocument, RunEnded, RunFacts, RunId, RunStarted
from evidentia.governance.decision_replay import replay
from evidentia.governance.memory_log import MemoryLog
from evidentia.governance.shadow import shadow
from evidentia.policy.evaluator import EDITION, PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy
from evidentia.testing.determinism import RepeatableEntropy

if TYPE_CHECKING:
    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.policies import Policy
    from evidentia.contracts.runs import AnyCall

TASK = TaskOpened(task=TaskKind.KNOWLEDGE, question_type=QuestionType.PRICE, breadth=Breadth.LOOKUP, question_hash=Sha256("one"))
EMPTY = (Shortfall.EMPTY,)
FINDING = ReplyFinding(rule=ProtocolRule.CITATION_MISSING, reason="a paragraph cites nothing")
FAULTY = ReplyDrafted(uses_evidence=True, findings=(FINDING,))


def policy(name: str = "Protocol", **rules: Any) -> Policy:
    return check_policy({"name": name, "category": "protocol", "rules": rules})


def table(call: int, **facts: Any) -> ToolAsked:
    return ToolAsked(call=call, name="table_rag_retrieve", role=ToolRole.TABLE, query_hash=Sha256(f"q{call}"), **facts)


def text(call: int, top_k: int | None = None) -> ToolAsked:
    return ToolAsked(call=call, name="rag_retrieve", role=ToolRole.TEXT, top_k=top_k, query_hash=Sha256(f"q{call}"))


def back(call: int, *shortfalls: Shortfall) -> ToolAnswered:
    return ToolAnswered(call=call, shortfalls=shortfalls)


TRACE: tuple[AnyCall, ...] = (
    TASK,
    table(1, is_raw=True),
    back(1, *EMPTY),
    table(2, top_k=5),
    text(3, 100),
    back(3),
    RetrievedDocument(relevance_score=0.9, source="a", age_days=1),
    text(4, 50),
    FAULTY,
)


def recorded(policies: PolicySet, *, is_enforced: bool = True) -> MemoryLog:
    """Return a log with one run, decided and written down."""
    log, run = MemoryLog(entropy=RepeatableEntropy()), RunEvaluator(policies, is_enforced=is_enforced)
    facts = RunFacts(run_id=RunId("r"), agent_name="agent")

    def add(call: AnyCall, verdicts: tuple[Verdict, ...] = (), count: int = 0) -> None:
        log.append([LogEntry(at_us=0, run_id=facts.run_id, policies=policies.digest, call=call, verdicts=verdicts, count=count)])

    add(PoliciesRecorded(policies=policies.policies))
    add(RunStarted(facts=facts, is_enforced=is_enforced, edition=EDITION), run.begin())
    for call in TRACE:
        add(call, run.record(call), run.count)
    add(RunEnded(), run.finish(RunEnded()))
    return log


@pytest.mark.parametrize("is_enforced", [True, False])
@pytest.mark.parametrize("action", ["warn", "block"])
def test_every_decision_comes_out_of_the_log_again(action: str, *, is_enforced: bool) -> None:
    both = PolicySet.of([policy("a", action_on_violation=action), policy("b", profile="thorough", skill_tools=["crm"])])

    report = replay(recorded(both, is_enforced=is_enforced))
    assert report.ok, report.mismatches
    assert len(TRACE) + 2 == report.decisions


def test_a_stricter_candidate_is_tried_on_the_log() -> None:
    report = shadow(recorded(PolicySet.of([policy()])).records(), [policy(action_on_violation="block")])

    assert (1, 1) == (report.runs, report.runs_newly_blocked)
