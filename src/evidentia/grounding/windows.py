"""Where the words of a claim stand in a passage, and which sentences in a row cover most of them. Shares are in thousandths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.grounding.reading import Claim, Passage

ONE: Final = 1_000
WIDEST: Final = 3
"""Sentences in a window, at most."""

_PREFIX: Final = 5
"""Words that begin with the same letters, so many, are related (discover, discovery)."""
_RELATED: Final = 800
"""What a related word counts, of the word itself."""
_EXTRA: Final = 40
"""How much more a window must cover for each further sentence."""


class Window(NamedTuple):
    """Sentences `first` up to, not including, `last`, and the share of the claim that they cover."""

    first: int
    last: int
    coverage: int


class Hits:
    """The words of a claim in a passage: a mask of terms for each sentence that has any."""

    def __init__(self, claim: Claim, passage: Passage) -> None:
        self._weights = tuple(claim.weights.items())
        self._total = sum(claim.weights.values()) or 1
        self._shares: dict[tuple[int, int], int] = {}
        self._count = len(passage.spans)
        bits = {term: 1 << bit for bit, term in enumerate(claim.weights)}
        prefixes: dict[str, int] = {}
        for term, mask in bits.items():
            prefixes[term[:_PREFIX]] = prefixes.get(term[:_PREFIX], 0) | mask
        related = {term: prefixes[term[:_PREFIX]] for term in passage.places if term[:_PREFIX] in prefixes}
        self._exact = _masks(passage, bits)
        self._related = _masks(passage, related)
        self._sentences = sorted({**self._exact, **self._related})

    def coverage(self, sentences: Sequence[int]) -> int:
        """Return the share of the claim's words, by weight, that sentences have together; 0 for a claim without content."""
        exact = related = 0
        for sentence in sentences:
            exact |= self._exact.get(sentence, 0)
            related |= self._related.get(sentence, 0)
        return self._share(exact, related & ~exact)

    def missing(self, sentences: Sequence[int]) -> list[str]:
        """Return the terms of the claim that sentences do not have, nor a related one."""
        found = 0
        for sentence in sentences:
            found |= self._exact.get(sentence, 0) | self._related.get(sentence, 0)
        return [term for bit, (term, _) in enumerate(self._weights) if not found >> bit & 1]

    def most(self, width: int, *, with_first: bool = False) -> int:
        """Return the most that `width` sentences in a row cover, with the first of the passage where it is asked for."""
        starts = {max(0, sentence - back) for sentence in self._sentences for back in range(width)}
        beside = (0,) if with_first else ()
        return max((self.coverage((*beside, *range(start, min(self._count, start + width)))) for start in starts), default=0)

    def best_window(self) -> Window:
        """Return the window that covers most, where each sentence beyond the first must add something; the earliest of equals."""
        best, best_worth = Window(0, min(1, self._count), 0), 0
        for first in self._sentences:
            for last in range(first + 1, min(self._count, first + WIDEST) + 1):
                coverage = self.coverage(range(first, last))
                worth = coverage - _EXTRA * (last - first - 1)
                if worth > best_worth:
                    best, best_worth = Window(first, last, coverage), worth
        return best

    def best_sentence(self, window: Window) -> int:
        """Return the sentence of a window that covers most, the earliest of equals; -1 in an empty passage."""
        return max(range(window.first, window.last), key=lambda sentence: (self.coverage((sentence,)), -sentence), default=-1)

    def _share(self, exact: int, related: int) -> int:
        share = self._shares.get((exact, related))
        if share is None:
            full = sum(weight for bit, (_, weight) in enumerate(self._weights) if exact >> bit & 1)
            part = sum(weight for bit, (_, weight) in enumerate(self._weights) if related >> bit & 1)
            share = self._shares[exact, related] = (full * ONE + part * _RELATED) // self._total
        return share


def _masks(passage: Passage, wanted: Mapping[str, int]) -> dict[int, int]:
    masks: dict[int, int] = {}
    for term, mask in wanted.items():
        for place in passage.places.get(term, ()):
            sentence = passage.sentence_of[place]
            masks[sentence] = masks.get(sentence, 0) | mask
    return masks
