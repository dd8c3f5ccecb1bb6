"""Short and long forms that the caller's own corpus explains are searched together.

A short form adds the terms of what it stands for, a long form of two to six words adds its short form; both count half. Quoted words and
words without a subject (`it`, `us`) are never taken for short forms, and small letters only where they are few: `slo`, not `sentence`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.expansion import PARTIAL_WEIGHT, Expansion, added_terms
from evidentia.query.words import Word, unquoted, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.ports import Lexicon
    from evidentia.contracts.search import Definition
    from evidentia.text.tokens import Tokeniser

MAX_WORDS: Final = 256
MAX_SHORT_LENGTH: Final = 12
MAX_SMALL_LENGTH: Final = 5
MAX_LONG_WORDS: Final = 6
MAX_READINGS: Final = 2
"""A short form is read in this many ways, the second only if it is at least half as frequent as the first."""
MAX_PAIRS: Final = 8
MAX_TERMS: Final = 16


def expand_abbreviations(text: str, *, tokeniser: Tokeniser, lexicon: Lexicon) -> Expansion:
    """Return the terms of long forms for short ones and the reverse: at most eight pairs and 16 terms."""
    pairs: dict[tuple[str, str], None] = {}
    left = MAX_WORDS
    for stretch in unquoted(text):
        words = words_of(stretch, limit=left) if left else []
        left -= len(words)
        pairs |= dict.fromkeys(_explained(words, lexicon))
        pairs |= dict.fromkeys(_abbreviated(words, lexicon))
    kept = list(pairs)[:MAX_PAIRS]
    terms = dict.fromkeys(term for _, added in kept for term in added_terms(added, tokeniser))
    note = ", ".join(f"{found}: {added}" for found, added in kept) or "the corpus explains no word of the question"
    return Expansion(weights=dict.fromkeys(list(terms)[:MAX_TERMS], PARTIAL_WEIGHT), note=note)


def _explained(words: Sequence[Word], lexicon: Lexicon) -> Iterator[tuple[str, str]]:
    for word in words:
        readings = _readings(word, lexicon)
        for reading in readings[:MAX_READINGS]:
            if 2 * reading.chunks >= readings[0].chunks:
                yield word.text, reading.long


def _readings(word: Word, lexicon: Lexicon) -> Sequence[Definition]:
    """Return what the corpus says of the first spelling of the word that it explains: as written, singular, in capitals."""
    spellings: dict[str, None] = {}
    if _has_capitals(word.text):
        spellings = dict.fromkeys((word.text, word.text.removesuffix("'s").removesuffix("s")))
    elif word.is_content and len(word.plain) <= MAX_SMALL_LENGTH:
        spellings = dict.fromkeys((word.text, word.plain.upper()))
    for spelling in spellings:
        if 1 < len(spelling) <= MAX_SHORT_LENGTH and (readings := lexicon.long_forms(spelling)):
            return readings
    return ()


def _has_capitals(text: str) -> bool:
    return sum(character.isupper() for character in text) > 1


def _abbreviated(words: Sequence[Word], lexicon: Lexicon) -> Iterator[tuple[str, str]]:
    """Yield long forms with their most frequent short form, the longest at each place, without overlap."""
    place = 0
    while place < len(words) - 1:
        step = 1
        for count in range(min(MAX_LONG_WORDS, len(words) - place), 1, -1):
            long = " ".join(word.text.casefold() for word in words[place : place + count])
            if found := lexicon.short_forms(long):
                yield long, found[0].short
                step = count
                break
        place += step
