"""A question that leans on the conversation takes its subject from the earlier turns; any other is left alone.

A question leans when no word of it names a subject (`why?`), when it goes on from another (`and for staging?`, `what about backups?`), or
when a pronoun comes before anything it could stand for (`how do I restart it?`). Rules for English; a long question never leans.
Turns are text from elsewhere: single words are taken from them, few and short, and nothing else of them is used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evidentia.query.normalisation import is_identifier, normalise_text
from evidentia.query.words import Word, count_content, words_of
from evidentia.text.english import AUXILIARIES, DEMONSTRATIVE, EXPLETIVES, OPENERS, PERSONAL, PREPOSITIONS, QUESTION_WORDS, TRAILING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.evidence import Turn

MAX_LEANING_WORDS: Final = 24
MAX_TURNS: Final = 16
MAX_TURN_CHARS: Final = 2_000
MAX_SUBJECT_WORDS: Final = 8
MAX_SUBJECT_WORD_LENGTH: Final = 40
_ASKING_ROLES: Final = ("user", "human")
_PLAIN_WORD: Final = re.compile(r"\w+(?:[-._'/:]+\w+)*")
_CLAUSE_WORDS: Final = OPENERS | PREPOSITIONS
_MAX_OPENED: Final = 2
_MAX_ABOUT: Final = 4
_MAX_PREPOSITIONAL: Final = 4


def leans(text: str) -> bool:
    """Tell whether a question needs the conversation to be understood."""
    words = words_of(text, limit=MAX_LEANING_WORDS + 1)
    if len(words) > MAX_LEANING_WORDS:
        return False
    content = count_content(words)
    return not content or _goes_on(words, content) or any(_points_back(words, place) for place in range(len(words)))


def subject_words(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return words that name what the conversation is about, at most eight: those of the caller's turns, the newest first.

    Turns are read back to the first that does not lean itself. Other roles are read only when the caller's turns name nothing.
    """
    recent = turns[-MAX_TURNS:][::-1]
    asked = [turn.text for turn in recent if turn.role.strip().lower() in _ASKING_ROLES]
    said = [turn.text for turn in recent if turn.role.strip().lower() not in _ASKING_ROLES]
    return _collect(asked) or _collect(said)


def _goes_on(words: Sequence[Word], content: int) -> bool:
    first, second = words[0].plain, words[1].plain if len(words) > 1 else ""
    if first in OPENERS and content <= _MAX_OPENED:
        return True
    if (first, second) in {("what", "about"), ("how", "about"), ("same", "for"), ("same", "with")}:
        return content <= _MAX_ABOUT
    is_clause = any(word.plain in QUESTION_WORDS | AUXILIARIES for word in words)
    return first in PREPOSITIONS and len(words) <= _MAX_PREPOSITIONAL and not is_clause


def _points_back(words: Sequence[Word], place: int) -> bool:
    word = words[place]
    if word.is_quoted or count_content(words[:place]) > 1:
        return False
    if word.plain in PERSONAL:
        is_expletive = word.plain == "it" and any(near.plain in EXPLETIVES for near in words[place + 1 : place + 3])
        return word.text != "IT" and not is_expletive
    if word.plain in TRAILING and _ends_clause(words, place):
        return word.plain != "there" or place > 1
    has_anchor = any(other.is_quoted or is_identifier(other.text) for other in words)
    is_determiner = word.plain in DEMONSTRATIVE and (word.plain != "that" or not count_content(words[:place]))
    return is_determiner and not has_anchor


def _ends_clause(words: Sequence[Word], place: int) -> bool:
    return bool(words[place].tail) or place + 1 == len(words) or words[place + 1].plain in _CLAUSE_WORDS


def _collect(texts: Sequence[str]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for text in texts:
        cut = normalise_text(text[:MAX_TURN_CHARS])
        for word in _plain_content(cut):
            found.setdefault(word.casefold(), word)
        if len(found) >= MAX_SUBJECT_WORDS or (found and not leans(cut)):
            break
    return tuple(found.values())[:MAX_SUBJECT_WORDS]


def _plain_content(text: str) -> Iterator[str]:
    for stretch in text.split('"'):
        for word in words_of(stretch, limit=MAX_TURN_CHARS):
            if word.is_content and len(word.text) <= MAX_SUBJECT_WORD_LENGTH and _PLAIN_WORD.fullmatch(word.text):
                yield word.text
