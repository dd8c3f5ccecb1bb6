"""What a follow-up takes from the conversation: words of the earlier turns, the more the less of a topic the question brings itself.

A topic of its own is a word that is rare in what the caller may see and that the conversation has not used. Without one the question leans
(`Which is more important?`): words of the conversation are searched and encoded with it. With one they are searched only, and count less
where nothing else joins the question to the conversation. Turns are text from elsewhere: single words are taken from them, few and short,
and nothing else of them is used. Rules for English.
"""

from __future__ import annotations

import re
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.query.lexical import added_terms
from evidentia.query.normalisation import is_identifier, normalise_text
from evidentia.query.words import Word, count_content, words_of
from evidentia.text.english import AUXILIARIES, DEMONSTRATIVE, EXPLETIVES, OPENERS, PERSONAL, PREPOSITIONS, QUESTION_WORDS, TRAILING

if TYPE_CHECKING:
    from collections.abc import Iterator, KeysView, Mapping, Sequence

    from evidentia.contracts.evidence import Turn
    from evidentia.contracts.ports import Lexicon
    from evidentia.text.tokens import Tokeniser

MAX_LEANING_WORDS: Final = 24
MAX_TURNS: Final = 16
MAX_TURN_CHARS: Final = 2_000
MAX_SUBJECT_WORDS: Final = 8
MAX_SUBJECT_WORD_LENGTH: Final = 40
MAX_QUESTION_WORDS: Final = 64
"""A topic of its own is looked for among so many words of a question."""
MAX_SHORT_CONTENT: Final = 2
MAX_TOPIC_TURNS: Final = 2
"""Words are taken from so many of the newest turns that have any; those of the older one count half."""
MAX_TOPIC_CANDIDATES: Final = 32
MAX_TOPIC_WORDS: Final = 16
"""Of so many words of each turn, the rarest are taken."""
MAX_COMPARED_TURNS: Final = 8
FOLLOWING_WEIGHT: Final = 96
PARTING_WEIGHT: Final = 48
COMMON_SHARE: Final = 16
"""A term is common that stands in more than one of so many chunks of the caller's view."""
MAX_RARE_CHUNKS: Final = 2
"""A term in so few chunks is rare however few chunks there are."""
_ASKING_ROLES: Final = ("user", "human")
_PLAIN_WORD: Final = re.compile(r"\w+(?:[-._'/:]+\w+)*")
_CLAUSE_WORDS: Final = OPENERS | PREPOSITIONS
_MAX_OPENED: Final = 2
_MAX_ABOUT: Final = 4
_MAX_PREPOSITIONAL: Final = 4


class Context(NamedTuple):
    """What a question takes from the conversation, and why."""

    note: str
    words: tuple[str, ...] = ()
    weights: Mapping[str, int] = MappingProxyType({})
    """The terms of the words and what each counts, in 256ths."""
    encoded: tuple[str, ...] = ()
    """The words that the text to encode gains."""
    asked: tuple[str, ...] = ()
    """The words that a source outside the base is given."""


def follow(text: str, turns: Sequence[Turn], *, tokeniser: Tokeniser, lexicon: Lexicon | None) -> Context:
    """Return what a question takes from the conversation; how rare a word is, the lexicon of the caller's view says.

    The weights and bounds were measured on conversations with their own turns and with those of another (`benchmarks/conversations.py`).
    """
    question = words_of(text, limit=MAX_QUESTION_WORDS)
    own = dict.fromkeys(term for word in question if word.is_content for term in tokeniser.terms(word.text))
    taken = [each for each in _topic_words(turns, tokeniser, lexicon) if not own.keys() >= set(each.terms)]
    if not taken:
        return Context("the earlier turns name nothing that the question does not")
    used = _used(own.keys(), turns, tokeniser)
    rare = [term for term in own if _is_rare(term, lexicon)]
    topic = next((term for term in rare if term not in used), "")
    shared = next((term for term in rare if term in used), "")
    words, points_back = tuple(each.word for each in taken), leans(text)
    named = words[:MAX_SUBJECT_WORDS]
    if not topic:
        note = "the question brings no topic of its own and leans on the conversation"
        return Context(note, words, _weights(taken, FOLLOWING_WEIGHT), encoded=named, asked=named)
    if points_back or shared or count_content(question) <= MAX_SHORT_CONTENT:
        why = "a word points back" if points_back else f"both speak of '{shared}'" if shared else "it is short"
        note = f"the question brings '{topic}' and goes on from the conversation, since {why}"
        return Context(note, words, _weights(taken, FOLLOWING_WEIGHT), asked=named if points_back else ())
    note = f"the question brings a topic of its own, '{topic}', so words of the conversation count little"
    return Context(note, words, _weights(taken, PARTING_WEIGHT))


def leans(text: str) -> bool:
    """Tell whether a word of a question, or the lack of any, says that it needs another to be understood.

    It does when no word of it names a subject (`why?`), when it goes on from another (`and for staging?`, `what about backups?`), or when
    a pronoun comes before anything it could stand for (`how do I restart it?`). A long question never does.
    """
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


class _Taken(NamedTuple):
    word: str
    terms: Sequence[str]
    chunks: int
    age: int


def _topic_words(turns: Sequence[Turn], tokeniser: Tokeniser, lexicon: Lexicon | None) -> list[_Taken]:
    """Return the rarest words of the newest turns that name something, the rarest first; of the caller's turns where these do."""
    recent = turns[-MAX_TURNS:][::-1]
    is_asked = [turn.role.strip().lower() in _ASKING_ROLES for turn in recent]
    for of_caller in (True, False):
        found: dict[str, _Taken] = {}
        age = 0
        for turn in (turn for turn, asked in zip(recent, is_asked, strict=True) if asked is of_caller):
            named = list(islice(_plain_content(normalise_text(turn.text[:MAX_TURN_CHARS])), MAX_TOPIC_CANDIDATES))
            for word in named:
                if word.casefold() not in found:
                    terms = added_terms(word, tokeniser)
                    found[word.casefold()] = _Taken(word, terms, min((_chunks_with(term, lexicon) for term in terms), default=0), age)
            age += bool(named)
            if age == MAX_TOPIC_TURNS:
                break
        if found:
            return sorted(found.values(), key=lambda taken: (taken.chunks, taken.age))[:MAX_TOPIC_WORDS]
    return []


def _used(own: KeysView[str], turns: Sequence[Turn], tokeniser: Tokeniser) -> set[str]:
    """Return the terms of a question that the newest turns have used, whoever spoke."""
    used: set[str] = set()
    for turn in turns[-MAX_COMPARED_TURNS:]:
        used.update(own & set(tokeniser.terms(turn.text[:MAX_TURN_CHARS])))
    return used


def _weights(taken: Sequence[_Taken], weight: int) -> dict[str, int]:
    weights: dict[str, int] = {}
    for each in taken:
        for term in each.terms:
            weights[term] = max(weight >> each.age, weights.get(term, 0))
    return weights


def _chunks_with(term: str, lexicon: Lexicon | None) -> int:
    return lexicon.chunks_with(term) if lexicon is not None else 0


def _is_rare(term: str, lexicon: Lexicon | None) -> bool:
    chunks = _chunks_with(term, lexicon)
    return chunks <= MAX_RARE_CHUNKS or lexicon is None or COMMON_SHARE * chunks <= lexicon.chunks


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
