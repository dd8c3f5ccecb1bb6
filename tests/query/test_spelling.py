"""Corrections of words that occur nowhere, and everything that is never corrected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_lexicon import ENGLISH, SmallLexicon, edits_between

from evidentia.query.corrections import MAX_CORRECTIONS, correct_spelling
from evidentia.query.lexical import FULL_WEIGHT
from evidentia.text.edits import distance
from evidentia.text.tokens import Tokeniser

LEXICON = SmallLexicon()
PLAIN = Tokeniser("none")


def corrections(text: str, lexicon: SmallLexicon = LEXICON) -> list[str]:
    return list(correct_spelling(text, tokeniser=ENGLISH, lexicon=lexicon).weights)


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("how does kubrenetes restart", ["kubernet"]),
        ("Kubernettes", ["kubernet"]),
        ("the gatewya", ["gateway"]),
        ("the custodain", ["custodian"]),
        ("the clustr and the gatewey", ["cluster", "gateway"]),
        ("KUBRENETES", ["kubernet"]),
    ],
)
def test_a_slip_is_searched_as_the_word_it_stands_for(text: str, added: list[str]) -> None:
    assert added == corrections(text)


@pytest.mark.parametrize(
    "text",
    [
        "gateway",  # it occurs
        "gatxwyz",  # two edits are too many for seven letters
        '"kubrenetes"',
        "kubrenetes_2",
        "a KUBRENETES pod",
        "8080",
        "kes",  # shorter than four letters
        "pateway",  # another first letter
        "xylophone",
        "replicaton",  # what the stemmer leaves of `replication` is too far away
        "what does these",
        "",
    ],
)
def test_nothing_else_is_corrected(text: str) -> None:
    assert [] == corrections(text)


def test_rivals_at_the_same_distance_have_to_be_clearly_rarer() -> None:
    even = SmallLexicon(("the primary lease", "the primary lexse"))
    clear = SmallLexicon(("lease one", "lease two", "lease three", "lexse"))

    assert [] == corrections("lesse", even)
    assert ENGLISH.terms("lease") == corrections("lesse", clear)


def test_a_nearer_word_wins_over_a_frequent_one() -> None:
    lexicon = SmallLexicon(("kuberneten", *["kubernxxten"] * 9), PLAIN)

    assert ["kuberneten"] == list(correct_spelling("kubernetten", tokeniser=PLAIN, lexicon=lexicon).weights)


def test_corrections_count_in_full_and_are_told() -> None:
    found = correct_spelling("kubrenetes gatewya", tokeniser=ENGLISH, lexicon=LEXICON)

    assert {"kubernet": FULL_WEIGHT, "gateway": FULL_WEIGHT} == found.weights
    assert "kubrenetes: kubernet, gatewya: gateway" == found.note
    assert "1 words occur nowhere and have no clear neighbour" == correct_spelling("xylophone", tokeniser=ENGLISH, lexicon=LEXICON).note


def test_a_long_question_is_corrected_only_so_far() -> None:
    words = [f"{first}{second}qqqq" for first in "abcdefgh" for second in "abcdefgh"]
    lexicon = SmallLexicon((" ".join(words),), PLAIN)
    found = correct_spelling(" ".join(f"{word}q" for word in words), tokeniser=PLAIN, lexicon=lexicon)

    assert MAX_CORRECTIONS == len(found.weights)


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_distance_is_that_of_trying_everything(first: str, second: str) -> None:
    assert min(3, edits_between(first, second)) == min(3, distance(first, second))
    assert distance(first, second) == distance(second, first)
