"""In which language a text is: tried on the Universal Declaration of Human Rights, which is public domain and says the same in all."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.text.languages import language_of

DECLARATION: dict[str, str] = json.loads(Path(__file__).with_name("declaration.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", sorted(DECLARATION))
def test_the_language_of_a_few_articles_is_told(language: str) -> None:
    assert language == language_of(DECLARATION[language], otherwise="und")


@pytest.mark.parametrize("text", ["", "42", "HRB-4012", "def f(x):\n    return x + 1\n", "| 1 | 2 |\n| 3 | 4 |", "kubectl get pods --all"])
def test_what_is_no_text_of_a_language_stays_undecided(text: str) -> None:
    assert "und" == language_of(text, otherwise="und")


def test_accents_that_stand_apart_are_read_as_one_letter() -> None:
    assert "vi" == language_of(unicodedata.normalize("NFD", DECLARATION["vi"]), otherwise="und")


@given(st.text(max_size=400))
def test_any_text_has_a_language_or_none(text: str) -> None:
    found = language_of(text, otherwise="und")

    assert found == language_of(text, otherwise="und")
    assert found == "und" or found.isascii()
