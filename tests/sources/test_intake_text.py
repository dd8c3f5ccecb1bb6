"""Cleaning text from outside: what a reader cannot see goes, everything else stays, and no text is expensive."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.sources import intake_fields
from evidentia.sources.intake_fields import clean_line, clean_text, cut_text, exact_text

TRICKY = st.text(
    st.sampled_from(
        "ab .\n\t\r\x00\x0b\x85\xad\u0301\u0323\u0345\u0f71\u0f73\u0f81\u200b\u200c\u200d\u202e\u2028"
        "\u212b\u2066\ufe0f\ufeff\ud800\u0915\u094d\u0937\u0628\U0001f525\U000e0041\U000e0101\u1160\u3042\u3099\uac00\u11a8"
    )
)
ANY_TEXT = st.one_of(st.text(), TRICKY, st.text(st.characters(codec=None, exclude_categories=())))


@given(ANY_TEXT)
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    cleaned = clean_text(text)

    assert cleaned == clean_text(cleaned)


@given(ANY_TEXT)
def test_clean_text_is_composed_and_shows_all_that_it_holds(text: str) -> None:
    cleaned = clean_text(text)

    assert unicodedata.is_normalized("NFC", cleaned)
    assert not [each for each in cleaned if unicodedata.category(each) in {"Cc", "Cs"} and each not in "\n\t"]
    assert not set(cleaned) & set("\u200b\u200e\u200f\u202a\u202e\u2060\u2066\ufeff\xad\U000e0041")


def test_the_short_way_for_printable_text_lets_nothing_through_that_the_long_one_removes() -> None:
    printable = [chr(point) for point in range(sys.maxunicode + 1) if chr(point).isprintable()]
    text = "\n".join(each for each in printable if not intake_fields._UNSEEN_YET_PRINTABLE.match(each))

    assert clean_text(text + "\u200b") == clean_text(text)


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_plain_text_is_not_touched(text: str) -> None:
    assert text == clean_text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("cafe\u0301", "caf\xe9"),
        ("pass\u200bword pass\u200dword pass\xadword", "password password password"),
        ("abc\u202edef\u202c", "abcdef"),
        ("\ufeffbegin", "begin"),
        ("ignore\U000e0049\U000e0047\U000e004e this", "ignore this"),
        ("a\x00b\x1b[31mc", "ab[31mc"),
        ("half \ud83d pair", "half  pair"),
        ("\u0915\u094d\u200d\u0937", "\u0915\u094d\u200d\u0937"),
        ("\u2764\ufe0f\u200d\U0001f525", "\u2764\ufe0f\u200d\U0001f525"),
        ("\U0001f600\ufe0f\ufe01\U000e0150", "\U0001f600\ufe0f"),
    ],
)
def test_hidden_characters_go_and_meaningful_ones_stay(text: str, expected: str) -> None:
    assert expected == clean_text(text)


@pytest.mark.parametrize("marks", ["\u0301", "\u0323\u0301", "\u0f73", "\u0f71\u0f80\u0f74"])
def test_a_tower_of_marks_is_cut_down_before_it_costs_the_square_of_its_height(marks: str) -> None:
    tower = "a" + marks * (1_000_000 // len(marks)) + "b"  # sorting these marks as they are takes the better part of an hour

    cleaned = clean_text(tower)

    assert len(cleaned) <= 40
    assert cleaned.endswith("b")


@given(ANY_TEXT, st.integers(0, 40))
def test_a_line_is_one_line_of_at_most_so_many_characters(text: str, most: int) -> None:
    line = clean_line(text, most=most)

    assert len(line) <= most
    assert len(line.splitlines()) <= 1
    assert line == line.strip()


@given(ANY_TEXT, st.integers(1, 60))
def test_a_cut_text_is_a_clean_prefix(text: str, most: int) -> None:
    cleaned = clean_text(text)

    cut = cut_text(cleaned, most=most)

    assert len(cut) <= most
    assert cleaned.startswith(cut)
    assert cut == clean_text(cut)


def test_a_text_is_cut_at_a_sentence_end_near_its_end() -> None:
    text = "The crane is tall. It stands by the river. Nobody knows who built it."

    assert "The crane is tall. It stands by the river." == cut_text(text, most=60)


def test_a_text_without_a_sentence_end_in_reach_is_cut_where_it_has_to_be() -> None:
    assert "Short. " + "x" * 93 == cut_text("Short. " + "x" * 500, most=100)


def test_a_subclass_of_str_has_no_say() -> None:
    class Liar(str):
        __slots__ = ()

        def __len__(self) -> int:
            return 1

        def __getitem__(self, _: object) -> str:
            raise RuntimeError

        def __str__(self) -> str:
            return "another text"

    plain = exact_text(Liar("the text"), most=100)

    assert "the text" == plain
    assert str is type(plain)
