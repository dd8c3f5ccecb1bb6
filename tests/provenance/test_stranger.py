"""A stranger with docs/custody.md accepts what we export and rejects whatever was changed in it."""

from __future__ import annotations

import ast
import copy
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import stranger

from evidentia import FragmentExport, connect
from evidentia.provenance.verify import verify_export

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return exports of several documents, as parsed JSON."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "docs").mkdir()
    for number in range(5):
        paragraphs = "\n\n".join(f'Paragraph {each} of page {number}: naïve ☃ \t "quoted" \\ text.\r\n' * 8 for each in range(20))
        (folder / "docs" / f"{number}.md").write_bytes(f"---\ntitle: T\n---\n# Page {number}\n\n{paragraphs}".encode())
    with connect(folder / "base", init=True) as base:
        base.ingest([folder / "docs"], source="pages")
        chunk_ids = [chunk.chunk_id for number in range(5) for chunk in base.chunks(f"pages:{number}.md")]
        return [json.loads(msgspec.json.encode(base.export(chunk_id))) for chunk_id in chunk_ids]


def test_the_stranger_imports_nothing_of_ours() -> None:
    tree = ast.parse(Path(stranger.__file__).read_text())
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert imported <= sys.stdlib_module_names | {"__future__"}


def test_the_stranger_accepts_every_export(exports: list[dict[str, Any]]) -> None:
    assert len(exports) > 10
    assert [[]] * len(exports) == [stranger.problems(export) for export in exports]


def test_the_stranger_and_we_reject_every_mutation(exports: list[dict[str, Any]]) -> None:
    """Each scalar of an export is changed in turn, except the base's own statement of what is live."""
    export = random.Random(1).choice(exports)
    missed = []
    for path in _scalars(export):
        if path == ("is_live",):
            continue
        mutated = copy.deepcopy(export)
        _change(mutated, path)
        if not stranger.problems(mutated):
            missed.append(("stranger", path))
        if _accept(mutated):
            missed.append(("we", path))

    assert [] == missed


def _accept(mutated: dict[str, Any]) -> bool:
    try:
        return verify_export(msgspec.convert(mutated, FragmentExport)).ok
    except msgspec.ValidationError:
        return False


def _scalars(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # Any: JSON as parsed
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _scalars(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _scalars(inner, (*path, index))
    else:
        yield path


def _change(export: dict[str, Any], path: tuple[Any, ...]) -> None:
    *outer, last = path
    holder: Any = export
    for step in outer:
        holder = holder[step]
    value = holder[last]
    if isinstance(value, bool):
        holder[last] = not value
    elif isinstance(value, int):
        holder[last] = value + 1
    elif isinstance(value, str) and value and value[0] in "0123456789abcdef":
        holder[last] = ("1" if value[0] != "1" else "2") + value[1:]
    else:
        holder[last] = f"{value}x"
