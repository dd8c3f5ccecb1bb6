"""Passages for benchmarks: natural in length and in how often words recur, the same on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

VOCABULARY = 200_000
SHORTEST, MAX_LENGTH = 50, 110
_SYLLABLES = (
    "ba be bi bo bu ca ce co da de di do fa fe ga go ha he hi la le li lo ma me mi mo na ne no pa pe po ra re ri ro sa se si so "
    "ta te ti to va ve"
).split()


def vocabulary(size: int = VOCABULARY) -> list[str]:
    """Return distinct pronounceable words; common words are short, as in any language."""
    words = []
    for number in range(size):
        rest, word = number, ""
        while True:
            rest, digit = divmod(rest, len(_SYLLABLES))
            word += _SYLLABLES[digit]
            if not rest:
                break
            rest -= 1
        words.append(word + "n" if number % 3 else word)
    return words


def passages(count: int, *, seed: int = 1) -> Iterator[str]:
    """Yield passages of 80 words on average whose words follow Zipf's law with exponent 1.05."""
    chance = np.random.default_rng(seed)
    weights = 1 / (np.arange(1, VOCABULARY + 1) + 2.7) ** 1.05
    shares = np.cumsum(weights / weights.sum())
    words = np.array(vocabulary(), dtype=object)
    for length in chance.integers(SHORTEST, MAX_LENGTH + 1, count):
        drawn = np.minimum(np.searchsorted(shares, chance.random(length)), VOCABULARY - 1)
        yield " ".join(words[drawn]) + "."
