"""Several segments become one, without sorting: postings of a term follow each other in the order of the segments.

Memory is that of the merged segment and one of its parts, so callers bound what they merge (`LARGEST_MERGED`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.backends.embedded.postings import offsets_of, vocabulary_arrays
from evidentia.backends.embedded.traits import merged_traits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.segments import Array, Segment

LARGEST_MERGED = 1 << 17
"""No merged segment holds more chunks than this, and larger ones are left alone."""


class _Part(NamedTuple):
    """What a segment gives to the merged one: per local term its rank, postings and positions after dropping chunks."""

    segment: Segment
    kept: NDArray[np.bool_]
    first_ordinal: int
    ranks: NDArray[np.int64]
    posting_counts: NDArray[np.int64]
    position_counts: NDArray[np.int64]


def merge(segments: Sequence[Segment], *, keep: Sequence[NDArray[np.bool_]]) -> dict[str, Array]:
    """Return the arrays of one segment with the chunks of several that are marked to be kept."""
    terms, parts = _survey(segments, keep)
    postings = np.zeros(len(terms), dtype=np.int64)
    positions = np.zeros(len(terms), dtype=np.int64)
    for part in parts:
        postings[part.ranks] += part.posting_counts
        positions[part.ranks] += part.position_counts
    posting_offsets, position_offsets = offsets_of(postings), offsets_of(positions)
    merged: dict[str, Array] = {
        **vocabulary_arrays(terms),
        "posting_offsets": posting_offsets,
        "ordinals": np.empty(posting_offsets[-1], dtype=np.int32),
        "counts": np.empty(posting_offsets[-1], dtype=np.int32),
        "position_offsets": position_offsets,
        "positions": np.empty(position_offsets[-1], dtype=np.int32),
    }
    next_posting, next_position = posting_offsets[:-1].copy(), position_offsets[:-1].copy()
    for part in parts:
        _place(part, merged, next_posting, next_position)
    merged["chunk_keys"] = np.concatenate([part.segment.array("chunk_keys")[part.kept] for part in parts])
    merged["lengths"] = np.concatenate([part.segment.array("lengths")[part.kept] for part in parts])
    return merged | merged_traits(segments, keep=keep)


def _survey(segments: Sequence[Segment], keep: Sequence[NDArray[np.bool_]]) -> tuple[list[bytes], list[_Part]]:
    """Count what each segment gives, and number the terms that are left in the order of their bytes."""
    numbers: dict[str, int] = {}
    surveyed = []
    first_ordinal = 0
    for segment, kept in zip(segments, keep, strict=True):
        local = np.asarray([numbers.setdefault(term, len(numbers)) for term in segment.terms()], dtype=np.int64)
        is_kept = kept[segment.array("ordinals")]
        posting_counts = _sums(is_kept, segment.array("posting_offsets"))
        position_counts = _sums(np.where(is_kept, segment.array("counts"), 0), segment.array("posting_offsets"))
        surveyed.append(_Part(segment, kept, first_ordinal, local, posting_counts, position_counts))
        first_ordinal += int(kept.sum())
    is_used = np.zeros(len(numbers), dtype=np.bool_)
    for part in surveyed:
        is_used[part.ranks[part.posting_counts > 0]] = True
    ordered = sorted((term.encode(), number) for term, number in numbers.items() if is_used[number])
    rank = np.zeros(len(numbers) or 1, dtype=np.int64)
    rank[[number for _, number in ordered]] = np.arange(len(ordered))
    parts = []
    for part in surveyed:
        used = part.posting_counts > 0
        ranks = np.where(used, rank[part.ranks], 0) if len(part.ranks) else part.ranks
        parts.append(part._replace(ranks=ranks[used], posting_counts=part.posting_counts[used], position_counts=part.position_counts[used]))
    return [term for term, _ in ordered], parts


def _place(part: _Part, merged: dict[str, Array], next_posting: NDArray[np.int64], next_position: NDArray[np.int64]) -> None:
    """Put a segment's postings behind those of the segments before it."""
    ordinals, counts = part.segment.array("ordinals"), part.segment.array("counts")
    is_kept = part.kept[ordinals]
    renumbered = np.cumsum(part.kept, dtype=np.int32) + np.int32(part.first_ordinal - 1)
    targets = _targets(next_posting[part.ranks], part.posting_counts)
    merged["ordinals"][targets] = renumbered[ordinals[is_kept]]
    merged["counts"][targets] = counts[is_kept]
    targets = _targets(next_position[part.ranks], part.position_counts)
    merged["positions"][targets] = part.segment.array("positions")[np.repeat(is_kept, counts)]
    next_posting[part.ranks] += part.posting_counts
    next_position[part.ranks] += part.position_counts


def _targets(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return starts[i], starts[i] + 1, ... counts[i] times, for each i in turn."""
    before = offsets_of(counts)
    return np.repeat(starts - before[:-1], counts) + np.arange(before[-1])


def _sums(values: Array, offsets: Array) -> NDArray[np.int64]:
    """Return the sum of each stretch between two offsets."""
    running = offsets_of(values)
    return running[offsets[1:]] - running[offsets[:-1]]
