"""The ten example policies as they were published, each with one fixed run and everything that is decided in it.

The expectations were worked out from the table. What they say changes only when the table does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from scenario_agents import play_async, play_sync
from scenario_cases import Call, Case
from scenario_doors import play_evaluator, play_oracle
from test_governance_oracle import compared

from evidentia.policy.rules import check_policy
from evidentia.policy.templates import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenario_doors import Played

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))
WAYS: dict[str, Callable[[Case], Played]] = {"oracle": play_oracle, "evaluator": play_evaluator, "sync": play_sync, "async": play_async}


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
@pytest.mark.parametrize("way", list(WAYS))
def test_golden_run(path: Path, way: str) -> None:
    golden = _read(path)
    *calls, end = [each["call"] for each in golden["calls"]]
    case = Case(
        theme="golden",
        name=path.stem,
        rows=("G30",),
        policies=(golden["policy"],),
        calls=tuple(Call(said=said, is_caught=True) for said in calls),
        end=Call(said=end),
    )
    played = WAYS[way](case)

    assert golden["begin"] == compared(played.begin)
    for expected, heard in zip(golden["calls"], [*played.calls, played.end], strict=True):
        assert expected["decisions"] == compared(heard.decisions), expected["call"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_an_example_is_loaded_unchanged(path: Path) -> None:
    body = _read(path)["policy"]
    rules = {name: list(value) if isinstance(value, tuple) else value for name, value in check_policy(body).body.rules.items()}

    assert body["rules"] == {name: rules[name] for name in body["rules"]}


def test_there_are_ten_examples() -> None:
    categories = [_read(path)["policy"]["category"] for path in GOLDEN]

    assert (3, 7) == (categories.count("retrieval"), categories.count("grounding"))


def test_the_templates_of_grounding_are_the_examples() -> None:
    """A template may have a shorter name than its example, and has the same rules."""
    examples = [body["rules"] for body in (_read(path)["policy"] for path in GOLDEN) if body["category"] == "grounding"]
    templates = [msgspec.to_builtins(body.rules) for body in TEMPLATES.values() if body.category == "grounding"]

    assert len(examples) == len(templates)
    assert [] == [each for each in examples if each not in templates]


def test_the_templates_of_retrieval_name_nothing_that_has_to_be_replaced_first() -> None:
    """The examples name collections and sources of somebody's; as templates they would stop every run elsewhere."""
    templates = [msgspec.to_builtins(body.rules) for body in TEMPLATES.values() if body.category == "retrieval"]
    names = {name for rules in templates for name, value in rules.items() if isinstance(value, list) and value}

    assert 4 == len(templates)
    assert set() == names


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
