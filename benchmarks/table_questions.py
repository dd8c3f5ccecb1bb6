"""How many questions about databases the deterministic planner answers with the right rows, wrongly, or not at all.

    python benchmarks/table_questions.py          (needs defog_sqleval; --show HALF prints each question of a half)

Each of the 190 questions of defog's sql-eval whose gold statement runs is planned over the tables of its own database, executed, and
compared with the rows of each accepted gold statement. The databases are split by name: the planner was written with those of `seen` in
sight (academic, atis, restaurants, yelp); those of `unseen` (advising, geography, scholar) were measured only.

An answer is right when it has as many rows as an accepted one and holds all of its columns (in any order of columns, numbers to 6 digits);
it is exact when it has no other columns either. The order of rows counts where the question asks for one; rows that tie may be exchanged.
`with_rows` leaves out the questions whose gold statements return nothing: an answer without rows is cheap there.
"""

from __future__ import annotations

import csv
import json
import os
import sqlite3
import sys
import time
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evidentia.contracts.ids import DocumentId, Sha256, SourceId
from evidentia.contracts.tables import ColumnKind, OpenTable, TableCard, TableColumn, TableContent, TableId, TablePlan
from evidentia.tables.planner import SchemaPlanner

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data")) / "defog_sqleval"
RESULTS = Path(__file__).parent / "results" / "table_questions.json"
HALVES = {"seen": ("academic", "atis", "restaurants", "yelp"), "unseen": ("advising", "geography", "scholar")}
ORDERED = ("order", "sort", "alphabetical", "descending", "ascending", "starting from", "highest first", "lowest first")
DIGITS = 6
MAX_COLUMNS = 7

Rows = list[tuple[Any, ...]]


class Question(NamedTuple):
    """A question with its database and its accepted statements."""

    number: int
    database: str
    category: str
    text: str
    gold: tuple[str, ...]


def main() -> None:
    show = sys.argv[sys.argv.index("--show") + 1] if "--show" in sys.argv else ""
    report: dict[str, Any] = {"command": "python benchmarks/table_questions.py", "planner": SchemaPlanner().identity, "halves": {}}
    totals: Counter[str] = Counter()
    filled: Counter[str] = Counter()
    started = time.process_time()
    for half, databases in HALVES.items():
        outcomes: list[tuple[str, str]] = []
        for question in read_questions():
            if question.database in databases:
                outcome, detail = judge(question)
                filled[outcome] += has_rows(question)
                outcomes.append((question.category, outcome))
                if half == show:
                    sys.stdout.write(f"{question.number} {question.database} {outcome}: {question.text}\n      {detail}\n")
        counts = Counter(outcome for _, outcome in outcomes)
        totals += counts
        report["halves"][half] = {"databases": list(databases), **summary(counts), "by_category": by_category(outcomes)}
    report["all"] = summary(totals)
    report["with_rows"] = summary(+filled)
    report["cpu_ms_per_question"] = round((time.process_time() - started) * 1000 / max(totals.total(), 1), 1)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    if not show:
        RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def summary(counts: Counter[str]) -> dict[str, Any]:
    """Return the figures of some outcomes; `exact` ones are among the right ones."""
    right = counts["exact"] + counts["right"]
    answered = right + counts["wrong"]
    return {
        "questions": counts.total(),
        "right": right,
        "exact": counts["exact"],
        "wrong": counts["wrong"],
        "declined": counts["declined"],
        "precision": round(right / answered, 3) if answered else None,
    }


