"""Tables from a terminal: what there is, rows with their places, refusals with a reason, and nothing that steers a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import openpyxl
import pytest

from evidentia import AccessRule, connect
from evidentia.contracts.tables import TableAnswer, TablePlan
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.cli.tables_report import MAX_SPANS, places_of, put_table_answer

if TYPE_CHECKING:
    from pathlib import Path

    from serving.cli_runs import Run

HOSTILE: Final = "\x1b[2J[red]tea[/red]\u202e\x07:boom:"
HEAVY: Final = {"numpy", "rich", "msgspec", "sqlite3", "asyncio", "sqlglot"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a base with a workbook and a file that few may see."""
    book = openpyxl.Workbook()
    page = book.worksheets[0]
    page.title = "Goods"
    for row in (["Product", "Price (EUR)", "Stock"], ["tea", 3.5, 10], ["milk", 2, 20], ["bread", 4, 0], ["jam", 5, 3]):
        page.append(row)
    book.save(tmp_path / "shop.xlsx")
    (tmp_path / "wages.csv").write_text("Name,Wage (EUR)\nAda,3000\nGrace,4000\n")
    with connect(tmp_path / "shop", init=True) as base:
        base.ingest([tmp_path / "shop.xlsx", tmp_path / "wages.csv"], source="shop", embed=False)
        base.set_access(["shop:wages.csv"], AccessRule(classification=Classification.RESTRICTED))
        return base.path


def test_tables_are_listed_with_kinds_and_units(run: Run, shop: Path) -> None:
    listed = run("tables", "list", "--base", shop)

    assert [
        "file            sheet  title  rows  columns",
        "shop:shop.xlsx  Goods  -         4  Product (text), Price (EUR) (number, EUR), Stock (integer)",
        "shop:wages.csv  1      -         2  Name (text), Wage (EUR) (integer, EUR)",
    ] == listed.out.splitlines()
    assert (0, "") == (listed.exit_code, listed.err)


def test_rows_come_with_their_places_the_statement_and_the_reading(run: Run, shop: Path) -> None:
    outcome = run("tables", "ask", "Which products have a price above 3 EUR?", "--base", shop)

    assert (0, "") == (outcome.exit_code, outcome.err)
    assert ["product", "tea", "bread", "jam", "", "3 rows", ""] == outcome.out.splitlines()[:7]
    assert "\nsource      shop:shop.xlsx, sheet Goods, rows 2, 4-5\n" in outcome.out
    assert "'above': >\n" in outcome.out
    assert '\nstatement   SELECT "goods"."product" AS "product"' in outcome.out
    assert outcome.out.endswith("\nparameters  [3]\n")


def test_what_is_beyond_the_limit_is_counted(run: Run, shop: Path) -> None:
    outcome = run("tables", "ask", "Which products have a price above 3 EUR?", "--limit", "2", "--base", shop)

    assert ["product", "tea", "bread", "", "3 rows, 2 shown, 1 omitted"] == outcome.out.splitlines()[:5]
    assert "shop:shop.xlsx, sheet Goods, rows 2, 4\n" in outcome.out


def test_no_row_is_an_answer(run: Run, shop: Path) -> None:
    outcome = run("tables", "ask", "Which products have a price above 3000 EUR?", "--base", shop)

    assert (0, "no row fits") == (outcome.exit_code, outcome.out.splitlines()[0])
    assert "parameters  [3000]" in outcome.out


def test_a_refusal_has_a_reason_and_the_nearest_tables(run: Run, shop: Path) -> None:
    outcome = run("tables", "ask", "Which products dance?", "--base", shop)

    assert (1, "") == (outcome.exit_code, outcome.err)
    assert "declined: nothing in the tables explains 'dance'" == outcome.out.splitlines()[0]
    assert "nearest tables" in outcome.out
    assert "shop:shop.xlsx" in outcome.out


def test_somebody_else_sees_only_what_they_may(run: Run, shop: Path) -> None:
    question = "What is the wage of Ada?"
    owner, ann = (run("tables", "ask", question, "--base", shop, *caller) for caller in ((), ("--as", "ann")))
    listed = run("tables", "list", "--base", shop, "--as", "ann")

    assert (0, "3000") == (owner.exit_code, owner.out.splitlines()[1].split()[-1])
    assert 1 == ann.exit_code
    assert "wage" not in (listed.out + ann.out).lower().replace("'wage'", "")


