"""Text with divided cells, and Parquet: dialects, encodings, kinds, units and row numbers."""

from __future__ import annotations

import csv
import io
import sqlite3
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sheet_samples import kinds, names, rows, table, tables

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.settings import IngestSettings
from evidentia.ingest.reader_pool import ReaderPool
from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.readers.registry import read_document, tool_of
from evidentia.tables.column_types import read_column
from evidentia.tables.sql_names import column_sql_names, table_sql_name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "name,units\nAda,1\nGrace,2\n"),
        ("a.csv", "name;units\nAda;1\nGrace;2\n"),
        ("a.csv", "name\tunits\r\nAda\t1\r\nGrace\t2\r\n"),
        ("a.csv", "name|units\nAda|1\nGrace|2"),
        ("a.csv", 'name, units\n"Ada", 1\n"Grace", 2\n'),
        ("a.tsv", "name\tunits\nAda\t1\nGrace\t2\n"),
        ("a.tab", "name\tunits\nAda\t1\nGrace\t2\n"),
        ("a.psv", "name|units\nAda|1\nGrace|2\n"),
    ],
)
def test_a_dialect_is_recognised_and_the_text_stays(name: str, text: str) -> None:
    found = table(text, name)

    assert (["name", "units"], {2: ("Ada", 1), 3: ("Grace", 2)}) == (names(found), rows(found))
    assert text == read_document(text.encode(), name=name, limits=ReadLimits()).text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_a_name(encoding: str) -> None:
    found = table("Größe;Wert\nä;1\nö;2\n".encode(encoding), "a.csv")

    assert (["Größe", "Wert"], ["grosse", "wert"]) == (names(found), [column.sql_name for column in found.columns])


def test_a_row_is_the_record_of_the_file_and_empty_lines_count() -> None:
    found = table('name,text\nA,"two\nlines"\n\nB,x\nC,y\n', "a.csv")

    assert {2: ("A", "two\nlines"), 4: ("B", "x"), 5: ("C", "y")} == rows(found)


def test_a_line_that_names_the_sign_is_obeyed_and_counted() -> None:
    found = table("sep=;\nname;amount\nA;1.200,50\nB;7,00\n", "a.csv")

    assert ((2,), {3: ("A", 1200.5), 4: ("B", 7.0)}) == (found.header_rows, rows(found))


def test_a_quote_that_is_never_closed_costs_no_rows() -> None:
    found = table('name,units\n"Ada,1\nGrace,2\n', "a.csv")

    assert ({2: ('"Ada', 1), 3: ("Grace", 2)}, ("a quote is never closed, so quotes are read as text",)) == (rows(found), found.notes)


def test_a_cell_beyond_measure_leaves_the_text_and_a_note() -> None:
    extracted = read_document(b"a,b\n1," + b"x" * 200_000, name="a.csv", limits=ReadLimits())

    assert ((), ("tables_left_out: has a cell too long for a table; only its text is read",)) == (extracted.tables, extracted.notes)


