"""How segments are made: postings from chunks of text and their contexts, traits beside them, and several segments merged into one.

One sort of packed (term, chunk, position) keys lays out everything; the result does not depend on how terms were
numbered while tokenising.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.backends.embedded.lexical.segments import MARK_BYTES
from evidentia.text.definitions import find_definitions
from evidentia.text.features import FEATURE_COUNT, measure
from evidentia.text.term_table import TermTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.segments import Array, Segment
    from evidentia.text.tokens import Tokeniser


POSITION_BITS = 20
ORDINAL_BITS = 22
MAX_CHUNKS = 1 << ORDINAL_BITS
_MAX_POSITION = (1 << POSITION_BITS) - 1
_MAX_TERMS = 1 << (64 - POSITION_BITS - ORDINAL_BITS)
_VOCABULARY_LIMIT = 1 << 20
CONTEXT_START = 1 << (POSITION_BITS - 1)
"""From this position on stand the terms of a chunk's context; no chunk has as many of its own."""
MAX_CONTEXT_TERMS = 64
_PART_STRIDE = 2 * MAX_CONTEXT_TERMS
"""How far apart the parts of a context begin, so that no phrase reaches from one into the next."""


class PostingsBuilder:
    """Collects the chunks of one segment after another; surface words are analysed once for many segments."""

    def __init__(self, tokeniser: Tokeniser) -> None:
        self.tokeniser = tokeniser
        self._table = TermTable(tokeniser)

    def build(
        self, texts: Sequence[str], *, chunk_keys: Sequence[int], contexts: Sequence[Sequence[str]] | None = None
    ) -> dict[str, Array]:
        """Return the arrays of a segment that holds these chunks, in this order, each with the parts of its context."""
        traits = TraitsBuilder()
        for text in texts:
            self._table.add(text)
        for text in texts:
            traits.add(text)
        encoded = self._table.take()
        ordinals = np.repeat(np.arange(len(chunk_keys), dtype=np.uint64), encoded.term_counts)
        found = _Occurrences(encoded.term_ids, ordinals, np.minimum(encoded.positions, CONTEXT_START - _PART_STRIDE), encoded.lengths)
        if contexts is not None and any(contexts):
            found = self._with_contexts(found, contexts)
        terms = self._table.terms
        if len(terms) > _VOCABULARY_LIMIT:
            self._table = TermTable(self.tokeniser)
        arrays = _layout(found.term_ids, found.ordinals, found.positions, terms=terms)
        return arrays | {"chunk_keys": np.asarray(chunk_keys, dtype=np.int64), "lengths": found.lengths} | traits.arrays()

    def _with_contexts(self, found: _Occurrences, contexts: Sequence[Sequence[str]]) -> _Occurrences:
        """Add the first terms of each chunk's context, which count like those of its text, in its length too."""
        owners, slots = [], []
        for ordinal, parts in enumerate(contexts):
            for slot, part in enumerate(parts):
                self._table.add(part)
                owners.append(ordinal)
                slots.append(slot)
        encoded = self._table.take()
        ordinals = np.repeat(np.asarray(owners, dtype=np.uint64), encoded.term_counts)
        positions = np.repeat(np.asarray(slots, dtype=np.int64), encoded.term_counts) * _PART_STRIDE + encoded.positions
        is_kept = np.arange(len(ordinals)) - np.searchsorted(ordinals, ordinals) < MAX_CONTEXT_TERMS
        ordinals, positions = ordinals[is_kept], positions[is_kept]
        is_new = np.ones(len(positions), dtype=np.bool_)  # a whole and its first part share a position
        is_new[1:] = (positions[1:] != positions[:-1]) | (ordinals[1:] != ordinals[:-1])
        added = np.bincount(ordinals[is_new].astype(np.int64), minlength=len(found.lengths)).astype(np.int32)
        return _Occurrences(
            np.concatenate([found.term_ids, encoded.term_ids[is_kept]]),
            np.concatenate([found.ordinals, ordinals]),
            np.concatenate([found.positions, CONTEXT_START + positions]),
            found.lengths + added,
        )


class _Occurrences(NamedTuple):
    """Each occurrence of a term in a chunk, and how long each chunk is."""

    term_ids: Array
    ordinals: NDArray[np.uint64]
    positions: Array
    lengths: NDArray[np.int32]


