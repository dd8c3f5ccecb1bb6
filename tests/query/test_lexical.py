"""What a question's words ask for: terms with their counts, and phrases between any pair of quotation marks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.query.lexical import lexical_query
from evidentia.text.tokens import Tokeniser

TOKENISER = Tokeniser("none")


def test_terms_are_counted_and_sorted() -> None:
    query = lexical_query("keys rotate keys, Keys", TOKENISER)

    assert {"keys": 3, "rotate": 1} == query.terms
    assert ["keys", "rotate"] == list(query.terms)
    assert () == query.phrases


def test_quoted_words_are_a_phrase_and_count_as_terms_too() -> None:
    query = lexical_query('signing "rotate the keys" now', TOKENISER)

    assert (("rotate", "the", "keys"),) == query.phrases
    assert {"keys": 1, "now": 1, "rotate": 1, "signing": 1, "the": 1} == query.terms


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('"rotate keys', ()),
        ('rotate keys"', ()),
        ('"rotate keys" and "key custody', (("rotate", "keys"),)),
        ('"rotate keys" and "key custody"', (("rotate", "keys"), ("key", "custody"))),
        ('"rotate keys""key custody"', (("rotate", "keys"), ("key", "custody"))),
        ('""', ()),
        ('" "', ()),
        ('"?!"', ()),
    ],
)
def test_a_quote_that_is_never_closed_is_an_ordinary_character(text: str, phrases: tuple[tuple[str, ...], ...]) -> None:
    assert phrases == lexical_query(text, TOKENISER).phrases


@pytest.mark.parametrize("text", ["“rotate keys”", '“rotate keys"', '"rotate keys”', "”rotate keys“"])
def test_typographic_quotes_are_quotes_in_any_mixture(text: str) -> None:
    query = lexical_query(text, TOKENISER)

    assert (("rotate", "keys"),) == query.phrases
    assert {"keys": 1, "rotate": 1} == query.terms


def test_one_quoted_word_is_a_term_and_no_phrase() -> None:
    query = lexical_query('"keys" rotate', TOKENISER)

    assert () == query.phrases
    assert {"keys": 1, "rotate": 1} == query.terms


def test_a_repeated_phrase_is_kept_as_often_as_it_was_asked_for() -> None:
    assert (("a", "b"), ("a", "b")) == lexical_query('"a b" "a b"', TOKENISER).phrases


def test_an_identifier_is_asked_for_whole_and_in_parts_and_its_phrase_in_parts_only() -> None:
    query = lexical_query('"rotate_keys" HTTPServer2', TOKENISER)

    assert {"2": 1, "http": 1, "httpserver2": 1, "keys": 1, "rotate": 1, "rotate_keys": 1, "server": 1} == query.terms
    assert (("rotate", "keys"),) == query.phrases


def test_terms_are_those_of_the_index() -> None:
    stemming = Tokeniser("english")

    assert {"custodi": 1, "key": 1} == lexical_query("Keys' custodies", stemming).terms
    assert (("sign", "key"),) == lexical_query('"signing keys"', stemming).phrases


def test_nothing_to_ask_for_is_no_terms() -> None:
    query = lexical_query("?! … —", TOKENISER)

    assert {} == query.terms
    assert () == query.phrases


@given(st.text(max_size=80))
def test_any_text_gives_the_terms_of_the_tokeniser_and_phrases_of_at_least_two(text: str) -> None:
    query = lexical_query(text, TOKENISER)

    assert sorted(TOKENISER.terms(text)) == sorted(term for term, times in query.terms.items() for _ in range(times))
    assert all(len(phrase) > 1 for phrase in query.phrases)
