"""Reading a workbook of 100,000 rows into a table, beside its parser alone and openpyxl, each in a process of its own.

    python benchmarks/tables.py

Figures are CPU seconds (user + system) of the reading and the peak memory of the whole process. `calamine` and `openpyxl`
only walk the cells; `text` is what the reader did before there were tables: the checks and the lines of text for search.
Evidentia also finds header, title and totals, kinds, units and dates, and encodes all of it for the process that asked.
"""

from __future__ import annotations

import io
import json
import platform
import resource
import subprocess
import sys
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 100_000
HEADER = ["id", "day", "region", "product", "units", "price", "share", "paid"]
RESULTS = Path(__file__).parent / "results" / "tables.json"


def cpu_s() -> float:
    """Return the CPU seconds this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def write_workbook(path: Path) -> None:
    """Write a title, a header, the rows with currency and percent formats, and a totals row."""
    import openpyxl
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Sales")

    def shown(value: float, number_format: str) -> WriteOnlyCell:
        cell = WriteOnlyCell(sheet, value=value)
        cell.number_format = number_format
        return cell

    sheet.append(["Sales of the year"])
    sheet.append(HEADER)
    start = date(2024, 1, 1)
    for number in range(ROWS):
        day, region = start + timedelta(days=number % 366), ("North", "South", "East")[number % 3]
        price, share = shown(round(10 + number / 100, 2), '#,##0.00 "€"'), shown(number % 1000 / 1000, "0.0%")
        sheet.append([f"{number:06}", day, region, f"Product {number % 500}", number % 97, price, share, number % 2 == 0])
    sheet.append(["Total", None, None, None, sum(number % 97 for number in range(ROWS))])
    book.save(path)


def read_with_evidentia(content: bytes) -> dict[str, object]:
    from evidentia.ingest.reader_process import ReadSuccess, decode_answer, encode
    from evidentia.ingest.readers.limits import ReadLimits
    from evidentia.ingest.readers.registry import read_document

    read_document(b"a,b\n1,2\n", name="warm.csv", limits=ReadLimits())
    started = cpu_s()
    extracted = read_document(content, name="sales.xlsx", limits=ReadLimits())
    spent = cpu_s() - started
    (table,) = extracted.tables
    assert (table.header_rows, table.total_rows, table.content.rows[-1]) == ((2,), (ROWS + 3,), ROWS + 2)
    assert [column.unit for column in table.columns] == ["", "", "", "", "", "EUR", "%", ""]
    frame = encode(ReadSuccess(extracted=extracted))
    decode_answer(frame)
    return {"cpu_s": spent, "wire_cpu_s": round(cpu_s() - started - spent, 2), "wire_mb": round(len(frame) / 2**20, 1)}


def read_text_only(content: bytes) -> dict[str, object]:
    import zipfile

    from evidentia.ingest.readers import sheets

    started = cpu_s()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheets._check_extent(archive)  # noqa: SLF001  # the part of the reader that is measured
    import python_calamine

    book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
    lines = list(sheets._lines("Sales", book.get_sheet_by_index(0).iter_rows()))  # noqa: SLF001  # likewise
    assert len(lines) == ROWS + 4
    return {"cpu_s": cpu_s() - started}


def walk_with_calamine(content: bytes) -> dict[str, object]:
    import python_calamine

    started = cpu_s()
    book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
    assert sum(len(row) for row in book.get_sheet_by_index(0).iter_rows()) == (ROWS + 3) * len(HEADER)
    return {"cpu_s": cpu_s() - started}


def walk_with_openpyxl(content: bytes) -> dict[str, object]:
    import openpyxl

    started = cpu_s()
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    assert sum(1 for _ in book["Sales"].iter_rows(values_only=True)) == ROWS + 3
    return {"cpu_s": cpu_s() - started}


ENGINES: dict[str, Callable[[bytes], dict[str, object]]] = {
    "evidentia": read_with_evidentia,
    "text": read_text_only,
    "calamine": walk_with_calamine,
    "openpyxl": walk_with_openpyxl,
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sales.xlsx"
        write_workbook(path)
        figures = {}
        for name in ENGINES:
            run = subprocess.run([sys.executable, __file__, name, str(path)], check=True, capture_output=True, text=True)
            figures[name] = json.loads(run.stdout)
        size_mb = round(path.stat().st_size / 2**20, 1)
    report = {
        "command": "python benchmarks/tables.py",
        "rows": ROWS,
        "columns": len(HEADER),
        "file_mb": size_mb,
        "python": platform.python_version(),
        "engines": figures,
    }
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        figures = ENGINES[sys.argv[1]](Path(sys.argv[2]).read_bytes())
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        seconds = float(str(figures["cpu_s"]))
        print(json.dumps({**figures, "cpu_s": round(seconds, 2), "rows_per_cpu_s": round(ROWS / seconds), "peak_mb": peak_mb}))
    else:
        main()
