"""What results lack beside their questions."""

from __future__ import annotations

import pytest
from protocol_traces import NOTHING, table_result, text_result

from evidentia.contracts.protocol import Shortfall
from evidentia.protocol.classification import question_type
from evidentia.protocol.questions import read_question
from evidentia.protocol.sufficiency import shortfalls
from evidentia.protocol.tool_results import read_result

PRICE = "What is the price of the Falcon plan?"
COMPARE = "How does the Acme X200 compare with the Borealis Z5?"


def lacks(question: str, text: str, *, tool: str = "rag_retrieve", earlier: tuple[str, ...] = ()) -> tuple[Shortfall, ...]:
    return shortfalls(read_question(question), read_result(tool, text), kind=question_type(question), earlier=earlier)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (Shortfall.EMPTY,)),
        ("RAG_KNOWLEDGE BEGIN\nRAG_KNOWLEDGE END", (Shortfall.EMPTY,)),
        (NOTHING, (Shortfall.ERROR,)),
        ("Error: no table fits\n- sheet 'Prices' of prices.xlsx: product (text); 120 rows", (Shortfall.ERROR,)),
        ("no excel files found", (Shortfall.NO_SPREADSHEET,)),
        (f"no excel files found\n{NOTHING}", (Shortfall.ERROR, Shortfall.NO_SPREADSHEET)),
        ("no excel files found\n" + text_result("The Falcon plan costs 20 EUR."), ()),
        (text_result("Bees collect nectar in the meadow."), (Shortfall.OFF_TOPIC, Shortfall.MISSING_ENTITY)),
        (text_result("The Eagle plan costs 30 EUR."), (Shortfall.MISSING_ENTITY,)),
        (text_result("The Falcon plan costs 20 EUR."), ()),
        (text_result("Falcon"), (Shortfall.NO_EVIDENCE,)),
        (table_result(("plan", "price"), [("Falcon", "20")]), ()),
        (table_result(("animal", "legs"), [("spider", "8")], filename="zoo.xlsx"), (Shortfall.OFF_TOPIC, Shortfall.MISSING_ENTITY)),
    ],
)
def test_shortfalls_of_a_lookup(text: str, expected: tuple[Shortfall, ...]) -> None:
    assert expected == lacks(PRICE, text, tool="table_rag_retrieve")


def test_comparison_without_its_second_side_is_partial_until_a_later_result_has_it() -> None:
    first = "The Acme X200 weighs 200 g."

    assert (Shortfall.PARTIAL,) == lacks(COMPARE, text_result(first))
    assert () == lacks(COMPARE, text_result("The Borealis Z5 weighs 150 g."), earlier=(first.casefold(),))
    assert () == lacks(COMPARE, text_result(first, "The Borealis Z5 weighs 150 g."))


def test_history_needs_both_ends_of_its_time() -> None:
    question = "How did the revenue of Norwind develop from 2018 to 2020?"

    assert (Shortfall.PARTIAL,) == lacks(question, text_result("Norwind had a revenue of 5 million in 2018."))
    assert () == lacks(question, text_result("Norwind had a revenue of 5 million in 2018 and 7 million in 2020."))


def test_evidence_of_other_years_misses_the_scope() -> None:
    question = "What was the revenue of Norwind in 2022?"

    assert (Shortfall.MISSING_ENTITY,) == lacks(question, text_result("Norwind had a revenue of 5 million in 2018."))
    assert () == lacks(question, text_result("Norwind had a revenue of 5 million."))


def test_data_without_the_explanation_is_partial() -> None:
    question = "What does the Falcon plan cost, and why was it raised last year?"
    rows = table_result(("plan", "price"), [("Falcon", "20")])

    assert (Shortfall.PARTIAL,) == lacks(question, rows, tool="table_rag_retrieve")
    assert () == lacks(question, text_result("The Falcon plan was raised to 20 EUR since support became more expensive."))


def test_cut_table_lacks_something_only_where_all_was_asked_for() -> None:
    rows = table_result(("supplier", "plan", "price"), [("Delmar", "Falcon", "20")], omitted=7)

    assert (Shortfall.TRUNCATED,) == lacks("List all suppliers in Portugal.", rows, tool="table_rag_retrieve")
    assert () == lacks(PRICE, rows, tool="table_rag_retrieve")


def test_figures_alone_are_an_answer() -> None:
    count = table_result(("count",), [("143",)], filename="orders.xlsx")

    assert () == lacks("How many laptops did Norwind buy in 2023?", count, tool="table_rag_retrieve")


def test_words_of_one_group_are_no_other_topic() -> None:
    question = "How do I get my money back for a trip?"

    assert Shortfall.OFF_TOPIC not in lacks(question, text_result("Reimbursement of a journey takes 14 days after the form is in."))
