"""Questions and queries about the invented worlds, for every type of question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evidentia.contracts.protocol import Breadth, QuestionType

if TYPE_CHECKING:
    from random import Random

    from trace_domains import Attribute, World

TEXT_TYPES: Final = (
    QuestionType.CONCEPT,
    QuestionType.DEFINITION,
    QuestionType.WORKFLOW,
    QuestionType.POLICY,
    QuestionType.EXPLANATION,
)
TABLE_TYPES: Final = tuple(one for one in QuestionType if one not in TEXT_TYPES)
WHOLE: Final = (QuestionType.RANKING, QuestionType.LIST, QuestionType.TABLE)
"""Types whose answer takes every row."""
PAIRS: Final = (QuestionType.COMPARISON, QuestionType.EXTRACTION)
BREADTHS: Final = {
    QuestionType.COMPARISON: (Breadth.MODERATE,),
    QuestionType.SUMMARY: (Breadth.MODERATE,),
    QuestionType.EXTRACTION: (Breadth.MODERATE, Breadth.BROAD),
    QuestionType.RANKING: (Breadth.MODERATE, Breadth.BROAD),
    QuestionType.LIST: (Breadth.BROAD,),
    QuestionType.TABLE: (Breadth.BROAD,),
    QuestionType.HISTORY: (Breadth.BROAD,),
    QuestionType.MIXED: (Breadth.MODERATE,),
    QuestionType.UNCLEAR: (Breadth.UNSURE,),
    QuestionType.CONCEPT: (Breadth.LOOKUP, Breadth.MODERATE, Breadth.UNSURE),
    QuestionType.DEFINITION: (Breadth.LOOKUP,),
    QuestionType.WORKFLOW: (Breadth.MODERATE, Breadth.LOOKUP),
    QuestionType.POLICY: (Breadth.LOOKUP, Breadth.MODERATE),
    QuestionType.EXPLANATION: (Breadth.MODERATE, Breadth.UNSURE),
}
_WORDINGS: Final = {
    QuestionType.VALUE: ("What is the {a} of {e}?", "Can you look up the {a} of {e} for me?", "I need the {a} of {e}, please."),
    QuestionType.PRICE: ("What is the {m} of {e}?", "How high is the {m} of {e} at the moment?", "Do you know the {m} for {e}?"),
    QuestionType.QUANTITY: ("How many {cu} are noted for {e}?", "How large is the number of {c} of {e}?"),
    QuestionType.INVENTORY: ("What is the {c} level of {e}?", "Please check the {c} we have on record for {e}."),
    QuestionType.SPECIFICATION: ("Which {s} is specified for {e}?", "What does the specification of {e} say about {s}?"),
    QuestionType.RANKING: ("Which of the {many} has the highest {a}?", "Please rank the {many} by {a}."),
    QuestionType.COMPARISON: ("How do {e} and {f} compare in {a}?", "Compare {e} with {f}: who has more {a}?"),
    QuestionType.SUMMARY: ("Please summarise the figures of {e}.", "Could you give me a summary of what we know of {e}?"),
    QuestionType.EXTRACTION: ("Extract the {a} of {e} and {f} from the sheets.", "Pull out the {a} for {e} and {f}."),
    QuestionType.LIST: ("List all {many} with their {a}.", "Which {many} do we have, and what {a} do they have?"),
    QuestionType.TABLE: ("Give me a table of all {many} with {m} and {c}.", "Show the {many} as a table, {a} included."),
    QuestionType.NAME_LOOKUP: ("Which {one} is called {e}, and what {a} is noted?", "Find the entry of {e} among the {many}."),
    QuestionType.HISTORY: ("How did the {c} of {e} develop from 2019 to 2022?", "Show the history of the {c} of {e}, 2019 to 2022."),
    QuestionType.MIXED: ("What is the {m} of {e}, and how is its {s} explained?", "Give me the {a} of {e} and say what stands behind it."),
    QuestionType.UNCLEAR: ("What about {e}?", "{e} - anything on {a}?"),
    QuestionType.CONCEPT: ("What is the idea behind {t}?", "Could you explain the concept of {t}?"),
    QuestionType.DEFINITION: ("What does {t} mean?", "How is {t} defined in our documents?"),
    QuestionType.WORKFLOW: ("How do I carry out the {t} step by step?", "What is the procedure for {t}?"),
    QuestionType.POLICY: ("What rules apply to {t}?", "What does our policy say on {t}?"),
    QuestionType.EXPLANATION: ("Why does {t} behave the way it does?", "Can you explain why {t} matters to us?"),
}
_ENTITY_QUERIES: Final = ("{e} {a} {ao}", "{e} {one} {a} {ao} {u}", "{a} {ao} of {e}", "{many} {e} {a}", "{one} {e} {ao} {a} overview")
_WHOLE_QUERIES: Final = (
    "{many} {o} list {a} {ao}",
    "all {many} {a} {ao} overview",
    "catalogue of {many} {o} {a}",
    "{many} table {a} {ao} {u}",
)
_OPEN_QUERIES: Final = ("{e} {one} overview details", "{e} {one} figures", "{many} {e} information", "{e} summary {one} record")
"""For questions that name nothing but their subject."""
_TERM_QUERIES: Final = {
    QuestionType.CONCEPT: ("{t} concept idea", "{t} {one} meaning basics", "{t} explanation principle"),
    QuestionType.DEFINITION: ("{t} definition meaning", "{t} {one} definition term", "definition of {t}"),
    QuestionType.WORKFLOW: ("{t} procedure steps", "{t} {one} instructions workflow", "{t} process guide"),
    QuestionType.POLICY: ("{t} rules policy", "{t} {one} policy guideline", "{t} regulations requirements"),
    QuestionType.EXPLANATION: ("{t} reasons explanation", "{t} {one} causes effects", "{t} background reason"),
}


@dataclass(frozen=True)
class Asked:
    """A question, what it is about, and queries that would do for it."""

    question: str
    question_type: QuestionType
    breadth: Breadth
    attribute: Attribute
    entities: tuple[str, ...]
    queries: tuple[str, ...]


def ask(world: World, question_type: QuestionType, rng: Random) -> Asked:
    """Return a question of a type about a world."""
    first, second = rng.sample(world.names, 2)
    attribute = _attribute(world, question_type, rng)
    words = {
        "e": first,
        "f": second,
        "a": attribute.name,
        "ao": attribute.other,
        "u": attribute.unit,
        "m": world.money.name,
        "c": world.count.name,
        "cu": world.count.unit,
        "s": world.measure.name,
        "one": world.one,
        "many": world.many,
        "o": world.other,
        "t": world.term,
    }
    templates, entities = _queries(world, question_type, (first, second))
    queries = [template.format(**words) for template in rng.sample(templates, len(templates))]
    if question_type in PAIRS:
        queries = [query.replace(first, f"{first} {second}") for query in queries]
    if question_type is QuestionType.HISTORY:
        queries = [f"{query} 2019 2020 2021 2022" for query in queries]
    return Asked(
        question=rng.choice(_WORDINGS[question_type]).format(**words),
        question_type=question_type,
        breadth=rng.choice(BREADTHS.get(question_type, (Breadth.LOOKUP,))),
        attribute=attribute,
        entities=entities,
        queries=tuple(queries),
    )


def _attribute(world: World, question_type: QuestionType, rng: Random) -> Attribute:
    fixed = {
        QuestionType.PRICE: world.money,
        QuestionType.QUANTITY: world.count,
        QuestionType.INVENTORY: world.count,
        QuestionType.HISTORY: world.count,
        QuestionType.SPECIFICATION: world.measure,
        QuestionType.MIXED: world.money,
        QuestionType.TABLE: world.money,
    }
    return fixed.get(question_type) or rng.choice([world.money, world.count, world.measure])


def _queries(world: World, question_type: QuestionType, pair: tuple[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if question_type in TEXT_TYPES:
        return _TERM_QUERIES[question_type], (world.term,)
    if question_type in {QuestionType.SUMMARY, QuestionType.UNCLEAR}:
        return _OPEN_QUERIES, pair[:1]
    if question_type in WHOLE:
        return _WHOLE_QUERIES, world.names
    return _ENTITY_QUERIES, pair if question_type in PAIRS else pair[:1]