@pytest.mark.parametrize(
    ("cells", "kind", "values", "unit"),
    [
        (["1.234,56", "12,5"], "number", [1234.56, 12.5], ""),
        (["1,234.56", "12.5"], "number", [1234.56, 12.5], ""),
        (["1'234.50", "7.25"], "number", [1234.5, 7.25], ""),
        (["1 234,50", "7,25"], "number", [1234.5, 7.25], ""),
        (["1.234.567", "2.000.000"], "integer", [1234567, 2000000], ""),
        (["€1,200.50", "€ 7.00"], "number", [1200.5, 7.0], "EUR"),
        (["$5", "($7.50)"], "number", [5, -7.5], "$"),
        (["12 %", "7.5%"], "number", [12, 7.5], "%"),
        (["5 kg", "7 kg"], "integer", [5, 7], "kg"),
        (["5 kg", "700 g"], "text", ["5 kg", "700 g"], ""),
        (["5 apples", "7 pears"], "text", ["5 apples", "7 pears"], ""),
        (["\u22125", "7-"], "integer", [-5, -7], ""),
        (["1e3", "2.5E-1"], "number", [1000.0, 0.25], ""),
        (["00123", "45678"], "text", ["00123", "45678"], ""),
        (["1234567890123456789", "2"], "text", ["1234567890123456789", "2"], ""),
        (["+49 30 1234", "+49 40 5678"], "text", ["+49 30 1234", "+49 40 5678"], ""),
        (["1", "n/a", "", "3"], "integer", [1, None, None, 3], ""),
        (["yes", "No", "yes"], "boolean", [True, False, True], ""),
        (["wahr", "falsch"], "boolean", [True, False], ""),
        (["yes", "maybe"], "text", ["yes", "maybe"], ""),
        (["2024-03-01", "2024/3/2"], "date", ["2024-03-01", "2024-03-02"], ""),
        (["31.12.2024", "01.02.2024"], "date", ["2024-12-31", "2024-02-01"], ""),
        (["12/31/2024", "01/02/2024"], "date", ["2024-12-31", "2024-01-02"], ""),
        (["31/12/2024", "01/02/2024"], "date", ["2024-12-31", "2024-02-01"], ""),
        (["01/02/2024", "03/04/2024"], "text", ["01/02/2024", "03/04/2024"], ""),
        (["31/12/2024", "12/31/2024"], "text", ["31/12/2024", "12/31/2024"], ""),
        (["12 Mar 2024", "March 13, 2024", "14. März 2024"], "date", ["2024-03-12", "2024-03-13", "2024-03-14"], ""),
        (["30.02.2024", "31.02.2024"], "text", ["30.02.2024", "31.02.2024"], ""),
        (["2024-01-02T03:04:05Z", "2024-01-03"], "datetime", ["2024-01-02T03:04:05+00:00", "2024-01-03T00:00:00"], ""),
        (["09:30", "10:15:20 PM"], "time", ["09:30:00", "22:15:20"], ""),
        (["#N/A", "x"], "text", [None, "x"], ""),
        ([None, float("nan"), 1.5], "number", [None, None, 1.5], ""),
        ([1e300, 2.0], "number", [1e300, 2.0], ""),
        ([1.0, "x"], "text", ["1", "x"], ""),
    ],
)
def test_cells_become_values_of_one_kind(cells: list[object], kind: str, values: list[object], unit: str) -> None:
    column = read_column(cells)

    assert (kind, values, unit) == (column.kind.value, column.values, column.unit)
    assert [type(value) for value in values if isinstance(value, bool)] == [type(one) for one in column.values if isinstance(one, bool)]


def test_a_few_cells_of_another_kind_stay_in_their_rows_as_text() -> None:
    column = read_column([*(str(number) for number in range(1, 20)), "twenty"])

    assert ("integer", [1, 2, 19, "twenty"]) == (column.kind.value, [*column.values[:2], *column.values[-2:]])
    assert ("1 of 20 cells are not of the kind integer and are kept as text",) == column.notes


def test_an_open_decimal_sign_follows_the_other_columns_or_is_noted() -> None:
    followed = table("name\tnet\tgross\nA\t1.234\t1,5\nB\t2.500\t2,5\n", "a.tsv")
    suggested = table("name;net\nA;1.234\nB;2.500\n", "a.csv")
    outvoted = table("name;net;gross\nA;1,234;1.5\nB;2,500;2.5\n", "a.csv")
    noted = table('name,net\nA,"1,234"\nB,"2,500"\n', "a.csv")

    assert {2: ("A", 1234, 1.5), 3: ("B", 2500, 2.5)} == rows(followed)
    assert {2: ("A", 1234), 3: ("B", 2500)} == rows(suggested) == rows(noted)
    assert {2: ("A", 1234, 1.5), 3: ("B", 2500, 2.5)} == rows(outvoted)
    assert ["column B: has numbers like 1,234 or 1.234 and nothing that tells the decimal sign; a point is taken for it"] == list(
        noted.notes
    )


def test_units_of_headers_stay_in_the_name_and_leave_the_sql_name() -> None:
    found = table("Region,Sales (TEUR),Share in %,Weight [kg],Size (big)\nN,5,1,2,3\nS,7,2,3,4\n", "a.csv")

    assert ["", "T EUR", "%", "kg", ""] == [column.unit for column in found.columns]
    assert ["region", "sales", "share", "weight", "size_big"] == [column.sql_name for column in found.columns]
    assert names(found)[1] == "Sales (TEUR)"


@given(st.lists(st.text(max_size=30), min_size=1, max_size=40))
def test_sql_names_are_safe_and_all_different(written: list[str]) -> None:
    made = column_sql_names(written)
    with sqlite3.connect(":memory:") as database:
        database.execute(f"CREATE TABLE {table_sql_name('x.csv', written[0], '', ())} ({', '.join(made)})")  # the names must need no quotes
        (found,) = database.execute("SELECT name FROM sqlite_master").fetchall()
    database.close()

    assert len(set(made)) == len(written)
    assert all(one.isascii() and one.replace("_", "a").isalnum() and one == one.lower() and not one[0].isdigit() for one in (*made, *found))


