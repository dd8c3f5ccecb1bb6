"""What a question wants found as it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.query.normalisation import _IDENTIFIER, MAX_FOUND, describe, find_verbatim, is_identifier


@pytest.mark.parametrize(
    "word",
    [
        "CVE-2021-44228", "rotate_keys", "a/b.py", "v1.2.3", "1.2.3", "E1234", "0x80070005", "ORA-00942", "--force", "$HOME", "C++", "C#",
        "rotateKeys", "HTTPServer", "COVID-19", "IPv6", "x@y.org", ".gitignore", "std::map", "key=value", "app.yaml", "C:\\temp", "main()",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "naïve_name",
    ],
)  # fmt: skip
def test_code_paths_versions_and_ids_are_identifiers(word: str) -> None:
    assert is_identifier(word)


@pytest.mark.parametrize(
    "word",
    ["keys", "Keys", "NASA", "404", "1.5", "1,000", "2nd", "1990s", "well-known", "e.g", "U.S", "and/or", "owner's", "don't", "", "-", "é"],
)
def test_words_numbers_and_capitals_are_not(word: str) -> None:
    assert not is_identifier(word)


@given(st.characters(categories=["L"]), st.text(st.characters(categories=["Ll", "Lm", "Lo"]), min_size=1, max_size=12))
def test_letters_without_a_capital_among_them_are_none_of_what_the_pattern_knows(first: str, rest: str) -> None:
    assert _IDENTIFIER.search(first + rest) is None
    assert not is_identifier(first + rest)


def test_both_are_found_once_in_their_order_and_identifiers_outside_quotes_only() -> None:
    found = find_verbatim('why "rotate  keys" in app.yaml, "a_b" fails with E42? E42 app.yaml')

    assert ("rotate keys", "a_b") == found.phrases
    assert ("app.yaml", "E42") == found.identifiers
    assert "identifiers: app.yaml, E42; phrases: rotate keys, a_b" == describe(found)
    assert "" == describe(find_verbatim("why"))


@given(st.text(max_size=300))
def test_what_is_found_stands_in_the_question(text: str) -> None:
    found = find_verbatim(text)

    assert all(phrase in " ".join(text.split()) for phrase in found.phrases)
    assert all(
        identifier.replace("'", "") in text.replace("'", "").replace("\u2019", "") for identifier in found.identifiers if '"' not in text
    )


def test_a_long_question_names_no_more_than_it_may() -> None:
    found = find_verbatim(" ".join(f"id_{number}" for number in range(500)))

    assert MAX_FOUND == len(found.identifiers)
    assert describe(found).endswith(f"and {MAX_FOUND - 4} more")
