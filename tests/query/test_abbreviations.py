"""Short and long forms that the corpus explains."""

from __future__ import annotations

import pytest
from small_lexicon import ENGLISH, SmallLexicon

from evidentia.query.corrections import MAX_PAIRS, MAX_TERMS, expand_abbreviations
from evidentia.query.lexical import PARTIAL_WEIGHT

LEXICON = SmallLexicon()


def added(text: str, lexicon: SmallLexicon = LEXICON) -> list[str]:
    return list(expand_abbreviations(text, tokeniser=ENGLISH, lexicon=lexicon).weights)


@pytest.mark.parametrize("text", ["what is our SLO?", "what is our slo", "our SLOs", "(SLO)", "the SLO's owner"])
def test_a_short_form_adds_the_terms_of_its_long_form(text: str) -> None:
    assert ["servic", "level", "object"] == added(text)


@pytest.mark.parametrize(
    "text", ["the service level objective", "Service Level Objective?", "a content delivery network's service level objective"]
)
def test_a_long_form_adds_its_short_form(text: str) -> None:
    assert "slo" in added(text)


def test_the_second_reading_is_added_only_when_it_is_frequent_enough() -> None:
    rare = SmallLexicon(
        ("Change data capture (CDC)", "Change data capture (CDC)", "Change data capture (CDC)", "Centers for Disease Control (CDC)")
    )

    assert ["chang", "data", "captur", "center", "diseas", "control"] == added("CDC")
    assert ["chang", "data", "captur"] == added("CDC", rare)


@pytest.mark.parametrize("text", ['the "SLO"', '"service level objective"', "level objective", "slow", "owner", "it us who", "", "S L O"])
def test_quotes_halves_and_other_words_add_nothing(text: str) -> None:
    assert [] == added(text)


def test_additions_count_half_and_are_told() -> None:
    found = expand_abbreviations("RPO of the content delivery network", tokeniser=ENGLISH, lexicon=LEXICON)

    assert {"recoveri": PARTIAL_WEIGHT, "point": PARTIAL_WEIGHT, "object": PARTIAL_WEIGHT, "cdn": PARTIAL_WEIGHT} == found.weights
    assert "RPO: recovery point objective, content delivery network: CDN" == found.note


def test_a_question_full_of_short_forms_is_expanded_only_so_far() -> None:
    shorts = [f"{first}{second}Z" for first in "ABCDE" for second in "ABCDE"]
    lexicon = SmallLexicon(tuple(f"{short[0]}one{short} {short[1]}two{short} three{short} ({short})" for short in shorts))
    found = expand_abbreviations(" ".join(shorts), tokeniser=ENGLISH, lexicon=lexicon)

    assert MAX_TERMS == len(found.weights)
    assert MAX_PAIRS == found.note.count(":")
