"""A word that occurs nowhere is also searched as the nearest one that does, where one is clearly the nearest.

The word itself stays. Never corrected: quoted words, identifiers, numbers, words in capitals among small letters, words without a subject
(`what`), and terms of fewer than four letters. A correction starts with the same letter, is a word of letters, and is within one edit,
or two for words of more than seven letters; with a rival at the same distance, it has to occur in three times as many chunks.
Terms are compared as the index has them, that is stemmed: a slip that changes what the stemmer cuts off may be out of reach.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from evidentia.query.lexical import FULL_WEIGHT, PARTIAL_WEIGHT, Expansion, added_terms
from evidentia.query.normalisation import is_identifier
from evidentia.query.words import Word, unquoted, words_of
from evidentia.text.edits import distance

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evidentia.contracts.ports import Lexicon
    from evidentia.contracts.search import Definition
    from evidentia.text.tokens import Tokeniser


SHORTEST_TERM: Final = 4
MAX_TERM_LENGTH: Final = 32
MAX_ONE_EDIT_LENGTH: Final = 7
CLEAR_RATIO: Final = 3
MAX_WORDS: Final = 256
MAX_LOOKUPS: Final = 32
MAX_CORRECTIONS: Final = 8
MAX_CANDIDATES: Final = 16
"""The lexicon gives the nearest first, so what comes later could not be the clear best."""


def correct_spelling(text: str, *, tokeniser: Tokeniser, lexicon: Lexicon) -> Expansion:
    """Return corrections of the words that occur nowhere, at most eight, looked for among the first 32 such words."""
    if not lexicon.chunks:
        return Expansion(note="there are no words to compare with")
    if all(map(lexicon.chunks_with, tokeniser.terms(text))):
        return Expansion(note=_nothing_done(0))
    unknown = [(word, term) for word, term in _correctable(text, tokeniser).items() if not lexicon.chunks_with(term)]
    corrected: dict[str, str] = {}
    terms: dict[str, str] = {}
    for word, term in unknown[:MAX_LOOKUPS]:
        edits = 1 if len(word) <= MAX_ONE_EDIT_LENGTH else 2
        best = _best_candidate(term, lexicon.similar(term, edits=edits), edits=edits)
        if best and len(terms) < MAX_CORRECTIONS:
            terms[word] = best
            corrected[word] = _with_ending(best, word, term=term, tokeniser=tokeniser)
    note = ", ".join(f"{word}: {term}" for word, term in terms.items())
    weights = dict.fromkeys(terms.values(), FULL_WEIGHT)
    return Expansion(weights=weights, note=note or _nothing_done(len(unknown)), corrected=corrected)


def _with_ending(best: str, word: str, *, term: str, tokeniser: Tokeniser) -> str:
    """Return a term as a word, with the ending that the stemmer cut off the word it replaces, where that gives the same term."""
    whole = best + word.removeprefix(term) if word.startswith(term) else best
    return whole if tokeniser.analyse(whole).terms == (best,) else best


def _nothing_done(unknown: int) -> str:
    return f"{unknown} words occur nowhere and have no clear neighbour" if unknown else "every word that may be corrected occurs"


def _correctable(text: str, tokeniser: Tokeniser) -> Mapping[str, str]:
    """Return the words that may be corrected with their terms, each term once, in order."""
    found: dict[str, str] = {}
    terms: set[str] = set()
    for word in _candidates(text):
        given = tokeniser.analyse(word).terms
        if len(given) == 1 and SHORTEST_TERM <= len(given[0]) <= MAX_TERM_LENGTH and given[0] not in terms:
            terms.add(given[0])
            found[word] = given[0]
    return found


def _candidates(text: str) -> Iterator[str]:
    is_shouted = not any(character.islower() for character in text)
    left = MAX_WORDS
    for stretch in unquoted(text):
        words = words_of(stretch, limit=left) if left else []
        left -= len(words)
        for word in words:
            is_capitals = word.text.isupper() and not is_shouted
            is_plain = len(word.plain) <= 2 * MAX_TERM_LENGTH and word.plain.isalpha() and not is_identifier(word.text)
            if word.is_content and is_plain and not is_capitals:
                yield word.plain


def _best_candidate(term: str, similar: Iterable[tuple[str, int]], *, edits: int) -> str:
    eligible = (
        (candidate, chunks)
        for candidate, chunks in similar
        if chunks > 0 and candidate != term and candidate.isalpha() and candidate[:1] == term[:1] and len(candidate) <= MAX_TERM_LENGTH + 2
    )
    ranked = sorted((distance(term, candidate), -chunks, candidate) for candidate, chunks in islice(eligible, MAX_CANDIDATES))
    if not ranked or ranked[0][0] > edits:
        return ""
    (nearest, most, best), rivals = ranked[0], ranked[1:2]
    is_rivalled = any(away == nearest and -most < CLEAR_RATIO * -chunks for away, chunks, _ in rivals)
    return "" if is_rivalled or len(best) < SHORTEST_TERM else best


# --- abbreviations ---
# Short and long forms that the caller's own corpus explains are searched together.
#
# A short form adds the terms of what it stands for, a long form of two to six words adds its short form; both count half. Quoted words
# and words without a subject (`it`, `us`) are never taken for short forms, and small letters only where they are few: `slo`, not
# `sentence`.

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
