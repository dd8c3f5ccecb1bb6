"""One spelling of characters: what is made alike, and what is never touched."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.query.normalisation import MAX_GROWTH, MAX_PIECE_LENGTH, normalise_text


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("  rotate \t the\n\nkeys ", "rotate the keys"),
        ("CVE\u20132021\u201344228", "CVE-2021-44228"),
        ("\uff23\uff36\uff25\uff0d\uff12\uff10\uff12\uff11", "CVE-2021"),
        ("pass\u200bword \u202ereset\ufeff", "password reset"),
        ("soft\u00adhyphen", "softhyphen"),
        ("keys\u2014signing", "keys - signing"),
        ("the owner\u2019s \ufb01le", "the owner's file"),
        ("\u00abrotate keys\u00bb and \u201ekey custody\u201c", '"rotate keys" and "key custody"'),
        ("a\x00b\x1bc", "a b c"),
        ("\ud800broken", "broken"),
        ("", ""),
        ("\u200b\u00ad", ""),
    ],
)
def test_what_is_written_differently_is_made_alike(text: str, spelt: str) -> None:
    assert spelt == normalise_text(text)


@pytest.mark.parametrize(
    "identifier", ["CVE-2021-44228", "rotate_keys", "/etc/app/app.yaml", "ORA-00942", "std::map<int>", "a=b&c", "--dry-run"]
)
def test_identifiers_stay_as_they_are_written(identifier: str) -> None:
    assert f"what is {identifier} ?" == normalise_text(f"what is \u00a0{identifier} ?")


def test_quoted_words_keep_their_characters() -> None:
    assert '"the \ufb01le \u2013 here" the file - here' == normalise_text("\u201cthe \ufb01le \u2013 here\u201d the \ufb01le \u2013 here")


@given(st.text(alphabet=string.ascii_letters + string.digits + string.punctuation + " ", max_size=200))
def test_ascii_changes_in_its_spacing_only(text: str) -> None:
    assert text.split() == normalise_text(text).split(" ") or not text.split()


@given(st.text(max_size=200))
def test_any_text_stays_bounded_and_shows_all_it_has(text: str) -> None:
    spelt = normalise_text(text)

    assert len(spelt) <= max(3, MAX_GROWTH) * len(text)
    assert " ".join(spelt.split()) == spelt
    assert not {"\x00", "\u200b", "\u202e", "\ufeff"} & set(spelt)


def test_pieces_that_are_no_words_are_not_composed() -> None:
    marks = "a" + "\u0316\u0301" * MAX_PIECE_LENGTH

    assert marks == normalise_text(marks)
    assert "\ufdfa" == normalise_text("\ufdfa")