def by_category(outcomes: Sequence[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Return how often each outcome occurred, by the kind of question."""
    found: dict[str, Counter[str]] = {}
    for category, outcome in sorted(outcomes):
        found.setdefault(category, Counter())["right" if outcome == "exact" else outcome] += 1
    return {category: dict(sorted(counts.items())) for category, counts in found.items()}


def read_questions() -> list[Question]:
    """Return the questions of the kept databases whose gold statements all run."""
    with (DATA / "questions_gen_sqlite.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    questions = []
    for number, row in enumerate(rows):
        path = DATA / "db" / f"{row['db_name']}.sqlite"
        gold = tuple(part.strip() for part in row["query"].split(";") if part.strip())
        if path.exists() and runs(path, gold):
            questions.append(Question(number, row["db_name"], row["query_category"], row["question"], gold))
    return questions


def has_rows(question: Question) -> bool:
    """Tell whether an accepted statement returns rows."""
    return any(execute(DATA / "db" / f"{question.database}.sqlite", gold) for gold in question.gold)


def runs(path: Path, statements: Sequence[str]) -> bool:
    """Tell whether the statements can be executed."""
    try:
        for statement in statements:
            execute(path, statement)
    except sqlite3.Error:
        return False
    return True


def execute(path: Path, statement: str, parameters: Sequence[Any] = ()) -> Rows:
    """Return the rows of a statement over a database as it is."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        return connection.execute(statement, parameters).fetchall()


def open_tables(path: Path) -> list[OpenTable]:
    """Return the tables of a database, rows numbered from 1."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return [_open_table(connection, path.stem, name) for name in names]


def _open_table(connection: sqlite3.Connection, database: str, name: str) -> OpenTable:
    described = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
    rows = connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608 - a name of the database itself
    columns = tuple(tuple(row[place] for row in rows) for place in range(len(described)))
    card = TableCard(
        table_id=TableId(f"{database}.{name}"),
        document_id=DocumentId(database),
        source_id=SourceId("defog"),
        file_name=f"{database}.sqlite",
        sql_name=name,
        row_count=len(rows),
        content=Sha256(""),
        columns=tuple(
            TableColumn(name=each[1], sql_name=each[1], kind=_kind(each[2], cells), position=place)
            for place, (each, cells) in enumerate(zip(described, columns, strict=True), start=1)
        ),
    )
    return OpenTable(card=card, content=TableContent(rows=tuple(range(1, len(rows) + 1)), columns=columns))


def _kind(declared: str, cells: Sequence[object]) -> ColumnKind:
    declared = declared.lower()
    if "bool" in declared:
        return ColumnKind.BOOLEAN
    present = [cell for cell in cells if cell is not None]
    if "int" in declared and all(isinstance(cell, int) for cell in present):
        return ColumnKind.INTEGER
    if any(word in declared for word in ("double", "real", "numeric", "float")):
        return ColumnKind.NUMBER
    if declared in {"date", "timestamp"}:
        return ColumnKind.DATE
    return ColumnKind.TEXT


def judge(question: Question) -> tuple[str, str]:
    """Return what became of a question, and what was planned or why nothing was."""
    path = DATA / "db" / f"{question.database}.sqlite"
    tables = open_tables(path)
    plan = SchemaPlanner().plan(question.text, tables, budget_ms=1000)
    if not isinstance(plan, TablePlan):
        return "declined", plan.reason
    rows = run_plan(plan, tables)
    is_ordered = any(word in question.text.lower() for word in ORDERED)
    outcomes = [compare(execute(path, gold), rows, is_ordered=is_ordered) for gold in question.gold]
    outcome = next((kind for kind in ("exact", "right") if kind in outcomes), "wrong")
    return outcome, f"{plan.statement} {plan.parameters}\n      {rows[:4]} gold {execute(path, question.gold[0])[:4]}"


def run_plan(plan: TablePlan, tables: Sequence[OpenTable]) -> Rows:
    """Return the rows of a plan without their sources."""
    with sqlite3.connect(":memory:") as connection:
        for opened in tables:
            names = [*(column.sql_name for column in opened.card.columns), "__src"]
            connection.execute(f'CREATE TABLE "{opened.card.sql_name}" ({", ".join(f"{chr(34)}{name}{chr(34)}" for name in names)})')
            records = zip(*opened.content.columns, (f"F1S1R{row}" for row in opened.content.rows), strict=True)
            marks = ", ".join("?" for _ in names)
            connection.executemany(f'INSERT INTO "{opened.card.sql_name}" VALUES ({marks})', records)  # noqa: S608 - as above
        if plan.support:
            connection.execute(plan.support, plan.parameters).fetchall()
        found = connection.execute(plan.statement, plan.parameters)
        names = [description[0] for description in found.description]
        return [row[:-1] if names[-1] == "__src" else row for row in found.fetchall()]


def compare(gold: Rows, answer: Rows, *, is_ordered: bool) -> str:
    """Return `exact`, `right` (with further columns) or `wrong`."""
    gold, answer = [[_cell(cell) for cell in row] for row in gold], [[_cell(cell) for cell in row] for row in answer]  # type: ignore[misc]
    if len(gold) != len(answer):
        return "wrong"
    if not gold:
        return "exact"
    wide, narrow = len(answer[0]), len(gold[0])
    if narrow > wide or wide > MAX_COLUMNS:
        return "wrong"
    for places in permutations(range(wide), narrow):
        chosen = [tuple(row[place] for place in places) for row in answer]
        if Counter(chosen) == Counter(map(tuple, gold)) and (not is_ordered or _same_order(chosen, list(map(tuple, gold)))):
            return "exact" if wide == narrow else "right"
    return "wrong"


def _same_order(answer: Rows, gold: Rows) -> bool:
    """Tell whether rows come in the same order, or agree in a column that sorts them: rows that tie may be exchanged."""
    if answer == gold:
        return True
    for place in range(len(gold[0])):
        ours, theirs = [row[place] for row in answer], [row[place] for row in gold]
        if ours == theirs and len(set(theirs)) > 1 and theirs in (sorted(theirs), sorted(theirs, reverse=True)):
            return True
    return False


def _cell(cell: object) -> str:
    if isinstance(cell, (bool, int, float)):
        return f"{float(cell):.{DIGITS}g}"
    return "\0" if cell is None else str(cell)


if __name__ == "__main__":
    main()
