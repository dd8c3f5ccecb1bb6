"""Claims and passages as terms: numbers in one spelling, names, directions, and bounds for hostile text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.grounding.claim_terms import MAX_CLAIM_LENGTH, MAX_DIRECTIONS, MAX_TERMS, Quantity, read_claim, read_passage, weigh


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It costs $1.5 million.", [("1500000", "$")]),
        ("It costs 1,500,000.", [("1500000", "")]),
        ("Take 5 mg daily.", [("5", "mg")]),
        ("Some 2bn people and 3 thousand dogs.", [("2000000000", ""), ("3000", "")]),
        ("Take 5mg daily.", [("5", "mg")]),
        ("Take five milligrams daily.", [("5", "mg")]),
        ("It is 76-85% of all.", [("76", ""), ("85", "%")]),
        ("It costs $20 now.", [("20", "$")]),
        ("IL-6 and Kat8 bind.", []),
        ("One in two fails.", [("2", "")]),
        ("Version 1.2.3 is out.", [("1.2.3", "")]),
        ("007 is back.", [("7", "")]),
        ("1. Choose a place [12].", []),
        ("These help:\n\n1[1].", []),
    ],
)
def test_numbers_have_one_spelling_and_their_unit(text: str, expected: list[tuple[str, str]]) -> None:
    assert [Quantity(*each) for each in expected] == list(read_claim(text).quantities)


def test_decimal_in_a_passage_is_found_by_its_whole_number_too() -> None:
    found = read_passage("The share is 76.3 % here. And 85.5% there.").quantities

    assert {"76.3", "76", "85.5", "86"} == set(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The city of Bern is old.", ["Bern"]),
        ("Toby Keith sang it.", ["Toby", "Keith"]),
        ("Active Ly49Q induces it.", ["Ly49Q"]),
        ("Water is wet. Stones are not.", []),
        ("NASA launched it.", ["NASA"]),
        ("The end.", []),
    ],
)
def test_names_are_capitals_that_no_sentence_explains(text: str, expected: list[str]) -> None:
    assert expected == list(read_claim(text).names)


def test_british_and_american_spelling_are_the_same_term() -> None:
    assert read_claim("haemoglobin tumour oestrogen").terms == read_claim("hemoglobin tumor estrogen").terms


def test_direction_is_turned_by_a_negation_and_knows_what_it_is_said_of() -> None:
    (raised,) = read_claim("Smoking increases the risk of stroke.").directions
    (denied,) = read_claim("Smoking does not increase the risk of stroke.").directions

    assert (1, -1) == (raised.sign, denied.sign)
    assert ("risk", "stroke") == raised.objects == denied.objects


def test_long_words_and_numbers_say_more_than_common_ones() -> None:
    (people,) = read_claim("people").terms

    assert weigh(people) < weigh("bread") < weigh("mitochondria")
    assert weigh("bread") < weigh("1984")


def test_hostile_claim_is_cut() -> None:
    claim = read_claim(" ".join(f"word{number} increases x{number}" for number in range(100_000)))

    assert MAX_TERMS == len(claim.weights)
    assert MAX_DIRECTIONS == len(claim.directions)
    assert MAX_CLAIM_LENGTH > len(claim.terms)


@given(st.text())
def test_places_are_those_of_the_terms(text: str) -> None:
    passage = read_passage(text)

    assert len(passage.spans) + 1 == len(passage.starts)
    assert len(passage.terms) == len(passage.sentence_of) == passage.starts[-1]
    assert all(term == passage.terms[place] for term, places in passage.places.items() for place in places)
