"""The reference says what the code says, and leaves nothing out."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from source_trees import nodes_of, tree_of

from evidentia.contracts import errors, ports
from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.settings import Settings
from soak import IS_SOAKED

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
MAX_PORT_METHODS = 5


def headings(page: str) -> set[str]:
    """Return the headings of a page of docs, without marks; a page that is not there has none."""
    path = ROOT / "docs" / page
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {line.lstrip("#").strip().replace("`", "") for line in lines if line.startswith("#")}


def files_under(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_text(encoding="utf-8") for path in files}


def write_reference(directory: Path, *, hash_seed: str) -> dict[str, str]:
    command = [sys.executable, str(ROOT / "tools" / "write_reference.py"), str(directory)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": hash_seed})
    return files_under(directory)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the reference as the code gives it now."""
    return write_reference(tmp_path_factory.mktemp("reference"), hash_seed="1")


def test_the_committed_reference_is_what_the_code_gives(written: dict[str, str]) -> None:
    committed = files_under(REFERENCE)

    differing = sorted(name for name in written.keys() | committed.keys() if written.get(name) != committed.get(name))

    assert [] == differing, "docs/reference is out of date: run `make docs`, and read the difference before you commit it"


@pytest.mark.skipif(not IS_SOAKED, reason="what is committed was written with a third seed; set EVIDENTIA_SOAK=full for one more")
def test_the_reference_does_not_depend_on_the_hash_seed(written: dict[str, str], tmp_path: Path) -> None:
    assert written == write_reference(tmp_path, hash_seed="2")


def test_the_sync_base_is_what_the_async_base_gives(tmp_path: Path) -> None:
    path = tmp_path / "sync_base.py"
    subprocess.run([sys.executable, str(ROOT / "tools" / "write_sync_base.py"), str(path)], check=True, capture_output=True)
    committed = (ROOT / "src" / "evidentia" / "base" / "sync_base.py").read_text(encoding="utf-8")

    assert committed == path.read_text(encoding="utf-8"), "run `make docs`: base/sync_base.py is written from base/async_base.py"


# --- errors ---


def error_classes() -> list[type[EvidentiaError]]:
    declared = vars(errors).values()
    return [each for each in declared if isinstance(each, type) and issubclass(each, EvidentiaError)]


def drawn_tree() -> dict[str, str | None]:
    """Return each error of the drawing with the one it hangs from."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (inspect.getdoc(errors) or "").splitlines():
        if found := re.match(r"    (?P<branch>[│├└─ ]*)(?P<name>\w+Error)\b", line):
            depth = len(found["branch"]) // 4
            path = [*path[:depth], found["name"]]
            parents[found["name"]] = path[depth - 1] if depth else None
    return parents


def test_the_drawing_of_the_errors_is_the_tree() -> None:
    tree = {each.__name__: each.__bases__[0].__name__ if each is not EvidentiaError else None for each in error_classes()}

    assert tree == drawn_tree()


def test_the_drawing_of_the_errors_says_their_exit_codes() -> None:
    drawing = inspect.getdoc(errors) or ""
    drawn = {name: int(code) for name, code in re.findall(r"(\w+Error) .*\(exit code (\d)", drawing)}

    assert {child.__name__: child.exit_code for child in EvidentiaError.__subclasses__() if child in error_classes()} == drawn


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [each.__dict__["code"] for each in error_classes()]

    assert sorted(set(codes)) == sorted(codes)


@pytest.mark.parametrize("error", error_classes())
def test_an_error_has_a_hint_a_docstring_and_a_heading(error: type[EvidentiaError]) -> None:
    assert error.__dict__["hint"]
    assert error.__dict__["__doc__"]
    assert error.code in headings("reference/errors.md")


def test_errors_are_declared_in_one_module() -> None:
    names = {each.__name__ for each in error_classes()}
    strays = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in (ROOT / "src" / "evidentia").rglob("*.py")
        if path != Path(inspect.getfile(errors))
        for node in nodes_of(path)
        if isinstance(node, ast.ClassDef) and names & {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    ]

    assert [] == strays


# --- ports, settings, commands ---


def port_classes() -> list[type]:
    return [getattr(ports, name) for name in ports.__all__]


def test_every_port_is_declared_for_everybody() -> None:
    folder = ROOT / "src" / "evidentia" / "contracts" / "ports"
    trees = [tree_of(path) for path in folder.glob("*.py")]
    declared = {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}

    assert declared == set(ports.__all__)


@pytest.mark.parametrize("port", port_classes())
def test_a_port_has_one_sentence_few_methods_and_a_heading(port: type) -> None:
    own = [name for name, each in vars(port).items() if not name.startswith("_") and (callable(each) or isinstance(each, property))]

    assert len((port.__doc__ or "").splitlines()) == 1
    assert len(own) <= MAX_PORT_METHODS
    assert port.__name__ in headings("reference/ports.md")


def test_every_port_is_inherited_by_a_class_of_the_package() -> None:
    page = (REFERENCE / "ports.md").read_text(encoding="utf-8")
    sections = {part.partition("`")[0]: part for part in page.split("\n## `")[1:]}

    assert set(ports.__all__) == set(sections)
    assert [] == [name for name, text in sections.items() if "Implemented by `" not in text]


def test_every_setting_has_a_heading_and_words() -> None:
    names = {f"{group.name}.{field.name}" for group in msgspec.structs.fields(Settings) for field in msgspec.structs.fields(group.default)}
    page = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    worded = {name for name in names if re.search(rf"^### `{re.escape(name)}`\n\n[^-\n]", page, flags=re.MULTILINE)}

    assert set() == names - headings("reference/settings.md")
    assert set() == names - worded


def test_every_message_and_word_list_has_a_heading() -> None:
    trees = (tree_of(path) for path in (ROOT / "src" / "evidentia" / "contracts").glob("*.py"))
    declared = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    kinds = ("msgspec.Struct", "_Node", "Vocabulary", "RankedVocabulary")
    named = {node.name for node in declared if node.bases and ast.unparse(node.bases[0]) in kinds}
    known_elsewhere = {"RankedVocabulary"} | {name for name in named if name.endswith("Settings")}

    assert set() == named - known_elsewhere - headings("reference/contracts.md")


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md"])
def test_the_figures_in_the_readme_and_on_the_page_of_benchmarks_are_the_measured_ones(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    measured = json.loads((ROOT / "benchmarks" / "results" / "ingest.json").read_text(encoding="utf-8"))
    rows = [
        f"| {name.capitalize() if name == 'evidentia' else name} | {engine['passages_per_cpu_s']:,} | {engine['peak_mb']} MB |"
        for name, engine in measured["engines"].items()
    ]
    own = measured["engines"]["evidentia"]

    assert [] == [row for row in rows if row not in text]
    assert f"{own['verify_fragments_per_cpu_s']:,} fragments" in text
    assert f"{own['disk_mb']} MB on disk" in text


def test_every_command_has_a_heading() -> None:
    from evidentia.serving.cli.app import app

    named = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    named |= {group.name for group in app.registered_groups if isinstance(group.name, str)}
    documented = {heading.removeprefix("evidentia ") for heading in headings("cli.md")}

    assert named
    assert set() == named - documented
