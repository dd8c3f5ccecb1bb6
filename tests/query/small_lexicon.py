"""The words of a few short texts, indexed by the real tokeniser: what a lexicon over a small corpus says."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from evidentia.contracts.search import Definition
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Iterable

ENGLISH = Tokeniser("english")
TEXTS = (
    "The service level objective (SLO) of the gateway is 99.9 percent. An SLO is reviewed every quarter by its owner.",
    "Rotate the signing keys every ninety days. A rotation of keys is approved by the custodian of the production cluster.",
    "Kubernetes restarts a pod when its liveness probe fails; the Kubernetes scheduler then places it on another node.",
    "Backups of the staging database run at night. The recovery point objective (RPO) of a backup is one hour.",
    "A content delivery network (CDN) caches images. The CDN is purged after each release of the gateway.",
    "Change data capture (CDC) streams every change of the database; the Centers for Disease Control (CDC) does not.",
    "Change data capture (CDC) needs a replication slot on the primary database, and keys for its connection.",
)
_DEFINED = re.compile(r"\(([A-Z]{2,6})\)")


class SmallLexicon:
    """Answers from the texts alone, by trying every term."""

    def __init__(self, texts: tuple[str, ...] = TEXTS, tokeniser: Tokeniser = ENGLISH) -> None:
        self.chunks = len(texts)
        self._chunks = Counter(term for text in texts for term in set(tokeniser.terms(text)))
        self._definitions = Counter(found for text in texts for found in _definitions(text))

    def chunks_with(self, term: str) -> int:
        return self._chunks[term]

    def similar(self, term: str, *, edits: int) -> list[tuple[str, int]]:
        near = [
            (edits_between(term, other), -chunks, other) for other, chunks in self._chunks.items() if abs(len(term) - len(other)) <= edits
        ]
        return [(other, -chunks) for away, chunks, other in sorted(near) if 0 < away <= edits]

    def long_forms(self, short: str) -> list[Definition]:
        return self._sorted(found for found in self._definitions if found[0] == short)

    def short_forms(self, long: str) -> list[Definition]:
        return self._sorted(found for found in self._definitions if found[1].lower() == long)

    def _sorted(self, found: Iterable[tuple[str, str]]) -> list[Definition]:
        known = [Definition(short=short, long=long, chunks=self._definitions[short, long]) for short, long in found]
        return sorted(known, key=lambda definition: (-definition.chunks, definition.short, definition.long))


def _definitions(text: str) -> list[tuple[str, str]]:
    """Return short forms with as many words before the bracket as make up their letters, passing over `for`."""
    pairs = []
    for found in _DEFINED.finditer(text):
        before = text[: found.start()].split()
        count = len(found[1]) + ("for" in before[-len(found[1]) :])
        pairs.append((found[1], " ".join(before[-count:])))
    return pairs


def edits_between(first: str, second: str, *, left: int = 2) -> int:
    """Return how many edits (swaps of neighbours are one) lead from one word to the other, by trying all; over two is three or more."""
    while first and second and first[0] == second[0]:
        first, second = first[1:], second[1:]
    if not first or not second or not left:
        return len(first) + len(second) if not (first and second) else 3
    ways = [(first[1:], second), (first, second[1:]), (first[1:], second[1:])]
    if len(first) > 1 and len(second) > 1 and first[0] == second[1] and first[1] == second[0]:
        ways.append((first[2:], second[2:]))
    return 1 + min(edits_between(*way, left=left - 1) for way in ways)
