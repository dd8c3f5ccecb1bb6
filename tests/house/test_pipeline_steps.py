"""The flow is its own table of contents: the steps that `engine/pipeline.py` lists are the calls that it makes, in that order."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PIPELINE = Path(__file__).parents[2] / "src" / "evidentia" / "engine" / "pipeline.py"
STEPS = 13
ARTICLES = {"the", "a"}
PARTS = ("prepare", "search", "conclude")
"""The three calls of `answer`; what comes before and after searching makes one call per step, searching is a step itself."""


def test_the_flow_lists_thirteen_steps() -> None:
    assert STEPS == len(listed_steps())


def test_the_flow_makes_one_call_per_step_in_the_order_of_its_list() -> None:
    assert listed_steps() == [call for part in PARTS for call in (calls_of(part) if part != "search" else [part])]


def test_an_answer_is_made_of_the_parts_of_the_flow_in_their_order() -> None:
    assert list(PARTS) == [call for call in calls_of("answer") if call in PARTS]


def test_a_step_is_called_nowhere_else() -> None:
    steps = {f"_{step}" for step in listed_steps()}
    called = [node.attr for node in ast.walk(tree()) if isinstance(node, ast.Attribute) and node.attr in steps]

    assert len(called) == len(set(called))


def tree() -> ast.Module:
    return ast.parse(PIPELINE.read_text(encoding="utf-8"))


def listed_steps() -> list[str]:
    """Return the numbered lines of the docstring as names: up to the first comma, without articles."""
    lines = re.findall(r"^ *(\d+)\. ([^,\n]+)", ast.get_docstring(tree()) or "", flags=re.MULTILINE)
    assert [str(number) for number in range(1, len(lines) + 1)] == [number for number, _ in lines]
    return ["_".join(word for word in text.split() if word not in ARTICLES) for _, text in lines]


def calls_of(method: str) -> list[str]:
    """Return the engine's own methods that one of them calls, in the order of the text; without leading underscores."""
    engine = next(node for node in tree().body if isinstance(node, ast.ClassDef) and node.name == "Engine")
    body = next(node for node in engine.body if isinstance(node, ast.FunctionDef) and node.name == method)
    calls = [node for node in ast.walk(body) if isinstance(node, ast.Call) and is_own(node.func)]
    ordered = sorted(calls, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))
    return [call.func.attr.removeprefix("_") for call in ordered if isinstance(call.func, ast.Attribute)]


def is_own(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self"
