"""The sentences of a reply by what they do: assert something, ask, introduce, be polite, tell counts, or say that nothing was found.

Rules of wording, no model. When in doubt a sentence asserts nothing: what is left out here is never accused.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.agents.replies.notfound import says_nothing_found
from evidentia.agents.replies.words import is_strong, read_terms
from evidentia.text.sentences import split_sentences

if TYPE_CHECKING:
    from evidentia.agents.replies.words import Terms

LEAST_TERMS: Final = 2
"""Words with content that a sentence needs to assert something; one is enough when it has a digit."""

_APOSTROPHE: Final = "['\u2019]"
_POLITE: Final = re.compile(
    "(?:hi|hello|hey|dear|greetings|good (?:morning|afternoon|evening|question)|thanks|thank you|you(?:"
    + _APOSTROPHE
    + "re| are) welcome|welcome"
    "|sure|certainly|of course|absolutely|great question|sorry|cheers|sincerely|regards|(?:best|kind) regards|happy to|glad to"
    "|i apologi[sz]e|i (?:really )?hope|i(?:"
    + _APOSTROPHE
    + "m| am) (?:happy|glad|sorry)|i(?:"
    + _APOSTROPHE
    + "d| would) be (?:happy|glad)"
    "|i can (?:also |help|look|search|check)|let me know|feel free|do(?: not|n"
    + _APOSTROPHE
    + "t) hesitate|just (?:ask|let)|you can also ask"
    "|please (?:let|feel|tell|ask|contact|reach|do not|don" + _APOSTROPHE + "t)|should you|would you like|is there anything"
    "|if you (?:need|want|have|would|like|wish|are looking)|for (?:more|further) (?:details|information|help))\\b",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(
    "(?:here(?:" + _APOSTROPHE + "s| is| are)|below(?: is| are|,)?|the following|as follows|the (?:table|list|steps|details|results?) below"
    "|(?:i|we) (?:have )?(?:found|searched|looked|checked|retrieved)|you asked|your question|to answer your|in (?:answer|reply) to"
    "|(?:this|the) (?:answer|reply|table|list) (?:is based|shows|lists|gives|draws)|these are|this is what"
    "|(?:based on|according to) (?:the|these|what))\\b",
    re.IGNORECASE,
)
_OPENERS: Final = frozenset(
    "hi hello hey dear greetings good thanks thank you you're welcome sure certainly of absolutely great sorry cheers sincerely "  # noqa: SIM905 - a list of words reads as words
    "regards best kind happy glad i i'm i'd let feel do don't just please should would is if for here here's below the as we your to in "
    "this these based according".split()
)
"""The first words of all that the two patterns find: most sentences are done with them."""
_MAX_LEAD_LENGTH: Final = 16
_MAX_ATTRIBUTION_LENGTH: Final = 8
_COUNT_WORD: Final = re.compile(
    r"\b(?:totals?|display|displayed|displaying|shown|showing|shows?|omit|omits|omitted|omitting|left out|leav(?:e|es|ing) out|truncated"
    r"|not (?:shown|displayed|listed|included)|remaining|match|matches|matching|list|lists|listed|hidden|in all|altogether|cut off|out of"
    r"|more rows|further rows|of (?:them|these|which)|of (?:the |all )?\d|first \d)",
    re.IGNORECASE,
)
_CLOSERS: Final = "\"')]}*_\u2019\u201d\u00bb "
_LEAST_COUNTS: Final = 2
_DIGIT: Final = re.compile("[0-9]")
_COUNT_TALK: Final = re.compile(
    r"\b(?:total|displayed|displaying|shown|showing|shows|omitted|left out|not (?:shown|displayed|listed|included)|truncated|remaining"
    r"|match|matches|matching|rows|results|entries|records|hidden|out of)\b|\d of (?:the )?\d"
)
"""Two of these in a sentence with two numbers are about the result, not about the world."""


class Act(IntEnum):
    """What a sentence does."""

    CLAIM = 0
    QUESTION = 1
    LEAD = 2
    POLITE = 3
    COUNTS = 4
    NOT_FOUND = 5
    NOTHING = 6


class Saying(NamedTuple):
    """A sentence, what it does, and its content terms."""

    text: str
    act: Act
    terms: Terms


def read_sayings(text: str) -> tuple[Saying, ...]:
    """Return the sentences of a text that holds no tags and no list marks."""
    return tuple(_read(text[span.start : span.end]) for span in split_sentences(text))


def is_about_counts(text: str) -> bool:
    """Tell whether a text speaks of how much is shown and how much is not."""
    return _COUNT_WORD.search(text) is not None


def _read(sentence: str) -> Saying:
    terms = read_terms(sentence)
    return Saying(sentence, _act_of(sentence, terms), terms)


def _act_of(sentence: str, terms: Terms) -> Act:
    bare = sentence.strip(_CLOSERS)
    if bare.endswith(("?", "\uff1f")):
        return Act.QUESTION
    if says_nothing_found(bare):
        return Act.NOT_FOUND
    opens = bare.partition(" ")[0].rstrip(",.!").replace("\u2019", "'").lower() in _OPENERS
    if opens and _POLITE.match(bare):
        return Act.POLITE
    if bare.endswith((":", "\uff1a")) or (opens and _is_lead(bare)):
        return Act.LEAD
    is_attribution = bare.startswith(("\u2014", "\u2013", "-- ")) and len(bare.split()) <= _MAX_ATTRIBUTION_LENGTH
    return Act.NOTHING if is_attribution else _act_of_statement(bare, terms)


def _act_of_statement(bare: str, terms: Terms) -> Act:
    numbers = sum(1 for term in terms if is_strong(term))
    if numbers >= _LEAST_COUNTS and len(set(_COUNT_TALK.findall(bare.lower()))) >= _LEAST_COUNTS:
        return Act.COUNTS
    return Act.CLAIM if numbers or len(terms) >= LEAST_TERMS else Act.NOTHING


def _is_lead(bare: str) -> bool:
    """Tell whether a short sentence without numbers only leads to what follows."""
    if _LEAD.match(bare) is None or len(bare.split()) > _MAX_LEAD_LENGTH:
        return False
    return "," not in bare and not _DIGIT.search(bare)
