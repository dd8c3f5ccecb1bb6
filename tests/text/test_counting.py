"""Token counts: exact where they say so, labelled where they are not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semantic_text_splitter import TextSplitter

from evidentia.contracts.errors import InvalidFieldError
from evidentia.text.counting import TOKENIZER_BASES, basis_of, count_tokens

PROSE = st.text(alphabet="abZ 19.,'-\u00e9\u6771\u3002", min_size=2, max_size=60)


def fits(text: str, capacity: int) -> bool:
    return len(TextSplitter.from_tiktoken_model("gpt-4o", capacity, trim=False).chunks(text)) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 1),
        ("hello world", 2),
        ("Hello, world!", 4),
        # OpenAI's cookbook prints these two under o200k_base, token by token.
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        # o200k groups digits by three.
        ("1234567", 3),
        ("\n\t\n", 1),
    ],
)
def test_known_texts_have_their_known_count(text: str, expected: int) -> None:
    assert expected == count_tokens(text)


@settings(max_examples=60, deadline=None)
@given(PROSE)
def test_a_count_is_the_smallest_capacity_that_holds_the_text(text: str) -> None:
    count = count_tokens(text)

    assert fits(text, count)
    assert count == 1 or not fits(text, count - 1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["Keys", "rotate", "every", "month", "p53", "don't"]), min_size=1, max_size=12))
def test_a_text_costs_what_its_words_cost(words: list[str]) -> None:
    spaced = [words[0], *(f" {word}" for word in words[1:])]

    assert sum(count_tokens(word) for word in spaced) == count_tokens(" ".join(words))


@given(st.lists(st.sampled_from(["Keys", "rotate 7", "every."]), min_size=2, max_size=6))
def test_cutting_at_line_ends_changes_no_count(lines: list[str]) -> None:
    text = "\n".join(lines)

    assert fits(text, count_tokens(text))
    assert not fits(text, count_tokens(text) - 1)


@pytest.mark.parametrize("character", ["\U0001f600", "\u0f0b", "\U00012000", "\u0663", "\u0301", " "])
def test_a_single_character_costs_at_most_its_bytes(character: str) -> None:
    assert 1 <= count_tokens(character) <= len(character.encode())


def test_a_rare_character_costs_more_than_one_token() -> None:
    assert count_tokens("\U00012000") > 1


def test_the_estimate_is_a_quarter_rounded_up() -> None:
    expected = [0, 1, 1, 2]

    assert expected == [count_tokens("x" * length, "chars4") for length in (0, 1, 4, 5)]


def test_every_tokenizer_says_whether_it_is_exact() -> None:
    expected = {"o200k_base": "exact", "chars4": "estimated"}

    assert expected == {tokenizer: basis_of(tokenizer) for tokenizer in TOKENIZER_BASES}


def test_an_unknown_tokenizer_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="'gpt-9' is not one of o200k_base, chars4"):
        count_tokens("text", "gpt-9")
