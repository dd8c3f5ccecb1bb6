"""Tables and their answers as text: what there is, the rows that were found, and where each of them stands."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from evidentia.serving.cli.output import Figure, counted, printable, put, put_facts, put_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.contracts.tables import CellValue, TableAnswer, TableCard, TableColumn

NO_TABLES: Final = "there is no table that you may see"
NO_ROWS: Final = "no row fits"
NOTHING: Final = "-"
MAX_NEAREST: Final = 5
MAX_SPANS: Final = 40
"""How many stretches of rows of one sheet are shown."""
DIGITS: Final = 15
"""As many digits of a number as a spreadsheet shows; what sums and averages have beyond them is noise."""
_CODE: Final = re.compile(r"F([0-9]+)S([0-9]+)R([0-9]+)")


def put_cards(cards: Sequence[TableCard]) -> None:
    """Print a table of tables; their columns stand last, since they are longest."""
    rows = [
        (card.document_id, card.sheet_name or card.sheet, card.title or NOTHING, card.row_count, ", ".join(map(_column, card.columns)))
        for card in cards
    ]
    put_table(("file", "sheet", "title", "rows", "columns"), rows)


def put_table_answer(answer: TableAnswer) -> None:
    """Print the rows with how they were found and where they stand, or why there are none."""
    if answer.declined or not answer.has_tables:
        _put_declined(answer)
        return
    if answer.rows:
        put_table([printable(name) for name in answer.columns], [[_cell(value) for value in row] for row in answer.rows])
        put("", _counted(answer))
    else:
        put(NO_ROWS)
    put()
    facts: list[tuple[str, object]] = [("source", place) for place in places_of(answer)]
    if answer.plan is not None:
        facts += [("read", part) for part in answer.plan.reading]
        facts += [("statement", answer.plan.statement)]
        facts += [("parameters", _parameters(answer.plan.parameters))] if answer.plan.parameters else []
    put_facts(facts)


def places_of(answer: TableAnswer) -> list[str]:
    """Return where the rows of an answer stand, one line for each file and sheet, in the order in which they come up."""
    rows: dict[tuple[int, int], dict[int, None]] = {}
    for codes in answer.sources:
        for code in codes:
            found = _CODE.fullmatch(code)
            if found is not None:
                rows.setdefault((int(found[1]), int(found[2])), {})[int(found[3])] = None
    names = _sheet_names(answer.tables)
    lines = []
    for (file, sheet), numbers in rows.items():
        document_id, _ = answer.files[file - 1]
        called = names.get((document_id, sheet), "")
        plural = "row" if len(numbers) == 1 else "rows"
        lines.append(f"{document_id}, sheet {called or sheet}, {plural} {_spans(numbers)}")
    return lines


def _put_declined(answer: TableAnswer) -> None:
    put(f"declined: {answer.declined or NO_TABLES}")
    if answer.plan is not None:
        put(f"statement: {answer.plan.statement}")
    if answer.tables:
        put("", "nearest tables")
        put_cards(answer.tables[:MAX_NEAREST])


def _counted(answer: TableAnswer) -> str:
    return counted(answer.total, "row") + (f", {len(answer.rows)} shown, {answer.omitted} omitted" if answer.omitted else "")


def _column(column: TableColumn) -> str:
    return f"{column.name} ({column.kind.value}{', ' + column.unit if column.unit else ''})"


def _cell(value: CellValue) -> object:
    """Return a cell as it is shown; numbers stand on the right."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return Figure(f"{value:.{DIGITS}g}")
    return value if isinstance(value, str) else Figure(value)


def _parameters(values: Iterable[CellValue]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def _sheet_names(cards: Iterable[TableCard]) -> Mapping[tuple[str, int], str]:
    return {(card.document_id, card.sheet): card.sheet_name for card in cards}


def _spans(numbers: Iterable[int]) -> str:
    """Return rows in order, stretches of them as `2-5`."""
    spans: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in spans[:MAX_SPANS]]
    left = sum(last - first + 1 for first, last in spans[MAX_SPANS:])
    return ", ".join(shown) + (f" and {left} more" if left else "")
