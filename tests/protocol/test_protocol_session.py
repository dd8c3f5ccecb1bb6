"""A session follows an agent through one question: checks before, advice after, the reply at the end; with and without a run around it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from protocol_traces import KEYS, KEYS_REPLY, KEYS_RESULT, NOTHING, PRICE, PRICE_REPLY, PRICES, text_result

from evidentia.agents import Context, PolicyViolationError
from evidentia.agents.errors import InvalidRecordError
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.protocol import Breadth, NextStep, ProtocolRule, QuestionType, SkillTool, TaskKind
from evidentia.protocol import ProtocolSession

BLOCKING = {"name": "Protocol", "category": "protocol", "rules": {"profile": "first_call", "action_on_violation": "block"}}


def ran(session: ProtocolSession, name: str, query: str, result: str, **more: Any) -> NextStep:
    return session.after(session.before(name, {"query": query, **more}), result).step


def rules(session: ProtocolSession) -> list[str]:
    return [found.rule.value for found in session.findings]


def test_session_reads_its_question() -> None:
    session = ProtocolSession(PRICE)

    assert (TaskKind.KNOWLEDGE, QuestionType.PRICE, Breadth.LOOKUP) == (session.task, session.question_type, session.breadth)
    assert ("Falcon",) == session.prepared.entities
    assert ("table_rag_retrieve", None) == (session.advice.tool, session.advice.top_k)


def test_given_labels_win_over_judged_ones() -> None:
    session = ProtocolSession(PRICE, task=TaskKind.CODE, question_type=QuestionType.POLICY, breadth=Breadth.BROAD)

    assert (TaskKind.CODE, QuestionType.POLICY, Breadth.BROAD) == (session.task, session.question_type, session.breadth)


def test_first_call_answers_after_one_sufficient_result() -> None:
    session = ProtocolSession(PRICE)

    assert NextStep.ANSWER == ran(session, "table_rag_retrieve", session.advice.query, PRICES)
    report = session.check_reply(PRICE_REPLY)
    assert report.ok, report.text
    assert 6 == len(report.answers)
    assert all(answer.is_yes for answer in report.answers)
    assert PRICE_REPLY == session.release(PRICE_REPLY)


def test_first_call_rewrites_then_switches_then_gives_up() -> None:
    session = ProtocolSession(KEYS)
    steps = []
    while (advice := session.advice).step in {NextStep.SWITCH, NextStep.REWRITE}:
        arguments = {"query": advice.query} if advice.top_k is None else {"query": advice.query, "top_k": advice.top_k}
        session.after(session.before(advice.tool, arguments), NOTHING)
        steps.append((advice.tool, advice.top_k))

    assert [("rag_retrieve", 50), ("rag_retrieve", 100), ("table_rag_retrieve", None)] == steps
    assert NextStep.NOT_FOUND == session.advice.step
    assert [] == rules(session)


def test_thorough_asks_every_source_before_it_gives_up() -> None:
    session = ProtocolSession(PRICE, profile="thorough", skills=[SkillTool(name="crm_lookup", topics=("plan",))])
    tools = []
    while (advice := session.advice).step in {NextStep.SWITCH, NextStep.REWRITE}:
        arguments = {"query": advice.query} if advice.top_k is None else {"query": advice.query, "top_k": advice.top_k}
        session.after(session.before(advice.tool, arguments), NOTHING)
        tools.append(advice.tool)

    assert ["crm_lookup", "table_rag_retrieve", "rag_retrieve", "local_file_retrieve"] == tools
    assert NextStep.NOT_FOUND == session.advice.step
    assert [] == rules(session)


def test_thorough_goes_on_after_a_partial_result_and_answers_from_what_there_is() -> None:
    session = ProtocolSession("How does the Acme X200 compare with the Borealis Z5?", profile="thorough")
    half = text_result("The Acme X200 weighs 200 g.")

    assert NextStep.SWITCH == ran(session, "table_rag_retrieve", "Acme X200 Borealis Z5 comparison", half)
    assert NextStep.SWITCH == ran(session, "rag_retrieve", "Acme X200 Borealis Z5 differences", half, top_k=50)
    assert NextStep.ANSWER == ran(session, "local_file_retrieve", "Acme X200 Borealis Z5", half)
    assert "say what is missing" in session.advice.reason


@pytest.mark.parametrize(
    ("skill", "expected"),
    [
        (SkillTool(name="a", topics=("invoices", "falcon plan")), True),
        (SkillTool(name="a", topics=("weather",)), False),
        (SkillTool(name="a", description="Looks up plans of customers"), True),
        (SkillTool(name="a", description="Searches the weather of a city"), False),
        (SkillTool(name="a"), True),
    ],
)
def test_skill_suits_by_topics_then_by_description(skill: SkillTool, expected: object) -> None:
    assert expected == ProtocolSession(PRICE).suits(skill)


def test_blocking_session_raises_at_the_call_and_forgets_it() -> None:
    session = ProtocolSession(PRICE, on_violation="block")
    with pytest.raises(PolicyViolationError, match="file system") as caught:
        session.before("Bash", {"command": "cat prices.md"})

    assert (ProtocolRule.FILESYSTEM_TOOLS.value, "protocol") == (caught.value.decision.rule, caught.value.decision.category)
    assert "Bash (cat)" == caught.value.decision.metadata["tool"]
    assert NextStep.ANSWER == ran(session, "mcp__evidentia__table_rag_retrieve", "Falcon plan monthly price", PRICES)
    assert session.check_reply(PRICE_REPLY).ok


def test_release_of_what_a_policy_stops_raises() -> None:
    session = ProtocolSession(PRICE, on_violation="block")

    with pytest.raises(PolicyViolationError, match="before anything was retrieved"):
        session.release("It costs 20 EUR.")


def test_context_records_everything_and_its_policies_decide() -> None:
    with Context(agent_name="a", policies=[BLOCKING]) as ctx:
        session = ProtocolSession(PRICE, context=ctx)
        ran(session, "table_rag_retrieve", "Falcon plan monthly price", PRICES)
        assert session.check_reply(PRICE_REPLY).ok
        ctx.set_result(session.release(PRICE_REPLY))

    assert "success" == ctx.status.value
    assert ["ask", "reply"] == [decision.kind for decision in ctx.decisions if decision.kind in {"ask", "reply"}]


def test_context_stops_a_call_and_the_session_goes_on_without_it() -> None:
    with Context(agent_name="a", policies=[BLOCKING]) as ctx:
        session = ProtocolSession(PRICE, context=ctx)
        with pytest.raises(PolicyViolationError):
            session.before("table_rag_retrieve", {"query": PRICE})
        ran(session, "table_rag_retrieve", "Falcon plan monthly price", PRICES)

        assert [] == rules(session)
        assert session.check_reply(PRICE_REPLY).ok
    assert "success" == ctx.status.value


def test_failed_check_stops_nothing_and_returns_the_list_to_the_agent() -> None:
    with Context(agent_name="a", policies=[BLOCKING]) as ctx:
        session = ProtocolSession(PRICE, context=ctx)
        ran(session, "table_rag_retrieve", "Falcon plan monthly price", PRICES)
        report = session.check_reply("The Falcon plan costs 20 EUR per month.")

        assert not report.ok
        assert "citation_missing" in report.text
        assert not all(answer.is_yes for answer in report.answers)
        assert session.check_reply(PRICE_REPLY).ok
    assert "success" == ctx.status.value


def test_sync_and_async_tools_are_checked_and_judged_alike() -> None:
    def retrieve(query: str, top_k: int) -> str:
        return f"{KEYS_RESULT}{query[:0]}{top_k - top_k or ''}"

    async def retrieve_async(query: str, top_k: int) -> str:
        return retrieve(query, top_k)

    outcomes = []
    for is_async in (False, True):
        session = ProtocolSession(KEYS)
        tool = session.tool("rag_retrieve", retrieve_async if is_async else retrieve)
        called = tool(query="signing key rotation steps", top_k=50)
        result = asyncio.run(called) if is_async else called
        outcomes.append((result, session.advice, session.findings, session.check_reply(KEYS_REPLY)))

    assert outcomes[0] == outcomes[1]
    assert (NextStep.ANSWER, True) == (outcomes[0][1].step, outcomes[0][3].ok)


def test_tool_that_fails_is_an_insufficient_result_and_its_error_goes_on() -> None:
    def broken(query: str) -> str:
        raise OSError(query)

    session = ProtocolSession(PRICE)
    with pytest.raises(OSError, match="Falcon"):
        session.tool("table_rag_retrieve", broken)(query="Falcon plan monthly price")

    assert NextStep.REWRITE == session.advice.step


def test_explicit_file_may_be_read_and_no_other() -> None:
    session = ProtocolSession("Read notes/todo.md and tell me what is open.")
    session.before("Read", {"file_path": "/srv/notes/todo.md"})
    assert [] == rules(session)
    session.before("Read", {"file_path": "notes/other.md"})
    assert ["filesystem_tools"] == rules(session)


def test_mixed_task_keeps_code_tools_to_its_code_portion() -> None:
    session = ProtocolSession("Look up the refund policy and implement the matching check in refunds.py.")
    session.before("Read", {"file_path": "src/refunds.py"})
    assert [] == rules(session)
    session.before("Read", {"file_path": "docs/refund-policy.pdf"})
    assert ["code_portion"] == rules(session)


def test_wrong_use_is_refused_by_name() -> None:
    session = ProtocolSession(PRICE)

    with pytest.raises(InvalidRecordError, match="no call under way"):
        session.after(7, PRICES)
    with pytest.raises(InvalidRecordError, match="on_violation"):
        ProtocolSession(PRICE, on_violation="shout")
    with pytest.raises(InvalidFieldError, match="thorogh"):
        ProtocolSession(PRICE, profile="thorogh")
