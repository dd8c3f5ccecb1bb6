"""Every scenario still ends as it was written down; tests/engine/test_golden_scifact.py has the questions of SciFact."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

from golden_answers import differing, scenario_answers, scenarios  # noqa: E402 - tools is no package

GOLDEN = json.loads(Path(__file__).with_name("golden_answers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", scenarios(), ids=lambda path: path.stem)
def test_a_scenario_ends_as_it_was_written_down(path: Path, tmp_path: Path) -> None:
    assert GOLDEN["scenarios"][path.stem] == scenario_answers(path, tmp_path / "scenario")


def test_no_scenario_that_was_written_down_is_gone() -> None:
    assert sorted(GOLDEN["scenarios"]) == [path.stem for path in scenarios()]


def test_an_answer_that_is_another_one_or_missing_is_named() -> None:
    expected = {"scenarios": {"a": [{"result_hash": "1"}]}, "scifact": {"800": {"7": "x", "8": "y"}}}
    found = {"scenarios": {"a": [{"result_hash": "2"}]}, "scifact": {"800": {"7": "x"}}}

    assert ['scenario a 0: {"result_hash": "1"} -> {"result_hash": "2"}', "scifact 800 8: y -> not asked"] == differing(expected, found)
