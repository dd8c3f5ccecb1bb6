"""What a source has to be able to do to answer a question, by signs in the question itself.

A sign adds a requirement and none takes one away: any text can be searched by its words or by its meaning, unless it is nothing but what
has to be found as it is written. Each requirement comes with the kind of its sign, never with a word of the question.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evidentia.contracts.vocabulary import QueryCapability
from evidentia.query.normalisation import find_verbatim, is_identifier
from evidentia.query.words import count_content, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MAX_WORDS: Final = 256
LEAST_NAME_LENGTH: Final = 3
"""A shorter name of a table or column occurs in any text."""
_RELATION: Final = re.compile(
    r"\b(?:(?:who|which team|what team) (?:owns|maintains)|owners? of|(?:owned|maintained|called|used|imported|produced) by"
    r"|(?:what|who|which \w+) (?:calls?|uses?|imports?|feeds?|breaks?|depends?)|(?:callers?|callees?) of"
    r"|depend(?:s|ed|ing)? on|dependenc(?:y|ies)"
    r"|dependents?|upstream|downstream|impact of|derived from|lineage)\b",
    re.IGNORECASE,
)
_QUANTITY: Final = re.compile(
    r"\b(?:how (?:many|much)|number of|count of|total|sum of|average|median|percentage|ratio|(?:second |third )?(?:highest|lowest)"
    r"|maximum|minimum|top \d+|per (?:day|week|month|year|\w+er))\b",
    re.IGNORECASE,
)
_TIME: Final = re.compile(
    r"\b(?:today|yesterday|tonight|since (?:yesterday|monday|tuesday|wednesday|thursday|friday|saturday|sunday|the last|\d)"
    r"|(?:last|past|previous) (?:\d+ )?(?:seconds?|minutes?|hours?|days?|weeks?|months?|quarter|year|night|deployment)"
    r"|between \d|\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2})\b",
    re.IGNORECASE,
)


def infer_capabilities(text: str, *, names: Collection[str] = ()) -> Mapping[QueryCapability, str]:
    """Return what a source needs to answer a text, each with the kind of sign that says so; it is never empty.

    `names` are those of the tables and columns that could be asked about.
    """
    found: dict[QueryCapability, str] = {}
    verbatim = find_verbatim(text)
    words = words_of(text, limit=MAX_WORDS)
    plain = [word for word in words if not word.is_quoted and not is_identifier(word.text)]
    if verbatim.identifiers or verbatim.phrases:
        found[QueryCapability.EXACT_MATCH] = "identifiers" if verbatim.identifiers else "quoted words"
    if count_content(plain) or not found:
        found.setdefault(QueryCapability.EXACT_MATCH, "words")
        found[QueryCapability.SEMANTIC] = "words"
    if sign := _structured_sign(text, {word.plain for word in words}, names):
        found[QueryCapability.STRUCTURED] = sign
    if _RELATION.search(text):
        found[QueryCapability.GRAPH_TRAVERSAL] = "a relation"
    return found


def _structured_sign(text: str, words: Collection[str], names: Collection[str]) -> str:
    if any(_is_named(name, text, words) for name in names):
        return "a table or column"
    if _QUANTITY.search(text):
        return "a quantity"
    return "a time" if _TIME.search(text) else ""


def _is_named(name: str, text: str, words: Collection[str]) -> bool:
    """Tell whether a text names a table or column, as it is written or as words, one or many of it."""
    if len(name) < LEAST_NAME_LENGTH:
        return False
    spoken = " ".join(re.findall(r"[a-z0-9]+", name.lower()))
    if " " in spoken:
        return spoken in text.lower() or name.lower() in words
    return any(form in words for form in (spoken, f"{spoken}s", spoken.removesuffix("s")))
