"""What the tokeniser promises to index and query alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.text.tokens import EDGES, MAX_TERM_LENGTH, STOP_WORDS, Tokeniser

ENGLISH = Tokeniser()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("getUserName", [("getusernam", 0), ("get", 0), ("user", 1), ("name", 2)]),
        ("rotate_keys", [("rotate_keys", 0), ("rotat", 0), ("key", 1)]),  # codespell:ignore rotat
        ("os.path.join", [("os.path.join", 0), ("os", 0), ("path", 1), ("join", 2)]),
        ("HTTPServer2", [("httpserver2", 0), ("http", 0), ("server", 1), ("2", 2)]),
        ("v2.3.1", [("v2.3.1", 0), ("v", 0), ("2", 1), ("3", 2), ("1", 3)]),
        ("IL-6", [("il6", 0), ("il", 0), ("6", 1)]),
        ("p53", [("p53", 0), ("p", 0), ("53", 1)]),
        ("ERR_CONN_42", [("err_conn_42", 0), ("err", 0), ("conn", 1), ("42", 2)]),
        ("3.14", [("3.14", 0), ("3", 0), ("14", 1)]),
        ("TNF\u03b1", [("tnf\u03b1", 0), ("tnf", 0), ("\u03b1", 1)]),
        ("siRNAs", [("sirna", 0), ("si", 0), ("rna", 1)]),
        ("O'Brien", [("o'brien", 0), ("o", 0), ("brien", 1)]),
    ],
)
def test_an_identifier_is_emitted_whole_and_in_parts(word: str, expected: list[tuple[str, int]]) -> None:
    assert expected == ENGLISH.terms_with_positions(word)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Running dogs", ["run", "dog"]),
        ("don't", ["dont"]),
        ("the user\u2019s and users' keys", ["the", "user", "and", "user", "key"]),
        ("we're they'll", ["we", "they"]),
        ("well-known", ["well", "known"]),
        ("DNAs", ["dna"]),
        ("Z\u00fcrich", ["z\u00fcrich"]),
        ("\uff26\uff35\uff2c\uff2c \ufb01ne", ["full", "fine"]),
        ("soft\u00adware", ["softwar"]),
        ("Stra\u00dfe STRASSE", ["strass", "strass"]),
        ("__init__", ["init"]),
        ("(see: a/b)", ["see", "a", "b"]),
        ("-- ... !", []),
        ("", []),
    ],
)
def test_words_are_folded_and_stemmed(text: str, expected: list[str]) -> None:
    assert expected == ENGLISH.terms(text)


def test_spellings_of_one_identifier_meet_in_their_whole() -> None:
    wholes = {ENGLISH.terms(spelling)[0] for spelling in ("IL-6", "IL6", "il\u20106", "Il-6")}

    assert {"il6"} == wholes


def test_an_identifier_in_lower_case_finds_its_camel_case() -> None:
    assert ENGLISH.terms("getusername")[0] in ENGLISH.terms("getUserName")


def test_unspaced_scripts_give_characters_and_bigrams() -> None:
    expected = [("\u6771\u4eac", 0), ("\u6771", 0), ("\u4eac\u90fd", 1), ("\u4eac", 1), ("\u90fd", 2)]

    assert expected == ENGLISH.terms_with_positions("\u6771\u4eac\u90fd")


def test_a_vowel_sign_stays_with_its_letter() -> None:
    hindi = "\u0939\u093f\u0928\u094d\u0926\u0940"

    assert [hindi] == Tokeniser("none").terms(hindi)


def test_a_combining_accent_equals_its_composed_letter() -> None:
    assert ENGLISH.terms("\u00c9t\u00e9") == ENGLISH.terms("E\u0301te\u0301")


def test_a_phrase_takes_the_parts_alone() -> None:
    assert ENGLISH.phrase_terms("rotate keys now") == ENGLISH.phrase_terms("rotate_keys now")


def test_a_digest_is_one_term() -> None:
    digest = "9b74c9897bac770ffc029102a200c5de"

    assert [(digest, 0)] == ENGLISH.terms_with_positions(digest)


def test_a_long_name_keeps_its_parts_and_a_bounded_whole() -> None:
    parts = ["alpha", "beta", "gamma", "delta"] * 5
    name = "_".join(parts)

    assert [name[:MAX_TERM_LENGTH], *parts] == Tokeniser("none").terms(name)


def test_none_means_no_stemming() -> None:
    word = "running"

    assert [word] == Tokeniser("none").terms(word.title())


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="'klingon' is not one of none, arabic"):
        Tokeniser("klingon")


def test_identity_tells_languages_apart() -> None:
    assert ENGLISH.identity != Tokeniser("none").identity
    assert ENGLISH.identity.startswith("evidentia-tokens/1:english:snowball-")


def test_stop_words_are_kept() -> None:
    assert len(STOP_WORDS) == len(ENGLISH.terms(" ".join(sorted(STOP_WORDS))))


@given(st.text(), st.text())
def test_terms_of_two_texts_are_the_terms_of_both(first: str, second: str) -> None:
    assert ENGLISH.terms(first) + ENGLISH.terms(second) == ENGLISH.terms(f"{first} {second}")


@given(st.text())
def test_positions_leave_no_gaps_and_terms_are_bounded(text: str) -> None:
    placed = ENGLISH.terms_with_positions(text)
    positions = [position for _, position in placed]

    assert sorted(positions) == positions
    assert list(range(len(set(positions)))) == sorted(set(positions))
    assert all(0 < len(term) <= MAX_TERM_LENGTH for term, _ in placed)


@given(st.text(), st.text(alphabet=EDGES), st.text(alphabet=EDGES))
def test_punctuation_around_a_word_changes_nothing(word: str, before: str, after: str) -> None:
    bare = "".join(word.split())

    assert ENGLISH.terms(bare) == ENGLISH.terms(f"{before}{bare}{after}")


@given(st.text(alphabet="aB\u00c9\u03b19_.'-\u6771", max_size=30))
def test_what_is_remembered_does_not_change_the_answer(word: str) -> None:
    ENGLISH.terms(word)

    assert Tokeniser().terms_with_positions(word) == ENGLISH.terms_with_positions(word)
