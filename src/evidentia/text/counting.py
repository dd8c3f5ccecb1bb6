"""How many tokens a text costs under a named tokenizer, offline. Refuses to pass an estimate off as a count: every tokenizer has a basis.

`o200k_base` (gpt-4o) is counted with the tables inside semantic-text-splitter. It has no call for counting, but a text of two characters or
more comes back as one chunk exactly when it fits the capacity. Short pieces are searched for their smallest capacity and remembered; a text
is the sum of its pieces, cut only where o200k's own pattern always starts a new token.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from semantic_text_splitter import TextSplitter

from evidentia.contracts.errors import InvalidFieldError
from evidentia.text.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Callable


TOKENIZER_BASES: Final = {"o200k_base": "exact", "chars4": "estimated"}
"""Every tokenizer, and whether its counts are exact or estimated."""

_CHARACTERS_PER_TOKEN: Final = 4
_MAX_REMEMBERED_LENGTH: Final = 64
# o200k never joins a letter to what follows unless that is a letter, a mark or an apostrophe; nor a digit to a character that
# is none; nor a line end to a letter or digit after it. Beyond ASCII only Han and Kana are cut, before their punctuation.
_CUT: Final = re.compile(
    r"(?<=[A-Za-z])(?=[\x00-&(-@\[-`{-~])|(?<=[0-9])(?=[\x00-/:-~])|(?<=[\r\n])(?=[A-Za-z0-9])"
    "|(?<=[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff])(?=[\u3001\u3002\uff01\uff0c\uff1f])"
)
_BLANK_LINE: Final = re.compile(r"[\r\n][^\S\r\n]+[\r\n]")


def basis_of(tokenizer: str) -> str:
    """Return "exact" or "estimated"; an unknown tokenizer is refused."""
    if tokenizer not in TOKENIZER_BASES:
        raise InvalidFieldError("tokenizer", f"'{tokenizer}' is not one of {', '.join(TOKENIZER_BASES)}")
    return TOKENIZER_BASES[tokenizer]


def count_tokens(text: str, tokenizer: str = "o200k_base") -> int:
    """Return the number of tokens of the text; `chars4` is a quarter of the characters, rounded up."""
    if basis_of(tokenizer) == "estimated":
        return -(-len(text) // _CHARACTERS_PER_TOKEN)
    return sum(
        _count_remembered(piece) if len(piece) <= _MAX_REMEMBERED_LENGTH else _count_piece(piece) for piece in _CUT.split(text) if piece
    )


@lru_cache(maxsize=1 << 16)
def _count_remembered(piece: str) -> int:
    return _count_piece(piece)


def _count_piece(piece: str) -> int:
    if len(piece) == 1:
        # A single character is one chunk whatever its size, so it is counted beside a character that it cannot join.
        return _find_capacity(("a" if piece.isnumeric() else "1") + piece) - 1
    if _BLANK_LINE.search(piece):
        # There a longer beginning can cost less than a shorter one, which the splitter's own search may step over. It never
        # accepts too little, so the least of several paddings that cannot join the piece is the count.
        return min(_find_capacity(before + piece + after) - cost for before, after, cost in _paddings(piece))
    return _find_capacity(piece)


def _paddings(piece: str) -> list[tuple[str, str, int]]:
    leads = [""] + ["a\n" * lines + ("a" if piece[0].isspace() else "") for lines in range(1, 4)]
    tails = ["", "a", "a\na"] if piece[-1] in "\r\n" else [""]
    return [(before, after, len(before) + len(after)) for before in leads for after in tails]


def _find_capacity(piece: str) -> int:
    """Return the smallest capacity that holds the piece, galloping up from a quarter of its characters."""
    low, high = 0, max(1, len(piece) // _CHARACTERS_PER_TOKEN)
    while not _fits(piece, high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fits(piece, middle) else (middle, high)
    return high


def _fits(piece: str, capacity: int) -> bool:
    return len(_splitter(capacity).chunks(piece)) == 1


@lru_cache(maxsize=256)
def _splitter(capacity: int) -> TextSplitter:
    return TextSplitter.from_tiktoken_model("gpt-4o", capacity, trim=False)


# --- truncation ---
# Shortening a text to a number of tokens, at sentence ends only. Refuses to cut a sentence: what is left reads as the source wrote it.

_SLACK: Final = 8
"""How many tokens a longer text may save, and how many further sentence ends are tried for it."""


def truncate(text: str, *, tokens: int, count: Callable[[str], int]) -> str:
    """Return the longest prefix that ends at a sentence end and counts at most `tokens`; empty when the first sentence does not fit.

    `count` is asked once for the whole, then about log2(sentences) times, and always about the very prefix that is returned, so sentences
    whose tokens do not add up do no harm. Where a longer prefix can count fewer tokens than a shorter one, the result still fits, and it
    is the longest as long as the saving is at most 8 tokens within 8 sentences.
    """
    ends = [span.end for span in split_sentences(text)]
    if not ends:
        return ""
    counted = count(text[: ends[-1]])
    if counted <= tokens:
        return text[: ends[-1]]
    fitting, failing = -1, len(ends) - 1
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        tried = count(text[: ends[middle]])
        if tried <= tokens:
            fitting = middle
        else:
            failing, counted = middle, tried
    fitting = _look_beyond(text, ends, fitting=fitting, counted=counted, tokens=tokens, count=count)
    return "" if fitting < 0 else text[: ends[fitting]]


def _look_beyond(text: str, ends: list[int], *, fitting: int, counted: int, tokens: int, count: Callable[[str], int]) -> int:
    """Return the last sentence that fits: one end fails narrowly when two tokens have not merged yet, and the next may not."""
    last = fitting
    for beyond in range(fitting + 2, min(fitting + 2 + _SLACK, len(ends) - 1)):
        if counted > tokens + _SLACK:
            break
        counted = count(text[: ends[beyond]])
        if counted <= tokens:
            last = beyond
    return last
