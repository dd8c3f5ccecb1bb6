"""What one caller sees of a snapshot: the mask, the statistics over it, and scores that follow from nothing else.

A view knows only its own documents: its vocabulary is that of what the caller may see, and postings are cut to the mask before
anything is counted, so what the caller may not see influences neither a number nor which words cost work. Postings with their
impacts are kept per view, within a bound, because a view's statistics never change.
"""

from __future__ import annotations

import threading
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.backends.embedded.lexical.term_dictionary import EmbeddedLexicon, TermDictionary
from evidentia.backends.embedded.records.document_table import DocumentTable, ImpactTable, TableChange
from evidentia.backends.embedded.vectors.vector_arithmetic import best_of, nth_largest
from evidentia.foundation.lru import SharedLruCache
from evidentia.text.weights import QUERY_TERM_LIMIT, Bm25, idf_fixed, tfidf_impacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.filter_choice import Narrowing
    from evidentia.backends.embedded.lexical.segments import Array
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.search import AccessScope, LexicalQuery
    from evidentia.contracts.settings import SearchSettings
    from evidentia.contracts.vocabulary import AuthorityTier


KEPT_BYTES = 128 * 1024 * 1024
"""How much of postings and impacts the views of one version keep, all together."""
_MILLI = 1000
_SEPARATOR, _PHRASE = "\0", -1
"""How a phrase is told from a term among what is kept: no term holds the former, no weight is the latter."""
SAMPLE, SAMPLE_PER_RESULT = 4096, 32
"""How many places are looked at for a first bound on the best scores: the former, or the latter per result asked for."""


class Matches(NamedTuple):
    """What a query matched: the best places with their scores (ties with the last included), and how many match.

    `matching` lists every matching place where that was asked for.
    """

    places: NDArray[np.int64]
    scores: Array
    total: int
    matching: NDArray[np.int64] | None


class _Matched(NamedTuple):
    """The score of every place, and where a term stands; None where that is wherever the score is above 0."""

    totals: Array
    touched: NDArray[np.bool_] | None


class ShownPlaces(NamedTuple):
    """What a scope shows of a version: which documents it allows, which places it shows, and how long those are together.

    `hides_nothing` says that no access rule of the base keeps the caller out, so that places which are not shown are outdated at most.
    """

    scope: AccessScope
    allowed: NDArray[np.bool_]
    mask: NDArray[np.bool_]
    total_length: int
    hides_nothing: bool

    @classmethod
    def of(cls, scope: AccessScope, *, allowed: NDArray[np.bool_], hides_nothing: bool, table: DocumentTable) -> ShownPlaces:
        """Work out what a scope shows of the documents that it allows."""
        mask = np.append(allowed, np.False_)[table.document_of]  # -1 is the place of chunks that this version does not show
        return cls(scope, allowed, mask, int(table.lengths[mask].sum(dtype=np.int64)), hides_nothing)

    def after(self, change: TableChange, *, allowed: NDArray[np.bool_], hides_nothing: bool, table: DocumentTable) -> ShownPlaces:
        """Work it out for a version that was derived; the cost is that of the change, apart from a copy of the mask."""
        if change.moved is None:
            return ShownPlaces.of(self.scope, allowed=allowed, hides_nothing=hides_nothing, table=table)
        before = len(self.mask)
        mask = np.concatenate([self.mask, np.zeros(len(table.document_of) - before, dtype=np.bool_)])
        ended = change.moved[mask[change.moved]]
        mask[change.moved] = np.append(allowed, np.False_)[table.document_of[change.moved]]
        begun = change.moved[mask[change.moved]]
        added = int(table.lengths[begun].sum(dtype=np.int64)) - int(table.lengths[ended].sum(dtype=np.int64))
        return ShownPlaces(self.scope, allowed, mask, self.total_length + added, hides_nothing)


