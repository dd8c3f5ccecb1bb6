"""The user's synonyms of what stands in the question, outside its quotes, are searched as well and count half."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.query.expansion import PARTIAL_WEIGHT, Expansion
from evidentia.query.words import unquoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.query.synonym_file import Entry, Synonyms
    from evidentia.text.tokens import Tokeniser

MAX_POSITIONS: Final = 1_024
"""Synonyms are looked for among so many words."""
MAX_TERMS: Final = 32


def expand_synonyms(text: str, *, tokeniser: Tokeniser, synonyms: Synonyms) -> Expansion:
    """Return the terms of the synonyms of every entry that occurs, the longest entry at each place, at most 32 terms."""
    found: dict[Entry, None] = {}
    left = MAX_POSITIONS
    for stretch in unquoted(text):
        terms = tokeniser.phrase_terms(" ".join(stretch.split(maxsplit=left)[:left]))[:left] if left else []
        left -= len(terms)
        found |= dict.fromkeys(_entries_in(terms, synonyms))
    added = dict.fromkeys(term for entry in found for terms in synonyms.additions[entry] for term in terms)
    note = ", ".join(" ".join(entry) for entry in list(found)[:MAX_TERMS]) or "no entry of the file occurs"
    return Expansion(weights=dict.fromkeys(list(added)[:MAX_TERMS], PARTIAL_WEIGHT), note=note)


def _entries_in(terms: Sequence[str], synonyms: Synonyms) -> Iterator[Entry]:
    place = 0
    while place < len(terms):
        step = 1
        for count in range(min(synonyms.longest, len(terms) - place), 0, -1):
            entry = tuple(terms[place : place + count])
            if entry in synonyms.additions:
                yield entry
                step = count
                break
        place += step
