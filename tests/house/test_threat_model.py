"""What the threat model names is there: a promise whose mechanism or test is gone rests on nothing."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
_TEST = re.compile(r"`([a-z]+/test_[a-z_0-9]+\.py)`")
_PLACE = re.compile(
    r"`((?:engine|policy|serving|governance|foundation|backends|provenance|sources|text|ingest|federation|wiring|contracts)/[a-z_/]+)`"
)


def test_every_test_that_is_named_is_there() -> None:
    named = set(_TEST.findall(PAGE))

    assert len(named) > 40
    assert [] == sorted(each for each in named if not (ROOT / "tests" / each).is_file())


def test_every_mechanism_that_is_named_is_there() -> None:
    named = set(_PLACE.findall(PAGE))
    package = ROOT / "src" / "evidentia"

    assert len(named) > 20
    assert [] == sorted(each for each in named if not (package / f"{each}.py").is_file() and not (package / each).is_dir())


def test_every_promise_has_a_mechanism_and_a_test() -> None:
    promised = PAGE.partition("## Promises")[2].partition("## Not promised")[0]
    rows = [line for line in promised.splitlines() if line.startswith("|") and not line.startswith(("| promise", "|---"))]

    assert len(rows) > 30
    assert [] == [line for line in rows if not _TEST.search(line)]
