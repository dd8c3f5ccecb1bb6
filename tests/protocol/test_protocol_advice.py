"""Advice is never what a rule then blocks: who follows it to the letter is not accused, whatever comes back, and comes to an end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from protocol_traces import NOTHING, PRICE

from evidentia.contracts.evidence import Turn
from evidentia.contracts.protocol import Advice, Breadth, NextStep, QuestionType, Shortfall, SkillTool, ToolRole
from evidentia.policy.protocol_profiles import PROFILES
from evidentia.protocol import ProtocolSession, prepare_query
from evidentia.protocol.advice import TriedCall, next_step, rewrite
from evidentia.protocol.queries import even
from evidentia.protocol.questions import read_question

LABELS: Any = yaml.safe_load((Path(__file__).parent / "labelled_questions.yaml").read_text(encoding="utf-8"))
QUESTIONS = [row[3] for half in ("tuning", "held_out") for row in LABELS[half]]
ODD = [
    "What must a rider do after an accident?",
    "Norwind",
    "Kestrel?",
    "GDPR",
    "why",
    "Why?",
    "42",
    "2023",
    "???",
    "the of",
    "List all.",
    "a b",
]
SKILLS = (SkillTool(name="crm_lookup"), SkillTool(name="wiki_search"))
MAX_CALLS = 20
NOT_FOUND = "No relevant information was found."


def follow(session: ProtocolSession, result: str = NOTHING) -> list[Advice]:
    """Do what the session advises, to the letter, until it advises no further call."""
    followed: list[Advice] = []
    while (advice := session.advice).step in {NextStep.SWITCH, NextStep.REWRITE}:
        followed.append(advice)
        assert len(followed) <= MAX_CALLS
        arguments = {"query": advice.query} if advice.top_k is None else {"query": advice.query, "top_k": advice.top_k}
        session.after(session.before(advice.tool, arguments), result)
    return followed


def accusations(session: ProtocolSession) -> list[str]:
    return [f"{found.rule.value}: {found.reason}" for found in session.check_reply(NOT_FOUND).findings]


@pytest.mark.parametrize("result", ["", NOTHING, "no excel files found"])
@pytest.mark.parametrize("skills", [(), SKILLS[:1], SKILLS])
@pytest.mark.parametrize("profile", ["first_call", "thorough"])
def test_who_follows_the_advice_is_never_accused_and_comes_to_an_end(profile: str, skills: tuple[SkillTool, ...], result: str) -> None:
    for question in [*QUESTIONS, *ODD]:
        session = ProtocolSession(question, profile=profile, skills=skills)
        follow(session, result)

        assert (NextStep.NOT_FOUND, []) == (session.advice.step, accusations(session)), question


@given(st.text(min_size=1, max_size=200).filter(str.strip), st.sampled_from(["first_call", "thorough"]), st.booleans())
def test_advice_about_any_text_is_never_accused(question: str, profile: str, raw_query_works: bool) -> None:  # noqa: FBT001 - drawn
    session = ProtocolSession(question, profile=profile, raw_query_works=raw_query_works)
    follow(session)

    assert [] == accusations(session)


@pytest.mark.parametrize("question", ["Norwind", "What must a rider do after an accident?", "Which bikes cost more than 60 EUR a month?"])
@pytest.mark.parametrize("for_tables", [False, True])
def test_there_is_always_something_new_to_say(question: str, for_tables: bool) -> None:  # noqa: FBT001 - a parameter
    facts, prepared = read_question(question), prepare_query(question)
    asked: list[str] = []
    for _ in range(50):
        asked.append(rewrite(facts, prepared, asked=asked, for_tables=for_tables))

    assert all(asked)
    assert 50 == len({even(query) for query in asked})


def test_tool_to_which_nothing_new_can_be_said_is_passed_over() -> None:
    profile = PROFILES["first_call"]
    tried = [TriedCall("rag_retrieve", ToolRole.TEXT, 50, (Shortfall.EMPTY,), is_sufficient=False)]
    usual = next_step(profile, tried, kind=QuestionType.POLICY, breadth=Breadth.LOOKUP, skills=())
    passed = next_step(profile, tried, kind=QuestionType.POLICY, breadth=Breadth.LOOKUP, skills=(), spent=("rag_retrieve",))
    ended = next_step(
        profile, tried, kind=QuestionType.POLICY, breadth=Breadth.LOOKUP, skills=(), spent=("rag_retrieve", "table_rag_retrieve")
    )

    assert (NextStep.REWRITE, "rag_retrieve") == (usual.step, usual.tool)
    assert (NextStep.SWITCH, "table_rag_retrieve") == (passed.step, passed.tool)
    assert NextStep.NOT_FOUND == ended.step


def test_one_word_is_asked_again_with_another_beside_it() -> None:
    first, second, third = follow(ProtocolSession("Norwind"))

    assert ["Norwind", "Norwind overview", "Norwind"] == [first.query, second.query, third.query]


def test_query_of_one_tool_may_be_put_to_another() -> None:
    session = ProtocolSession("Norwind", profile="thorough")
    queries = {advice.tool: advice.query for advice in follow(session)}

    assert queries["table_rag_retrieve"] == queries["rag_retrieve"] == "Norwind"


def test_table_tool_is_advised_the_form_for_tables_and_text_the_other() -> None:
    question = "Which bikes cost more than 60 EUR a month?"
    followed = follow(ProtocolSession(question, profile="thorough"))

    assert ["table_rag_retrieve", "rag_retrieve", "local_file_retrieve"] == [advice.tool for advice in followed]
    assert prepare_query(question, for_tables=True).query == followed[0].query
    assert "more than 60 EUR" in followed[0].query
    assert prepare_query(question).query == followed[1].query


def test_rewritten_query_for_tables_keeps_conditions_too() -> None:
    first, second, third = follow(ProtocolSession("Which bikes cost more than 60 EUR a month but not less than 20 kg?"))

    assert [NextStep.SWITCH, NextStep.REWRITE, NextStep.SWITCH] == [each.step for each in (first, second, third)]
    assert all("more than 60 EUR" in each.query and "not less than 20 kg" in each.query for each in (first, second))
    assert "rag_retrieve" == third.tool


def test_advice_takes_its_subject_from_the_conversation() -> None:
    turns = (Turn(role="user", text="What does the Falcon plan include?"),)
    session = ProtocolSession("And how much does it cost?", turns=turns)

    assert all("Falcon" in advice.query for advice in follow(session))
    assert [] == accusations(session)


def test_question_for_a_price_is_advised_as_the_planner_reads_it() -> None:
    assert "how much" not in ProtocolSession(PRICE).advice.query.casefold()
