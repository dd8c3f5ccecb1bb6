"""Questions about tables with real tables, a real database and its guard; only planners are written by hand, and most of them lie."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import openpyxl
import pytest

from evidentia import connect
from evidentia.backends.sqlite.table_engine import SqliteTables
from evidentia.contracts.tables import PlanDeclined, TablePlan
from evidentia.sources.sql_guard import FUNCTIONS, check_statement
from evidentia.tables.asker import MAX_SHOWN, MAX_TABLES, TableAsker
from evidentia.tables.planner import SchemaPlanner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia import Base
    from evidentia.contracts.ports import TablePlanner
    from evidentia.contracts.tables import OpenTable, TableAnswer

ROOT: Final = Path(__file__).resolve().parents[2]
AS_OF: Final = datetime(2026, 3, 1, tzinfo=UTC)
QUESTION: Final = "Which products have which price?"
TEA: Final = "Product,Price (EUR)\ntea,3.5\nmilk,2\nbread,4\n"
WOOD: Final = "Product,Price (EUR)\noak,300\nbirch,200\n"


class Scripted:
    """A planner that says what it was told to, and remembers what it was shown."""

    identity = "scripted/1"

    def __init__(self, *plans: TablePlan | PlanDeclined) -> None:
        self._plans = plans
        self.shown: list[list[str]] = []
        self.names: list[list[str]] = []

    def plan(self, question: str, tables: Sequence[OpenTable], *, budget_ms: int) -> TablePlan | PlanDeclined:
        """Return the next plan; the last one again and again."""
        assert question
        assert budget_ms > 0
        self.shown.append([str(table.card.table_id) for table in tables])
        self.names.append([table.card.sql_name for table in tables])
        return self._plans[min(len(self.shown), len(self._plans)) - 1]


def says(statement: str, *parameters: object, support: str = "") -> TablePlan:
    return TablePlan(statement=statement, parameters=parameters, support=support)  # type: ignore[arg-type]  # some are wrong on purpose


NO: Final = PlanDeclined(reason="no")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    """Return a base with the prices of two shops in files of one name; nobody changes it."""
    folder = tmp_path_factory.mktemp("shop")
    for place, text in (("north", TEA), ("south", WOOD)):
        (folder / place).mkdir()
        (folder / place / "prices.csv").write_text(text)
    with connect(folder / "base", init=True) as base:
        base.ingest([folder / "north"], source="north", embed=False)
        base.ingest([folder / "south"], source="south", embed=False)
        yield base


@pytest.fixture
def engine() -> Iterator[SqliteTables]:
    """Return the real engine."""
    made = SqliteTables(guard=check_statement, functions=FUNCTIONS)
    yield made
    made.close()


def ask(base: Base, engine: SqliteTables, *planners: TablePlanner, question: str = QUESTION, limit: int = 200) -> TableAnswer:
    asker = TableAsker(planners=planners, engine=engine, open_table=lambda card: base.open_table(card.table_id))
    return asker.ask(question, base.tables(), as_of=AS_OF, limit=limit)


def workbook(path: Path, **sheets: Sequence[Sequence[object]]) -> None:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        page = book.create_sheet(name)
        for row in rows:
            page.append(list(row))
    book.save(path)


def test_tables_of_one_name_are_told_apart(shop: Base, engine: SqliteTables) -> None:
    planner = Scripted(says("SELECT product, __src FROM prices_2"))

    answer = ask(shop, engine, planner)

    assert [["prices", "prices_2"]] == planner.names
    assert [["north:prices.csv#S1T1", "south:prices.csv#S1T1"]] == planner.shown
    assert (("product",), (("oak",), ("birch",))) == (answer.columns, answer.rows)


def test_files_are_counted_in_the_order_in_which_they_come_up(shop: Base, engine: SqliteTables) -> None:
    second = ask(shop, engine, Scripted(says("SELECT product, __src FROM prices_2")))
    both = ask(shop, engine, Scripted(says("SELECT product, __src FROM prices_2 UNION ALL SELECT product, __src FROM prices")))

    assert ((("south:prices.csv", "prices.csv"),), (("F1S1R2",), ("F1S1R3",))) == (second.files, second.sources)
    assert (("south:prices.csv", "prices.csv"), ("north:prices.csv", "prices.csv")) == both.files
    assert (("F1S1R2",), ("F1S1R3",), ("F2S1R2",), ("F2S1R3",), ("F2S1R4",)) == both.sources


def test_a_row_of_two_tables_names_both_and_each_place_once(shop: Base, engine: SqliteTables) -> None:
    statement = "SELECT a.product, a.__src || ' ' || b.__src || ' ' || a.__src AS __src FROM prices a, prices_2 b WHERE b.price = 200"

    answer = ask(shop, engine, Scripted(says(statement)), limit=1)

    assert (("F1S1R2", "F2S1R3"),) == answer.sources


def test_a_planner_is_shown_fewer_and_fewer_tables(tmp_path: Path, engine: SqliteTables) -> None:
    rows: list[list[object]] = [["Product", "Price"], ["tea", 3], ["milk", 2]]
    workbook(tmp_path / "book.xlsx", Prices=rows, Stock=[["Product", "Pieces"], ["tea", 30], ["milk", 7]])
    (tmp_path / "other.csv").write_text("Product,Colour\noak,brown\nbirch,white\n")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "book.xlsx", tmp_path / "other.csv"], source="shop", embed=False)
        unwilling, late = Scripted(NO), Scripted(NO, NO, says("SELECT product, __src FROM prices"))
        declined = ask(base, engine, unwilling, question="What is the price of each product?")
        answered = ask(base, engine, late, question="What is the price of each product?")

    best, sibling, other = (f"shop:{name}" for name in ("book.xlsx#S1T1", "book.xlsx#S2T1", "other.csv#S1T1"))
    assert [[best, sibling, other], [best, sibling], [best]] == [sorted(shown) for shown in unwilling.shown]
    assert unwilling.shown == late.shown
    assert ("no", ()) == (declined.declined, declined.rows)
    assert (("tea",), ("milk",)) == answered.rows


def test_one_table_is_planned_once(tmp_path: Path, engine: SqliteTables) -> None:
    (tmp_path / "prices.csv").write_text(TEA)
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "prices.csv"], source="shop", embed=False)
        planner = Scripted(NO)
        ask(base, engine, planner)

    assert [["shop:prices.csv#S1T1"]] == planner.shown


def test_the_next_planner_is_asked_when_one_declines_and_the_first_reason_stands(shop: Base, engine: SqliteTables) -> None:
    willing = Scripted(says("SELECT product, __src FROM prices"))
    answer = ask(shop, engine, Scripted(NO), willing)
    never = Scripted(NO)
    ask(shop, engine, willing, never)

    assert (("tea",), ("milk",), ("bread",)) == answer.rows
    assert [] == never.shown
    assert "first" == ask(shop, engine, Scripted(PlanDeclined(reason="first")), Scripted(NO)).declined
    assert "there is no planner" == ask(shop, engine).declined


def test_a_count_names_the_rows_that_took_part_and_no_others(shop: Base, engine: SqliteTables) -> None:
    answer = ask(shop, engine, SchemaPlanner(), question="How many products have a price below 4 EUR?")

    assert ((2,),) == answer.rows
    assert (("F1S1R2", "F1S1R3"),) == answer.sources
    assert (("north:prices.csv", "prices.csv"),) == answer.files


def test_groups_name_their_own_rows_where_the_support_says_which(shop: Base, engine: SqliteTables) -> None:
    grouped = "SELECT price > 3 AS dear, COUNT(*) AS products FROM prices GROUP BY 1 ORDER BY 1"
    told = ask(shop, engine, Scripted(says(grouped, support="SELECT price > 3 AS dear, __src FROM prices")))
    untold = ask(shop, engine, Scripted(says(grouped, support="SELECT __src FROM prices")))

    assert (((0, 1), (1, 2)), (("F1S1R3",), ("F1S1R2", "F1S1R4"))) == (told.rows, told.sources)
    assert (("F1S1R2", "F1S1R3", "F1S1R4"),) * 2 == untold.sources


def test_rows_without_a_place_have_no_file(shop: Base, engine: SqliteTables) -> None:
    answer = ask(shop, engine, Scripted(says("SELECT COUNT(*) AS products FROM prices")))

    assert (((3,),), ((),), ()) == (answer.rows, answer.sources, answer.files)


LIES: Final = [
    says("DROP TABLE prices"),
    says("DELETE FROM prices"),
    says("SELECT product, __src FROM prices; DROP TABLE prices"),
    says("SELECT name, sql FROM sqlite_master"),
    says("SELECT product, __src FROM salaries"),
    says("SELECT wages, __src FROM prices"),
    says("ATTACH DATABASE '/tmp/x' AS x"),
    says("SELECT load_extension('x')"),
    says("no SQL at all"),
    says(""),
    says("SELECT product, __src FROM prices WHERE price > ?"),
    says("SELECT product, __src FROM prices WHERE price > ?", 10**30),
    says("SELECT product, __src FROM prices WHERE product = ?", "\ud800"),
    says("SELECT product, __src FROM prices WHERE product = ?", ["tea"]),
    says("SELECT product, 'garbage' AS __src FROM prices"),
    says("SELECT product, product AS __src FROM prices"),
    says("SELECT product, 7 AS __src FROM prices"),
    says("SELECT product, 'F0S1R2' AS __src FROM prices"),
    says("SELECT product, 'F3S1R2' AS __src FROM prices"),
    says("SELECT product, 'F99999999999999999999S1R2' AS __src FROM prices"),
    says("SELECT product, 'F1S2R2' AS __src FROM prices"),
    says("SELECT product, 'F1S1R1' AS __src FROM prices"),
    says("SELECT product, 'F1S1R5' AS __src FROM prices"),
    says("SELECT product, 'F2S1R4' AS __src FROM prices"),
    says("SELECT product, 'F1S1R\u0662' AS __src FROM prices"),
    says("SELECT COUNT(*) FROM prices", support="DROP TABLE prices"),
    says("SELECT COUNT(*) FROM prices", support="SELECT product FROM prices"),
    says("SELECT COUNT(*) FROM prices", support="SELECT name FROM sqlite_master"),
    says("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT MAX(x) FROM n"),
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: ascii(f"{lie.statement} {lie.support}".strip()))
def test_what_a_lying_planner_says_becomes_a_reason(shop: Base, engine: SqliteTables, lie: TablePlan) -> None:
    answer = ask(shop, engine, Scripted(lie))
    afterwards = ask(shop, engine, Scripted(says("SELECT product, __src FROM prices")))

    assert answer.declined
    assert ((), (), (), 0) == (answer.rows, answer.sources, answer.files, answer.total)
    assert lie == answer.plan
    assert (("tea",), ("milk",), ("bread",)) == afterwards.rows


def test_what_is_beyond_the_limit_is_counted(shop: Base, engine: SqliteTables) -> None:
    planner = Scripted(says("SELECT product, __src FROM prices"))
    some, all_of_them = (ask(shop, engine, planner, limit=limit) for limit in (2, 3))

    assert ((("tea",), ("milk",)), 3, 1) == (some.rows, some.total, some.omitted)
    assert (("F1S1R2",), ("F1S1R3",)) == some.sources
    assert (3, 3, 0) == (len(all_of_them.rows), all_of_them.total, all_of_them.omitted)


def test_now_is_the_moment_of_the_question(shop: Base, engine: SqliteTables) -> None:
    answer = ask(shop, engine, Scripted(says("SELECT date('now') AS today, CURRENT_TIMESTAMP AS moment, __src FROM prices")), limit=1)

    assert (("2026-03-01", "2026-03-01 00:00:00"),) == answer.rows


def test_without_tables_or_without_one_that_fits_nothing_is_planned(shop: Base, engine: SqliteTables) -> None:
    planner = Scripted(NO)
    asker = TableAsker(planners=[planner], engine=engine, open_table=lambda card: shop.open_table(card.table_id))

    nothing = asker.ask(QUESTION, (), as_of=AS_OF, limit=5)
    unfit = asker.ask("zebras xylophone", shop.tables(), as_of=AS_OF, limit=5)

    assert (False, "", ()) == (nothing.has_tables, nothing.declined, nothing.tables)
    assert (True, "no table has anything to do with the question") == (unfit.has_tables, unfit.declined)
    assert 2 == len(unfit.tables)
    assert [] == planner.shown


def test_a_planner_is_shown_a_few_of_many_tables(tmp_path: Path, engine: SqliteTables) -> None:
    for number in range(MAX_SHOWN + 3):
        (tmp_path / f"prices{number:02}.csv").write_text(TEA)
    with connect(tmp_path / "base", init=True) as base:
        base.ingest(sorted(tmp_path.glob("*.csv")), source="shop", embed=False)
        planner = Scripted(NO)
        answer = ask(base, engine, planner)

    assert MAX_TABLES == len(planner.shown[0])
    assert MAX_SHOWN == len(answer.tables)
    assert planner.shown[0] == [card.table_id for card in answer.tables[:MAX_TABLES]]


def test_the_pages_quote_the_figures_that_were_measured() -> None:
    """When this fails, a benchmark was run anew: write its figures into docs/tables.md and README.md."""
    measured = json.loads((ROOT / "benchmarks" / "results" / "table_questions.json").read_text())
    page, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/tables.md", "README.md"))

    for each in (measured["halves"]["seen"], measured["halves"]["unseen"], measured["all"]):
        quoted = " | ".join(f"{each[name]}" for name in ("questions", "right", "wrong", "declined", "precision"))
        assert f" | {quoted} |" in page
    total = measured["all"]
    assert f"; {total['exact']} of the {total['right']} have no others either." in page
    assert f"{total['right']} are answered rightly, {total['wrong']} wrongly, and {total['declined']} declined" in readme