def _layout(term_ids: Array, ordinals: NDArray[np.uint64], positions: Array, *, terms: Sequence[str]) -> dict[str, Array]:
    used = np.flatnonzero(np.bincount(term_ids, minlength=len(terms)))
    ordered = sorted(used.tolist(), key=terms.__getitem__)  # by code points, which is the order of their UTF-8
    rank = np.zeros(len(terms) or 1, dtype=np.uint64)
    rank[ordered] = np.arange(len(ordered), dtype=np.uint64)
    places = np.minimum(positions, _MAX_POSITION).astype(np.uint64)
    keys = (rank[term_ids] << np.uint64(POSITION_BITS + ORDINAL_BITS)) | (ordinals << np.uint64(POSITION_BITS)) | places
    keys.sort()
    return vocabulary_arrays([terms[number].encode() for number in ordered]) | _postings(keys, term_count=len(ordered))


def vocabulary_arrays(terms: Sequence[bytes]) -> dict[str, Array]:
    """Return the vocabulary of a segment as stored; terms come in the order of their bytes."""
    lengths = np.fromiter(map(len, terms), dtype=np.int64, count=len(terms))
    return {"term_bytes": np.frombuffer(b"".join(terms), dtype=np.uint8), "term_offsets": offsets_of(lengths)}


def _postings(keys: NDArray[np.uint64], *, term_count: int) -> dict[str, Array]:
    pairs = keys >> np.uint64(POSITION_BITS)
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(pairs)), dtype=np.bool_), pairs[1:] != pairs[:-1]]))
    counts = np.diff(np.append(starts, len(pairs)))
    posting_terms = (pairs[starts] >> np.uint64(ORDINAL_BITS)).astype(np.int64)
    return {
        "posting_offsets": offsets_of(np.bincount(posting_terms, minlength=term_count)),
        "ordinals": (pairs[starts] & np.uint64(MAX_CHUNKS - 1)).astype(np.int32),
        "counts": counts.astype(np.int32),
        "position_offsets": offsets_of(np.bincount(posting_terms, weights=counts, minlength=term_count).astype(np.int64)),
        "positions": (keys & np.uint64(_MAX_POSITION)).astype(np.int32),
    }


def offsets_of(lengths: Array) -> NDArray[np.int64]:
    """Return where each of several stretches begins when they follow each other, and where the last ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


# --- merging ---
# Several segments become one, without sorting: postings of a term follow each other in the order of the segments.
#
# Memory is that of the merged segment and one of its parts, so callers bound what they merge (`LARGEST_MERGED`).

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
    first = next_posting[part.ranks]
    targets = ranges(first, first + part.posting_counts)
    merged["ordinals"][targets] = renumbered[ordinals[is_kept]]
    merged["counts"][targets] = counts[is_kept]
    first = next_position[part.ranks]
    targets = ranges(first, first + part.position_counts)
    merged["positions"][targets] = part.segment.array("positions")[np.repeat(is_kept, counts)]
    next_posting[part.ranks] += part.posting_counts
    next_position[part.ranks] += part.position_counts


def ranges(starts: Array, stops: Array) -> NDArray[np.int64]:
    """Return starts[i], starts[i] + 1, ... up to stops[i], without it, for each i in turn."""
    counts = stops - starts
    before = offsets_of(counts)
    return np.repeat(starts - before[:-1], counts) + np.arange(before[-1])


def _sums(values: Array, offsets: Array) -> NDArray[np.int64]:
    """Return the sum of each stretch between two offsets."""
    running = offsets_of(values)
    return running[offsets[1:]] - running[offsets[:-1]]


# --- traits ---
# What a segment keeps of its texts besides postings: the definitions they give, and what they are made of.
#
#     definition_bytes      short form, a tab, long form, one after the other, in UTF-8
#     definition_offsets    where each begins, and where the last ends
#     definition_ordinals   the chunk that gives each, ascending
#     features              code, commands, configuration, specificity: four bytes per chunk
#     marks                 the first eight bytes of each chunk's content hash, which end its id
#
# Segments from before these arrays have none: no definitions, and zeros; ids are then made from the database.

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
    features = [segment.features()[kept].ravel() for segment, kept in zip(segments, keep, strict=True)]
    marks = [each[kept].ravel() for segment, kept in zip(segments, keep, strict=True) if (each := segment.marks()) is not None]
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
