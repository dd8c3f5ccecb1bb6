"""Maximal marginal relevance: the next fragment is the best of those that say something new.

Carbonell and Goldstein (1998): argmax lambda * score - (1 - lambda) * max similarity to the selected. Lambda is the request's
`diversity_constraint`, turned into millionths once; after that everything is an exact integer.

`diversify` takes similarity as it is, so that whatever is alike steps back. `spare` counts only near-copies, which are told by their words:
passages about the same thing have vectors as near as copies have, but not the same words.
"""

from __future__ import annotations

from heapq import heappop, heapreplace
from itertools import chain, count
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from evidentia.ranking.fusion import order
from evidentia.ranking.signals import MILLION, millionths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

SIMILARITY_BITS: Final = 16
"""Similarities are integers at 2^-16."""
MISSING: Final = -1
"""Stands for the similarity of a pair of which one has no vector."""

_SCALE: Final = 1 << SIMILARITY_BITS
_WORD_BITS: Final = 64
_OUT: Final = -(1 << 60)


def diversify(
    scores: Sequence[int],
    ids: Sequence[str],
    similarities: NDArray[np.int64] | None,
    *,
    diversity: float,
    limit: int,
    overlap: Callable[[int, int], int],
) -> list[int]:
    """Return the indexes of at most `limit` candidates in the order of their selection; ties by higher score, then by id.

    A `diversity` of 1 keeps the given order. `similarities` holds each pair at 2^-16, symmetric, and MISSING where a vector is; then,
    and for all pairs when it is None, `overlap` says what a pair has in common. Scores are below 2^42, so that products fit 64 bits.

    What a pair without vectors has in common is counted only for a candidate that leads.
    """
    lambda_millionths = millionths("diversity_constraint", diversity)
    wanted = min(limit, len(scores))
    if lambda_millionths == MILLION or wanted == 0:
        return list(range(wanted))
    places = order(scores, ids)
    merits = [scores[place] * lambda_millionths for place in places]
    price = (MILLION - lambda_millionths) * _SCALE
    if similarities is not None and similarities.min() >= 0:
        return [places[index] for index in _select_by_rows(merits, _in_places(similarities, places), price=price, wanted=wanted)]
    if similarities is None and all(index == place for index, place in enumerate(places)):
        return _select_lazily(merits, overlap, price=price, wanted=wanted)
    known = None if similarities is None else similarities.tolist()

    def similarity(left: int, right: int) -> int:
        first, second = places[left], places[right]
        found: int = MISSING if known is None else known[first][second]
        return overlap(first, second) if found < 0 else found

    return [places[index] for index in _select_lazily(merits, similarity, price=price, wanted=wanted)]


class TokenOverlap:
    """The share of tokens that two texts have in common (Jaccard), at 2^-16; texts without any token have none in common.

    `tokens_of` gives the tokens of a text by its number and is asked once for each.
    """

    __slots__ = ("_sets", "_tokens_of")

    def __init__(self, tokens_of: Callable[[int], frozenset[str]]) -> None:
        self._tokens_of = tokens_of
        self._sets: dict[int, frozenset[str]] = {}

    def __call__(self, left: int, right: int) -> int:
        """Return what two texts have in common."""
        sets = self._sets
        tokens = sets[left] if left in sets else self._set(left)
        others = sets[right] if right in sets else self._set(right)
        shared = len(tokens & others)
        return (shared << SIMILARITY_BITS) // (len(tokens) + len(others) - shared) if shared else 0

    def _set(self, number: int) -> frozenset[str]:
        known = self._sets[number] = self._tokens_of(number)
        return known


