"""An encoder for the vector stores of the tests: one dimension per word, so that what is near can be told by reading."""

from __future__ import annotations

WORDS = ("harbour", "gate", "crane", "tide", "lock", "pilot")


def vector_of(text: str) -> list[float]:
    """Return how often each word occurs, and a small last number so that no vector is empty."""
    found = text.lower().replace(".", " ").replace("?", " ").split()
    return [*(float(found.count(word)) for word in WORDS), 0.1]
