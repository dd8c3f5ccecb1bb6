"""Confidence as people read it: two decimals, and a word on fixed bounds (words of estimative probability, Kent 1964).

The word follows from the decimals that stand beside it, so two rows that show the same number have the same word. Nothing here decides
how likely something is: that is calibrated elsewhere.
"""

from __future__ import annotations

from typing import Final

VERY_LIKELY: Final = "very likely"
LIKELY: Final = "likely"
POSSIBLE: Final = "possible"
UNLIKELY: Final = "unlikely"
BOUNDS: Final = ((80, VERY_LIKELY), (50, LIKELY), (20, POSSIBLE), (0, UNLIKELY))
"""From how many percent on a word holds, the highest first."""
NOT_TOLD: Final = "-"
"""Stands for a number that the reader is not told, such as that of an answer to somebody else."""


def percent(confidence: float) -> int:
    """Return a confidence in whole percent, in which it is shown and compared."""
    return round(confidence * 100)


def decimals(confidence: float) -> str:
    """Return a confidence with two decimals."""
    whole, part = divmod(percent(confidence), 100)
    return f"{whole}.{part:02d}"


def likelihood(confidence: float) -> str:
    """Return the word for a confidence."""
    return next(word for bound, word in BOUNDS if percent(confidence) >= bound)


def in_words(confidence: float | None) -> str:
    """Return a confidence as its decimals and its word; a dash where it is not told."""
    return NOT_TOLD if confidence is None else f"{decimals(confidence)} {likelihood(confidence)}"