class View:
    """One caller's view. Thread safe."""

    def __init__(
        self, vocabulary: TermDictionary, *, shown: ShownPlaces, table: DocumentTable, search: SearchSettings, kept: KeptPostings
    ) -> None:
        self.shown_places = shown
        self.allowed = shown.allowed
        self.mask = shown.mask
        self.documents = int(np.count_nonzero(shown.mask))
        self._table = table
        self._vocabulary = vocabulary if shown.hides_nothing else vocabulary.shown(shown.mask)
        self._is_cut = self.documents == len(shown.mask) or not shown.hides_nothing
        """Whether the vocabulary names no place that is not shown."""
        self._search = search
        self.lengths = table.lengths
        self.sources: Mapping[SourceId, AuthorityTier] | None = None
        self._bm25 = Bm25.of(
            total_length=shown.total_length, documents=max(1, self.documents), k1_milli=search.k1_milli, b_milli=search.b_milli
        )
        self._impacts = ImpactTable(self._bm25, table.coded_lengths) if search.weighting == "bm25" else None
        self.lexicon = EmbeddedLexicon(self._vocabulary, mask=shown.mask, count=lambda term: len(self.term(term).places))
        self._terms = kept
        self._scratch = threading.local()

    def prepare(self) -> None:
        """Lay out what the first look-up of a term would have to."""
        self._vocabulary.prepare()

    def term(self, term: str, *, weight: int | None = None) -> TermPostings:
        """Return a term's postings within the mask; a weight makes its impacts those of an added term."""
        key = (self.shown_places.scope.fingerprint, term, weight)
        found = self._terms.get(key)
        if found is None:
            found = self._make_term(term) if weight is None else self.term(term).weighed(weight)
            self._terms.put(key, found)
        return found

    def phrase(self, phrase: Sequence[str]) -> TermPostings:
        """Return where the terms of a phrase stand one after the other within the mask: worth there what each of them is, once more.

        Impacts are of the caller's own postings, so what is hidden is worth nothing here either.
        """
        key = (self.shown_places.scope.fingerprint, _SEPARATOR.join(phrase), _PHRASE)
        found = self._terms.get(key)
        if found is None:
            parts = [self.term(term) for term in dict.fromkeys(phrase)]
            places = self.holding_phrase(phrase).astype(np.int32)
            worth = sum((part.at(places).astype(np.int64) for part in parts), np.zeros(len(places), dtype=np.int64))
            found = TermPostings(
                places,
                np.ones(len(places), dtype=np.int32),
                np.maximum(worth, 0),  # a phrase lowers nothing, even where `robertson` makes its words negative
                idf=sum(max(0, part.idf) for part in parts),
                size=len(self.mask),
            )
            self._terms.put(key, found)
        return found

    def holding_phrase(self, phrase: Sequence[str]) -> NDArray[np.int64]:
        """Return the places within the mask in which the terms stand one after the other."""
        places = self._vocabulary.phrase(phrase)
        return places if self._is_cut else places[self.mask[places]]

    def in_context(self, term: str, place: int) -> int:
        """Return how often a term that a chunk holds stands in its context rather than in its text."""
        return self._vocabulary.in_context(term, place)

    @cached_property
    def document_of(self) -> NDArray[np.int32]:
        """Return the document of each place, -1 where it is not shown."""
        document_of: NDArray[np.int32] = self._table.document_of
        return document_of if self.shown_places.hides_nothing else np.where(self.mask, document_of, np.int32(-1))

    @cached_property
    def document_numbers(self) -> NDArray[np.int32]:
        """Return the documents that are allowed, ascending."""
        return np.flatnonzero(self.allowed).astype(np.int32)

    def holding(self, preferred: Sequence[Sequence[str]], *, required: Sequence[Sequence[str]]) -> NDArray[np.int32]:
        """Return the places that hold one of some phrases, and every one of those that are required."""
        held = np.unique(np.concatenate([self.phrase(phrase).places for phrase in preferred]))
        for phrase in required:
            held = held[np.isin(held, self.holding_phrase(phrase))]
        return held

    def match(self, query: LexicalQuery, *, keep: Narrowing | None, limit: int, listed: bool = False) -> Matches:
        """Score every place that holds a term, asked for or added; `keep` narrows places, phrases demand their words in order.

        Returned are all places whose score is at least that of the last of the best `limit`: ties are for the caller to
        order by id and cut. `listed` asks for every matching place besides. What is kept is looked at first where that costs less.
        """
        found = self._found(query)
        if keep is not None:
            postings = [each for each, _ in found]
            most, additions = sum(len(each.places) for each in postings), sum(each.additions for each in postings)
            kept = keep.kept_first(matching=most, additions=additions, terms=len(found))
            if kept is not None:
                return self._match_among(kept, found, phrases=query.phrases, limit=limit)
        totals, touched = self._totals(found)
        if keep is None and not query.phrases and not listed and touched is None:
            return self._best_of_all(found, totals, limit=limit)
        matching = np.flatnonzero(totals if touched is None else touched)
        chosen = self._narrow(matching, phrases=query.phrases, keep=keep)
        return _best(chosen, totals[chosen], limit=limit)

    def _match_among(
        self, kept: NDArray[np.int64], found: Sequence[tuple[TermPostings, int]], *, phrases: Sequence[Sequence[str]], limit: int
    ) -> Matches:
        """Match some places alone, exactly as all of them would be matched."""
        places = kept[self.mask[kept]].astype(np.int32)
        scores, touched = self._scores_at(places, found), np.zeros(len(places), dtype=np.bool_)
        for postings, _ in found:
            touched |= postings.occurs(places)
        chosen = self._narrow(places[touched].astype(np.int64), phrases=phrases, keep=None)
        return _best(chosen, scores[np.searchsorted(places, chosen)], limit=limit)

    def _best_of_all(self, found: Sequence[tuple[TermPostings, int]], totals: Array, *, limit: int) -> Matches:
        """Find the best without listing everything: the best of some places bound the best of all from below."""
        longest = max((postings.places for postings, _ in found), key=len, default=np.empty(0, dtype=np.int32))
        some = longest[:: max(1, len(longest) // max(SAMPLE, SAMPLE_PER_RESULT * limit))]
        floor = nth_largest(totals[some], limit) if len(some) >= limit else 1
        chosen = np.flatnonzero(totals >= max(1, floor))
        scores = totals[chosen]
        best = best_of(scores, limit)
        return Matches(places=chosen[best], scores=scores[best], total=int(np.count_nonzero(totals)), matching=None)

    def shown(self, places: Sequence[int] | NDArray[np.int32], *, keep: Narrowing | None) -> NDArray[np.int32]:
        """Return the places that the caller may see and that are kept, each once, in order."""
        found = np.unique(np.asarray(places, dtype=np.int32))
        return found[self.mask[found] if keep is None else self.mask[found] & keep.at(found)]

    def unmatched(self, places: Sequence[int], query: LexicalQuery, *, keep: Narrowing | None) -> NDArray[np.int32]:
        """Return those of the places that are shown and that `match` does not match, each once, in order."""
        found = self.shown(places, keep=keep)
        is_matched = self.occurs(found, query)
        for phrase in query.phrases:
            is_matched &= np.isin(found, self.holding_phrase(phrase))
        return found[~is_matched]

    def scores(self, places: Sequence[int], query: LexicalQuery) -> list[int]:
        """Return the score that `match` gives each place; 0 where no term occurs, and where the caller may not look."""
        wanted = np.asarray(places, dtype=np.int32)  # the postings' own type: looking for another would copy them all
        scores: list[int] = self._scores_at(wanted, self._found(query)).tolist()
        return scores

    def _scores_at(self, places: NDArray[np.int32], found: Sequence[tuple[TermPostings, int]]) -> NDArray[np.int64]:
        totals = np.zeros(len(places), dtype=np.int64)
        for postings, times in found:
            totals += np.multiply(postings.at(places), times, dtype=np.int64)
        return totals

    def attainable(self, query: LexicalQuery) -> int:
        """Return what a chunk would score at most that held every term as often as could count."""
        asked = sum(
            ((self._peak(self.term(term)) * query.weights.get(term, 1 << WEIGHT_BITS)) >> WEIGHT_BITS) * times
            for term, times in query.terms.items()
        )
        added = sum((self._peak(self.term(term)) * weight) >> WEIGHT_BITS for term, weight in query.expansions.items())
        return asked + added + sum(self._peak(self.phrase(phrase)) for phrase in query.preferred)

    def _peak(self, postings: TermPostings) -> int:
        """Return what one term is worth at most: the limit of BM25, or what tf-idf gives where it is most frequent."""
        if self._impacts is None:
            return int(postings.impacts.max(initial=0))
        return max(0, postings.idf) * (_MILLI + self._search.k1_milli) // _MILLI

    def occurs(self, places: NDArray[np.int32], query: LexicalQuery) -> NDArray[np.bool_]:
        """Tell for each place whether one of the terms occurs there, whatever it is worth."""
        found = np.zeros(len(places), dtype=np.bool_)
        for postings, _ in self._found(query):
            found |= postings.occurs(places)
        return found

    def contributions(self, place: int, query: LexicalQuery) -> list[tuple[str, TermPostings, int, int]]:
        """Return (term, postings, frequency, score) of each term, asked for or added, and each preferred phrase at a place."""
        given = []
        quoted = [f'"{" ".join(phrase)}"' for phrase in query.preferred]
        named = zip([*query.terms, *query.expansions, *quoted], self._found(query), strict=True)
        for term, (postings, times) in sorted(named, key=lambda each: each[0]):
            index = int(np.searchsorted(postings.places, place))
            if index < len(postings.places) and postings.places[index] == place:
                given.append((term, postings, int(postings.frequencies[index]), int(postings.impacts[index]) * times))
        return given

    def has_phrases(self, place: int, phrases: Sequence[Sequence[str]]) -> bool:
        """Tell whether every phrase occurs at a place."""
        return all(place in self.holding_phrase(phrase) for phrase in phrases)

    def _found(self, query: LexicalQuery) -> list[tuple[TermPostings, int]]:
        """Return the postings of each term and preferred phrase, weighed already, and how often they count."""
        asked = [(self.term(term, weight=query.weights.get(term)), times) for term, times in query.terms.items()]
        added = [(self.term(term, weight=weight), 1) for term, weight in query.expansions.items()]
        return asked + added + [(self.phrase(phrase), 1) for phrase in query.preferred]

    def _narrow(self, matching: NDArray[np.int64], *, phrases: Sequence[Sequence[str]], keep: Narrowing | None) -> NDArray[np.int64]:
        for phrase in phrases:
            matching = matching[np.isin(matching, self.holding_phrase(phrase))]
        return matching if keep is None else matching[keep.at(matching)]

    def _make_term(self, term: str) -> TermPostings:
        places, frequencies = self._vocabulary.postings(term)
        if not self._is_cut:
            seen = self.mask.take(places)
            places, frequencies = places[seen], frequencies[seen]
        documents = max(1, self.documents)
        if self._impacts is None:
            idf = idf_fixed("tfidf", documents=documents, containing=len(places))
            impacts: Array = tfidf_impacts(frequencies, idf=idf)
        else:
            idf = idf_fixed(self._search.idf, documents=documents, containing=len(places))
            impacts = self._impacts.impacts(places, frequencies, idf=idf)
        return TermPostings(places, frequencies, impacts, idf=idf, size=len(self.mask))

    def _may_overflow(self, found: Sequence[tuple[TermPostings, int]]) -> bool:
        is_wide = any(postings.impacts.dtype.itemsize > np.dtype(np.int32).itemsize for postings, _ in found)
        return self._impacts is None or is_wide or sum(times for _, times in found) > QUERY_TERM_LIMIT

    def _totals(self, found: Sequence[tuple[TermPostings, int]]) -> _Matched:
        """Return the score of every place, and where terms stand unless the scores tell; they stand until the thread's next query."""
        wide = self._may_overflow(found)
        totals = self._zeros("wide" if wide else "narrow", np.int64 if wide else np.int32)
        touched = None if all(postings.is_positive for postings, _ in found) else self._zeros("touched", np.bool_)
        for postings, times in found:
            postings.add_to(totals, times)
            if touched is not None:
                postings.touch(touched)
        return _Matched(totals, touched)

    def _zeros(self, name: str, dtype: type[np.generic]) -> Array:
        """Return this thread's room for one number per place, zeroed."""
        kept: Array | None = getattr(self._scratch, name, None)
        if kept is None:
            kept = np.zeros(len(self.mask), dtype=dtype)
            setattr(self._scratch, name, kept)
        else:
            kept.fill(0)
        return kept


def _best(matching: NDArray[np.int64], scores: Array, *, limit: int) -> Matches:
    best = best_of(scores, limit)
    return Matches(places=matching[best], scores=scores[best], total=len(matching), matching=matching)


KeptPostings = SharedLruCache[tuple[str, str, int | None], "TermPostings"]
"""Postings with their impacts, by scope, term and weight."""


def kept_postings() -> KeptPostings:
    """Return room for the postings that the views of one version keep."""
    return SharedLruCache(max_weight=KEPT_BYTES, weigh=attrgetter("byte_count"))


# --- impacts ---
# The postings of one term within a mask, with what each occurrence is worth, and the arithmetic on them.
#
# An added term is worth (impact * weight) >> 8 everywhere: the shift rounds down, in numpy as in Python.

WEIGHT_BITS = 8
"""Weights of added terms are in 256ths."""
COMMON_SHARE = 16
"""A term in more than one place out of this many is common."""


class TermPostings:
    """A term within the mask: places ascending, frequencies, and what each occurrence is worth. Thread safe under the GIL.

    The impacts of a common term are spread over all places when they are added for the second time, because adding whole arrays is
    far cheaper than adding at many places, and spreading them is not.
    """

    __slots__ = ("_occupied", "_size", "_spread", "_was_added", "frequencies", "idf", "impacts", "is_positive", "places")

    def __init__(self, places: NDArray[np.int32], frequencies: NDArray[np.int32], impacts: Array, *, idf: int, size: int) -> None:
        """Take the postings of a term among `size` places."""
        self.places = places
        self.frequencies = frequencies
        self.impacts = impacts
        self.idf = idf
        self.is_positive = bool(impacts.min(initial=1) > 0)
        self._size = size
        self._was_added = False
        self._spread: Array | None = None
        self._occupied: NDArray[np.bool_] | None = None

    def weighed(self, weight: int) -> TermPostings:
        """Return the postings as those of an added term; small impacts may come to nothing, and match all the same."""
        weighed = (self.impacts.astype(np.int64) * weight) >> WEIGHT_BITS
        if weight <= 1 << WEIGHT_BITS:
            weighed = weighed.astype(self.impacts.dtype)
        return TermPostings(self.places, self.frequencies, weighed, idf=self.idf, size=self._size)

    @property
    def byte_count(self) -> int:
        """Return how much memory the arrays take, those included that a common term has when it is added again."""
        spread = self._size * (self.impacts.dtype.itemsize + (not self.is_positive)) if self._is_common else 0
        return self.places.nbytes + self.frequencies.nbytes + self.impacts.nbytes + spread

    def add_to(self, totals: Array, times: int) -> None:
        """Add the impacts, so many times, to a total per place."""
        if self._spread is None and self._was_added and self._is_common:
            self._spread_out()
        self._was_added = True
        if self._spread is not None:
            totals += self._spread if times == 1 else np.multiply(self._spread, times, dtype=totals.dtype)
        else:
            np.add.at(totals, self.places, self.impacts if times == 1 else np.multiply(self.impacts, times, dtype=totals.dtype))

    @property
    def additions(self) -> int:
        """Return how many additions one by one cost as much as adding the impacts does."""
        return len(self.places) if self._spread is None else self._size // COMMON_SHARE

    def touch(self, touched: NDArray[np.bool_]) -> None:
        """Note where the term stands, for queries whose scores alone do not tell: some impacts are zero or negative."""
        if self._occupied is not None:
            touched |= self._occupied
        else:
            touched[self.places] = True

    @property
    def _is_common(self) -> bool:
        return len(self.places) * COMMON_SHARE > self._size

    def _spread_out(self) -> None:
        if not self.is_positive:
            occupied = np.zeros(self._size, dtype=np.bool_)
            occupied[self.places] = True
            self._occupied = occupied
        spread = np.zeros(self._size, dtype=self.impacts.dtype)
        spread[self.places] = self.impacts
        self._spread = spread

    def at(self, places: NDArray[np.int32]) -> Array:
        """Return the impact at each of some places, 0 where the term does not occur."""
        if self._spread is not None:
            return self._spread[places]
        if not len(self.places):
            return np.zeros(len(places), dtype=self.impacts.dtype)
        index = np.minimum(self.places.searchsorted(places), len(self.places) - 1)
        impacts: Array = self.impacts[index] * (self.places[index] == places)
        return impacts

    def occurs(self, places: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Tell for each of some places whether the term occurs there, whatever it is worth."""
        if not len(self.places):
            return np.zeros(len(places), dtype=np.bool_)
        index = np.minimum(self.places.searchsorted(places), len(self.places) - 1)
        is_there: NDArray[np.bool_] = self.places[index] == places
        return is_there
