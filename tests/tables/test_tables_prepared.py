"""Questions that were made ready for tables are planned as they were asked."""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import test_tables_planning as asked
from table_samples import BIKES, COMPANY, CONTRACTS, RENTALS, SHOP, TEAS, TRADE, run

from evidentia.contracts.tables import TablePlan
from evidentia.protocol import prepare_query
from evidentia.protocol.queries import even, terse_table_query
from evidentia.protocol.questions import read_question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.tables import OpenTable

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
ANSWERED: list[tuple[str, Sequence[OpenTable]]] = [
    *((each, SHOP) for each in (*asked.ROWS, *asked.GROUPED)),
    *((each, COMPANY) for each in (*asked.STAFF_ROWS, *asked.STAFF_GROUPED)),
    *((each, TRADE) for each in (*asked.TRADE_ROWS, *asked.TRADE_GROUPED)),
    *((each, (CONTRACTS,)) for each in (*asked.CONTRACT_ROWS, *asked.CONTRACT_GROUPED)),
    *((each, (BIKES,)) for each in asked.NAMED),
    *((each, (RENTALS,)) for each in asked.RENTED),
    *((each, (TEAS,)) for each in asked.TEA),
]
DECLINED: list[tuple[str, Sequence[OpenTable]]] = [
    *((each, SHOP) for each in asked.DECLINED if each.strip("?")),
    *((each, COMPANY) for each in asked.STAFF_DECLINED),
    *((each, TRADE) for each in asked.TRADE_DECLINED),
    *((each, (CONTRACTS,)) for each in asked.CONTRACT_DECLINED),
    *((each, (BIKES,)) for each in asked.NAMED_DECLINED),
]


@pytest.mark.parametrize(("question", "tables"), ANSWERED)
def test_prepared_question_has_the_answer_of_the_question(question: str, tables: Sequence[OpenTable]) -> None:
    expected = asked.ask(question, tables)
    assert isinstance(expected, TablePlan)
    for form in (prepare_query(question, for_tables=True).query, terse_table_query(read_question(question))):
        found = asked.ask(form, tables)

        assert isinstance(found, TablePlan), (form, found)
        assert run(expected, tables) == run(found, tables)


@pytest.mark.parametrize(("question", "tables"), DECLINED)
def test_prepared_question_is_declined_where_the_question_is(question: str, tables: Sequence[OpenTable]) -> None:
    for form in (prepare_query(question, for_tables=True).query, terse_table_query(read_question(question))):
        assert not isinstance(asked.ask(form, tables), TablePlan), form


@pytest.mark.parametrize("question", [question for question, _ in ANSWERED])
def test_prepared_question_is_not_the_question_unless_that_is_a_query(question: str) -> None:
    prepared = prepare_query(question, for_tables=True)

    assert prepared.is_question == (even(prepared.query) == even(question))
    assert () == prepared.variants


@pytest.mark.skipif(not (DATA / "defog_sqleval").exists(), reason="defog's questions are not at hand; set EVIDENTIA_DATA")
def test_prepared_questions_of_others_are_answered_as_rightly_as_the_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    table_questions = import_module("table_questions")
    monkeypatch.setattr(table_questions, "open_tables", cache(table_questions.open_tables))
    raw, prepared = Counter[str](), Counter[str]()
    for question in table_questions.read_questions():
        raw[table_questions.judge(question)[0]] += 1
        form = prepare_query(question.text, for_tables=True).query
        prepared[table_questions.judge(question._replace(text=form))[0]] += 1

    assert 83 <= raw["right"] + raw["exact"] <= prepared["right"] + prepared["exact"]
    assert 7 >= raw["wrong"] >= prepared["wrong"]
