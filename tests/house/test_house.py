"""What a linter does not look at: every room has its place and its question, the root stays cheap, and nothing foreign got in."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import msgspec
import pytest
from source_trees import nodes_of, tree_of

from evidentia.contracts.access import AccessRule
from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.layout import DocumentLayout
from evidentia.contracts.predicates import Predicate
from evidentia.contracts.provenance import CommitRecord, DocumentCustody, IngestEvent
from evidentia.contracts.sources import SourceDescriptor
from evidentia.provenance.corpus_hash import CorpusMember

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "evidentia"
MAP = ROOT / "ARCHITECTURE.md"

MAX_MAP_LINES = 300
MAX_IMPORT_MS = 100
VAGUE_NAMES = {"core", "common", "utils", "models", "services"}

# Spelt so that no pattern matches itself.
FOREIGN = {
    "a path of somebody's machine": re.compile(r"(?<![\w.])/(root|work|home/\w+|Users/\w+)/"),
    "the host of a registry": re.compile(r"pypi\.org|pythonhosted\.org"),
    "a credential": re.compile(r"AKIA[0-9A-Z]{16}|BEGIN [A-Z ]*PRIVATE KEY|\bgh[pousr]_\w{30,}|\bxox[abprs]-\w{8,}|\bsk-\w{20,}"),
    "a word about how it was made": re.compile(
        r"\bclaud[e]\b(?!-(?:[*\d\"'`]|haiku|opus|sonnet))|\bchatgp[t]\b|\bcopilo[t]\b|\bas an a[i]\b|language model wrot[e]", re.IGNORECASE
    ),
}
UNTRACKED = (".git", ".import_linter_cache", ".pytest_cache", ".coverage*", "build", "*.pyc")


def modules() -> list[Path]:
    """Return every module, apart from the sample corpus, which is material and not code."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if "demo_corpus" not in path.parts]


def rooms() -> list[Path]:
    return [path.parent for path in sorted(PACKAGE.glob("*/__init__.py"))]


def tracked_files() -> Iterator[Path]:
    """Yield the files that belong to the project, as .gitignore tells them apart."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines() if line.strip()]
    pending = [ROOT]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            if any(fnmatch(path.name, pattern) for pattern in (*ignored, *UNTRACKED)):
                continue
            if path.is_dir() and not path.is_symlink():
                pending.append(path)
            elif path.is_file():
                yield path


def question_of(room: Path) -> str:
    return (ast.get_docstring(tree_of(room / "__init__.py")) or "").partition("\n")[0]


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(path.relative_to(ROOT)) for path in modules() if not ast.get_docstring(tree_of(path))]

    assert [] == silent


@pytest.mark.parametrize("room", rooms(), ids=lambda room: room.name)
def test_a_room_asks_a_question_and_the_map_repeats_it(room: Path) -> None:
    question = question_of(room)

    assert question.endswith("?")
    assert f"**`{room.name}`**: *{question}*" in MAP.read_text(encoding="utf-8")


def test_the_map_names_no_room_that_is_not_there() -> None:
    named = set(re.findall(r"^\*\*`(\w+)`\*\*:", MAP.read_text(encoding="utf-8"), flags=re.MULTILINE))

    assert {room.name for room in rooms()} == named


def test_the_map_stays_short() -> None:
    assert len(MAP.read_text(encoding="utf-8").splitlines()) < MAX_MAP_LINES


def test_no_room_is_a_drawer() -> None:
    assert set() == VAGUE_NAMES & {path.stem for path in PACKAGE.rglob("*") if path.is_dir() or path.suffix == ".py"}


def test_every_folder_of_code_is_a_package() -> None:
    assert [] == sorted({str(path.parent.relative_to(ROOT)) for path in modules() if not (path.parent / "__init__.py").is_file()})


def test_no_module_imports_the_bare_root() -> None:
    offenders = [f"{path.relative_to(ROOT)}:{node.lineno}" for path in modules() for node in nodes_of(path) if _imports_root(node)]

    assert [] == offenders


def _imports_root(node: ast.AST) -> TypeGuard[ast.Import | ast.ImportFrom]:
    match node:
        case ast.Import(names=names):
            return any(alias.name == "evidentia" for alias in names)
        case ast.ImportFrom(module="evidentia", names=names):
            # `from evidentia import base` would name a room, and still go through the root.
            return bool(names)
        case _:
            return False


def test_the_walls_stand_around_every_room() -> None:
    walls = configparser.ConfigParser()
    walls.read(ROOT / ".importlinter", encoding="utf-8")
    listed = re.findall(r"\w+", walls["importlinter:contract:layers"]["layers"])

    assert sorted(room.name for room in rooms()) == sorted(listed)
    assert walls.getboolean("importlinter:contract:layers", "exhaustive")


PUBLISHED = {PACKAGE / "backends" / "onnx" / "minilm" / name for name in ("model.onnx", "tokenizer.json")}
"""Weights and a vocabulary that others published; they hold every word there is."""


NAMES_CLIENTS = {ROOT / "docs" / "mcp.md", ROOT / "tools" / "injection_texts.yaml", PACKAGE / "text" / "injection_words.json"}
"""The page says how to set up programs that people use, and the attackers of the texts talk to them; both name them."""


def test_nothing_foreign_is_in_the_tree() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {what}: {match[0]}"
        for path in tracked_files()
        if path not in PUBLISHED
        for what, pattern in FOREIGN.items()
        if not (path in NAMES_CLIENTS and what == "a word about how it was made")
        if (match := pattern.search(path.read_text(encoding="utf-8", errors="replace")))
    ]

    assert [] == found


# --- what the root costs ---


def run_python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_evidentia_is_cheap() -> None:
    program = "import time; start = time.process_time(); import evidentia; print(time.process_time() - start)"

    # The least of several runs: whatever else the machine does can only add.
    assert min(float(run_python(program)) for _ in range(5)) * 1000 < MAX_IMPORT_MS


def test_importing_evidentia_loads_no_heavy_package() -> None:
    program = "import sys, evidentia; print(*sorted({'asyncio', 'msgspec', 'numpy', 'sqlite3', 'typer'} & set(sys.modules)))"

    assert run_python(program) == ""


# --- what is hashed ---

HASHED = (
    AccessRule,
    CommitRecord,
    DocumentCustody,
    DocumentLayout,
    DocumentMetadata,
    IngestEvent,
    CorpusMember,
    Predicate,
    SourceDescriptor,
)


@pytest.mark.parametrize("message", HASHED, ids=lambda message: getattr(message, "__name__", "Predicate"))
def test_what_is_hashed_holds_no_floats(message: object) -> None:
    shapes = list(_shapes(message))

    assert [] == [shape for shape in shapes if isinstance(shape, msgspec.inspect.FloatType | msgspec.inspect.AnyType)]


def _shapes(message: object) -> Iterator[msgspec.inspect.Type]:
    seen: set[type] = set()
    pending = [msgspec.inspect.type_info(message)]
    while pending:
        shape = pending.pop()
        yield shape
        if isinstance(shape, msgspec.inspect.StructType) and shape.cls not in seen:
            seen.add(shape.cls)
            pending += [field.type for field in shape.fields]
        for name in ("types", "item_types"):
            pending += getattr(shape, name, ())
        pending += [inner for name in ("item_type", "key_type", "value_type") if (inner := getattr(shape, name, None)) is not None]
