"""What a question's words ask of the index: terms with how often each is asked for, and quoted phrases.

Quoted words must stand together and in order, and they count as terms like the rest. A quote that is never closed is
an ordinary character.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from evidentia.contracts.search import LexicalQuery
from evidentia.text.tokens import STOP_WORDS, Tokeniser

QUOTES: Final = '"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}'
QUOTED: Final = re.compile(f"[{QUOTES}]([^{QUOTES}]+)[{QUOTES}]")
"""A quoted stretch; the group is what stands between the quotes."""


def lexical_query(text: str, tokeniser: Tokeniser) -> LexicalQuery:
    """Return the terms and phrases of a question."""
    phrases = (tuple(tokeniser.phrase_terms(quoted)) for quoted in QUOTED.findall(text))
    terms = Counter(tokeniser.terms(text))
    return LexicalQuery(terms=dict(sorted(terms.items())), phrases=tuple(phrase for phrase in phrases if len(phrase) > 1))


# --- expansion ---
# Terms that a step adds to a question, and how additions of several steps become one.

FULL_WEIGHT: Final = 256
"""What a term counts that stands in for one which occurs nowhere: as much as a term that was asked for."""
PARTIAL_WEIGHT: Final = 128
"""What a term counts that is added beside one which was asked for."""
MAX_EXPANSIONS: Final = 64
"""A question is given no more terms than these."""


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """Terms that were added with their weights in 256ths, in the order of finding, and what was done in one line."""

    weights: Mapping[str, int] = msgspec.field(default_factory=dict)
    note: str
    corrected: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Words of the question, in lower case, that are taken for others."""


def corrected_text(text: str, corrected: Mapping[str, str]) -> str:
    """Return a text with words replaced, except those in quotes."""
    if not corrected:
        return text
    words = "|".join(map(re.escape, corrected))
    either = re.compile(rf"{QUOTED.pattern}|\b(?P<word>{words})\b", re.IGNORECASE)
    return either.sub(lambda found: corrected.get(found["word"].lower(), found[0]) if found["word"] else found[0], text)


def added_terms(text: str, tokeniser: Tokeniser) -> list[str]:
    """Return the terms of an added text; stop words are left out unless there is nothing else."""
    terms = list(dict.fromkeys(tokeniser.terms(text)))
    return [term for term in terms if term not in STOP_WORDS] or terms


def without_terms(expansion: Expansion, terms: Mapping[str, int]) -> Expansion:
    """Return the expansion without terms that were asked for."""
    weights = {term: weight for term, weight in expansion.weights.items() if term not in terms}
    return msgspec.structs.replace(expansion, weights=weights)


def expand(query: LexicalQuery, expansions: Iterable[Expansion]) -> LexicalQuery:
    """Return the query with the additions; a term added twice counts its greater weight, and of too many the first stay."""
    weights: dict[str, int] = {}
    for expansion in expansions:
        for term, weight in expansion.weights.items():
            if term not in query.terms and (term in weights or len(weights) < MAX_EXPANSIONS):
                weights[term] = max(weight, weights.get(term, 0))
    return msgspec.structs.replace(query, expansions=dict(sorted(weights.items())))
