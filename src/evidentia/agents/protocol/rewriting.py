"""A question put otherwise: queries for one tool that it was not asked before, the best first. Nothing is left to chance.

After the prepared query come more variants, then fewer words, then words of the intent and words that name no topic of their own, one and
two at a time. Queries for tables keep every condition and comparison in all of their forms.
"""

from __future__ import annotations

from itertools import chain, permutations
from typing import TYPE_CHECKING, Final

from evidentia.agents.protocol.queries import INTENT_WORDS, MAX_VARIANTS_EXPANDED, category_terms, core_words, even
from evidentia.agents.protocol.table_query import table_query, terse_table_query

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from evidentia.agents.protocol.questions import QuestionFacts
    from evidentia.contracts.protocol import PreparedQuery

_GENERAL: Final = ("overview", "details", "information", "summary", "description", "data", "documentation", "guide", "records", "reference")
"""Words that may be added to any query: they name no topic."""


def rewrite(
    facts: QuestionFacts,
    prepared: PreparedQuery,
    *,
    asked: Collection[str],
    for_tables: bool = False,
    is_fit: Callable[[str], bool] | None = None,
) -> str:
    """Return the best query for a question that is fit and was not asked; empty where nothing new can be said."""
    known = {even(query) for query in asked}
    choices = _table_choices(facts, prepared) if for_tables else _text_choices(facts, prepared)
    return next((each for each in choices if each and even(each) not in known and (is_fit is None or is_fit(each))), "")


def _table_choices(facts: QuestionFacts, prepared: PreparedQuery) -> Iterator[str]:
    if prepared.is_question:
        # It has nothing that only asks: without it a planner would read the same.
        yield facts.text
        yield from _added(facts.text, prepared)
    terse = terse_table_query(facts)
    yield table_query(facts)
    yield terse
    yield from _added(terse, prepared)


def _text_choices(facts: QuestionFacts, prepared: PreparedQuery) -> Iterator[str]:
    core = core_words(facts)
    names = prepared.entities
    near = category_terms(core, each=3)[:MAX_VARIANTS_EXPANDED]
    if not prepared.is_question:
        yield prepared.query
    else:
        yield facts.text
        yield " ".join((*core, *prepared.variants))
    yield " ".join(dict.fromkeys((*names, *facts.attributes, *prepared.variants, *near)))
    yield " ".join(dict.fromkeys((*names, *facts.attributes)))
    yield " ".join(names)
    yield " ".join(core)
    yield from _added(" ".join(core), prepared)


def _added(base: str, prepared: PreparedQuery) -> Iterator[str]:
    """Yield a query with further words behind it, one and two at a time; none that it has."""
    there = set(even(base).split())
    words = [word for word in dict.fromkeys((*INTENT_WORDS.get(prepared.intent, ()), *_GENERAL)) if word not in there]
    for further in chain(permutations(words, 1), permutations(words, 2)):
        yield " ".join((base, *further)).strip()
