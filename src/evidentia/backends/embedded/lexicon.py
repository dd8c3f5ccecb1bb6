"""The words that one caller may see. Refuses to rank, weigh or choose between them: that is the query's business.

What the segments hold is laid out once per snapshot, for all callers; every number is then counted through the caller's
mask, and what comes to nothing is left out. So chunks that the caller may not see have no influence on an answer.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from evidentia.contracts.search import Definition
from evidentia.text.definitions import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.vocabulary import Vocabulary


class EmbeddedLexicon:
    """Implements `Lexicon`. Thread safe under the GIL."""

    def __init__(self, vocabulary: Vocabulary, *, mask: NDArray[np.bool_], count: Callable[[str], int]) -> None:
        self._vocabulary = vocabulary
        self._mask = mask
        self._count = count

    @cached_property
    def chunks(self) -> int:
        """Return how many chunks the caller may see."""
        return int(np.count_nonzero(self._mask))

    def chunks_with(self, term: str) -> int:
        """Return in how many chunks a term occurs."""
        return self._count(term)

    def similar(self, term: str, *, edits: int) -> Sequence[tuple[str, int]]:
        """Return other terms with the same first letter within so many edits, at most 3, with the number of their chunks.

        The nearest come first, then the most frequent, then by name. An edit inserts, deletes or replaces a character, or
        swaps two neighbours.
        """
        found = self._vocabulary.near(term, edits=edits, mask=self._mask)
        ordered = sorted((distance, -chunks, name) for name, (distance, chunks) in found.items() if name != term)
        return [(name, -chunks) for _, chunks, name in ordered]

    def long_forms(self, short: str) -> Sequence[Definition]:
        """Return what the corpus says a short form stands for, in any case, the most frequent first."""
        return self._counted(self._vocabulary.glossary.by_short.get(short.casefold(), ()))

    def short_forms(self, long: str) -> Sequence[Definition]:
        """Return the short forms that the corpus gives to a long one (compared as lower-case words)."""
        return self._counted(self._vocabulary.glossary.by_long.get(words_of(long), ()))

    def _counted(self, numbers: Iterable[int]) -> list[Definition]:
        glossary = self._vocabulary.glossary
        counted = [
            Definition(short=short, long=long, chunks=int(np.count_nonzero(self._mask[places])))
            for short, long, places in map(glossary.entry, numbers)
        ]
        return sorted((each for each in counted if each.chunks), key=lambda each: (-each.chunks, each.short, each.long))