def test_without_a_table_both_commands_say_so(run: Run, base: Path) -> None:
    listed, asked = run("tables", "list", "--base", base), run("tables", "ask", "price of tea", "--base", base)

    assert (0, "file  sheet  title  rows  columns\n") == (listed.exit_code, listed.out)
    assert "note: there is no table; `evidentia ingest` finds them" in listed.err
    assert (1, "declined: there is no table that you may see\n") == (asked.exit_code, asked.out)
    assert "" == run("tables", "list", "--base", base, "--quiet").err


def test_json_is_what_python_gives(run: Run, shop: Path) -> None:
    question = "How many products have a price above 3 EUR?"
    listed, asked, declined = (
        run("tables", *words, "--base", shop, "--json") for words in (("list",), ("ask", question), ("ask", "How happy is tea?"))
    )
    with connect(shop) as opened:
        names, answer = [card.table_id for card in opened.tables()], opened.ask_tables(question)

    assert names == [card["table_id"] for card in json.loads(listed.out)]
    assert [[3]] == json.loads(asked.out)["rows"]
    assert [list(codes) for codes in answer.sources] == json.loads(asked.out)["sources"]
    assert (1, True) == (declined.exit_code, bool(json.loads(declined.out)["declined"]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ask",), "missing argument"),
        (("ask", ""), "field 'question'"),
        (("ask", "tea", "--limit", "0"), "--limit"),
        (("ask", "tea", "--limit", "many"), "--limit"),
        (("ask", "\udcff"), "not UTF-8"),
        (("ask", "tea", "--as", "ann group"), "--as"),
        (("drop",), "drop"),
    ],
)
def test_mistakes_have_a_line_and_an_exit_code(run: Run, shop: Path, arguments: tuple[str, ...], said: str) -> None:
    outcome = run("tables", *arguments, "--base", shop)

    assert (2, "") == (outcome.exit_code, outcome.out)
    assert said in outcome.err.lower().replace("utf-8", "UTF-8")


def test_a_missing_base_is_told(run: Run) -> None:
    assert 3 == run("tables", "list").exit_code


def test_hostile_cells_and_names_do_not_steer_a_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "goods.csv").write_text(f'"Product {HOSTILE}",Price\n"{HOSTILE}",3\ntea,2\n')
    with connect(tmp_path / "shop", init=True) as base:
        base.ingest([tmp_path / "goods.csv"], source="shop", embed=False)
    told = [
        run("tables", *words, "--base", tmp_path / "shop", *form).out
        for words in (("list",), ("ask", "List the goods with a price above 1"), ("ask", "zebras"))
        for form in ((), ("--json",))
    ]

    assert "\\x1b[2J[red]tea[/red]\\u202e\\x07:boom:" in told[0]
    assert "\\x1b[2J[red]tea[/red]\\u202e\\x07:boom:" in told[2]
    for text in told:
        assert not any(sign in text for sign in "\x1b\x07\u202e")


def test_names_that_a_planner_gives_columns_are_escaped_too(capsys: pytest.CaptureFixture[str]) -> None:
    plan = TablePlan(statement=f"SELECT 1 AS '{HOSTILE}'", parameters=(HOSTILE, None), reading=(HOSTILE,))
    put_table_answer(
        TableAnswer(question="x", plan=plan, columns=(HOSTILE, "b", "c"), rows=((0.1 + 0.2, None, True),), sources=((),), total=1)
    )

    out = capsys.readouterr().out
    assert not any(sign in out for sign in "\x1b\x07\u202e")
    assert ["0.3", "-", "true"] == out.splitlines()[1].split()


def test_places_are_stretches_by_file_and_sheet() -> None:
    many = tuple(f"F2S1R{row}" for row in range(2, 2 * MAX_SPANS + 6, 2))
    answer = TableAnswer(
        question="x",
        files=(("s:a.csv", "a.csv"), ("s:b.csv", "b.csv")),  # type: ignore[arg-type]  # plain names
        sources=(("F1S2R9", "F1S2R10"), ("F1S2R8",), ("F1S1R3",), many),
    )

    assert ["s:a.csv, sheet 2, rows 8-10", "s:a.csv, sheet 1, row 3"] == places_of(answer)[:2]
    assert places_of(answer)[2].startswith("s:b.csv, sheet 1, rows 2, 4, 6")
    assert places_of(answer)[2].endswith(" and 2 more")


def test_help_loads_nothing_heavy() -> None:
    program = "import sys; from evidentia.serving.cli import main; main(['tables', 'ask', '--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert not HEAVY & set(done.stderr.split())
    assert not [name for name in done.stderr.split() if name.startswith("evidentia.base")]
