"""Term look-up and postings over all segments of a snapshot.

Places number the chunks of all segments one after the other, so postings of several segments join without a sort.

A look-up for somebody who may not see every chunk works on what they see (`shown`): terms, words that are spelt alike and definitions
that occur in hidden chunks alone are not there, and postings are cut by the stretches of chunks that are shown. So neither the answer
nor the work tells a word that only hidden chunks hold from a word that nothing holds.
"""

from __future__ import annotations

import copy
import hashlib
from bisect import bisect_left, bisect_right
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.backends.embedded.lexical.postings import CONTEXT_START, definitions_of, offsets_of, ranges
from evidentia.contracts.ports import Lexicon
from evidentia.contracts.search import Definition
from evidentia.foundation.lru import SharedLruCache
from evidentia.text import edits as edit_distances
from evidentia.text.definitions import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.segments import Array, Segment


TERMS_PER_SIGNPOST = 64
KEPT_SHOWN = 16
"""For how many different sets of visible chunks a segment keeps what they hold."""
MAX_STRETCHES = 512
"""Postings are cut by up to so many stretches of visible chunks; with more of them, each posting is looked at."""
POSTINGS_PER_BLOCK = 16
"""For so many postings together it is known how many positions come before them."""
_POSITION_BITS = 20
_NOWHERE = np.empty(0, dtype=np.int64)


class Postings(NamedTuple):
    """Where something occurs, ascending, and how often: a term by its places, a segment's seen terms by their numbers."""

    places: NDArray[np.int32]
    frequencies: NDArray[np.int32]


class _LaidOut:
    """What look-ups in one segment need besides its arrays, each made once, for all versions and for all who see the same chunks of it.

    Where `mask` does not show every chunk, what the others hold is left out.
    """

    def __init__(self, segment: Segment, *, whole: _LaidOut | None = None, mask: NDArray[np.bool_] | None = None) -> None:
        self._segment = segment
        self._whole = whole
        self.mask = mask
        self._shown: SharedLruCache[bytes, _LaidOut] = SharedLruCache(KEPT_SHOWN)

    def shown(self, mask: NDArray[np.bool_]) -> _LaidOut:
        """Return what is laid out for those who see some chunks alone."""
        if bool(mask.all()):
            return self
        key = hashlib.sha256(np.packbits(mask).data).digest()
        found = self._shown.get(key)
        if found is None:
            found = _LaidOut(self._segment, whole=self, mask=mask.copy())
            self._shown.put(key, found)
        return found

    @cached_property
    def _seen(self) -> Postings | None:
        """Return the numbers of the terms that occur in chunks that are seen, and in how many; None where all are seen."""
        if self.mask is None:
            return None
        counts = np.add.reduceat(
            self.mask.take(self._segment.array("ordinals")), self._segment.array("posting_offsets")[:-1], dtype=np.int32
        )  # no term is without a posting
        numbers = np.flatnonzero(counts).astype(np.int32)
        return Postings(numbers, counts[numbers])

    @property
    def numbers(self) -> NDArray[np.int32] | None:
        """Return the numbers of the terms that occur, ascending; None where all do."""
        return None if self._seen is None else self._seen.places

    def chunk_counts(self, numbers: NDArray[np.int64]) -> NDArray[np.integer]:
        """Return in how many chunks that are seen each of some terms occurs, all of which do."""
        if self._seen is None:
            offsets = self._segment.array("posting_offsets")
            return offsets[numbers + 1] - offsets[numbers]
        return self._seen.frequencies[self._seen.places.searchsorted(numbers)]

    @cached_property
    def stretches(self) -> NDArray[np.int32] | None:
        """Return where stretches of chunks begin and end that are seen, in turn; None where all are, or there are too many."""
        if self.mask is None:
            return None
        bounds = np.flatnonzero(np.diff(self.mask, prepend=np.False_, append=np.False_)).astype(np.int32)
        return bounds if len(bounds) <= 2 * MAX_STRETCHES else None

    @cached_property
    def positions_before(self) -> NDArray[np.int64]:
        """Return how many positions come before every so many postings, so that those of one are found without counting all before it."""
        if self._whole is not None:
            return self._whole.positions_before
        counts = self._segment.array("counts")
        return offsets_of(np.add.reduceat(counts, np.arange(0, len(counts), POSTINGS_PER_BLOCK), dtype=np.int64))

    @cached_property
    def signposts(self) -> list[bytes]:
        """Return every so many terms, in order, so that most of a look-up does not touch the map."""
        offsets, stored = self._segment.array("term_offsets"), self._segment.array("term_bytes").data
        numbers = np.arange(len(offsets) - 1) if self.numbers is None else self.numbers
        posts = numbers[::TERMS_PER_SIGNPOST]
        return [bytes(stored[begin:end]) for begin, end in zip(offsets[posts].tolist(), offsets[posts + 1].tolist(), strict=True)]

    @cached_property
    def words(self) -> edit_distances.WordList:
        """Return the terms as they are looked through for words that are spelt alike."""
        if self._whole is not None and self.numbers is not None:
            return self._whole.words.only(self.numbers)
        return edit_distances.word_list(self._segment.array("term_bytes"), self._segment.array("term_offsets"))

    @cached_property
    def glossary(self) -> DefinitionIndex:
        """Return the definitions that the segment's chunks give."""
        return DefinitionIndex(self._segment, mask=self.mask)

    def prepare(self) -> None:
        """Make all of it."""
        _ = self.signposts, self.words, self.glossary


