"""Questions about tables through the public names: the same answer each time, and nothing of what the caller may not see."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec
import pytest

from evidentia import AccessRule, Principal, aconnect, connect
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.vocabulary import Classification

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evidentia import Base
    from evidentia.contracts.tables import TableAnswer

READER: Final = Principal(principal_id=PrincipalId("reader"), clearance=Classification.INTERNAL)
INSIDER: Final = Principal(principal_id=PrincipalId("insider"), clearance=Classification.RESTRICTED)
SECRET: Final = AccessRule(classification=Classification.RESTRICTED)
OPEN: Final = {
    "prices.csv": "Product,Price (EUR),Stock\ntea,3.5,10\nmilk,2,20\nbread,4,0\n",
    "staff.csv": "Name,Department,Salary (EUR)\nAda,Tea,3000\nGrace,Bread,4000\nEdsger,Tea,2500\n",
}
HIDDEN: Final = {
    "a-prices.csv": "Product,Price (EUR),Stock\ntea,99,1\nsaffron,900,2\n",
    "product-price.csv": "Product,Price\nsaffron,901\ntea,98\n",
    "z-salary.csv": "Name,Department,Salary (EUR)\nMallory,Tea,9000\nTrent,Tea,8000\n",
}
QUESTIONS: Final = (
    "Which products have a price above 3 EUR?",
    "How many products are there?",
    "What is the average salary of each department?",
    "Which names are in the department Tea?",
    "What is the price of saffron?",
    "Who is Mallory?",
    "Which products and which names have which price and salary?",
    "zebras xylophone",
)


def filled(directory: Path, *files: dict[str, str], is_reversed: bool = False) -> Base:
    """Return a new base with files, one ingest each."""
    papers = directory / "files"
    papers.mkdir(parents=True)
    base = connect(directory / "base", init=True)
    texts = {name: text for group in files for name, text in group.items()}
    for name in sorted(texts, reverse=is_reversed):
        (papers / name).write_text(texts[name])
        base.ingest([papers / name], source="shop", embed=False)
    return base


def answers(base: Base, questions: Sequence[str] = QUESTIONS) -> list[bytes]:
    return [msgspec.json.encode(base.ask_tables(question)) for question in questions]


def cells(answer: TableAnswer) -> set[object]:
    return {value for row in answer.rows for value in row}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    """Return a base with two tables."""
    made = filled(tmp_path, OPEN)
    yield made
    made.close()


def test_rows_come_with_the_rows_of_the_file(base: Base) -> None:
    answer = base.ask_tables("Which products have a price above 3 EUR?")

    assert (("tea",), ("bread",)) == answer.rows
    assert (("F1S1R2",), ("F1S1R4",)) == answer.sources
    assert (("shop:prices.csv", "prices.csv"),) == answer.files
    assert answer.plan is not None
    assert (3,) == answer.plan.parameters


def test_each_group_names_its_own_rows(base: Base) -> None:
    answer = base.ask_tables("What is the average salary of each department?")

    assert (("Bread", 4000), ("Tea", 2750)) == answer.rows
    assert (("F1S1R3",), ("F1S1R2", "F1S1R4")) == answer.sources


def test_a_table_and_a_column_of_one_name_are_told_apart(base: Base) -> None:
    answer = base.ask_tables("What is the price of tea?")

    assert ("", [3.5], (("F1S1R2",),)) == (answer.declined, [row[-1] for row in answer.rows], answer.sources)


def test_the_same_question_has_the_same_answer(base: Base, tmp_path: Path) -> None:
    first = answers(base)
    with connect(base.path) as again:
        opened_again = answers(again)
    with filled(tmp_path / "twin", OPEN, is_reversed=True) as twin:
        in_another_order = answers(twin)

    assert any(msgspec.json.decode(answer)["rows"] for answer in first)
    assert first == answers(base)
    assert first == opened_again
    assert first == in_another_order


def test_what_is_hidden_has_no_part_in_any_answer(tmp_path: Path) -> None:
    """A reader is told what a base would say that never held the hidden files."""
    with filled(tmp_path / "without", OPEN) as without:
        never_held = without.path
    with filled(tmp_path / "with", OPEN, HIDDEN) as held:
        held.set_access([f"shop:{name}" for name in HIDDEN], SECRET)
        path = held.path
    with connect(never_held, principal=READER) as theirs, connect(path, principal=READER) as reader:
        expected, told = answers(theirs), answers(reader)
    with connect(path, principal=INSIDER) as insider:
        known = insider.ask_tables("What is the price of saffron?", limit=10)

    assert expected == told
    assert cells(known) & {900, 901}
    assert not any(word in answer for answer in told for word in (b"900", b"Trent", b"z-salary", b"a-prices"))


def test_access_that_is_taken_away_or_given_back_counts_at_once(base: Base) -> None:
    question = "Which products have a price above 3 EUR?"
    with connect(base.path, principal=READER) as reader:
        before = reader.ask_tables(question)
        base.set_access(["shop:prices.csv", "shop:staff.csv"], SECRET)
        hidden = reader.ask_tables(question)
        base.set_access(["shop:prices.csv"], AccessRule(classification=Classification.INTERNAL))
        again = reader.ask_tables(question)

    assert (False, (), ()) == (hidden.has_tables, hidden.tables, hidden.rows)
    assert before.rows == again.rows
    assert ["shop:prices.csv"] == [card.document_id for card in again.tables]


def test_a_file_that_changed_only_its_header_is_read_anew(base: Base, tmp_path: Path) -> None:
    """The cells, and with them their hash, stay the same."""
    assert base.ask_tables("Which products have a price above 3 EUR?").rows
    (tmp_path / "files" / "prices.csv").write_text(OPEN["prices.csv"].replace("Product", "Article"))
    base.ingest([tmp_path / "files" / "prices.csv"], source="shop", embed=False)

    answer = base.ask_tables("Which articles have a price above 3 EUR?")

    assert ("", ("article",), (("tea",), ("bread",))) == (answer.declined, answer.columns, answer.rows)


def test_cells_that_look_like_statements_stay_cells(tmp_path: Path) -> None:
    hostile = "x'); DROP TABLE prices; --"
    with filled(tmp_path, {"prices.csv": f'Product,Price\n"{hostile}",3\ntea,2\n'}) as base:
        answer = base.ask_tables(f'What is the price of "{hostile}"?')
        listed = base.ask_tables("List the products")

    assert answer.declined or [3] == [row[-1] for row in answer.rows]
    assert ((hostile,), ("tea",)) == listed.rows


@pytest.mark.parametrize("question", ["", "  ", None, 7, "price of \ud800"])
def test_a_question_that_is_none_is_refused(base: Base, question: str) -> None:
    with pytest.raises(InvalidFieldError, match="question"):
        base.ask_tables(question)


@pytest.mark.parametrize("limit", [0, -1, 10_001, True, 1.5, "3"])
def test_a_limit_that_is_none_is_refused(base: Base, limit: int) -> None:
    with pytest.raises(InvalidFieldError, match="limit"):
        base.ask_tables("List the products", limit=limit)


def test_a_model_without_an_address_is_named(tmp_path: Path) -> None:
    with filled(tmp_path, OPEN) as base:
        path = base.path
    (path / "evidentia.toml").write_text('[tables]\nplanner = "some-model"\n')
    with connect(path) as again, pytest.raises(InvalidFieldError, match=r"llm\.endpoint"):
        again.ask_tables("List the products")


def test_where_a_model_cannot_be_reached_the_rules_still_answer(tmp_path: Path) -> None:
    with filled(tmp_path, OPEN) as base:
        path = base.path
    (path / "evidentia.toml").write_text('[tables]\nplanner = "some-model"\n[llm]\nendpoint = "http://127.0.0.1:9/v1"\nkey_variable = ""\n')
    with connect(path) as again:
        answered = again.ask_tables("List the products")
        declined = again.ask_tables("Which products dance?")

    assert 3 == answered.total
    assert "nothing in the tables explains 'dance'" in declined.declined


def test_the_async_form_says_the_same(base: Base) -> None:
    async def ask() -> TableAnswer:
        async with await aconnect(base.path) as twin:
            return await twin.ask_tables("List the products", limit=2)

    assert base.ask_tables("List the products", limit=2) == asyncio.run(ask())
