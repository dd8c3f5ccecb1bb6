"""The definitions of all segments of a snapshot, found by short and by long form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.traits import definitions_of
from evidentia.text.definitions import words_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.segments import Segment


class Glossary:
    """Every definition with the places that give it; whoever counts them cuts them to a mask."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        places: dict[tuple[str, str], list[int]] = {}
        first_place = 0
        for segment in segments:
            for short, long, ordinal in definitions_of(segment):
                places.setdefault((short, long), []).append(first_place + ordinal)
            first_place += segment.header.chunk_count
        self._entries = [(short, long, np.asarray(given, dtype=np.int32)) for (short, long), given in places.items()]
        self.by_short: dict[str, list[int]] = {}
        self.by_long: dict[str, list[int]] = {}
        for number, (short, long, _) in enumerate(self._entries):
            self.by_short.setdefault(short.casefold(), []).append(number)
            self.by_long.setdefault(words_of(long), []).append(number)

    def entry(self, number: int) -> tuple[str, str, NDArray[np.int32]]:
        """Return a short form, its long form, and the places that say so."""
        return self._entries[number]
