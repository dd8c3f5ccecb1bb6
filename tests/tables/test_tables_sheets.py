"""Spreadsheets come back as tables: the right cells under the right names at the right rows."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sheet_samples import kinds, names, open_document, rows, table, tables, workbook

from evidentia.contracts.settings import IngestSettings
from evidentia.ingest.reader_pool import ReaderPool
from soak import cases

if TYPE_CHECKING:
    from evidentia.contracts.tables import CellValue

PRICES: list[list[object]] = [["item", "price", "sold"], ["lamp", 12.5, True], ["desk", 80, False], ["chair", 33, True]]


def test_a_plain_sheet_is_one_table_with_its_rows() -> None:
    found = table(workbook(PRICES))

    assert (1, "Data", "", (1,), ()) == (found.sheet, found.sheet_name, found.title, found.header_rows, found.total_rows)
    assert (["item", "price", "sold"], ["text", "number", "boolean"]) == (names(found), kinds(found))
    assert rows(found) == {2: ("lamp", 12.5, True), 3: ("desk", 80.0, False), 4: ("chair", 33.0, True)}
    assert [1, 2, 3] == [column.position for column in found.columns]
    assert (3, 0, ("lamp", "desk", "chair")) == (found.columns[0].distinct, found.columns[0].missing, found.columns[0].samples)


def test_rows_and_columns_count_from_the_corner_of_the_sheet() -> None:
    found = table(workbook({"C5": "item", "D5": "price", "C6": "lamp", "D6": 1, "C7": "desk", "D7": 2}))

    assert ((5,), [3, 4], {6: ("lamp", 1), 7: ("desk", 2)}) == (found.header_rows, [one.position for one in found.columns], rows(found))


def test_merged_headers_are_joined_level_by_level() -> None:
    def change(sheet: Any) -> None:
        for place in ("A1:A2", "B1:C1", "D1:E1"):
            sheet.merge_cells(place)

    content: list[list[object]] = [
        ["Region", "2023", None, "2024", None],
        [None, "Q1", "Q2", "Q1", "Q2"],
        ["North", 1, 2, 3, 4],
        ["South", 5, 6, 7, 8],
    ]
    found = table(workbook(content, change=change))

    assert ["Region", "2023 / Q1", "2023 / Q2", "2024 / Q1", "2024 / Q2"] == names(found)
    assert ["region", "c_2023_q1", "c_2023_q2", "c_2024_q1", "c_2024_q2"] == [column.sql_name for column in found.columns]
    assert ((1, 2), {3: ("North", 1, 2, 3, 4), 4: ("South", 5, 6, 7, 8)}) == (found.header_rows, rows(found))


def test_groups_that_are_not_merged_are_joined_too() -> None:
    content: list[list[object]] = [
        [None, "Sales", None, "Cost", None],
        ["Region", "Q1", "Q2", "Q1", "Q2"],
        ["North", 1, 2, 3, 4],
        ["South", 5, 6, 7, 8],
    ]
    found = table(workbook(content))

    assert ["Region", "Sales / Q1", "Sales / Q2", "Cost / Q1", "Cost / Q2"] == names(found)


def test_a_title_over_the_whole_width_is_no_header() -> None:
    def change(sheet: Any) -> None:
        sheet.merge_cells("A1:C1")

    found = table(workbook([["Prices of the spring", None, None], *PRICES], change=change))

    assert ("Prices of the spring", (2,), [3, 4, 5]) == (found.title, found.header_rows, list(found.content.rows))


def test_a_value_merged_over_rows_stands_in_each_of_them() -> None:
    def change(sheet: Any) -> None:
        sheet.merge_cells("A2:A4")

    content: list[list[object]] = [
        ["region", "city", "people"],
        ["North", "Kiel", 1],
        [None, "Husum", 2],
        [None, "Plön", 3],
        ["South", "Ulm", 4],
    ]
    found = table(workbook(content, change=change))

    assert ["North", "North", "North", "South"] == [row[0] for row in rows(found).values()]


def test_two_tables_below_each_other_are_two() -> None:
    content: list[list[object]] = [*PRICES, [], ["Staff"], ["name", "born"], ["Ada", date(1915, 12, 10)], ["Grace", date(1906, 12, 9)]]
    first, second = tables(workbook(content))

    assert (["item", "price", "sold"], [2, 3, 4]) == (names(first), list(first.content.rows))
    assert ("Staff", (7,), ["name", "born"]) == (second.title, second.header_rows, names(second))
    assert rows(second) == {8: ("Ada", "1915-12-10"), 9: ("Grace", "1906-12-09")}


def test_two_tables_beside_each_other_are_two() -> None:
    content: list[list[object]] = [
        ["item", "price", None, "name", "age"],
        ["lamp", 1, None, "Ada", 36],
        ["desk", 2, None, "Grace", 85],
        ["chair", 3, None, None, None],
    ]
    first, second = tables(workbook(content))

    assert ({2: ("lamp", 1), 3: ("desk", 2), 4: ("chair", 3)}, {2: ("Ada", 36), 3: ("Grace", 85)}) == (rows(first), rows(second))
    assert ([1, 2], [4, 5]) == ([one.position for one in first.columns], [one.position for one in second.columns])


def test_a_header_of_another_width_begins_another_table_without_a_gap() -> None:
    first, second = tables(workbook([*PRICES, ["name", "city"], ["Ada", "London"], ["Grace", "New York"]]))

    assert ([2, 3, 4], (5,), {6: ("Ada", "London"), 7: ("Grace", "New York")}) == (
        list(first.content.rows),
        second.header_rows,
        rows(second),
    )


def test_a_row_of_units_belongs_to_the_header() -> None:
    found = table(workbook([["item", "price", "weight"], [None, "EUR", "kg"], ["lamp", 1, 2], ["desk", 2, 3]]))

    assert ((1, 2), ["item", "price (EUR)", "weight (kg)"]) == (found.header_rows, names(found))
    assert ["", "EUR", "kg"] == [column.unit for column in found.columns]


def test_tables_beside_each_other_keep_their_own_titles() -> None:
    content: list[list[object]] = [
        ["Left", None, None, "Right", None],
        ["a", "b", None, "c", "d"],
        ["x", 1, None, "y", 2],
        ["z", 3, None, "w", 4],
    ]

    assert ["Left", "Right"] == [one.title for one in tables(workbook(content))]


def test_an_empty_row_inside_a_table_does_not_end_it() -> None:
    found = table(workbook([*PRICES, [], ["shelf", 5, True], ["stool", 6, False]]))

    assert [2, 3, 4, 6, 7] == list(found.content.rows)


def test_notes_above_and_below_are_not_rows() -> None:
    content: list[list[object]] = [
        ["Sales"],
        [],
        ["region", "sum_eur", "units"],
        ["North", 1.5, 2],
        ["South", 2.5, 4],
        ["Source: our own counting"],
    ]
    found = table(workbook(content))

    assert ("Sales", (3,), [4, 5]) == (found.title, found.header_rows, list(found.content.rows))


def test_prose_is_no_table() -> None:
    prose = [
        ["This sheet explains how the figures were gathered."],
        ["They were counted by hand."],
        ["Ask the office for more."],
        ["Thanks."],
    ]

    assert () == tables(workbook(prose))


@pytest.mark.parametrize("label", ["Total", "Sum", "Summe", "Gesamt:", "Grand total", "TOTAL 2024"])
def test_a_total_at_the_end_is_set_aside(label: str) -> None:
    found = table(workbook([["region", "units", "eur"], ["North", 1, 2.5], ["South", 2, 3.5], [label, 3, 6]]))

    assert ((4,), [2, 3]) == (found.total_rows, list(found.content.rows))


def test_subtotals_and_the_grand_total_are_set_aside() -> None:
    content: list[list[object]] = [
        ["region", "units"],
        ["Kiel", 1],
        ["Husum", 2],
        ["Subtotal North", 3],
        ["Ulm", 4],
        ["Bonn", 5],
        ["Subtotal South", 9],
        ["Total", 12],
    ]
    found = table(workbook(content))

    assert ((4, 7, 8), [2, 3, 5, 6]) == (found.total_rows, list(found.content.rows))


def test_a_name_with_the_word_total_is_a_row() -> None:
    found = table(workbook([["company", "units"], ["Total Wine", 7], ["Sum Bank", 2], ["Acme", 4], ["Zeta", 1]]))

    assert ((), [2, 3, 4, 5]) == (found.total_rows, list(found.content.rows))


def test_a_last_row_of_sums_without_a_label_is_set_aside() -> None:
    found = table(workbook([["region", "units", "eur"], ["North", 1, 2.5], ["South", 2, 3.5], [None, 3, 6]]))

    assert ((4,), [2, 3]) == (found.total_rows, list(found.content.rows))


def test_a_header_that_comes_again_is_dropped() -> None:
    found = table(workbook([*PRICES, PRICES[0], ["shelf", 5, True]]))

    assert [2, 3, 4, 6] == list(found.content.rows)


def test_values_without_a_header_get_numbers_for_names() -> None:
    found = table(workbook([["North", 1, 2.5], ["South", 2, 3.5], ["East", 3, 4.5]]))

    assert ((), ["column_1", "column_2", "column_3"], [1, 2, 3]) == (found.header_rows, names(found), list(found.content.rows))


def test_years_name_columns_of_figures() -> None:
    found = table(workbook([["Region", 2022, 2023], ["North", 10, 20], ["South", 30, 40]]))

    assert (["Region", "2022", "2023"], {2: ("North", 10, 20), 3: ("South", 30, 40)}) == (names(found), rows(found))


def test_dates_times_and_durations_are_iso_or_seconds() -> None:
    content: list[list[object]] = [
        ["day", "moment", "time", "span"],
        [date(2024, 1, 2), datetime.fromisoformat("2024-01-02T03:04:05"), time(6, 7), timedelta(hours=30)],
        [date(2024, 2, 3), datetime.fromisoformat("2024-02-03"), time(8, 9, 10), timedelta(minutes=90)],
    ]
    found = table(workbook(content))

    assert ["date", "datetime", "time", "integer"] == kinds(found)
    assert rows(found)[2] == ("2024-01-02", "2024-01-02T03:04:05", "06:07:00", 108_000)
    assert rows(found)[3] == ("2024-02-03", "2024-02-03T00:00:00", "08:09:10", 5_400)
    assert found.columns[3].unit == "s"


def test_currencies_and_percent_come_from_number_formats() -> None:
    def change(sheet: Any) -> None:
        for row in (2, 3):
            sheet.cell(row, 2).number_format = '#,##0.00 "€"'
            sheet.cell(row, 3).number_format = "0.0%"
            sheet.cell(row, 4).number_format = "[$CHF] #,##0.00"

    found = table(workbook([["item", "price", "share", "net"], ["lamp", 12.5, 0.125, 3], ["desk", 80, 0.5, 4]], change=change))

    assert ["", "EUR", "%", "CHF"] == [column.unit for column in found.columns]
    assert rows(found) == {2: ("lamp", 12.5, 12.5, 3), 3: ("desk", 80.0, 50.0, 4)}


def test_a_percent_format_on_some_cells_only_changes_nothing() -> None:
    def change(sheet: Any) -> None:
        sheet.cell(2, 2).number_format = "0%"

    found = table(workbook([["item", "share"], ["lamp", 0.5], ["desk", 0.25]], change=change))

    assert ("", {2: ("lamp", 0.5), 3: ("desk", 0.25)}) == (found.columns[1].unit, rows(found))
    assert ("column B: shows only some of its numbers in a unit, so they are kept as stored",) == found.notes


def test_an_error_is_missing_and_noted() -> None:
    def change(sheet: Any) -> None:
        sheet["B3"].data_type = "e"

    found = table(workbook([["item", "price"], ["lamp", 1], ["desk", "#N/A"], ["chair", 3]], change=change))

    assert {2: ("lamp", 1), 3: ("desk", None), 4: ("chair", 3)} == rows(found)
    assert ("1 cells hold an error and count as missing",) == found.notes


def test_a_formula_gives_the_value_it_was_saved_with() -> None:
    from archives import with_part

    content = workbook([["item", "price"], ["lamp", 1], ["desk", "=B2*2"], ["chair", 3]])
    sheet = _part(content, "xl/worksheets/sheet1.xml").replace(b"<v />", b"<v>2</v>").replace(b"<v></v>", b"<v>2</v>")
    found = table(with_part(content, "xl/worksheets/sheet1.xml", sheet))

    assert {2: ("lamp", 1), 3: ("desk", 2), 4: ("chair", 3)} == rows(found)


def _part(content: bytes, name: str) -> bytes:
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(name)


def _cell(text: str) -> str:
    return f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'


def _value(kind: str, attributes: str) -> str:
    return f'<table:table-cell office:value-type="{kind}" {attributes}><text:p>shown</text:p></table:table-cell>'


def test_an_open_document_has_its_spans_units_dates_and_durations() -> None:
    empty = '<table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="6"/></table:table-row>'
    group = '<table:table-cell office:value-type="string" table:number-columns-spanned="2"><text:p>Paid</text:p></table:table-cell>'
    head = f"<table:table-cell/>{_cell('')}{group}<table:covered-table-cell/>{_cell('')}{_cell('')}"
    line = "".join(_cell(name) for name in ("item", "price", "share", "day", "span"))
    body = "".join(
        f"<table:table-row><table:table-cell/>{_cell(item)}"
        + _value("currency", f'office:currency="EUR" office:value="{price}"')
        + _value("percentage", f'office:value="{share}"')
        + _value("date", f'office:date-value="2024-02-0{day}"')
        + _value("time", f'office:time-value="PT{day * 14}H30M00S"')
        + "</table:table-row>"
        for item, price, share, day in (("lamp", 12.5, 0.1, 1), ("desk", 80, 0.25, 2))
    )
    rows_of = f"<table:table-row>{head}</table:table-row><table:table-row><table:table-cell/>{line}</table:table-row>{body}"
    found = table(open_document(f'<table:table table:name="P">{empty}{rows_of}</table:table>'), "book.ods")

    assert ["item", "Paid / price", "Paid / share", "day", "span"] == names(found)
    assert ["", "EUR", "%", "", "s"] == [column.unit for column in found.columns]
    assert ((3, 4), [2, 3, 4, 5, 6]) == (found.header_rows, [column.position for column in found.columns])
    assert rows(found) == {5: ("lamp", 12.5, 10, "2024-02-01", 52_200), 6: ("desk", 80.0, 25, "2024-02-02", 102_600)}


def test_tables_pass_through_a_reader_process_unchanged() -> None:
    content = workbook([*PRICES, ["Total", 125.5]])
    with ReaderPool(IngestSettings(readers=1)) as pool:
        extracted = pool.submit(content, name="book.xlsx").result()

    assert tables(content) == extracted.tables


WORDS = st.text("abcdefghijklmnopqrstuvwxyzäé<>&'=|;", min_size=1, max_size=12).filter(
    lambda text: text[0] not in "='" and text.strip() == text
)
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "text": st.one_of(st.none(), WORDS.map(lambda text: f"w {text}")),
    "integer": st.one_of(st.none(), st.integers(-(2**50), 2**50)),
    "number": st.one_of(st.none(), st.floats(-1e9, 1e9, allow_nan=False).map(lambda number: round(number, 3))),
    "boolean": st.one_of(st.none(), st.booleans()),
    "date": st.one_of(st.none(), st.dates(date(1950, 1, 1), date(2090, 1, 1))),
}


@st.composite
def sheets(draw: st.DrawFn) -> tuple[int, int, list[str], list[list[object]]]:
    chosen = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=2, max_size=6))
    height = draw(st.integers(3, 12))
    top, left = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    body = [[f"key {number}", *(draw(CELLS[kind]) for kind in chosen)] for number in range(height)]
    return top, left, chosen, body


@settings(max_examples=40, deadline=None)
@given(made=sheets())
def test_whatever_was_written_comes_back_cell_for_cell(made: tuple[int, int, list[str], list[list[object]]]) -> None:
    top, left, chosen, body = made
    header = ["key", *(f"field {number}" for number in range(len(chosen)))]

    def write(sheet: Any) -> None:
        lines: list[list[object]] = [[*header], *body]
        for down, row in enumerate(lines):
            for across, value in enumerate(row):
                sheet.cell(top + down, left + across).value = value

    found = table(workbook([], change=write))

    assert (header, (top,)) == (names(found), found.header_rows)
    assert rows(found) == {top + 1 + number: tuple(map(_expected, row)) for number, row in enumerate(body)}


def _expected(value: Any) -> CellValue:
    return value.isoformat() if isinstance(value, date) else value


@pytest.mark.slow
def test_many_rows_have_the_right_numbers() -> None:
    import io

    import openpyxl

    count = cases(20_000, of=100_000)
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Sales")
    sheet.append(["Sales of the year"])
    sheet.append(["id", "day", "units"])
    start = date(2024, 1, 1)
    for number in range(count):
        sheet.append([f"{number:06}", start + timedelta(days=number % 366), number % 97])
    sheet.append(["Total", None, sum(number % 97 for number in range(count))])
    stream = io.BytesIO()
    book.save(stream)
    with ReaderPool(IngestSettings(readers=1)) as pool:
        (found,) = pool.submit(stream.getvalue(), name="book.xlsx").result().tables

    assert ("Sales of the year", (2,), (count + 3,)) == (found.title, found.header_rows, found.total_rows)
    assert tuple(range(3, count + 3)) == found.content.rows
    assert (["text", "date", "integer"], 366) == (kinds(found), found.columns[1].distinct)
    assert (f"{count - 1:06}", (start + timedelta(days=(count - 1) % 366)).isoformat(), (count - 1) % 97) == rows(found)[count + 2]
