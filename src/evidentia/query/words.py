"""A question cut into words, with what the rules need of each: its plain form, the punctuation after it, whether it is quoted.

A quoted stretch is one word, so that no rule can cut through it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.query.lexical import QUOTED, QUOTES
from evidentia.text.english import FUNCTION_WORDS
from evidentia.text.tokens import EDGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_PIECE: Final = re.compile(rf"\+?{QUOTED.pattern}|\S+")
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
