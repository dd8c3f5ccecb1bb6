"""What the docs teach to import is there, and a list of it is kept, so that whoever moves a name sees what that breaks."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from evidentia import EvidentiaError

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

from taught_imports import taught_imports  # noqa: E402 - tools is no package

KEPT = Path(__file__).with_name("public_api.txt")


def kept_lines() -> list[str]:
    return KEPT.read_text(encoding="utf-8").splitlines()


def is_there(module: str, name: str) -> bool:
    """Say whether a module has a name; one whose framework is not installed here is read instead of imported."""
    try:
        found = import_module(module)
    except EvidentiaError as error:
        spec = find_spec(module)
        origin = spec.origin if spec else None
        return error.code == "missing_extra" and origin is not None and name in _bound(Path(origin))
    return not name or hasattr(found, name) or find_spec(f"{module}.{name}") is not None


def _bound(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_list_is_what_the_docs_teach() -> None:
    taught, kept = set(taught_imports(ROOT)), set(kept_lines())

    assert {"taught and not listed": [], "listed and not taught": []} == {
        "taught and not listed": sorted(taught - kept),
        "listed and not taught": sorted(kept - taught),
    }, "read the difference, then: python tools/taught_imports.py > tests/house/public_api.txt"


@pytest.mark.parametrize("line", kept_lines())
def test_what_is_taught_is_there(line: str) -> None:
    module, _, name = line.partition(" ")

    assert is_there(module, name)


def test_examples_of_every_form_are_read(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("```python\nimport evidentia\nfrom evidentia.a import (\n    b,\n    c as d,\n)\nawait b()\n```\n")
    (tmp_path / "docs" / "page.md").write_text(
        "from evidentia.no import x\n\n```pycon\n>>> import evidentia.e, os\n>>> def f():\n...     from evidentia.g import h\n'it'\n```\n"
        "- in a list:\n\n  ```py\n  from evidentia.i import j\n  ```\n```bash\nimport evidentia.k\n```\n"
    )

    assert ["evidentia", "evidentia.a b", "evidentia.a c", "evidentia.e", "evidentia.g h", "evidentia.i j"] == taught_imports(tmp_path)
