"""Messages are read through `contracts.decoding` alone, which works out one type at a time; msgspec itself is not safe there."""

from __future__ import annotations

import ast
from pathlib import Path

from source_trees import nodes_of

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "evidentia"
DOOR = PACKAGE / "contracts" / "decoding.py"


def test_no_other_module_has_msgspec_work_out_a_type() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {ast.unparse(node)[:60]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != DOOR
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and _works_out_a_type(node)
    ]

    assert [] == found


def _works_out_a_type(call: ast.Call) -> bool:
    called = ast.unparse(call.func)
    if called in {"msgspec.json.Decoder", "msgspec.msgpack.Decoder"}:
        return bool(call.args or call.keywords)
    decodes = called in {f"msgspec.{form}.decode" for form in ("json", "msgpack", "yaml", "toml")}
    return called == "msgspec.convert" or (decodes and any(keyword.arg == "type" for keyword in call.keywords))
