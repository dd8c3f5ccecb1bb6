"""Words within a few edits are found among many exactly as comparing one by one finds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.text.edits import MAX_EDITS, WordList, distance, near, word_list

WORDS = st.text(alphabet="abcé東0", min_size=1, max_size=7)


def _listed(words: list[str]) -> WordList:
    encoded = [word.encode() for word in words]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in encoded], dtype=np.int64)])
    return word_list(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)


@pytest.mark.parametrize(
    ("first", "second", "edits"),
    [
        ("harbour", "harbour", 0),
        ("harbour", "harbor", 1),
        ("harbour", "habrour", 1),
        ("harbour", "tarbour", 1),
        ("harbour", "", 7),
        ("", "ab", 2),
        ("ca", "abc", 3),
        ("kitten", "sitting", 3),
    ],
)
def test_a_swap_of_neighbours_is_one_edit_and_no_part_is_edited_twice(first: str, second: str, edits: int) -> None:
    assert edits == distance(first, second)
    assert edits == distance(second, first)


@given(st.lists(WORDS, max_size=60), WORDS, st.integers(0, MAX_EDITS))
def test_near_words_are_those_that_begin_alike_and_that_comparing_one_by_one_finds(words: list[str], word: str, edits: int) -> None:
    expected = [(number, distance(each, word)) for number, each in enumerate(words) if each[0] == word[0] and distance(each, word) <= edits]
    numbers, distances = near(_listed(words), word, edits=edits)

    assert expected == list(zip(numbers.tolist(), distances.tolist(), strict=True))


def test_many_words_are_signed_as_few_are() -> None:
    words = [f"w{number}" for number in range(40_000)]
    numbers, distances = near(_listed(words), "w39999", edits=1)

    assert {words[number]: each for number, each in zip(numbers.tolist(), distances.tolist(), strict=True)} == {
        word: distance(word, "w39999") for word in words if distance(word, "w39999") <= 1
    }


@pytest.mark.parametrize("word", ["", "x" * 1_000_000])
def test_a_word_of_any_length_may_be_asked_for(word: str) -> None:
    assert [] == near(_listed(["a", "harbour"]), word, edits=1)[0].tolist()
