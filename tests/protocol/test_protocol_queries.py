"""Queries: prepared from questions, and judged beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.evidence import Turn
from evidentia.contracts.protocol import QuestionType
from evidentia.protocol import prepare_query
from evidentia.protocol.advice import rewrite
from evidentia.protocol.queries import even, explained_stems, judge_query, works_raw
from evidentia.protocol.questions import read_question
from evidentia.query.synonyms import parse_synonyms
from evidentia.text.tokens import Tokeniser


def test_prepared_query_has_entities_time_attributes_and_intent() -> None:
    prepared = prepare_query("What was the price of the Acme X200 in Q3 2024?")

    assert ("Acme X200",) == prepared.entities
    assert ("in q3 2024",) == prepared.time_scope
    assert ("price",) == prepared.attributes
    assert QuestionType.PRICE == prepared.intent
    assert {"Acme", "X200", "price", "2024"} <= set(prepared.query.split())
    assert not prepared.is_question


def test_lists_and_timelines_are_expanded_more_than_lookups() -> None:
    lookup = prepare_query("Which supplier delivers the valves?", kind=QuestionType.VALUE)
    listed = prepare_query("List all suppliers of valves.")

    assert len(lookup.variants) < len(listed.variants)


def test_question_that_is_a_query_stays_as_it_is() -> None:
    prepared = prepare_query("VPN error 809 Windows 11")

    assert (True, "VPN error 809 Windows 11") == (prepared.is_question, prepared.query)
    assert not works_raw(read_question("How do I fix VPN error 809?"))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which bikes cost more than 60 EUR a month?", "list bikes cost more than 60 EUR a month"),
        ("Could you please tell me what is the price of tea?", "price of tea"),
        ("What is the deposit for the Tour Electric?", "deposit for the Tour Electric"),
        ("How high is the deposit for the Tour Electric?", "list how high is the deposit for the Tour Electric"),
        ("How many products are not in Hamburg?", "number of products are not in Hamburg"),
        ("How much does the Falcon plan cost per month?", "Falcon plan cost per month"),
        ("Please show me the 3 cheapest products, cheapest first.", "3 cheapest products, cheapest first"),
        ("Who was hired after 2020?", "list who was hired after 2020"),
        ("Revenue North Q1", "Revenue North Q1"),
    ],
)
def test_query_for_tables_keeps_every_condition_and_drops_only_how_it_is_asked(question: str, expected: str) -> None:
    prepared = prepare_query(question, for_tables=True)

    assert expected == prepared.query
    assert not judge_query(prepared.query, facts=read_question(question), explained=()).is_raw or prepared.is_question


def test_query_for_tables_takes_its_subject_from_the_conversation() -> None:
    turns = (Turn(role="user", text="What does the Falcon plan include?"),)

    assert "Falcon" in prepare_query("And how much does it cost?", turns=turns, for_tables=True).query


def test_synonyms_of_a_file_and_other_names_become_variants_and_keep_the_entity() -> None:
    file = parse_synonyms("norwind, boreas holding\n", file="s.txt", tokeniser=Tokeniser())
    names = {"Norwind": ("Boreas Holding",)}
    question = "How many employees does Norwind have?"

    assert "borea" in prepare_query(question, synonyms=file).variants
    assert "Boreas Holding" in prepare_query(question, synonyms=names).variants
    facts = read_question(question)
    for synonyms in (file, names):
        judged = judge_query(
            "Boreas Holding headcount", facts=facts, explained=explained_stems(facts, synonyms=synonyms), synonyms=synonyms
        )

        assert (1.0, 0) == (judged.containment, judged.strays)
    assert judge_query("Boreas Holding headcount", facts=facts, explained=explained_stems(facts)).containment == 0.0


def test_question_that_leans_takes_its_subject_from_the_conversation() -> None:
    turns = (Turn(role="user", text="What does the Falcon plan include?"),)
    prepared = prepare_query("And how much does it cost?", turns=turns)

    assert "Falcon" in prepared.query


def test_raw_query_is_known_whatever_its_case_spaces_and_punctuation() -> None:
    facts = read_question("How much does the Falcon plan cost?")

    assert judge_query("how much  does the FALCON plan cost", facts=facts, explained=()).is_raw
    assert not judge_query("Falcon plan price", facts=facts, explained=()).is_raw


def test_short_and_long_forms_keep_the_entity() -> None:
    short, long = read_question("What is the SLO of payments?"), read_question("What does the General Data Protection Regulation ask for?")

    assert 1.0 == judge_query("service level objective payments", facts=short, explained=explained_stems(short)).containment
    assert 1.0 == judge_query("GDPR requirements", facts=long, explained=explained_stems(long)).containment


def test_names_with_digits_are_kept_only_whole_and_in_any_spelling() -> None:
    facts = read_question("What voltage does the HT-40 sensor need?")

    assert [1.0, 1.0, 1.0, 0.0] == [
        judge_query(query, facts=facts, explained=()).containment for query in ("HT-40 volts", "ht40 volts", "HT 40 volts", "HT-45 volts")
    ]


def test_word_of_earlier_evidence_is_no_stray() -> None:
    facts = read_question("Why was the Kestrel project stopped?")
    query = "Kestrel wildfowl sanctuary ringing permits moratorium tribunal"

    assert judge_query(query, facts=facts, explained=explained_stems(facts)).strays > 0
    evidence = ["kestrel: the wildfowl sanctuary lost its ringing permits; the tribunal set a moratorium"]
    assert 0 == judge_query(query, facts=facts, explained=explained_stems(facts), evidence=evidence).strays


def test_widened_query_is_another_one_than_those_that_were_asked() -> None:
    facts = read_question("How much does the Falcon plan cost per month?")
    prepared = prepare_query("How much does the Falcon plan cost per month?")
    asked: list[str] = []
    for _ in range(3):
        asked.append(rewrite(facts, prepared, asked=asked))

    assert 3 == len({even(query) for query in asked})
    assert all("falcon" in even(query) for query in asked)


@given(st.text(max_size=300))
def test_any_question_is_prepared_and_keeps_its_own_entities(question: str) -> None:
    facts = read_question(question)
    prepared = prepare_query(question)
    judged = judge_query(prepared.query, facts=facts, explained=explained_stems(facts))

    assert prepared == prepare_query(question)
    assert judged.containment >= 0.5
    assert 0 == judged.strays


@given(st.text(max_size=300), st.text(max_size=300))
def test_facts_of_any_query_are_in_range(question: str, query: str) -> None:
    facts = read_question(question)
    judged = judge_query(query, facts=facts, explained=explained_stems(facts))

    assert 0 <= judged.containment <= 1
    assert judged.strays >= 0