def test_a_table_is_named_by_what_says_most() -> None:
    assert table_sql_name("a/Prices 2024.xlsx", "Sheet1", "", ()) == "prices_2024"
    assert table_sql_name("book.xlsx", "Umsätze", "", ()) == "umsatze"
    assert table_sql_name("book.xlsx", "Umsätze", "Sales by region", ()) == "sales_by_region"
    assert table_sql_name("book.xlsx", "Umsätze", "x" * 100, ()) == "umsatze"
    assert table_sql_name("book.xlsx", "Order", "", ()) == "order_"
    assert table_sql_name("book.xlsx", "2024", "", ()) == "book"
    assert table_sql_name("2024.csv", "", "", ()) == "t_2024"
    assert table_sql_name("表.csv", "", "", ()) == "table_1"
    assert table_sql_name("a.csv", "sqlite_master", "", ("t_sqlite_master",)) == "t_sqlite_master_2"


WORD = st.text("abcxyzé\"'=<>|;,\n ", min_size=1, max_size=8).map(lambda text: f"w{text}w")


@settings(max_examples=60, deadline=None)
@given(body=st.lists(st.tuples(WORD, st.integers(-(10**9), 10**9), WORD), min_size=2, max_size=8), sign=st.sampled_from(",;\t|"))
def test_what_a_csv_writer_wrote_comes_back(body: list[tuple[str, int, str]], sign: str) -> None:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=sign, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows([("key", "number", "word"), *body])
    found = table(f"sep={sign}\r\n{stream.getvalue()}", "a.csv")

    assert {3 + number: row for number, row in enumerate(body)} == rows(found)


def make_parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    moment = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    columns = {
        "id": pa.array(["007", None]),
        "units": pa.array([1, 2], pa.int32()),
        "price (EUR)": pa.array([Decimal("12.50"), None], pa.decimal128(10, 2)),
        "ratio": pa.array([0.5, float("nan")]),
        "ok": pa.array([True, False]),
        "day": pa.array([date(2024, 1, 2), None]),
        "at": pa.array([moment, moment], pa.timestamp("ns", tz="UTC")),
        "time": pa.array([time(1, 2, 3), None], pa.time64("us")),
        "span": pa.array([timedelta(minutes=2), None]),
        "tags": pa.array([["a", "b"], []]),
        "raw": pa.array([b"abc", None]),
        "kind": pa.array(["x", "y"]).dictionary_encode(),
        "big": pa.array([2**64 - 1, 1], pa.uint64()),
    }
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def test_parquet_keeps_the_kinds_of_its_schema() -> None:
    pytest.importorskip("pyarrow")
    with ReaderPool(IngestSettings(readers=1)) as pool:
        extracted = pool.submit(make_parquet(), name="a.parquet").result()
    (found,) = extracted.tables

    assert (
        ["text", "integer", "number", "number", "boolean", "date", "datetime", "time", "number", "text", "text", "text", "number"]
    ) == kinds(found)
    assert ("007", 1, 12.5, 0.5, True, "2024-01-02", "2024-01-02T03:04:05+00:00", "01:02:03", 120.0) == rows(found)[1][:9]
    assert ('["a","b"]', "3 bytes", "x", float(2**64 - 1)) == rows(found)[1][9:]
    assert (None, 2, None, None, False) == rows(found)[2][:5]
    assert ("EUR", "s", "price") == (found.columns[2].unit, found.columns[8].unit, found.columns[2].sql_name)
    assert extracted.text.startswith("id | units | price (EUR) | ratio | ok | day")
    assert "007 | 1 | 12.5 | 0.5 | true | 2024-01-02" in extracted.text


def test_parquet_without_its_extra_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DocumentUnreadableError) as caught:
        read_document(b"PAR1" + b"x" * 20 + b"PAR1", name="a.parquet", limits=ReadLimits())

    assert ("unsupported_type", "is not read: a Parquet file needs the extra 'tables': pip install 'evidentia[tables]'") == (
        caught.value.reason,
        caught.value.problem,
    )


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.parquet", b"no parquet", "type_mismatch"),
        ("a.parquet", b"PAR1" + b"x" * 40 + b"PAR1", "damaged"),
        ("a.csv", b"PAR1" + b"x" * 40 + b"PAR1", "type_mismatch"),
    ],
)
def test_what_is_no_parquet_is_refused(name: str, content: bytes, reason: str) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(DocumentUnreadableError) as caught:
        read_document(content, name=name, limits=ReadLimits())

    assert reason == caught.value.reason


def test_files_that_may_hold_tables_are_read_again_when_their_reading_changes() -> None:
    from evidentia.ingest.readers.file_types import Family

    assert [True, True, True, False] == ["+tables." in tool_of(one) for one in (Family.SHEETS, Family.TABLE, Family.PARQUET, Family.TEXT)]


def test_text_in_lines_is_no_table() -> None:
    assert () == tables("Dear all,\nthis is a letter, not a table.\nIt has commas, but no cells.\n", "a.csv")
