"""A question as a query for tables: every condition, comparison and order stays as it was asked; only how one asks for them goes.

Whoever plans statements reads `more than`, `how many`, `not` and superlatives, which a query for texts leaves out. Where nothing can go,
the query begins with a word that only asks, so that it is never the question itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evidentia.query.english import AUXILIARIES, QUESTION_WORDS
from evidentia.query.tables.phrases import BEFORE_PERIOD, MAX_OPERATOR_LENGTH, OPERATORS, PERIODS
from evidentia.query.words import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.agents.protocol.questions import QuestionFacts
    from evidentia.query.words import Word

_POLITE: Final = re.compile(
    r"(?:(?:hi|hello|hey|please|kindly|ok|okay|well|so|and|also|thanks)\b[,!.]*\s+|"
    r"(?:can|could|would|will) (?:you|i|we) (?:please |kindly )?|do you (?:know|have) (?=what|which|who|how|when|where)|"
    r"i(?:'d| would)? (?:like|want|need|wish) to (?:know|see|have|get|find|learn) (?:out )?|let (?:me|us) (?:know|see) |"
    r"tell (?:me|us) (?:about )?)+",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(
    r"(?:list|show|display|give|find|return|get|provide|print|report|fetch|retrieve|tell|"
    r"i(?:'d| would)? (?:like|want|need)|what(?:'s| is| are| was| were)|"
    r"how much (?:is|are|was|were|does|do|did|will|would))(?:\s+(?:me|us))?\s+(?:(?:the|a|an)\s+)?",
    re.IGNORECASE,
)
_CHOICE: Final = re.compile(r"(?:which|what)\s+(?=\w)(?!is\b|are\b|was\b|were\b|do\b|does\b|did\b|has\b|have\b|of\b)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"how many\s+", re.IGNORECASE)
_PROMPT: Final = "list"
_ASKERS: Final = QUESTION_WORDS | AUXILIARIES
_RATE_LENGTH: Final = 2
"""Words of `a month`."""
# ruff: noqa: SIM905 - a list of words reads as words
_DROPPED: Final = frozenset(
    "the a an this that these those our my your do does did done can could will would shall should may might must be been being please me "
    "us i we you there currently really exactly just still usually normally typically actually ever also".split()
)
"""Words that change neither what is asked nor of what; those that divide it (`have`, `are`, `who`) are not among them."""


def table_query(facts: QuestionFacts) -> str:
    """Return a question without what is only polite or only asks: `Which X ...` as `List X ...`, `How many X` as `Number of X`."""
    text = facts.text.strip().rstrip("?!. ")
    bare = _POLITE.sub("", text, count=1) if _POLITE.match(text) else text
    asked = _lead_off(bare)
    return " ".join((asked or text, *facts.subject))


def terse_table_query(facts: QuestionFacts) -> str:
    """Return the same in fewer words: without articles, auxiliaries and the like, operators excepted."""
    words = words_of(table_query(facts), limit=len(facts.words) + len(facts.subject) + 2)
    kept = [word for run in _runs(words) for word in run]
    return " ".join(map(_spelt, kept)).rstrip(",;:?!. ")


def _lead_off(text: str) -> str:
    for pattern, instead in ((_NUMBER, "number of "), (_CHOICE, f"{_PROMPT} ")):
        if found := pattern.match(text):
            return f"{instead}{text[found.end() :]}"
    found = _COMMAND.match(text)
    if found and text[found.end() :].strip():
        return text[found.end() :]
    first, _, rest = text.partition(" ")
    return f"{_PROMPT} {first.lower() if first.casefold() in _ASKERS else first} {rest}".rstrip() if text else ""


def _runs(words: Sequence[Word]) -> list[Sequence[Word]]:
    """Return the stretches that stay: each operator whole, and other words that say something."""
    kept: list[Sequence[Word]] = []
    place = 0
    while place < len(words):
        length = _operator_length(words, place)
        if length:
            kept.append(words[place : place + length])
        elif words[place].is_quoted or words[place].plain not in _DROPPED:
            kept.append(words[place : place + 1])
        place += length or 1
    return kept


def _operator_length(words: Sequence[Word], place: int) -> int:
    for length in range(min(MAX_OPERATOR_LENGTH, len(words) - place), 0, -1):
        phrase = tuple(word.plain for word in words[place : place + length])
        if phrase in OPERATORS or (length == _RATE_LENGTH and phrase[0] in BEFORE_PERIOD and phrase[1] in PERIODS):
            return length
    return 0


def _spelt(word: Word) -> str:
    """Return a word with the mark after it, where that may divide what is asked."""
    return word.text + "".join(mark for mark in word.tail[:1] if mark in ",.;")