class SegmentTerms:
    """The vocabulary of one segment, or what somebody sees of it; a look-up is a binary search over the memory map."""

    def __init__(self, segment: Segment, *, first_place: int) -> None:
        self.first_place = first_place
        self.segment = segment
        self.laid_out = _LaidOut(segment)
        self._is_cut = False
        self._offsets = segment.array("term_offsets")
        self._bytes = segment.array("term_bytes").data
        self._posting_offsets = segment.array("posting_offsets")
        self._position_offsets = segment.array("position_offsets")
        self._ordinals = segment.array("ordinals")
        self._counts = segment.array("counts")
        self._positions = segment.array("positions")

    def at(self, first_place: int) -> SegmentTerms:
        """Return the same with its first chunk at another place."""
        if first_place == self.first_place:
            return self
        other = copy.copy(self)
        other.first_place = first_place
        return other

    def shown(self, mask: NDArray[np.bool_]) -> SegmentTerms | None:
        """Return what a mask over all places shows of the segment; None where that is nothing."""
        own = mask[self.first_place : self.first_place + self.segment.header.chunk_count]
        if not own.any():
            return None
        other: SegmentTerms = copy.copy(self)
        other.laid_out, other._is_cut = self.laid_out.shown(own), True
        return other

    def find(self, term: bytes) -> int | None:
        """Return the number of a term, or None."""
        offsets, stored, numbers = self._offsets, self._bytes, self.laid_out.numbers
        count = len(offsets) - 1 if numbers is None else len(numbers)
        block = bisect_left(self.laid_out.signposts, term)
        low, high = max(0, (block - 1) * TERMS_PER_SIGNPOST), min(block * TERMS_PER_SIGNPOST, count)
        while low < high:
            middle = (low + high) // 2
            number = middle if numbers is None else numbers[middle]
            if bytes(stored[offsets[number] : offsets[number + 1]]) < term:
                low = middle + 1
            else:
                high = middle
        if low == count:
            return None
        number = low if numbers is None else int(numbers[low])
        return number if bytes(stored[offsets[number] : offsets[number + 1]]) == term else None

    def postings(self, number: int) -> tuple[Array, Array]:
        """Return the ordinals and frequencies of a term; what is hidden is not read where what is shown lies in a few stretches."""
        part = slice(self._posting_offsets[number], self._posting_offsets[number + 1])
        ordinals, counts = self._ordinals[part], self._counts[part]
        if self.laid_out.mask is None:
            return ordinals, counts
        if self.laid_out.stretches is None:
            is_seen = self.laid_out.mask.take(ordinals)
            return ordinals[is_seen], counts[is_seen]
        bounds = ordinals.searchsorted(self.laid_out.stretches)
        seen = ranges(bounds[::2], bounds[1::2])
        return ordinals[seen], counts[seen]

    def phrase(self, terms: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the places in which the terms stand one after the other; positions are read only where every term occurs."""
        numbers = [number for term in terms if (number := self.find(term)) is not None]
        if len(numbers) < len(terms):
            return _NOWHERE
        held_by = [self.postings(number)[0] for number in numbers]
        by_rarity = sorted(range(len(numbers)), key=lambda offset: len(held_by[offset]))
        held = held_by[by_rarity[0]]
        for offset in by_rarity[1:]:
            held = _shared(held, held_by[offset])
        if not len(held):
            return _NOWHERE
        starts = self._occurrences(numbers[by_rarity[0]], held) - by_rarity[0]
        for offset in by_rarity[1:]:
            starts = _shared(starts, self._occurrences(numbers[offset], held) - offset)
        return np.unique(starts >> _POSITION_BITS) + self.first_place

    def _occurrences(self, number: int, held: Array) -> NDArray[np.int64]:
        """Return every occurrence of a term in chunks that hold it, as ordinal << 20 | position, ascending."""
        first, stop = self._posting_offsets[number], self._posting_offsets[number + 1]
        at = np.searchsorted(self._ordinals[first:stop], held)
        wanted = self._counts[first:stop][at].astype(np.int64)
        if self.laid_out.mask is None:
            starts = np.cumsum(self._counts[first:stop], dtype=np.int64)[at] - wanted + self._position_offsets[number]
        else:
            starts = self._starts(first + at)
        positions = self._positions[ranges(starts, starts + wanted)]
        found: NDArray[np.int64] = (np.repeat(held.astype(np.int64), wanted) << _POSITION_BITS) | positions
        return found

    def _starts(self, postings: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where the positions of some postings of the segment begin; other postings of their terms are not added up."""
        blocks = postings // POSTINGS_PER_BLOCK
        beside = np.minimum(blocks[:, None] * POSTINGS_PER_BLOCK + np.arange(POSTINGS_PER_BLOCK), len(self._counts) - 1)
        before = np.where(beside < postings[:, None], self._counts[beside], 0)
        starts: NDArray[np.int64] = self.laid_out.positions_before[blocks] + before.sum(axis=1, dtype=np.int64)
        return starts

    def in_context(self, number: int, place: int) -> int:
        """Return how often a term stands in the context of a chunk that holds it."""
        first, stop = self._posting_offsets[number], self._posting_offsets[number + 1]
        index = first + int(np.searchsorted(self._ordinals[first:stop], place - self.first_place))
        (start,) = self._starts(np.asarray([index])).tolist()
        return int(np.count_nonzero(self._positions[start : start + self._counts[index]] >= CONTEXT_START))

    def seen(self, numbers: NDArray[np.int64], *, mask: NDArray[np.bool_]) -> list[tuple[str, int]]:
        """Return each of these terms with the number of its chunks that the mask shows."""
        counts = self.laid_out.chunk_counts(numbers) if self._is_cut else self._seen_of(numbers, mask=mask)
        return [(self._term(number).decode(), chunks) for number, chunks in zip(numbers.tolist(), counts.tolist(), strict=True)]

    def _seen_of(self, numbers: NDArray[np.int64], *, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        starts, stops = self._posting_offsets[numbers], self._posting_offsets[numbers + 1]
        seen = mask[self._ordinals[ranges(starts, stops)] + self.first_place]
        return np.add.reduceat(seen, np.cumsum(stops - starts) - (stops - starts), dtype=np.int64)

    def _term(self, number: int) -> bytes:
        return bytes(self._bytes[self._offsets[number] : self._offsets[number + 1]])


def _shared(values: Array, others: Array) -> Array:
    """Return those of some values, ascending, that are among others, ascending."""
    if not len(others):
        return values[:0]
    shared: Array = values[others[np.minimum(np.searchsorted(others, values), len(others) - 1)] == values]
    return shared


class TermDictionary:
    """The terms of a snapshot, and what its chunks say they mean. What is laid out for a segment serves every version over it."""

    def __init__(self, segments: Sequence[Segment], *, former: TermDictionary | None = None) -> None:
        known = {} if former is None else {part.segment.name: part for part in former.parts}
        self.parts: list[SegmentTerms] = []
        first_place = 0
        for segment in segments:
            part = known.get(segment.name)
            self.parts.append(SegmentTerms(segment, first_place=first_place) if part is None else part.at(first_place))
            first_place += segment.header.chunk_count

    def shown(self, mask: NDArray[np.bool_]) -> TermDictionary:
        """Return what a mask shows: whatever is looked up there, what is hidden takes no part in the work."""
        other: TermDictionary = copy.copy(self)
        other.parts = [seen for part in self.parts if (seen := part.shown(mask)) is not None]
        return other

    def prepare(self) -> None:
        """Lay out what the first look-up would."""
        for part in self.parts:
            part.laid_out.prepare()

    def postings(self, term: str) -> Postings:
        """Return where a term occurs, over all segments."""
        encoded = term.encode()
        found = [(part.first_place, *part.postings(number)) for part in self.parts if (number := part.find(encoded)) is not None]
        places = np.empty(sum(len(ordinals) for _, ordinals, _ in found), dtype=np.int32)
        end = 0
        for first_place, ordinals, _ in found:
            start, end = end, end + len(ordinals)
            np.add(ordinals, first_place, out=places[start:end])
        counts = [each for _, _, each in found]
        return Postings(places, counts[0] if len(counts) == 1 else np.concatenate([np.empty(0, dtype=np.int32), *counts]))

    def in_context(self, term: str, place: int) -> int:
        """Return how often a term that a chunk holds stands in its context rather than in its text."""
        part = self.parts[bisect_right(self.parts, place, key=attrgetter("first_place")) - 1]
        number = part.find(term.encode())
        return 0 if number is None else part.in_context(number, place)

    def near(self, term: str, *, edits: int, mask: NDArray[np.bool_]) -> dict[str, tuple[int, int]]:
        """Return every term that begins alike, within so many edits, that the mask shows: its distance, and its number of chunks."""
        found: dict[str, tuple[int, int]] = {}
        for part in self.parts:
            numbers, distances = edit_distances.near(part.laid_out.words, term, edits=edits)
            if not len(numbers):
                continue
            for (name, chunks), distance in zip(part.seen(numbers, mask=mask), distances.tolist(), strict=True):
                if chunks:
                    found[name] = (distance, chunks + found.get(name, (distance, 0))[1])
        return found

    def definitions(self, *, short: str | None = None, long: str = "") -> Iterable[tuple[str, str, NDArray[np.int64]]]:
        """Yield the definitions with a short form, in any case, or with a long one: short, long, and the places that say so."""
        for part in self.parts:
            glossary = part.laid_out.glossary
            for number in glossary.by_long.get(words_of(long), ()) if short is None else glossary.by_short.get(short.casefold(), ()):
                given_short, given_long, ordinals = glossary.entry(number)
                yield given_short, given_long, ordinals + part.first_place

    def phrase(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """Return the places in which the terms stand one after the other."""
        encoded = [term.encode() for term in terms]
        return np.concatenate([_NOWHERE, *[part.phrase(encoded) for part in self.parts]]) if terms else _NOWHERE


# --- glossary ---
# The definitions of a segment, found by short and by long form.


class DefinitionIndex:
    """Every definition with the chunks that give it, as far as a mask shows them."""

    def __init__(self, segment: Segment, *, mask: NDArray[np.bool_] | None = None) -> None:
        given: dict[tuple[str, str], list[int]] = {}
        for short, long, ordinal in definitions_of(segment):
            if mask is not None and not mask[ordinal]:
                continue
            given.setdefault((short, long), []).append(ordinal)
        self._entries = [(short, long, np.asarray(ordinals, dtype=np.int64)) for (short, long), ordinals in given.items()]
        self.by_short: dict[str, list[int]] = {}
        self.by_long: dict[str, list[int]] = {}
        for number, (short, long, _) in enumerate(self._entries):
            self.by_short.setdefault(short.casefold(), []).append(number)
            self.by_long.setdefault(words_of(long), []).append(number)

    def entry(self, number: int) -> tuple[str, str, NDArray[np.int64]]:
        """Return a short form, its long form, and the chunks that say so."""
        return self._entries[number]


# --- lexicon ---
# The words that one caller may see. Refuses to rank, weigh or choose between them: that is the query's business.
#
# The vocabulary is what the caller sees of the segments; every number is counted through the caller's mask besides, since it may hold
# chunks that are outdated, and what comes to nothing is left out. So chunks that the caller may not see have no influence on an answer.


class EmbeddedLexicon(Lexicon):
    """Implements `Lexicon`. Thread safe under the GIL."""

    def __init__(self, vocabulary: TermDictionary, *, mask: NDArray[np.bool_], count: Callable[[str], int]) -> None:
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
        return self._counted(self._vocabulary.definitions(short=short))

    def short_forms(self, long: str) -> Sequence[Definition]:
        """Return the short forms that the corpus gives to a long one (compared as lower-case words)."""
        return self._counted(self._vocabulary.definitions(long=long))

    def _counted(self, given: Iterable[tuple[str, str, NDArray[np.int64]]]) -> list[Definition]:
        counts: dict[tuple[str, str], int] = {}
        for short, long, places in given:
            counts[short, long] = counts.get((short, long), 0) + int(np.count_nonzero(self._mask[places]))
        counted = [Definition(short=short, long=long, chunks=chunks) for (short, long), chunks in counts.items() if chunks]
        return sorted(counted, key=lambda each: (-each.chunks, each.short, each.long))
