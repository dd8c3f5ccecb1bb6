"""A question cut into words, with what the rules need of each: its plain form, the punctuation after it, whether it is quoted.

A quoted stretch is one word, so that no rule can cut through it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.query.lexical import QUOTED, QUOTES
from evidentia.text.tokens import EDGES, NO_STEMMING, STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_PIECE: Final = re.compile(rf"{QUOTED.pattern}|\S+")
_INNER: Final = EDGES.replace(".", "") + "\N{HORIZONTAL ELLIPSIS}"
_POSSESSIVE: Final = re.compile("'s?$")
_APOSTROPHES: Final = "\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}"
_PLAIN: Final = str.maketrans({**dict.fromkeys(QUOTES), **dict.fromkeys(_APOSTROPHES, "'")})


class Word(NamedTuple):
    """One word: as written, in lower case without possessive, and the punctuation that follows it."""

    text: str
    plain: str
    tail: str
    is_quoted: bool = False

    @property
    def is_content(self) -> bool:
        """Tell whether the word may name a subject."""
        return self.is_quoted or (self.plain not in FUNCTION_WORDS and any(character.isalnum() for character in self.plain))

    @property
    def is_name(self) -> bool:
        """Tell whether the word is written with a capital."""
        return self.text[:1].isupper()


def words_of(text: str, *, limit: int) -> list[Word]:
    """Return at most the first `limit` words of a text."""
    found: list[Word] = []
    for piece in _PIECE.finditer(text):
        word = _quoted_word(piece[0]) if piece[1] is not None else _plain_word(piece[0])
        if word.text:
            found.append(word)
        if len(found) == limit:
            break
    return found


def join(words: Iterable[Word]) -> str:
    """Return words as a text."""
    return " ".join(word.text for word in words)


def count_content(words: Sequence[Word]) -> int:
    """Return how many of the words may name a subject."""
    return sum(word.is_content for word in words)


def unquoted(text: str) -> list[str]:
    """Return the stretches of a text outside its quotes, in order."""
    stretches, start = [], 0
    for found in QUOTED.finditer(text):
        stretches.append(text[start : found.start()])
        start = found.end()
    return [*stretches, text[start:]]


def _quoted_word(piece: str) -> Word:
    return Word(piece, piece, "", is_quoted=True)


def _plain_word(piece: str) -> Word:
    piece = piece.translate(_PLAIN)
    bare = piece.strip(_INNER).rstrip(EDGES)
    after = piece[piece.find(bare) + len(bare) :] if bare else piece
    return Word(bare, _POSSESSIVE.sub("", bare.casefold()), after)


# --- english ---
# The English words by which rules about questions go: which carry no subject, which point back, which compare.
#
# Lists of words and nothing else; the rules are in the modules of the steps.

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
