"""Whether a filter is decided before a search or after it, by the selectivity that is estimated for it.

Pre-filtering decides the filter for every document and then looks at nothing but what it keeps; it wins where that is little.
Post-filtering searches first and decides the filter for what was found alone; it wins where little is found, or nearly all is kept.
Either way a document passes or does not, so the results are identical; only the work differs. A filter is decided clause by clause of
its conjunctive normal form, the cheapest first, and a later clause only for the documents that are left.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from evidentia.backends.embedded.vectors.vector_arithmetic import best_of
from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.predicates import And, Atom, Not, Or, Predicate, matcher_of, to_cnf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.records.metadata_columns import MetadataColumns

SAMPLE = 256
"""So many documents, spread evenly, tell how much a filter keeps."""
MAX_GROWTH = 4
"""A normal form with so many times the parts of the filter is not worth it; the filter is then one clause."""
SPARE = 2
"""How many times as many candidates are taken as should suffice when the nearest are filtered afterwards."""


class FilterCosts(NamedTuple):
    """What the steps of either way cost in nanoseconds; only the proportions matter, and they change the work, never a result."""

    value: int
    """One value of a column is compared with a filter."""
    document: int
    """A document is looked up in the verdicts on a column, and its places are marked."""
    posting: int
    """An occurrence of a term is added to the scores of all places, and found there again."""
    place: int
    """A place has its score zeroed and looked at, whether a term stands there or not."""
    lookup: int
    """A term is looked for at one place."""
    near: int
    """One more of the nearest vectors is multiplied out and ordered."""


MEASURED = FilterCosts(value=1_300, document=20, posting=15, place=2, lookup=40, near=400)
"""By `benchmarks/filters.py`."""
PRE_FILTER = FilterCosts(value=0, document=0, posting=1, place=0, lookup=0, near=1)
POST_FILTER = FilterCosts(value=1 << 20, document=1 << 20, posting=0, place=0, lookup=1 << 20, near=0)
"""Always the one way, always the other: to compare them."""


class NearestSearch(Protocol):
    """Finds the nearest vectors among the places that are kept, None for all: places, scores, and whether it was approximate."""

    def __call__(self, *, keep: NDArray[np.bool_] | None, limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
        """Return all whose score is at least that of the last of the best `limit`."""
        ...


class Narrowing:
    """One filter over the places of one version. Thread safe under the GIL: threads may find the same out twice."""

    def __init__(
        self,
        predicate: Predicate,
        *,
        columns: MetadataColumns,
        document_of: NDArray[np.int32],
        documents: NDArray[np.int32],
        costs: FilterCosts = MEASURED,
    ) -> None:
        """Take a filter over the documents of one view, by their numbers; `document_of` is -1 at places that are not shown.

        Others than these are neither sampled nor decided, so what they hold changes neither the way that is chosen nor its work.
        """
        self._costs = costs
        self._predicate = predicate
        self._columns = columns
        self._document_of = document_of
        self._documents = documents
        self._count = len(documents)
        self._atoms: dict[bytes, _DecidedAtom] = {}
        self._mask: NDArray[np.bool_] | None = None
        self._spent_ns = 0

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Return for every place whether it passes; decided once, for all documents."""
        if self._mask is None:
            passes = np.zeros(int(self._documents.max(initial=-1)) + 2, dtype=np.bool_)  # the last is for -1
            passes[self._documents] = self._decide(self._documents)
            self._mask = passes[self._document_of]
        return self._mask

    def at(self, places: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some places pass; their documents alone are decided, unless all of them have been."""
        if self._mask is not None:
            return self._mask[places]
        documents = self._document_of[places]
        passes = np.zeros(len(places), dtype=np.bool_)
        shown = np.flatnonzero(documents >= 0)
        passes[shown] = self._decide(documents[shown])
        return passes

    def kept_first(self, *, matching: int, additions: int, terms: int) -> NDArray[np.int64] | None:
        """Return the places that pass, where looking at them alone costs less than filtering what the words match; else None.

        So many terms match at most so many places, which takes so many additions.
        """
        some_ns = self._some_ns(min(matching, self._count))
        before = self._whole_ns() + self._kept() * terms * self._costs.lookup
        after = additions * self._costs.posting + len(self._document_of) * self._costs.place + some_ns
        if before < after:
            return self._places
        self._spent_ns += after
        return None

    def nearest(self, search: NearestSearch, *, limit: int, is_exact: bool) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
        """Return the nearest places that pass, ties with the last included, with their scores.

        Where too few of those that should suffice pass, the filter is decided after all, and then first. An approximate search is told
        what is kept: of what it finds without, it might miss other places.
        """
        enough = self._enough(limit) if is_exact else None
        if enough is not None:
            places, scores, is_approximate = search(keep=None, limit=enough)
            passing = np.flatnonzero(self.at(places))
            if len(passing) >= limit or len(places) < enough:
                best = passing[best_of(scores[passing], limit)]
                return places[best], scores[best], is_approximate
        return search(keep=self.mask, limit=limit)

    def _enough(self, limit: int) -> int | None:
        """Return how many of the nearest should hold `limit` that pass; None where it costs less to filter first."""
        if self._mask is not None:
            return None
        number = SPARE * limit * len(self._document_of) // max(1, self._kept())
        return number if number * self._costs.near + self._some_ns(min(number, self._count)) <= self._whole_ns() else None

    def _kept(self) -> int:
        """Return how many places pass, or are likely to."""
        return len(self._document_of) * self._share_milli // 1_000 if self._mask is None else len(self._places)

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.mask)

    @cached_property
    def _share_milli(self) -> int:
        """Return the share of the documents that is estimated to pass, in thousandths; never 0, since a sample cannot tell."""
        sample = self._documents[:: max(1, self._count // SAMPLE)]
        passing = int(np.count_nonzero(self._decide(sample)))
        return 1_000 * (passing + 1) // (len(sample) + 2)

    def _whole_ns(self) -> int:
        """Return what it costs to decide all documents, less what has been spent on doing without.

        A filter that is asked for again and again is so decided for all of them once that would have been worth it, and at most twice
        is spent of what the better way would have cost (the ski rental problem).
        """
        if self._mask is not None:
            return 0
        undecided = sum(atom.undecided for atom in self._known_atoms)
        return max(0, undecided * self._costs.value + self._count * self._costs.document - self._spent_ns)

    def _some_ns(self, documents: int) -> int:
        """Return what it costs at most to decide so many documents."""
        if self._mask is not None:
            return 0
        return sum(min(atom.undecided, documents) for atom in self._known_atoms) * self._costs.value + documents * self._costs.document

    @property
    def _known_atoms(self) -> list[_DecidedAtom]:
        _ = self._share_milli  # estimating has met every atom
        return list(self._atoms.values())

    @cached_property
    def _clauses(self) -> Sequence[Predicate]:
        """Return the clauses of the filter, all of which have to hold; those with the fewest values to compare come first."""
        clauses: list[Predicate] = [self._predicate]
        try:
            normal = to_cnf(self._predicate)
            if sum(map(len, normal)) <= MAX_GROWTH * len(_atoms_of(self._predicate)):
                clauses = [Or(clause) for clause in normal]
        except InvalidFieldError:
            pass  # its normal form is too large to be worth anything
        return sorted(clauses, key=lambda clause: sum(self._atom(atom).count for atom in _atoms_of(clause)))

    def _decide(self, documents: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which of some documents pass."""
        passes = np.zeros(len(documents), dtype=np.bool_)
        left = np.arange(len(documents))
        for clause in self._clauses:
            left = left[self._holds(clause, documents[left])]
        passes[left] = True
        return passes

    def _holds(self, predicate: Predicate, documents: NDArray[np.int32]) -> NDArray[np.bool_]:
        match predicate:
            case And(clauses):
                return ~self._any([Not(clause) for clause in clauses], documents)
            case Or(clauses):
                return self._any(clauses, documents)
            case Not(clause):
                return ~self._holds(clause, documents)
            case _:
                return self._atom(predicate).at(documents)

    def _any(self, clauses: Sequence[Predicate], documents: NDArray[np.int32]) -> NDArray[np.bool_]:
        holds = np.zeros(len(documents), dtype=np.bool_)
        for clause in clauses:
            holds |= self._holds(clause, documents)
        return holds

    def _atom(self, atom: Atom) -> _DecidedAtom:
        name = encode_struct(atom)  # Python holds 1 and True to be equal, the bytes do not
        known = self._atoms.get(name)
        if known is None:
            column = self._columns.column(atom.field)
            holds = matcher_of(atom)
            known = self._atoms[name] = _DecidedAtom(
                column.codes, column.values, lambda value: holds({atom.field: value}), documents=self._documents
            )
        return known


class _DecidedAtom:
    """One comparison over a column: a value is compared when a document with it is first asked about."""

    def __init__(
        self, codes: NDArray[np.unsignedinteger], values: Sequence[object], holds: Callable[[object], bool], *, documents: NDArray[np.int32]
    ) -> None:
        self._values = values
        self._codes = codes
        self._holds = holds
        self._verdicts = np.zeros(len(values), dtype=np.int8)
        self._verdicts[codes[documents]] = -1
        self.count = self.undecided
        """How many different values the documents have."""

    @property
    def undecided(self) -> int:
        """Return how many of their values have not been compared."""
        return int(np.count_nonzero(self._verdicts < 0))

    def at(self, documents: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return for which of some documents it holds."""
        codes = self._codes[documents]
        is_open = self._verdicts[codes] < 0
        if is_open.any():
            is_asked = np.zeros(len(self._verdicts), dtype=np.bool_)
            is_asked[codes[is_open]] = True
            for code in np.flatnonzero(is_asked).tolist():
                self._verdicts[code] = self._holds(self._values[code])
        holds: NDArray[np.bool_] = self._verdicts[codes] > 0
        return holds


def _atoms_of(predicate: Predicate) -> list[Atom]:
    match predicate:
        case And(clauses) | Or(clauses):
            return [atom for clause in clauses for atom in _atoms_of(clause)]
        case Not(clause):
            return _atoms_of(clause)
        case _:
            return [predicate]
