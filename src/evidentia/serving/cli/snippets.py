"""The stretch of a fragment that shows best why it was found, with the query's words marked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from evidentia.query.lexical import lexical_query
from evidentia.serving.cli.output import MarkedText
from evidentia.text.tokens import EDGES, STOP_WORDS, Tokeniser

if TYPE_CHECKING:
    from collections.abc import Sequence

SNIPPET_CHARS = 140
MAX_WORDS = 20_000
"""A chunk has at most a few thousand words; the bound is for content from elsewhere."""
GAP = "…"


def shortened(content: str) -> str:
    """Return the beginning of a content on one line, with a mark where more follows."""
    line = " ".join(content.split()[:MAX_WORDS])
    return line if len(line) <= SNIPPET_CHARS else f"{line[: SNIPPET_CHARS - 1]}{GAP}"


class _Word(NamedTuple):
    text: str
    found: frozenset[str]


class SnippetCutter:
    """Cuts snippets for one query; a query of stop words alone marks those."""

    def __init__(self, query: str, *, language: str) -> None:
        self._tokeniser = Tokeniser(language)
        asked = set(lexical_query(query, self._tokeniser).terms)
        self._terms = frozenset(asked - STOP_WORDS or asked)

    def cut(self, content: str) -> MarkedText:
        """Return the best window of a content, at most about 140 characters of it, on one line."""
        words = [_Word(word[:SNIPPET_CHARS], self._found(word)) for word in content.split()[:MAX_WORDS]]
        start, end = _widened(words, *_best_window(words))
        pieces = [piece for word in words[start:end] for piece in _marked(word)]
        before = [(f"{GAP} ", False)] if start else []
        after = [(GAP, False)] if end < len(words) else []
        return MarkedText((*before, *pieces, *after))

    def _found(self, word: str) -> frozenset[str]:
        return self._terms.intersection(self._tokeniser.analyse(word).terms)


def _best_window(words: Sequence[_Word]) -> tuple[int, int]:
    """Return the first window with the greatest weight, without what it can do without on its left; empty when nothing is found.

    A term weighs its length, once: long words are rare ones, and a window with two words beats one with the same word twice.
    """
    inside: Counter[str] = Counter()
    best, best_weight = (0, 0), 0
    start = chars = weight = 0
    for end, word in enumerate(words):
        chars += len(word.text) + 1
        for term in word.found:
            weight += 0 if inside[term] else len(term)
            inside[term] += 1
        while chars > SNIPPET_CHARS + 1:
            leaving = words[start]
            chars -= len(leaving.text) + 1
            for term in leaving.found:
                inside[term] -= 1
                weight -= 0 if inside[term] else len(term)
            start += 1
        if weight > best_weight:
            best, best_weight = (start, end + 1), weight
    return _trimmed(words, *best)


def _trimmed(words: Sequence[_Word], start: int, end: int) -> tuple[int, int]:
    left = Counter(term for word in words[start:end] for term in word.found)
    while start < end and all(left[term] > 1 for term in words[start].found):
        left.subtract(words[start].found)
        start += 1
    return start, end


def _widened(words: Sequence[_Word], start: int, end: int) -> tuple[int, int]:
    """Add words on both sides in turn for as long as they fit."""
    room = SNIPPET_CHARS - sum(len(word.text) + 1 for word in words[start:end]) + 1
    is_growing = True
    while is_growing:
        is_growing = False
        if start and len(words[start - 1].text) < room:
            start -= 1
            room -= len(words[start].text) + 1
            is_growing = True
        if end < len(words) and len(words[end].text) < room:
            room -= len(words[end].text) + 1
            end += 1
            is_growing = True
    return start, end


def _marked(word: _Word) -> list[tuple[str, bool]]:
    bare = word.text.strip(EDGES)
    if not word.found or not bare:
        return [(f"{word.text} ", False)]
    before, _, after = word.text.partition(bare)
    return [(before, False), (bare, True), (f"{after} ", False)]
