"""The rules that an answer follows, by engine version: a new answer follows the newest, a receipt those that it was answered by.

A change that gives the same request on the same state another answer is a rule here, beside what was done before; a replay of an older
receipt then finds what was found. Rules that only the stored index decides need no entry: the state names the index.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

ENGINE: Final = "evidentia-engine/7"
"""Changes when the same request on the same state with the same settings may give another answer."""
_PREFIX: Final = "evidentia-engine/"
_SECOND_GENERATION: Final = 7


class AnswerRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the versions of the engine do differently; the defaults are today's rules."""

    prefers_quotations: bool = True
    """Quoted stretches raise what holds them; before, nothing else was found."""
    weighs_terms: bool = True
    """Terms that say little of the subject count less; before, all counted alike but for their rarity."""
    spares_relevance: bool = True
    """Only what is nearly a copy steps back; before, whatever was alike did."""
    follows_topics: bool = True
    """A follow-up leans on the conversation unless it brings a topic of its own; before, only where a word pointed back."""
    splits_questions: bool = True
    """Beside the whole, the best part of a question that the rules took apart decides; before, the sum of all its parts did."""
    confidence: int = 2
    """Which generation of features the confidence is worked out from."""


_FIRST_GENERATION: Final = AnswerRules(
    prefers_quotations=False, weighs_terms=False, spares_relevance=False, follows_topics=False, splits_questions=False, confidence=1
)
TODAY: Final = AnswerRules()


@lru_cache(maxsize=16)
def rules_of(engine: str) -> AnswerRules:
    """Return the rules of an engine version; those of today for one that is not known."""
    number = engine.removeprefix(_PREFIX)
    return _FIRST_GENERATION if number.isdecimal() and int(number) < _SECOND_GENERATION else TODAY
