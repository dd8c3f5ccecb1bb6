"""What a question's words ask of the index: terms with how often each is asked for, and quoted phrases.

Quoted words must stand together and in order, and they count as terms like the rest. A quote that is never closed is
an ordinary character.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from evidentia.contracts.search import LexicalQuery

if TYPE_CHECKING:
    from evidentia.text.tokens import Tokeniser

QUOTES: Final = '"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}'
QUOTED: Final = re.compile(f"[{QUOTES}]([^{QUOTES}]+)[{QUOTES}]")
"""A quoted stretch; the group is what stands between the quotes."""


def lexical_query(text: str, tokeniser: Tokeniser) -> LexicalQuery:
    """Return the terms and phrases of a question."""
    phrases = (tuple(tokeniser.phrase_terms(quoted)) for quoted in QUOTED.findall(text))
    terms = Counter(tokeniser.terms(text))
    return LexicalQuery(terms=dict(sorted(terms.items())), phrases=tuple(phrase for phrase in phrases if len(phrase) > 1))
