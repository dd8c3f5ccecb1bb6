"""What a segment keeps of its texts besides postings: the definitions they give, and what they are made of.

    definition_bytes     short form, a tab, long form, one after the other, in UTF-8
    definition_offsets   where each begins, and where the last ends
    definition_ordinals  the chunk that gives each, ascending
    features             code, commands, configuration, specificity: four bytes per chunk
    marks                the first eight bytes of each chunk's content hash, which end its id

Segments from before these arrays have none: no definitions, and zeros; ids are then made from the database.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from evidentia.contracts.ids import CHUNK_HASH_DIGITS
from evidentia.text.definitions import find_definitions
from evidentia.text.features import FEATURE_COUNT, measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.segments import Array, Segment

MARK_BYTES = CHUNK_HASH_DIGITS // 2
_SEPARATOR = "\t"


class TraitsBuilder:
    """Collects the traits of one chunk after another."""

    def __init__(self) -> None:
        self._definitions: list[bytes] = []
        self._ordinals: list[int] = []
        self._features = bytearray()
        self._marks = bytearray()

    def add(self, text: str) -> None:
        """Read one chunk's text."""
        ordinal = len(self._features) // FEATURE_COUNT
        for short, long in find_definitions(text):
            self._definitions.append(f"{short}{_SEPARATOR}{long}".encode())
            self._ordinals.append(ordinal)
        self._features.extend(measure(text))
        self._marks.extend(hashlib.sha256(text.encode()).digest()[:MARK_BYTES])

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of the chunks added so far."""
        features, marks = (np.frombuffer(bytes(each), dtype=np.uint8) for each in (self._features, self._marks))
        return _arrays(self._definitions, ordinals=self._ordinals, features=features) | {"marks": marks}


def features_of(segment: Segment) -> NDArray[np.uint8]:
    """Return one row of features per chunk."""
    if not segment.has("features"):
        return np.zeros((segment.header.chunk_count, FEATURE_COUNT), dtype=np.uint8)
    return segment.array("features").reshape(-1, FEATURE_COUNT)


def marks_of(segment: Segment) -> NDArray[np.uint8] | None:
    """Return one row of marks per chunk, or None when the segment has none."""
    return segment.array("marks").reshape(-1, MARK_BYTES) if segment.has("marks") else None


def definitions_of(segment: Segment) -> list[tuple[str, str, int]]:
    """Return (short form, long form, ordinal) of every definition."""
    split = [definition.decode().partition(_SEPARATOR) for definition in _encoded(segment)]
    return [(short, long, ordinal) for (short, _, long), ordinal in zip(split, _ordinals(segment).tolist(), strict=True)]


def merged_traits(segments: Sequence[Segment], *, keep: Sequence[NDArray[np.bool_]]) -> dict[str, Array]:
    """Return the arrays of one segment with the chunks of several that are marked to be kept."""
    definitions: list[bytes] = []
    ordinals: list[int] = []
    first_ordinal = 0
    for segment, kept in zip(segments, keep, strict=True):
        renumbered = (np.cumsum(kept, dtype=np.int64) - 1 + first_ordinal).tolist()
        for definition, ordinal in zip(_encoded(segment), _ordinals(segment).tolist(), strict=True):
            if kept[ordinal]:
                definitions.append(definition)
                ordinals.append(renumbered[ordinal])
        first_ordinal += int(kept.sum())
    features = [features_of(segment)[kept].ravel() for segment, kept in zip(segments, keep, strict=True)]
    marks = [each[kept].ravel() for segment, kept in zip(segments, keep, strict=True) if (each := marks_of(segment)) is not None]
    named = {"marks": np.concatenate(marks)} if len(marks) == len(segments) else {}
    return _arrays(definitions, ordinals=ordinals, features=np.concatenate(features)) | named


def _encoded(segment: Segment) -> list[bytes]:
    if not segment.has("definition_bytes"):
        return []
    blob = segment.array("definition_bytes").tobytes()
    return [blob[start:stop] for start, stop in pairwise(segment.array("definition_offsets").tolist())]


def _ordinals(segment: Segment) -> NDArray[np.int32]:
    return segment.array("definition_ordinals") if segment.has("definition_ordinals") else np.empty(0, dtype=np.int32)


def _arrays(definitions: Sequence[bytes], *, ordinals: Sequence[int], features: NDArray[np.uint8]) -> dict[str, Array]:
    offsets = np.zeros(len(definitions) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, definitions), dtype=np.int64, count=len(definitions)), out=offsets[1:])
    return {
        "definition_bytes": np.frombuffer(b"".join(definitions), dtype=np.uint8),
        "definition_offsets": offsets,
        "definition_ordinals": np.asarray(ordinals, dtype=np.int32),
        "features": features,
    }
