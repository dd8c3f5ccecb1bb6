"""Which tables are found for a question: by names, columns, values and neighbours; and how much better than BM25 on Spider."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_samples import COMPANY, DEPARTMENTS, PRODUCTS, SHOP, STAFF, STOCK

from evidentia.contracts.ids import DocumentId
from evidentia.contracts.tables import TableId
from evidentia.tables.table_choice import RankedTable, TableIndex, TableVectors, card_text, packaged_models

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.tables import OpenTable, TableCard

ROOT: Final = Path(__file__).resolve().parents[2]
DATA: Final = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
CARDS = [opened.card for opened in (*COMPANY, *SHOP)]


def rank_tables(question: str, cards: Sequence[TableCard], *, vectors: TableVectors | None = None) -> tuple[RankedTable, ...]:
    return TableIndex(cards).rank(question, vectors=vectors)


def best(question: str) -> TableId:
    return rank_tables(question, CARDS)[0].table_id


def moved(opened: OpenTable, document: str) -> TableCard:
    return msgspec.structs.replace(opened.card, table_id=TableId(f"{document}#{opened.card.sql_name}"), document_id=DocumentId(document))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the salary of the oldest employee?", STAFF),
        ("Which department has the largest budget?", DEPARTMENTS),
        ("What quantity is in the warehouse?", STOCK),
        ("What do the products in each category weigh?", PRODUCTS),
    ],
)
def test_names_of_tables_and_columns_lead_to_the_table(question: str, expected: OpenTable) -> None:
    assert expected.card.table_id == best(question)


def test_a_sample_leads_to_the_table() -> None:
    columns = tuple(msgspec.structs.replace(column, samples=("Rotterdam",)) for column in STOCK.card.columns)
    cards = [msgspec.structs.replace(card, columns=columns) if card is STOCK.card else card for card in CARDS]

    assert STOCK.card.table_id == rank_tables("What do we have in Rotterdam?", cards)[0].table_id


def test_tables_of_the_document_that_explains_more_are_lifted() -> None:
    cards = [moved(STAFF, "a"), moved(DEPARTMENTS, "a"), moved(STAFF, "b")]
    scores = {each.table_id: each.score for each in rank_tables("What is the salary of employees and the budget?", cards)}

    assert scores[TableId("a#employees")] > scores[TableId("b#employees")]


def test_equal_scores_are_ordered_by_id() -> None:
    cards = [moved(STAFF, name) for name in ("c", "a", "b")]
    ranked = rank_tables("salary", cards)

    assert ["a#employees", "b#employees", "c#employees"] == [each.table_id for each in ranked]
    assert 1 == len({each.score for each in ranked})


def test_reasons_say_what_was_found_where() -> None:
    ranked = rank_tables("What is the budget?", CARDS)

    assert ("column: budget",) == ranked[0].reasons


def test_vectors_count_beside_words() -> None:
    one = 1 << 22
    vectors = TableVectors(
        np.array([one, 0], np.int32),
        {card.table_id: np.array([one, 0] if card is STOCK.card else [0, one], np.int32) for card in CARDS},
    )

    assert STOCK.card.table_id == rank_tables("unknown words alone", CARDS, vectors=vectors)[0].table_id
    assert all(isinstance(each.score, int) for each in rank_tables("salary", CARDS, vectors=vectors))


def test_the_text_for_an_encoder_holds_names_and_columns() -> None:
    assert "company.xlsx Departments. columns: Department ID, Department name, Budget" == card_text(DEPARTMENTS.card)


def test_no_cards_give_no_ranking() -> None:
    assert () == rank_tables("anything", [])


@given(question=st.text(max_size=80), order=st.permutations(CARDS))
def test_the_order_of_the_cards_decides_nothing(question: str, order: list[TableCard]) -> None:
    ranked = rank_tables(question, order)

    assert ranked == rank_tables(question, CARDS)
    assert sorted(card.table_id for card in CARDS) == sorted(each.table_id for each in ranked)


def test_weights_are_read_from_the_package() -> None:
    models = packaged_models()

    assert models.words.basis
    assert 0 == models.words.similarity
    assert models.with_vectors.similarity > 0


@pytest.mark.skipif(not (DATA / "spider_schema").exists(), reason="Spider's schemas are not at hand; set EVIDENTIA_DATA")
def test_words_alone_are_better_than_bm25_on_databases_that_fitted_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    table_choice = import_module("table_choice")
    questions = table_choice.read_halves().judged[::4]
    index = table_choice.TableIndex(table_choice.read_cards())
    before = table_choice.scores_of(table_choice.rank_bm25(questions), questions)
    after = table_choice.scores_of(table_choice.rank_ours(index, questions, with_vectors=False), questions)

    assert 0 < table_choice.compared(before, after)["interval_95"][0]