def overlaps(texts: Sequence[frozenset[str]]) -> NDArray[np.int64]:
    """Return what `TokenOverlap` says of every pair of texts, given as their tokens; soon done where nearly all pairs are asked for.

    Tokens that only one of the texts has, which are most of them, are left out; of the others each text has a row of bits.
    """
    numbers: dict[str, int] = {}
    columns = np.fromiter(map(numbers.setdefault, chain.from_iterable(texts), count()), dtype=np.int64)
    counts = np.array([len(tokens) for tokens in texts], dtype=np.int64)
    is_shared = np.bincount(columns) > 1
    shown = is_shared[columns]
    bits = np.zeros((len(texts), -(-np.count_nonzero(is_shared) // _WORD_BITS) * _WORD_BITS), dtype=np.bool_)
    bits[np.repeat(np.arange(len(texts)), counts)[shown], (np.cumsum(is_shared) - 1)[columns[shown]]] = True
    words = np.packbits(bits, axis=1).view(np.uint64)
    shared = np.zeros((len(texts), len(texts)), dtype=np.int64)
    for word in np.ascontiguousarray(words.T):
        shared += np.bitwise_count(word[:, np.newaxis] & word)
    np.fill_diagonal(shared, counts)
    together = counts + counts[:, np.newaxis] - shared
    shares: NDArray[np.int64] = (shared << SIMILARITY_BITS) // np.maximum(together, 1)
    return shares


def _select_by_rows(merits: Sequence[int], rows: NDArray[np.int64], *, price: int, wanted: int) -> list[int]:
    """Return who is selected where every pair has a similarity, given best first: the first of equal values wins a tie."""
    left = np.array(merits, dtype=np.int64)
    penalties = np.zeros(len(left), dtype=np.int64)
    values = left.copy()
    selected: list[int] = []
    while len(selected) < wanted:
        leader = int(values.argmax())
        selected.append(leader)
        left[leader] = _OUT
        np.maximum(penalties, rows[leader], out=penalties)
        np.multiply(penalties, price, out=values)
        np.subtract(left, values, out=values)
    return selected


def _select_lazily(merits: Sequence[int], similarity: Callable[[int, int], int], *, price: int, wanted: int) -> list[int]:
    """Return who is selected, given best first; a similarity is asked for only of whoever leads.

    Until then the penalty is too small, so the value is an upper bound; whoever leads with an exact value is ahead of everybody's bound,
    hence of everybody's value.
    """
    bounds = [(-merit, index) for index, merit in enumerate(merits)]  # best first, so it is a heap as it stands
    penalties, compared = [0] * len(merits), [0] * len(merits)
    selected: list[int] = []
    while len(selected) < wanted:
        leader = bounds[0][1]
        for number in range(compared[leader], len(selected)):
            found = similarity(leader, selected[number])
            if found > penalties[leader]:
                penalties[leader], compared[leader] = found, number + 1
                heapreplace(bounds, (found * price - merits[leader], leader))
                break
        else:
            heappop(bounds)
            selected.append(leader)
    return selected


def _in_places(similarities: NDArray[np.int64], places: Sequence[int]) -> NDArray[np.int64]:
    if all(index == place for index, place in enumerate(places)):
        return similarities
    return similarities[np.ix_(places, places)]


# --- near-copies ---
# A fragment that repeats one of a better source steps behind everything that is no copy, and the better one takes its place. Of equal
# sources two may say the same: both are often judged relevant, and the second corroborates the first; a third adds nothing.

USUAL: Final = 700_000
"""The diversity at which copies alone step back, in millionths; below it likeness counts as well, more and more."""
MAX_REPEATS: Final = 1
"""How often a trusted source may say again what an equal one has said."""
COPY_SHARE: Final = 80
"""A text copies another when so many of a hundred words of the shorter one are in the longer one."""
COPY_COSINE: Final = _SCALE * 90 // 100
"""Texts of trusted sources of equal rank are compared by words only where the vectors are as near as this."""
ECHO_SHARE: Final = 55
"""Fewer do where sources are not equal, or not trusted: numbers and names may have been changed, and other text put around them."""
SHORT_WORDS: Final = 25
"""Up to so many words share as many by chance (two schemas of tables with 10 words: 55 % in every seventh pair), so 80 % it is; each word
more makes it one of a hundred less."""
MAX_LENGTHS: Final = 3
"""A text with more than so many times the words of another quotes it rather than copies it."""
MAX_EXCERPT_LENGTHS: Final = 6
"""A lower source's text may be shorter than this by as much and still be an excerpt."""


class Standing(NamedTuple):
    """What a candidate's source is worth: its rank among sources, whether it may repeat others, and whether it may take their place."""

    rank: int
    is_trusted: bool = True
    is_current: bool = True


class Spared(NamedTuple):
    """The selection, and whether a copy is in it because there was nothing else to take."""

    order: list[int]
    has_copies: bool


def has_near(similarities: NDArray[np.int64]) -> bool:
    """Tell whether two candidates may be copies though their sources are equal: soon done, and mostly they are not."""
    may_copy = (similarities < 0) | (similarities >= COPY_COSINE)
    return bool(np.count_nonzero(may_copy) > np.count_nonzero(may_copy.diagonal()))


def find_copies(
    standings: Sequence[Standing], similarities: NDArray[np.int64] | None, tokens_of: Callable[[int], frozenset[str]]
) -> list[tuple[int, int]]:
    """Return the pairs of candidates that say the same in nearly the same words, the first with the smaller index.

    Where trusted sources are equal, `tokens_of` is asked only for those whose vectors are near, or missing.
    """
    ranks = np.array([each.rank for each in standings])
    is_trusted = np.array([each.is_trusted for each in standings], dtype=np.bool_)
    may_copy = (ranks[:, np.newaxis] != ranks) | ~is_trusted
    if similarities is None:
        may_copy[:] = True
    else:
        may_copy |= (similarities < 0) | (similarities >= COPY_COSINE)
    lefts, rights = np.nonzero(may_copy)
    return [
        (left, right)
        for left, right in zip(lefts.tolist(), rights.tolist(), strict=True)
        if left < right and _is_copy(standings[left], standings[right], tokens_of(left), tokens_of(right))
    ]


def _is_copy(left: Standing, right: Standing, words: frozenset[str], others: frozenset[str]) -> bool:
    shorter, longer = (len(words), len(others)) if len(words) <= len(others) else (len(others), len(words))
    is_excerpt = left.rank != right.rank and (left.rank < right.rank) == (len(words) < len(others))
    if not shorter or longer > shorter * (MAX_EXCERPT_LENGTHS if is_excerpt else MAX_LENGTHS):
        return False
    is_equal = left.rank == right.rank and left.is_trusted
    percent = COPY_SHARE if is_equal else max(ECHO_SHARE, COPY_SHARE - max(0, shorter - SHORT_WORDS))
    return 100 * len(words & others) >= percent * shorter


def spare(
    scores: Sequence[int],
    standings: Sequence[Standing],
    copies: Iterable[tuple[int, int]],
    alike: NDArray[np.int64] | None,
    *,
    diversity: float,
    limit: int,
) -> Spared:
    """Return at most `limit` candidates, given best first, in the order of their selection: where nothing is a copy, that of the scores.

    The value of a candidate is lambda * score, less (1 - lambda) where it has become a copy of the selected: of one with a higher rank, or
    of more than `MAX_REPEATS` of its own, or of any where it is not trusted. Before a candidate is selected, a current one of higher rank
    that it copies is, and stands in for it. Below a diversity of 0.7 the nearest of the selected counts too, by `alike` and up to the
    whole at 0. Equal values go by the given order. Scores are below 2^42.
    """
    lambda_millionths = millionths("diversity_constraint", diversity)
    kin: dict[int, list[int]] = {}
    for left, right in copies:
        kin.setdefault(left, []).append(right)
        kin.setdefault(right, []).append(left)
    wanted = min(limit, len(scores))
    share = max(0, USUAL - lambda_millionths)
    if wanted == 0 or lambda_millionths == MILLION or not (kin or (share and alike is not None)):
        return Spared(list(range(wanted)), has_copies=False)
    rows = None if alike is None or not share else np.maximum(alike, 0) * share // USUAL
    left_over = np.array(scores, dtype=np.int64) * lambda_millionths
    price = (MILLION - lambda_millionths) * _SCALE
    penalties = np.zeros(len(scores), dtype=np.int64)
    repeats, is_copy = [0] * len(scores), [False] * len(scores)
    selected: list[int] = []
    has_copies = False
    while len(selected) < wanted:
        leader = int((left_over - penalties * price).argmax())
        if is_copy[leader]:
            has_copies = True
        else:
            leader = _stand_in(leader, kin, standings, is_out=lambda index: is_copy[index] or left_over[index] == _OUT)
        selected.append(leader)
        left_over[leader] = _OUT
        if rows is not None:
            np.maximum(penalties, rows[leader], out=penalties)
        for other in kin.get(leader, ()):
            repeats[other] += standings[other].rank == standings[leader].rank
            allowed = MAX_REPEATS if standings[other].is_trusted else 0
            if standings[other].rank < standings[leader].rank or repeats[other] > allowed:
                is_copy[other] = True
                penalties[other] = _SCALE
    return Spared(selected, has_copies)


def _stand_in(leader: int, kin: dict[int, list[int]], standings: Sequence[Standing], *, is_out: Callable[[int], bool]) -> int:
    """Return the best current candidate of higher rank that the leader copies, or what that copies in turn; else the leader."""
    while True:
        rank = standings[leader].rank
        better = [
            other for other in kin.get(leader, ()) if standings[other].rank > rank and standings[other].is_current and not is_out(other)
        ]
        if not better:
            return leader
        leader = min(better, key=lambda other: (-standings[other].rank, other))
