"""What one caller sees of a snapshot: the mask, the statistics over it, and scores that follow from nothing else.

A view knows only its own documents: postings are cut to the mask before anything is counted, so what the caller may not
see has no way to influence a number. Postings with their impacts are kept per view, within a bound, because a view's
statistics never change.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.text.weights import QUERY_TERM_LIMIT, Bm25, idf_fixed, tfidf_impacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.segments import Array
    from evidentia.backends.embedded.vocabulary import Vocabulary
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.settings import SearchSettings
    from evidentia.contracts.vocabulary import AuthorityTier

KEPT_BYTES = 128 * 1024 * 1024
"""How much of postings and impacts one view keeps."""
COMMON_SHARE = 16
"""A term in more than one place out of this many is common."""
SAMPLE, SAMPLE_PER_RESULT = 4096, 32
"""How many places are looked at for a first bound on the best scores: the former, or the latter per result asked for."""


class TermPostings(NamedTuple):
    """A term within the mask: places ascending, frequencies, and what each occurrence is worth.

    A common term also has its impacts spread over all places, because adding whole arrays is far cheaper than
    adding at many places.
    """

    places: NDArray[np.int32]
    frequencies: NDArray[np.int32]
    impacts: Array
    idf: int
    is_positive: bool
    spread: Array | None
    occupied: NDArray[np.bool_] | None


class Matches(NamedTuple):
    """What a query matched: the best places with their scores (ties with the last included), and how many match.

    `matching` lists every matching place where that was asked for.
    """

    places: NDArray[np.int64]
    scores: Array
    total: int
    matching: NDArray[np.int64] | None


class View:
    """One caller's view. Thread safe."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        allowed: NDArray[np.bool_],
        document_of: NDArray[np.int32],
        lengths: NDArray[np.int32],
        search: SearchSettings,
    ) -> None:
        self.allowed = allowed
        mask = np.append(allowed, np.False_)[document_of]  # -1 is the place of chunks that this version does not show
        self.mask = mask
        self.documents = int(mask.sum())
        self._is_whole = self.documents == len(mask)
        self._vocabulary = vocabulary
        self._search = search
        self.lengths = lengths
        self.sources: Mapping[SourceId, AuthorityTier] | None = None
        total_length = int(lengths[mask].sum(dtype=np.int64))
        self._bm25 = Bm25.of(total_length=total_length, documents=max(1, self.documents), k1_milli=search.k1_milli, b_milli=search.b_milli)
        self._norms = self._bm25.norms(lengths) if search.weighting == "bm25" else None
        self._terms: OrderedDict[str, TermPostings] = OrderedDict()
        self._kept_bytes = 0
        self._lock = threading.Lock()
        self._scratch = threading.local()

    def term(self, term: str) -> TermPostings:
        """Return a term's postings within the mask."""
        with self._lock:
            kept = self._terms.get(term)
            if kept is not None:
                self._terms.move_to_end(term)
                return kept
        made = self._make_term(term)
        with self._lock:
            if term not in self._terms:
                self._terms[term] = made
                self._kept_bytes += _size(made)
            while self._kept_bytes > KEPT_BYTES and len(self._terms) > 1:
                _, dropped = self._terms.popitem(last=False)
                self._kept_bytes -= _size(dropped)
        return made

    def match(
        self,
        terms: Mapping[str, int],
        *,
        phrases: Sequence[Sequence[str]],
        keep: NDArray[np.bool_] | None,
        limit: int,
        listed: bool = False,
    ) -> Matches:
        """Score every place that holds a term; `keep` narrows places, phrases demand their words in order.

        Returned are all places whose score is at least that of the last of the best `limit`: ties are for the caller to
        order by id and cut. `listed` asks for every matching place besides.
        """
        found = [(self.term(term), times) for term, times in terms.items()]
        totals, touched = self._buffers(wide=self._may_overflow(found))
        is_positive = all(postings.is_positive for postings, _ in found)
        try:
            for postings, times in found:
                _add(totals, postings, times)
                if not is_positive:
                    _touch(touched, postings)
            if keep is None and not phrases and not listed and is_positive:
                return self._best_of_all(found, totals, limit=limit)
            matching = np.flatnonzero(totals if is_positive else touched)
            chosen = self._narrow(matching, phrases=phrases, keep=keep)
            scores = totals[chosen]
            best = _best(scores, limit)
            return Matches(places=chosen[best], scores=scores[best], total=len(chosen), matching=chosen)
        finally:
            totals.fill(0)
            touched.fill(0)

    def _best_of_all(self, found: Sequence[tuple[TermPostings, int]], totals: Array, *, limit: int) -> Matches:
        """Find the best without listing everything: the best of some places bound the best of all from below."""
        longest = max((postings.places for postings, _ in found), key=len, default=np.empty(0, dtype=np.int32))
        some = longest[:: max(1, len(longest) // max(SAMPLE, SAMPLE_PER_RESULT * limit))]
        floor = _nth_largest(totals[some], limit) if len(some) >= limit else 1
        chosen = np.flatnonzero(totals >= max(1, floor))
        scores = totals[chosen]
        best = _best(scores, limit)
        return Matches(places=chosen[best], scores=scores[best], total=int(np.count_nonzero(totals)), matching=None)

    def contributions(self, place: int, terms: Mapping[str, int]) -> list[tuple[str, TermPostings, int, int]]:
        """Return (term, postings, frequency, score) of each query term that occurs at a place."""
        given = []
        for term, times in sorted(terms.items()):
            postings = self.term(term)
            index = int(np.searchsorted(postings.places, place))
            if index < len(postings.places) and postings.places[index] == place:
                given.append((term, postings, int(postings.frequencies[index]), int(postings.impacts[index]) * times))
        return given

    def has_phrases(self, place: int, phrases: Sequence[Sequence[str]]) -> bool:
        """Tell whether every phrase occurs at a place."""
        return all(place in self._vocabulary.phrase(phrase) for phrase in phrases)

    def _narrow(
        self, matching: NDArray[np.int64], *, phrases: Sequence[Sequence[str]], keep: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        if keep is not None:
            matching = matching[keep[matching]]
        for phrase in phrases:
            matching = matching[np.isin(matching, self._vocabulary.phrase(phrase))]
        return matching

    def _make_term(self, term: str) -> TermPostings:
        places, frequencies = self._vocabulary.postings(term)
        if not self._is_whole:
            seen = self.mask[places]
            places, frequencies = places[seen], frequencies[seen]
        documents = max(1, self.documents)
        if self._norms is None:
            idf = idf_fixed("tfidf", documents=documents, containing=len(places))
            impacts: Array = tfidf_impacts(frequencies, idf=idf)
        else:
            idf = idf_fixed(self._search.idf, documents=documents, containing=len(places))
            impacts = self._bm25.impacts(frequencies, self._norms[places], idf=idf)
        is_positive = bool((impacts > 0).all())
        spread = occupied = None
        if len(places) * COMMON_SHARE > len(self.mask):
            spread = np.zeros(len(self.mask), dtype=impacts.dtype)
            spread[places] = impacts
            if not is_positive:
                occupied = np.zeros(len(self.mask), dtype=np.bool_)
                occupied[places] = True
        return TermPostings(places, frequencies, impacts, idf, is_positive, spread, occupied)

    def _may_overflow(self, found: Sequence[tuple[TermPostings, int]]) -> bool:
        return self._norms is None or sum(times for _, times in found) > QUERY_TERM_LIMIT

    def _buffers(self, *, wide: bool) -> tuple[Array, NDArray[np.bool_]]:
        """Return zeroed accumulators of this thread; `match` leaves them zeroed."""
        name = "wide" if wide else "narrow"
        totals = getattr(self._scratch, name, None)
        if totals is None:
            totals = np.zeros(len(self.mask), dtype=np.int64 if wide else np.int32)
            setattr(self._scratch, name, totals)
        touched = getattr(self._scratch, "touched", None)
        if touched is None:
            touched = self._scratch.touched = np.zeros(len(self.mask), dtype=np.bool_)
        return totals, touched


def _add(totals: Array, postings: TermPostings, times: int) -> None:
    if postings.spread is not None:
        totals += postings.spread if times == 1 else np.multiply(postings.spread, times, dtype=totals.dtype)
    else:
        totals[postings.places] += postings.impacts if times == 1 else np.multiply(postings.impacts, times, dtype=totals.dtype)


def _touch(touched: NDArray[np.bool_], postings: TermPostings) -> None:
    """Note where a term stands, for queries whose scores alone do not tell: some impacts are zero or negative."""
    if postings.occupied is not None:
        touched |= postings.occupied
    else:
        touched[postings.places] = True


def _best(scores: Array, limit: int) -> NDArray[np.int64]:
    """Return the indexes of the best `limit` scores and of everything that ties with the last of them."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= _nth_largest(scores, limit))


def _nth_largest(scores: Array, number: int) -> int:
    cut = len(scores) - number
    return int(np.partition(scores, cut)[cut])


def _size(postings: TermPostings) -> int:
    arrays = (postings.places, postings.frequencies, postings.impacts, postings.spread, postings.occupied)
    return sum(array.nbytes for array in arrays if array is not None)
