"""Shortening a text to a number of tokens, at sentence ends only. Refuses to cut a sentence: what is left reads as the source wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.text.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Callable

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
