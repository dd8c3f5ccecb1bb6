"""Plain contradictions: a sentence that says nearly all of a claim, but denies it, turns it round or gives another number.

They are rarer in judged sets than in what people try first, so they are found by rule. A rule needs a sentence that is about the claim
and a mismatch at the very words that both have; a mismatch elsewhere in the passage is left to the other features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.grounding.lexicon import DIRECTIONS, NEGATIONS
from evidentia.grounding.reading import denied_terms
from evidentia.grounding.windows import ONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.grounding.directions import Comparison
    from evidentia.grounding.reading import Claim, Passage
    from evidentia.grounding.windows import Hits

REST_MILLI: Final = 900
"""The least share of the claim's words, numbers, directions and negations aside, in a sentence that says the same."""
FOCUS_MILLI: Final = 700
"""The least focus of that sentence: half of its words are the claim's."""


def is_contradicted(claim: Claim, passage: Passage, hits: Hits, *, sentence: int, focus_milli: int, said: Comparison) -> bool:
    """Tell whether a sentence says the claim but for a negation, a direction or a number."""
    if focus_milli < FOCUS_MILLI or not _says_the_rest(claim, hits.missing((sentence,))):
        return False
    terms = passage.inside(sentence, sentence + 1)
    turns = [turn for turn in said.turns if turn.sentence == sentence]
    is_turned = any(turn.word not in terms for turn in turns)
    is_denied = (bool(turns) or sentence not in said.along_in) and _is_denied(claim, terms)
    return is_turned or is_denied or _has_other_number(claim, passage, sentence)


def _says_the_rest(claim: Claim, missing: Sequence[str]) -> bool:
    rest = {term: weight for term, weight in claim.weights.items() if term.isalpha() and term not in DIRECTIONS and term not in NEGATIONS}
    lacking = sum(rest.get(term, 0) for term in missing)
    return lacking * ONE <= sum(rest.values()) * (ONE - REST_MILLI)


def _is_denied(claim: Claim, terms: Sequence[str]) -> bool:
    """Tell whether just one of the two denies a word that both have, and the other denies nothing."""
    denied = denied_terms(terms)
    lost = claim.denied.intersection(terms)
    added = denied.intersection(claim.terms)
    return bool(lost and not denied) or bool(added and not claim.denied)


def _has_other_number(claim: Claim, passage: Passage, sentence: int) -> bool:
    """Tell whether the sentence has one number with the unit of a number of the claim, and it is another."""
    if not any(unit for _, unit in claim.quantities):
        return False
    given: dict[str, list[tuple[str, ...]]] = {}
    for place, unit, spellings in passage.measured:
        if place == sentence:
            given.setdefault(unit, []).append(spellings)
    return any(len(given.get(unit, ())) == 1 and number not in given[unit][0] for number, unit in claim.quantities)
