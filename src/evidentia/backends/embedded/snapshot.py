"""One version of an embedded base, held open for searching.

What does not depend on who asks stands in `version_tables`; masks and postings are made when first asked for, or ahead for everybody
who asked the version before. The memory maps outlive a collection that deletes their files.
"""

from __future__ import annotations

import copy
from collections import Counter
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from evidentia.backends.embedded.lexical.filter_choice import MEASURED, FilterCosts, Narrowing
from evidentia.backends.embedded.lexical.view import Matches, ShownPlaces, View, kept_postings
from evidentia.backends.embedded.records import attachments, schema
from evidentia.backends.embedded.records.commit_log import EventLogReader
from evidentia.backends.embedded.records.document_table import touched_documents
from evidentia.backends.embedded.records.reader import FragmentReader
from evidentia.backends.embedded.records.source_registry import descriptors_at
from evidentia.backends.embedded.vectors.hnsw import GraphFolder, GraphSource, RowRules
from evidentia.backends.embedded.vectors.vector_part import PlaceMap, VectorPart
from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.errors import VersionCollectedError
from evidentia.contracts.evidence import TermScore
from evidentia.contracts.ports import SearchableSnapshot, SupportsLayouts
from evidentia.contracts.predicates import matches
from evidentia.contracts.search import ChunkStanding, DenseHits, LegScores, LexicalHits, SearchHit, SnapshotVersion
from evidentia.foundation.lru import LruCache
from evidentia.policy.access import is_allowed

if TYPE_CHECKING:
    import sqlite3
    import threading
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.lexical.segments import Array
    from evidentia.backends.embedded.lexical.term_dictionary import EmbeddedLexicon
    from evidentia.backends.embedded.records.document_table import TableChange
    from evidentia.backends.embedded.vectors.vector_file import OpenFile
    from evidentia.backends.embedded.version_tables import VersionTables
    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.ids import ChunkId, DocumentId, Sha256, SourceId
    from evidentia.contracts.layout import DocumentLayout
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.provenance import CommitRecord, InclusionProof, IngestEvent
    from evidentia.contracts.search import AccessScope, ChunkSignals, DenseQuery, LexicalQuery
    from evidentia.contracts.settings import SearchSettings
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.contracts.vectors import VectorIdentity
    from evidentia.contracts.vocabulary import AuthorityTier

KEPT_VIEWS = 16
KEPT_NARROWINGS = 32


