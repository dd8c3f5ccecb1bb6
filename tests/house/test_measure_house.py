"""The measuring stick measures what it says, on a package made up for it."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

from measure_house import Lines, Report, count_lines, find_cycles, main, measure  # noqa: E402 - tools is no package

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE = {
    "__init__.py": '"""A package."""\n',
    "contracts/__init__.py": '"""Words."""\n',
    "contracts/ports/__init__.py": '"""Ports."""\n\nfrom evidentia.contracts.ports.reading import Reader, Writer\n',
    "contracts/ports/reading.py": '''
        """Ports."""
        from typing import Protocol

        class Reader(Protocol):
            """Reads."""
            def read(self) -> str: ...

        class Writer(Protocol):
            """Writes."""
            def write(self) -> str: ...

        class Mover(Reader, Writer, Protocol):
            """Moves."""

        class Painter(Protocol):
            """Paints."""
            colour: str
            def paint(self) -> None: ...
    ''',
    "room/__init__.py": '"""A room."""\n',
    "room/store.py": '''
        """A store."""
        from typing import TYPE_CHECKING

        import evidentia.room.shelf
        from evidentia.contracts import ports

        if TYPE_CHECKING:
            from evidentia.room.desk import Desk

        class Store(ports.Reader):
            """Has one port by inheritance and another by its members."""
            def __init__(self, desk: "Desk") -> None:
                self.desk = desk

            def write(self) -> str:
                return str(evidentia.room.shelf)
    ''',
    "room/shelf.py": '"""Lazy."""\n\n\ndef own() -> object:\n    from evidentia.room import lamp\n\n    return lamp\n',
    "room/lamp.py": '"""A lamp."""\n\nfrom evidentia.room import store\n\nUSED = store\n',
    "room/desk.py": '"""A desk."""\n\nfrom evidentia.room.store import Store\n\n\nclass Desk(Store):\n    """By way of another."""\n',
    "hall/__init__.py": '"""A hall."""\n',
    "hall/lamp.py": '"""Another lamp."""\n\nfrom evidentia.room import desk\n\n\nclass Desk:\n    """Another."""\n\n    real = desk\n',
    "protobuf/made_pb2.py": "GENERATED = 1\n",
    "hall/demo_corpus/client.py": "MATERIAL = 1\n",
    "hall/made.py": '"""Written by tools/make.py; nothing here is changed by hand."""\n\nGENERATED = 1\n',
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return write_package(tmp_path / "checkout", PACKAGE)


def write_package(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / "src" / "evidentia" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip(), encoding="utf-8")
    return root


def report_of(root: Path) -> Report:
    return measure(root, is_static=True)


def lines_of(text: str) -> Lines:
    return count_lines(text, ast.parse(text))


def test_only_lines_with_code_are_counted() -> None:
    text = dedent('''
        """A docstring
        of two lines."""

        # a comment
        LIMIT = 3  # with a remark
        """What a name means is prose, even if it is written ä."""
        TEXT = """first

        # third"""
        if LIMIT: "prose", call(
            LIMIT,  # counted once
        )
        ("written "
         # among its parts
         "in parts")
    ''').lstrip()

    # `(` and `)` around the last string are code to a reader, and no reader writes that.
    assert (15, 8, 2) == lines_of(text)


def test_a_string_after_code_in_its_line_is_prose_and_the_line_still_counts() -> None:
    assert (1, 1, 0) == lines_of('class A: """Empty."""\n')


def test_generated_code_and_material_are_left_out(checkout: Path) -> None:
    report = report_of(checkout)

    assert len(PACKAGE) - 3 == report["files"]
    assert len(PACKAGE) == report["whole_tree"]["all"]["files"]


def test_code_that_speaks_of_generated_files_further_down_is_counted(checkout: Path) -> None:
    before = report_of(checkout)["code_lines"]
    path = checkout / "src" / "evidentia" / "hall" / "maker.py"
    path.write_text('"""Makes files."""\n\n\n\n\nHEAD = "nothing here is changed by hand"\n', encoding="utf-8")

    assert before + 1 == report_of(checkout)["code_lines"]


def test_a_cycle_by_lazy_imports_or_types_is_none_at_run_time(checkout: Path) -> None:
    report = report_of(checkout)

    assert 0 == report["import_cycles"]
    assert [["evidentia.room.desk", "evidentia.room.store"]] == report["names"]["import_cycles_with_type_checking"]


def test_a_cycle_at_run_time_is_found(checkout: Path) -> None:
    write_package(
        checkout, {"room/shelf.py": '"""Eager."""\n\ntry:\n    from evidentia.room import lamp\nexcept ImportError:\n    lamp = None\n'}
    )

    assert [["evidentia.room.lamp", "evidentia.room.shelf", "evidentia.room.store"]] == report_of(checkout)["names"]["import_cycles"]


def test_groups_that_only_touch_are_two_cycles() -> None:
    edges = {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"c"}, "e": {"a", "e"}}

    assert [["a", "b"], ["c", "d"]] == find_cycles(edges)


def test_one_importer_counts_in_its_own_folder_however_it_imports(checkout: Path) -> None:
    alone = report_of(checkout)["names"]["one_importer_in_own_folder"]

    assert {
        "evidentia.contracts.ports.reading": "evidentia.contracts.ports",
        "evidentia.room.lamp": "evidentia.room.shelf",
        "evidentia.room.shelf": "evidentia.room.store",
    } == alone


def test_names_that_mean_two_things_are_listed(checkout: Path) -> None:
    names = report_of(checkout)["names"]

    assert {"lamp": ["evidentia.hall.lamp", "evidentia.room.lamp"]} == names["module_names_used_twice"]
    assert {"Desk": ["evidentia.hall.lamp", "evidentia.room.desk"]} == names["class_names_used_twice"]


def test_a_port_is_implemented_by_inheritance_or_at_least_by_members(checkout: Path) -> None:
    report = report_of(checkout)

    assert 4 == report["ports"]
    assert ["Mover", "Painter", "Writer"] == report["names"]["ports_without_implementation"]
    assert ["Painter"] == report["names"]["ports_without_implementation_even_by_members"]


def test_two_checkouts_stand_side_by_side(checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    smaller = write_package(tmp_path / "smaller", {name: text for name, text in PACKAGE.items() if not name.startswith("hall/lamp")})

    assert 0 == main([str(checkout), str(smaller), "--static"])
    table = capsys.readouterr().out
    assert 0 == main([str(checkout), str(smaller), "--static", "--json"])
    report = json.loads(capsys.readouterr().out)

    assert ["files", "11", "10", "-1", "600"] == table.splitlines()[1].split()
    assert (11, 10) == (report["before"]["files"], report["after"]["files"])
    assert str(tmp_path) not in table
