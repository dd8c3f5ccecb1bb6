"""The one list of English words: those that carry no subject, point back, compare, count, or name a month.

Lists of words and nothing else; the rules are in the modules that use them, and so are lists that were fitted to one task.
"""

from __future__ import annotations

from typing import Final

from evidentia.text.tokens import NO_STEMMING, STOP_WORDS

LANGUAGES: Final = ("english", "porter", "lovins", NO_STEMMING)
"""The tokeniser's languages for which these lists are used."""

# ruff: noqa: SIM905 - lists of words read as words
QUESTION_WORDS: Final = frozenset("what which who whom whose when where why how".split())
AUXILIARIES: Final = frozenset(
    "is are was were be been being am do does did done has have had having can could will would shall should may might must "
    "isn't aren't wasn't weren't don't doesn't didn't hasn't haven't can't cannot couldn't won't wouldn't shouldn't".split()
)
PREPOSITIONS: Final = frozenset(
    "in on at for with without from to by of about into onto over under during before after between through via per as "
    "against within across regarding when while if because since until".split()
)
DETERMINERS: Final = frozenset("a an the any some all each every our my your its their his her this that these those no".split())
PERSONAL: Final = frozenset("it its itself he she him her his hers they them their theirs themselves".split())
"""Pronouns that need something to stand for."""
DEMONSTRATIVE: Final = frozenset("this these those that former latter".split())
TRAILING: Final = frozenset("that one ones there same this these those".split())
"""Words that point back when nothing of the clause follows them."""
OPENERS: Final = frozenset("and or but also so then plus".split())
"""Words with which a question goes on from an earlier one."""
EXPLETIVES: Final = frozenset(
    "possible true safe necessary ok okay worth better best legal allowed required hard easy difficult important common normal "
    "likely take takes took cost costs mean means matter matters rain raining".split()
)
"""Words near which `it` stands for nothing."""
COMPARATIVES: Final = frozenset(
    "more less fewer greater higher lower better worse larger bigger smaller longer shorter older younger faster slower "
    "cheaper stronger weaker heavier lighter taller earlier later safer newer wider deeper easier harder sooner "
    "different differently".split()
)
GENERIC_COMPARATIVES: Final = frozenset("more less fewer greater higher lower better worse different differently".split())
"""Comparatives that say nothing of what is compared."""
DIFFERENCES: Final = frozenset(
    "difference differences distinction tradeoff tradeoffs trade-off trade-offs comparison choose choosing".split()
)
"""Words that compare what follows `between`."""
SYMMETRIC: Final = frozenset(
    "both same each either together combined share shares shared similar similarly dissimilar different differ overlap "
    "compatible interchangeable equal respectively alike".split()
)
"""Words that say something of two things at once."""
VAGUE: Final = frozenset("once usual average normal expected ever before".split())
"""Words after `than` that name nothing to compare with."""
NUMBERS: Final = frozenset(
    "one two three four five six seven eight nine ten eleven twelve half twice dozen hundred thousand million billion".split()
)

_COURTESY: Final = frozenset(
    "please thanks thank hi hello hey ok okay yes no well just also too else again still really tell show me know".split()
)
_PEOPLE: Final = frozenset("i me my mine we us our ours you your yours someone anyone everyone somebody anybody myself".split())
_OTHERS: Final = frozenset(
    "than then there here so very much many more most less least few lot own only ever never either neither both each other another "
    "such same one ones what's that's it's let's vs versus not nor out up down off way thing things something anything".split()
)
FUNCTION_WORDS: Final = (
    STOP_WORDS
    | QUESTION_WORDS
    | AUXILIARIES
    | PREPOSITIONS
    | DETERMINERS
    | PERSONAL
    | DEMONSTRATIVE
    | OPENERS
    | _COURTESY
    | _PEOPLE
    | _OTHERS
)
"""Words that name no subject."""

MONTHS: Final = {
    word: number
    for number, word in enumerate("january february march april may june july august september october november december".split(), start=1)
}
"""Months by their whole names, from 1."""
SHORT_MONTHS: Final = {word[:3]: number for word, number in MONTHS.items()}
WEEKDAYS: Final = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
NUMBER_WORDS: Final = {
    word: number
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split())
} | {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50}
"""Numbers that people spell out."""
