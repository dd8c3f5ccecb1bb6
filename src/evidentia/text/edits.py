"""Words within a few edits of another, out of very many at once: insertions, deletions, substitutions, and swaps of neighbours.

The distance is Damerau's (1964) in the form of optimal string alignment: no part is edited twice. Only words that begin with the
same character are looked at, for hardly anybody mistypes that one (Pollock and Zamora, 1984). A signature per word leaves out almost
all of these first: it says of 32 classes of characters whether one occurs, and whether two do. An edit that inserts or deletes
changes one bit of it at most, a substitution two, a swap none, so that a word whose signature differs in more bits cannot be near
enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MAX_EDITS: Final = 3
_CODE_BITS: Final = 21
"""What a character takes in Unicode."""
_CLASSES: Final = 32
_NOTHING: Final = np.empty(0, dtype=np.int64)
_BLOCK: Final = 1 << 14
_CONTINUATION, _LEAD = 0x80, 0xC0


class WordList(NamedTuple):
    """Words as code points one after the other, and where each begins (and the last ends).

    `in_order` numbers the words from the shortest to the longest, those of one length by their first character; `keys` (length and
    first character in one number) and `signatures` follow that order. Only the words at the places `found` of it are found; None: all.
    """

    codes: NDArray[np.uint32]
    starts: NDArray[np.int64]
    in_order: NDArray[np.int64]
    keys: NDArray[np.int64]
    signatures: NDArray[np.uint64]
    found: NDArray[np.int32] | None = None

    def only(self, numbers: NDArray[np.int32]) -> WordList:
        """Return the list in which some of the words alone are found; others are not looked at."""
        is_wanted = np.zeros(len(self.in_order), dtype=np.bool_)
        is_wanted[numbers] = True
        return self._replace(found=np.flatnonzero(is_wanted[self.in_order]).astype(np.int32))


def word_list(encoded: NDArray[np.uint8], offsets: NDArray[np.int64]) -> WordList:
    """Return the words of a vocabulary that is stored as UTF-8, given where each begins and the last ends."""
    begins = np.concatenate([[0], np.cumsum((encoded & _LEAD) != _CONTINUATION, dtype=np.int64)])
    codes = np.frombuffer(encoded.tobytes().decode().encode("utf-32-le"), dtype="<u4")
    starts = begins[offsets]
    parts = [_signatures(codes, starts[first : first + _BLOCK + 1]) for first in range(0, len(starts) - 1, _BLOCK)]
    signatures = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
    keys = np.diff(starts) << _CODE_BITS
    is_word = keys > 0
    keys[is_word] |= codes[starts[:-1][is_word]]
    in_order = np.argsort(keys, kind="stable")
    return WordList(codes, starts, in_order, keys[in_order], signatures[in_order])


def near(words: WordList, word: str, *, edits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the words within so many edits (at most 3) that begin as this one does, ascending, and their distances."""
    edits = min(edits, MAX_EDITS)
    candidates = _candidates(words, word, edits=edits)
    if not len(candidates):
        return candidates, candidates
    distances = _distances(words, candidates, [ord(character) for character in word], edits=edits)
    is_near = distances <= edits
    return candidates[is_near], distances[is_near]


def distance(first: str, second: str) -> int:
    """Return the number of edits between two words, one cell at a time: the reference for `near`."""
    two_above, above, row = [0], [0], list(range(len(second) + 1))
    for i, left in enumerate(first, start=1):
        two_above, above, row = above, row, [i]
        for j, right in enumerate(second, start=1):
            best = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right))
            if i > 1 and j > 1 and left == second[j - 2] and first[i - 2] == right:
                best = min(best, two_above[j - 2] + 1)
            row.append(best)
    return row[-1]


def _candidates(words: WordList, word: str, *, edits: int) -> NDArray[np.int64]:
    """Return the words that first character, length and signature leave; a word that is longer or shorter by n took n edits for that."""
    lengths = range(max(1, len(word) - edits), len(word) + edits + 1)
    keys = [length << _CODE_BITS | ord(word[0]) for length in lengths] if word else []
    ends = words.keys.searchsorted([each for key in keys for each in (key, key + 1)])
    bounds = (ends if words.found is None else words.found.searchsorted(ends)).tolist()
    alike = [found for found in zip(lengths, bounds[::2], bounds[1::2], strict=False) if found[1] < found[2]]
    if not alike:
        return _NOTHING
    signature, left = _signature(word), []
    for length, start, stop in alike:
        places = slice(start, stop) if words.found is None else words.found[start:stop]
        bits = np.bitwise_count(words.signatures[places] ^ signature)
        left.append(words.in_order[places][bits <= 2 * edits - abs(length - len(word))])
    return np.sort(np.concatenate(left))


def _signature(word: str) -> np.uint64:
    """Return the signature of one word."""
    codes = np.frombuffer(word.encode("utf-32-le"), dtype="<u4")
    signature: np.uint64 = _signatures(codes, np.asarray([0, len(codes)]))[0]
    return signature


def _signatures(codes: NDArray[np.uint32], starts: NDArray[np.int64]) -> NDArray[np.uint64]:
    count = len(starts) - 1
    owners = np.repeat(np.arange(count, dtype=np.int64), np.diff(starts))
    classes = codes[starts[0] : starts[-1]] % _CLASSES
    counts = np.bincount(owners * _CLASSES + classes, minlength=count * _CLASSES).reshape(count, _CLASSES)
    packed = np.packbits(np.hstack([counts > 0, counts > 1]), axis=1)
    return packed.view(np.uint64)[:, 0]


def _distances(words: WordList, chosen: NDArray[np.int64], target: Sequence[int], *, edits: int) -> NDArray[np.int64]:
    """Return the distance of each chosen word, exact up to `edits`: all words advance together, one row per target character.

    Only cells near the diagonal can hold a distance within `edits`. A row keeps these alone, those of all words side by side: after i
    characters of the target, place d stands for the first i + d - edits characters of a word. One more place stays beyond `edits`.
    """
    lengths = words.starts[chosen + 1] - words.starts[chosen]
    columns = np.arange(-edits, len(target) + edits)
    index = np.clip(words.starts[chosen][:, None] + columns, 0, len(words.codes) - 1)
    letters = np.ascontiguousarray(np.where(columns < lengths[:, None], words.codes[index], 0).T)
    places, far = 2 * edits + 1, np.int8(edits + 1)
    steps = np.arange(places, dtype=np.int8)[:, None]
    above = np.full((places + 1, len(chosen)), far)
    row = above.copy()
    row[edits:places] = steps[: edits + 1]
    for i, code in enumerate(target, start=1):
        two_above, above, row = above, row, np.full_like(row, far)
        own = letters[i - 1 : i - 1 + places]
        best = np.minimum(above[:places] + (own != code), above[1:] + np.int8(1))
        if i > 1:
            is_swap = (letters[i - 2 : i - 2 + places] == code) & (own == target[i - 2])
            best = np.where(is_swap, np.minimum(best, two_above[:places] + np.int8(1)), best)
        if i <= edits:
            best[: edits - i], best[edits - i] = far, i
        np.minimum(np.minimum.accumulate(best - steps, axis=0) + steps, far, out=row[:places])
    distances: NDArray[np.int8] = row[lengths - len(target) + edits, np.arange(len(chosen))]
    return distances.astype(np.int64)
