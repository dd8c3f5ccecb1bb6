"""A word that occurs nowhere is also searched as the nearest one that does, where one is clearly the nearest.

The word itself stays. Never corrected: quoted words, identifiers, numbers, words in capitals among small letters, words without a subject
(`what`), and terms of fewer than four letters. A correction starts with the same letter, is a word of letters, and is within one edit,
or two for words of more than seven letters; with a rival at the same distance, it has to occur in three times as many chunks.
Terms are compared as the index has them, that is stemmed: a slip that changes what the stemmer cuts off may be out of reach.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from evidentia.query.expansion import FULL_WEIGHT, Expansion
from evidentia.query.verbatim import is_identifier
from evidentia.query.words import unquoted, words_of
from evidentia.text.edits import distance

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evidentia.contracts.ports import Lexicon
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
    for word, term in unknown[:MAX_LOOKUPS]:
        edits = 1 if len(word) <= MAX_ONE_EDIT_LENGTH else 2
        best = _best_candidate(term, lexicon.similar(term, edits=edits), edits=edits)
        if best and len(corrected) < MAX_CORRECTIONS:
            corrected[word] = best
    note = ", ".join(f"{word}: {term}" for word, term in corrected.items())
    return Expansion(weights=dict.fromkeys(corrected.values(), FULL_WEIGHT), note=note or _nothing_done(len(unknown)))


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