class EmbeddedSnapshot(SearchableSnapshot, SupportsLayouts):
    """Implements `EvidenceSnapshot` and `SupportsLayouts`. Thread safe."""

    def __init__(
        self,
        database: sqlite3.Connection,
        *,
        version: SnapshotVersion,
        tables: VersionTables,
        search: SearchSettings,
        lock: threading.RLock,
        access: CommitRecord,
    ) -> None:
        """Open a version; the rules of `access`, where that is a later one, apply besides its own."""
        self._database = database
        self._version = version
        self._search = search
        self._lock = lock
        self._access = access
        self.tables = tables
        self._table, self._columns = tables.table, tables.columns
        log = EventLogReader(database, size=version.commit.log_size)
        self._fragments = FragmentReader(database, table=self._table, log=log)
        self._views: LruCache[str, View] = LruCache(KEPT_VIEWS)
        self._postings = kept_postings()
        self._narrowings: LruCache[tuple[FilterCosts, str, bytes], Narrowing] = LruCache(KEPT_NARROWINGS)
        self.filter_costs = MEASURED
        """By what is chosen whether a filter is decided first; it changes the work and nothing else."""
        self._places = PlaceMap(self._table)
        self._vectors: VectorPart | None = None
        self._descriptors: Mapping[SourceId, SourceDescriptor] | None = None
        self._last: list[tuple[int, int, Mapping[str, object]]] | None = None

    def with_vectors(
        self,
        version: SnapshotVersion,
        *,
        access: CommitRecord,
        identity: VectorIdentity | None,
        files: Sequence[OpenFile],
        graphs: GraphFolder | None = None,
    ) -> EmbeddedSnapshot:
        """Return a version over the same documents under the same access rules; all but its vectors is shared."""
        other: EmbeddedSnapshot = copy.copy(self)
        other._version, other._access, other._vectors, other._descriptors = version, access, None, None
        if identity is not None:
            source = None if graphs is None else GraphSource(graphs, identity, rules=other._rules, chunk_ids=self._named)
            other._vectors = VectorPart(
                identity,
                files,
                sequence=version.commit.sequence,
                places=self._places,
                similarity=self._search.similarity,
                graphs=source,
            )
        return other

    def prepare(self, former: EmbeddedSnapshot | None = None, change: TableChange | None = None, *, is_large: bool = True) -> None:
        """Make ahead what the first requests would have to: for everybody who asked `former`, from which this version was derived.

        What they look words up in is made ahead where the base is large.
        """
        if former is not None and change is not None and not former.is_narrowed and not self.is_narrowed:
            new_rules = sorted(self._table.rules.keys() - former.tables.table.rules.keys())
            for view in former.views():
                shown = view.shown_places
                allowed = np.concatenate([shown.allowed, self._decide(shown.scope, start=len(shown.allowed))])
                hides_nothing = shown.hides_nothing and all(self._admits(key, shown.scope) for key in new_rules)
                made = self._view_of(shown.after(change, allowed=allowed, hides_nothing=hides_nothing, table=self._table))
                made.sources = self._visible_sources(made)
                if is_large:
                    made.prepare()
                with self._lock:
                    self._views.put(shown.scope.fingerprint, made)
        if self._vectors is not None:
            self._vectors.prepare(self.views())

    def views(self) -> list[View]:
        """Return what is kept for those who asked."""
        with self._lock:
            return [view for _, view in self._views.items()]

    @property
    def is_narrowed(self) -> bool:
        """Tell whether the access rules of a later version apply as well."""
        return self._access.sequence > self._version.commit.sequence

    @property
    def version(self) -> SnapshotVersion:
        """Return the version that this snapshot shows."""
        return self._version

    def search(
        self,
        query: LexicalQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        facets: Sequence[str],
        limit: int,
    ) -> LexicalHits:
        """Return the best matches, exactly, with counts over the whole match."""
        view = self.view(scope)
        keep = self._keep(narrowing, view)
        needs_list = bool(facets) or len(self.sources(scope)) > 1
        matched = view.match(query, keep=keep, limit=limit, listed=needs_list)
        documents = None if matched.matching is None or not facets else self._documents_at(matched.matching)
        return LexicalHits(
            hits=tuple(self._hits(matched.places, matched.scores, limit=limit)),
            matching=matched.total,
            attainable=view.attainable(query),
            matching_by_source=self._count_sources(matched, self.sources(scope)),
            facets={} if documents is None else {field: _ordered(self._count_facet(field, documents)) for field in facets},
        )

    def count_union(
        self, found: LexicalHits, others: Sequence[SearchHit], *, query: LexicalQuery, scope: AccessScope, narrowing: Predicate | None
    ) -> LexicalHits:
        """Return what `search` found, with counts and facets over its match and the chunks that were found otherwise.

        Only the chunks that the words do not match are counted anew: others are a few hundred, the match may be everything.
        """
        view = self.view(scope)
        keep = self._keep(narrowing, view)
        added = view.unmatched([hit.place for hit in others], query, keep=keep)
        if not len(added):
            return found
        by_source = Counter(found.matching_by_source)
        by_source.update(self._table.sources[code] for code in self._table.source_codes[self._table.document_of[added]].tolist())
        facets = found.facets
        if facets:
            documents = self._uncounted(view, added, query, keep=keep)
            facets = {field: _ordered(Counter(counts) + Counter(self._count_facet(field, documents))) for field, counts in facets.items()}
        return msgspec.structs.replace(
            found,
            matching=found.matching + len(added),
            matching_by_source={source: by_source[source] for source in self.sources(scope) if by_source[source]},
            facets=facets,
        )

    def _uncounted(self, view: View, added: NDArray[np.int32], query: LexicalQuery, *, keep: Narrowing | None) -> NDArray[np.int32]:
        """Return the documents of places that the words do not match, without those of which they match another place."""
        documents = np.unique(self._table.document_of[added])
        is_theirs = np.zeros(len(self._table.version_keys) + 1, dtype=np.bool_)  # the last is for -1
        is_theirs[documents] = True
        places = np.flatnonzero(is_theirs[self._table.document_of]).astype(np.int32)
        matched = np.setdiff1d(view.shown(places, keep=keep), view.unmatched(places.tolist(), query, keep=keep))
        uncounted: NDArray[np.int32] = np.setdiff1d(documents, self._table.document_of[matched])
        return uncounted

    def chunks(self, hits: Sequence[SearchHit]) -> Sequence[StoredChunk]:
        """Return the chunks behind hits, in the same order."""
        if not hits:
            return ()
        with self._lock:
            chunks = self._fragments.read(hits)
        if chunks is None:
            raise VersionCollectedError(self._version.commit.corpus_version)
        return chunks

    def proofs(self, chunks: Sequence[StoredChunk]) -> Sequence[tuple[IngestEvent, InclusionProof]]:
        """Return, for each chunk, the event that entered it and the proof that the log holds it."""
        if not chunks:
            return ()
        with self._lock:
            proofs = self._fragments.prove(chunks)
        if proofs is None:
            raise VersionCollectedError(self._version.commit.corpus_version)
        return proofs

    def standing(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, chunk_id: ChunkId, ranked: bool = True
    ) -> ChunkStanding | None:
        """Return how a chunk stands towards a query; None when the scope does not show it. The rank costs a whole search."""
        view = self.view(scope)
        place = self._find(chunk_id, view)
        if place is None or not view.mask[place]:
            return None
        keep = self._keep(narrowing, view)
        given = view.contributions(place, query)
        score = sum(each[-1] for each in given)
        is_narrowed_out = keep is not None and not keep.at(np.asarray([place]))[0]
        has_phrases = view.has_phrases(place, query.phrases)
        is_match = bool(given) and not is_narrowed_out and has_phrases
        terms = tuple(
            TermScore(
                term=term,
                score=points,
                frequency=frequency,
                containing=len(postings.places),
                documents=view.documents,
                length=int(view.lengths[place]),
                idf=postings.idf,
                in_context=view.in_context(term, place),
            )
            for term, postings, frequency, points in given
        )
        rank = self._rank(view, query, keep=keep, place=place, score=score) if is_match and ranked else None
        return ChunkStanding(is_narrowed_out=is_narrowed_out, has_phrases=has_phrases, score=score, terms=terms, rank=rank)

    def lexicon(self, scope: AccessScope) -> EmbeddedLexicon:
        """Return the words that a scope shows; nothing else has any influence on it."""
        return self.view(scope).lexicon

    def scores(
        self, hits: Sequence[SearchHit], *, query: LexicalQuery, dense: DenseQuery | None, scope: AccessScope
    ) -> Sequence[LegScores]:
        """Return the exact score of each leg for each hit, in the order given."""
        lexical = self.view(scope).scores([hit.place for hit in hits], query)
        nearness: list[int | None] = [None] * len(hits)
        if dense is not None and self._vectors is not None:
            nearness = self._vectors.scores([hit.place for hit in hits], dense)
        return [LegScores(lexical=words, dense=vectors) for words, vectors in zip(lexical, nearness, strict=True)]

    def lengths(self, hits: Sequence[SearchHit]) -> Sequence[int]:
        """Return how many positions the text of each hit has."""
        lengths: list[int] = self._table.lengths[np.asarray([hit.place for hit in hits], dtype=np.int64)].tolist()
        return lengths

    def signals(self, hits: Sequence[SearchHit]) -> Sequence[ChunkSignals]:
        """Return what ranks each hit besides its match; hits that are alike in that share one object."""
        return self.tables.signals.of([hit.place for hit in hits])

    @property
    def vectors(self) -> VectorIdentity | None:
        """Return the space in which this version's vectors live; None when it has none."""
        return None if self._vectors is None else self._vectors.identity

    def nearest(
        self,
        query: DenseQuery,
        *,
        scope: AccessScope,
        narrowing: Predicate | None,
        phrases: Sequence[Sequence[str]],
        preferred: Sequence[Sequence[str]] = (),
        limit: int,
    ) -> DenseHits:
        """Return the chunks nearest to a vector among those that hold every phrase; exactly, unless the settings say otherwise.

        The nearest that hold a preferred phrase are returned besides, at most `limit` more.
        """
        view = self.view(scope)
        keep = self._keep(narrowing, view)
        part = self._vectors or VectorPart(query.identity, (), sequence=0, places=self._places, similarity=self._search.similarity)
        holding = [view.holding_phrase(phrase) for phrase in phrases]
        search = partial(part.nearest, query, view=view, phrases=holding, may_approximate=not scope.rules)
        places, scores, is_approximate = (
            search(keep=None, limit=limit) if keep is None else keep.nearest(search, limit=limit, is_exact=part.is_exact)
        )
        hits = tuple(self._hits(places, scores, limit=limit))
        if preferred:
            held = view.shown(view.holding(preferred, required=phrases), keep=keep)
            hits = self._with_nearest_of(held, hits, nearness=part.scores(held.tolist(), query), limit=limit)
        by_source = part.seen(view).by_source
        return DenseHits(
            hits=hits,
            score_bits=part.measure.score_bits,
            embedded=sum(embedded for embedded, _ in by_source.values()),
            visible=view.documents,
            embedded_by_source=by_source,
            is_approximate=is_approximate,
        )

    def similarities(self, hits: Sequence[SearchHit]) -> NDArray[np.int64]:
        """Return the cosine of each pair at 2^-16, at least 0; -1 where one of the two has no vector."""
        if self._vectors is None:
            return np.full((len(hits), len(hits)), -1, dtype=np.int64)
        return self._vectors.cosines([hit.place for hit in hits])

    def sources(self, scope: AccessScope) -> Mapping[SourceId, AuthorityTier]:
        """Return the sources of which the scope shows at least one document, with their highest authority."""
        view = self.view(scope)
        with self._lock:
            if view.sources is None:
                view.sources = self._visible_sources(view)
        return view.sources

    def documents(self, scope: AccessScope) -> Mapping[SourceId, int]:
        """Return how many documents of each source the scope shows, where it shows any."""
        view = self.view(scope)
        is_shown = np.zeros(len(view.allowed), dtype=np.bool_)
        is_shown[self._table.document_of[view.mask]] = True  # by their chunks: rows of documents may be there that this version lacks
        counts = np.bincount(self._table.source_codes[is_shown], minlength=len(self._table.sources)).tolist()
        return {source: count for source, count in zip(self._table.sources, counts, strict=True) if count}

    def descriptors(self) -> Mapping[SourceId, SourceDescriptor]:
        """Return every source that was registered in this version, ordered by id; read when first asked for."""
        with self._lock:
            if self._descriptors is None:
                self._descriptors = MappingProxyType(descriptors_at(self._database, self._version.commit))
            return self._descriptors

    def layout(self, document_id: DocumentId) -> DocumentLayout | None:
        """Return the layout that a document has in this version; None where it has none."""
        with self._lock:
            number = self._table.number_of(document_id)
            named = None if number is None else self._table.layout_of(number)
            return attachments.layout_named(self._database, named, where=document_id)

    def attachment(self, content_hash: Sha256) -> bytes | None:
        """Return what has this hash; None where nothing has, or where it was collected with its version."""
        with self._lock:
            return schema.attachment(self._database, content_hash)

    def shows(self, document_id: DocumentId, *, scope: AccessScope) -> bool | None:
        """Tell whether a scope shows a document; None when this version does not hold it."""
        number = self._table.number_of(document_id)
        return None if number is None else bool(self.view(scope).allowed[number])

    def view(self, scope: AccessScope) -> View:
        """Return what a scope shows, made once."""
        with self._lock:
            kept = self._views.get(scope.fingerprint)
            if kept is None:
                kept = self._make_view(scope)
                self._views.put(scope.fingerprint, kept)
            return kept

    def _visible_sources(self, view: View) -> Mapping[SourceId, AuthorityTier]:
        scope = view.shown_places.scope
        if not scope.rules and not self.is_narrowed:
            return self.tables.sources(lambda rule: self._admits(rule, scope))
        shown = np.zeros(len(view.allowed), dtype=np.bool_)
        shown[self._table.document_of[view.mask]] = True
        return self.tables.sources_of(shown)

    def _named(self, places: NDArray[np.int64], *, document_ids: Sequence[DocumentId] | None = None) -> list[ChunkId]:
        with self._lock:
            return self._table.chunk_ids(places, document_ids=document_ids)

    def _find(self, chunk_id: ChunkId, view: View) -> int | None:
        with self._lock:
            return self._table.place_of(chunk_id, allowed=view.allowed)

    def _make_view(self, scope: AccessScope) -> View:
        allowed = self._decide(scope)
        for number, access_key, record in self._last_known():
            allowed[number] &= self._admits(access_key, scope) and all(matches(rule, record) for rule in scope.rules)
        hides_nothing = not scope.rules and all(self._admits(key, scope) for key in self._table.rules)
        return self._view_of(ShownPlaces.of(scope, allowed=allowed, hides_nothing=hides_nothing, table=self._table))

    def _view_of(self, shown: ShownPlaces) -> View:
        return View(self.tables.terms, shown=shown, table=self._table, search=self._search, kept=self._postings)

    def _decide(self, scope: AccessScope, *, start: int = 0) -> NDArray[np.bool_]:
        """Return which documents a scope may see, from a number on, by the access rule and the fields of each."""
        keys = self._table.access_keys[start:]
        admitting = np.zeros(max(self._table.rules, default=0) + 1, dtype=np.bool_)
        for key in self._table.rules if start == 0 else set(keys.tolist()):
            admitting[key] = self._admits(key, scope)
        allowed = admitting[keys]
        for rule in scope.rules:
            allowed &= self._columns.decide(rule, start=start)
        return allowed

    def _admits(self, access_key: int, scope: AccessScope) -> bool:
        return is_allowed(schema.decode_access(self._table.rules[access_key]), scope)

    def _last_known(self) -> Sequence[tuple[int, int, Mapping[str, object]]]:
        """Return number, access key and fields of the documents that changed since, where the rules of a later version apply too."""
        if not self.is_narrowed:
            return ()
        with self._lock:
            if self._last is None:
                touched = touched_documents(self._database, self._version.commit.log_size, self._access.log_size)
                self._last = list(self._table.last_known(self._access.sequence, touched))
            return self._last

    def _rules(self) -> RowRules:
        """Return which access rules decide who may see each document: its own, and the last it had where that counts too."""
        own = self._table.access_keys.astype(np.int64)
        last = own.copy()
        for number, access_key, _ in self._last_known():
            last[number] = access_key
        pairs, numbers = np.unique(np.stack([own, last], axis=1), axis=0, return_inverse=True)
        named = [b"\n".join(self._table.rules[key] for key in pair) for pair in pairs.tolist()]
        return RowRules(numbers.reshape(-1), named)

    def _keep(self, narrowing: Predicate | None, view: View) -> Narrowing | None:
        if narrowing is None:
            return None
        encoded = encode_struct(narrowing)  # Python holds 1 and True to be equal, the bytes do not
        key = self.filter_costs, view.shown_places.scope.fingerprint, encoded
        with self._lock:
            kept = self._narrowings.get(key)
            if kept is None:
                kept = Narrowing(
                    narrowing,
                    columns=self._columns,
                    document_of=view.document_of,
                    documents=view.document_numbers,
                    costs=self.filter_costs,
                )
                self._narrowings.put(key, kept)
            return kept

    def _with_nearest_of(
        self, held: NDArray[np.int32], hits: tuple[SearchHit, ...], *, nearness: Sequence[int | None], limit: int
    ) -> tuple[SearchHit, ...]:
        """Return hits together with the nearest of other places, those with a vector, all in their order."""
        known = {hit.place for hit in hits}
        scored = [(place, score) for place, score in zip(held.tolist(), nearness, strict=True) if score is not None and place not in known]
        if not scored:
            return hits
        places, scores = np.asarray(scored, dtype=np.int64).T
        added = self._hits(places, scores, limit=limit)
        return tuple(sorted((*hits, *added), key=lambda hit: (-hit.score, hit.chunk_id)))

    def _hits(self, places: NDArray[np.int64], scores: Array, *, limit: int) -> Iterator[SearchHit]:
        """Order by score, then by chunk id, and cut."""
        documents = self._table.document_of[places]
        document_ids, sources = self._table.document_ids(documents), self._table.source_codes[documents].tolist()
        named = self._named(places, document_ids=document_ids)
        found = zip((-scores).tolist(), named, places.tolist(), document_ids, sources, strict=True)
        for score, chunk_id, place, document_id, source in sorted(found)[:limit]:
            yield SearchHit(
                chunk_id=chunk_id,
                document_id=document_id,
                source_id=self._table.sources[source],
                score=-score,
                place=place,
            )

    def _rank(self, view: View, query: LexicalQuery, *, keep: Narrowing | None, place: int, score: int) -> int:
        everything = view.match(query, keep=keep, limit=len(self._table.chunk_keys))
        higher = int((everything.scores > score).sum())
        ties = everything.places[everything.scores == score]
        ordered = sorted(zip(self._named(ties), ties.tolist(), strict=True))
        return higher + 1 + [tied for _, tied in ordered].index(place)

    def _count_sources(self, matched: Matches, sources: Mapping[SourceId, AuthorityTier]) -> Mapping[SourceId, int]:
        """Count what matched by source, in order of their names; only sources that are shown are looked at."""
        if matched.matching is None:
            return dict.fromkeys(sources, matched.total) if matched.total else {}
        counts = np.bincount(self._table.source_codes[self._table.document_of[matched.matching]])
        found = {self._table.sources[code]: int(counts[code]) for code in np.flatnonzero(counts).tolist()}
        return dict(sorted(found.items()))

    def _documents_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the documents at some places, each once."""
        found = np.zeros(len(self._table.version_keys), dtype=np.bool_)
        found[self._table.document_of[places]] = True
        return np.flatnonzero(found)

    def _count_facet(self, field: str, documents: NDArray[np.int64] | NDArray[np.int32]) -> dict[str, int]:
        """Count documents per value; each member of a set counts by itself."""
        column = self._columns.column(field)
        counts: dict[str, int] = {}
        found = np.bincount(column.codes[documents])
        codes = np.flatnonzero(found)  # values that only others have are not met
        for code, count in zip(codes.tolist(), found[codes].tolist(), strict=True):
            value = column.values[code]
            if value is None:
                continue
            for member in value if isinstance(value, tuple) else (value,):
                shown = member.isoformat() if isinstance(member, datetime) else str(member)
                counts[shown] = counts.get(shown, 0) + count
        return counts


def _ordered(counts: Mapping[str, int]) -> Mapping[str, int]:
    """Return the values of a facet, the most frequent first, then by name."""
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
