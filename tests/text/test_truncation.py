"""Truncation: only at sentence ends, never over the limit, as long as can be, and with few questions to the counter."""

from __future__ import annotations

from math import ceil, log2
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.text.counting import truncate
from evidentia.text.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "Keys rotate every quarter. Ask the owner first! Is the vault open?\n\nThen rotate. "
PROSE = st.one_of(
    st.text(), st.text(alphabet="aA1 .!?\n\u3002"), st.lists(st.sampled_from(["Keys rotate.", "Why?", "a", "\n\n"])).map(" ".join)
)
LIMITS = st.integers(-1, 40)


def count_words(text: str) -> int:
    return len(text.split())


def count_in_fours(text: str) -> int:
    """Count as a merging tokeniser does: a text pays for each started four characters, so sentences do not add up."""
    return ceil(len(text) / 4)


def count_with_savings(text: str) -> int:
    """Count so that a longer text can be cheaper: every third character merges the three before it."""
    return 4 * len(text) - 7 * (len(text) // 3)


def longest_by_trying_all(text: str, *, tokens: int) -> str:
    prefixes = [text[: span.end] for span in split_sentences(text)]
    return max((prefix for prefix in prefixes if count_with_savings(prefix) <= tokens), key=len, default="")


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (0, ""),
        (3, ""),
        (4, "Keys rotate every quarter."),
        (7, "Keys rotate every quarter."),
        (8, "Keys rotate every quarter. Ask the owner first!"),
        (13, "Keys rotate every quarter. Ask the owner first! Is the vault open?"),
        (14, TEXT.strip()),
        (99, TEXT.strip()),
    ],
)
def test_the_longest_prefix_of_whole_sentences_is_kept(tokens: int, expected: str) -> None:
    assert expected == truncate(TEXT, tokens=tokens, count=count_words)


def test_blanks_before_the_first_sentence_are_kept_and_a_blank_text_is_empty() -> None:
    assert ("  Stop.", "") == (truncate("  Stop. ", tokens=1, count=count_words), truncate(" \n ", tokens=9, count=count_words))


@pytest.mark.parametrize("count", [count_words, count_in_fours, count_with_savings])
@given(text=PROSE, tokens=LIMITS)
def test_what_is_left_fits_and_ends_a_sentence(count: Callable[[str], int], text: str, tokens: int) -> None:
    kept = truncate(text, tokens=tokens, count=count)
    ends = {0, *(span.end for span in split_sentences(text))}

    assert text.startswith(kept)
    assert len(kept) in ends
    assert not kept or count(kept) <= tokens


@given(text=PROSE, tokens=LIMITS)
def test_no_longer_prefix_would_have_fitted(text: str, tokens: int) -> None:
    kept = truncate(text, tokens=tokens, count=count_in_fours)

    assert all(span.end <= len(kept) or count_in_fours(text[: span.end]) > tokens for span in split_sentences(text))


@given(text=PROSE, tokens=LIMITS)
def test_a_small_saving_by_a_longer_prefix_is_found(text: str, tokens: int) -> None:
    assert longest_by_trying_all(text, tokens=tokens) == truncate(text, tokens=tokens, count=count_with_savings)


@given(sentences=st.integers(1, 300), tokens=st.integers(0, 1000))
def test_the_counter_is_asked_few_times(sentences: int, tokens: int) -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return 20 * count_words(text)

    truncate("Keys rotate. " * sentences, tokens=tokens, count=count)

    # The whole, the halvings, and one look beyond where an end fails narrowly.
    assert len(asked) <= 2 + ceil(log2(sentences + 1))
