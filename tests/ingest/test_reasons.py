"""Every reason a user can meet is explained, and the examples in the page are true."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from evidentia.ingest.reasons import NoteReason, SkipReason, legible

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ingest.md"


@pytest.mark.parametrize("reason", [*SkipReason.words(), *NoteReason.words()])
def test_every_reason_is_documented(reason: str) -> None:
    assert f"| `{reason}` |" in PAGE.read_text(encoding="utf-8")


def test_the_examples_of_the_page_are_true() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")

    assert results.attempted > 5
    assert results.failed == 0


def test_a_name_in_a_message_is_one_short_printable_line() -> None:
    assert r"a\x1b\n\u202eb" == legible("a\x1b\n\u202eb")
    assert len(legible("x" * 5_000)) == 200
