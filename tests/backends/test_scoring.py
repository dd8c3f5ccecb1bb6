"""Added terms, scores of any chunk, counts together with what was found otherwise, and what ranks a chunk besides its match."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from evidentia.backends.embedded.index import EmbeddedIndex
from evidentia.backends.embedded.lexical.segments import Segment, write_segment
from evidentia.backends.embedded.records.database import SEGMENTS_NAME
from evidentia.backends.embedded.records.writer import EmbeddedWriter, create_base
from evidentia.contracts.access import AccessRule, Principal, local_owner
from evidentia.contracts.documents import ChangeSet, DocumentMetadata
from evidentia.contracts.ids import PrincipalId, SourceId
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.search import ChunkSignals, ContentFeatures, LexicalQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.contracts.vocabulary import AuthorityTier, Classification, ContentType
from evidentia.policy.access import access_scope
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.testing.documents import make_document
from evidentia.text.features import content_features
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.ids import ChunkId
    from evidentia.contracts.ports import SupportsScoring
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.search import AccessScope, LexicalHits, SearchHit

OWNER = access_scope(local_owner(), acl_scope=None, rules=())
READER = access_scope(Principal(principal_id=PrincipalId("r"), clearance=Classification.PUBLIC), acl_scope=None, rules=())
WORDS = ["key", "lock", "the", "zebra", "rotate", "pier", "quay"]
SETTINGS = [SearchSettings(), SearchSettings(idf="robertson"), SearchSettings(weighting="tfidf")]


class Base:
    """A base that is written in parts, each of them a segment."""

    def __init__(self, directory: Path) -> None:
        self._clock, self._entropy = SteppingClock(), RepeatableEntropy()
        self._directory = directory
        create_base(directory, clock=self._clock, entropy=self._entropy)
        self.index = EmbeddedIndex(directory, tokeniser=Tokeniser().identity)

    def commit(self, documents: Sequence[PreparedDocument]) -> None:
        writer = EmbeddedWriter(self._directory, clock=self._clock, entropy=self._entropy, language="english", wait_ms=0)
        writer.commit(ChangeSet(documents=tuple(documents)))
        writer.close()

    def strip_traits(self) -> None:
        """Write every segment again as older versions wrote it."""
        for path in (self._directory / SEGMENTS_NAME).iterdir():
            segment = Segment(path)
            kept = {name: segment.array(name) for name in segment.header.arrays if name != "features" and "definition" not in name}
            path.unlink()
            write_segment(path, tokeniser=segment.header.tokeniser, chunk_count=segment.header.chunk_count, arrays=kept)

    def snapshot(self, search: SearchSettings | None = None) -> EmbeddedSnapshot:
        return self.index.at(search=search or SearchSettings())


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    """Return an empty base."""
    made = Base(tmp_path / "base")
    yield made
    made.index.close()


def _fill(base: Base, *, seed: int = 1, sources: Sequence[str] = ("one", "two")) -> None:
    chance = random.Random(seed)
    for part in range(2):
        documents = []
        for number in range(30):
            source = chance.choice(sources)
            metadata = DocumentMetadata(source_id=SourceId(source), language=chance.choice(["en", "de"]))
            access = AccessRule(classification=chance.choice([Classification.PUBLIC, Classification.RESTRICTED]))
            text = " ".join(chance.choices(WORDS, weights=[3, 2, 40, 1, 2, 2, 1], k=chance.randint(1, 6)))
            documents.append(make_document(f"{part}-{number}", text, source=source, metadata=metadata, access=access))
        base.commit(documents)


def _query(chance: random.Random) -> LexicalQuery:
    drawn = chance.sample(WORDS, 4)
    phrases = (("the", "the"),) if chance.random() < 0.2 else ()
    added = {word: chance.choice([0, 1, 17, 128, 256, 700]) for word in drawn[2:]}
    return LexicalQuery(terms={word: chance.randint(1, 3) for word in drawn[: chance.randint(0, 2)]}, phrases=phrases, expansions=added)


def _search(
    snapshot: EmbeddedSnapshot,
    query: LexicalQuery,
    *,
    scope: AccessScope = OWNER,
    narrowing: Predicate | None = None,
    facets: Sequence[str] = (),
    limit: int = 100,
    also: Sequence[SearchHit] = (),
) -> LexicalHits:
    found = snapshot.search(query, scope=scope, narrowing=narrowing, facets=facets, limit=limit)
    return snapshot.count_union(found, also, query=query, scope=scope, narrowing=narrowing) if also else found


def _scores(found: LexicalHits) -> dict[str, int]:
    return {hit.chunk_id: hit.score for hit in found.hits}


# --- added terms ---


@pytest.mark.parametrize("search", SETTINGS)
@pytest.mark.parametrize("scope", [OWNER, READER])
def test_an_added_term_counts_its_weight_in_256ths_rounded_down(base: Base, search: SearchSettings, scope: AccessScope) -> None:
    """Every way of asking agrees with the sum of single terms: match, narrowed match, explanation, rank and scores."""
    _fill(base)
    snapshot = base.snapshot(search)
    alone = {word: _scores(_search(snapshot, LexicalQuery(terms={word: 1}), scope=scope)) for word in WORDS}
    everything = _search(snapshot, LexicalQuery(terms=dict.fromkeys(WORDS, 1)), scope=scope).hits
    chance = random.Random(4)
    for _ in range(25):
        query = _query(chance)
        expected: dict[str, int] = {}
        for word, times in query.terms.items():
            for chunk, score in alone[word].items():
                expected[chunk] = expected.get(chunk, 0) + score * times
        for word, weight in query.expansions.items():
            for chunk, score in alone[word].items():
                expected[chunk] = expected.get(chunk, 0) + ((score * weight) >> 8)
        plain = LexicalQuery(terms=query.terms, expansions=query.expansions)
        found = _search(snapshot, plain, scope=scope)

        assert expected == _scores(found)
        assert len(expected) == found.matching
        assert found.hits[:3] == _search(snapshot, plain, scope=scope, limit=3).hits[:3]
        assert sorted(expected.items(), key=lambda each: (-each[1], each[0])) == list(_scores(found).items())
        scored = snapshot.scores(everything, query=query, dense=None, scope=scope)
        assert [expected.get(hit.chunk_id, 0) for hit in everything] == [each.lexical for each in scored]
        _check_standings(snapshot, query, scope=scope)


def _check_standings(snapshot: EmbeddedSnapshot, query: LexicalQuery, *, scope: AccessScope) -> None:
    for rank, hit in enumerate(_search(snapshot, query, scope=scope).hits[:2], start=1):
        standing = snapshot.standing(query, scope=scope, narrowing=None, chunk_id=hit.chunk_id)

        assert standing is not None
        assert (rank, hit.score, hit.score) == (standing.rank, standing.score, sum(term.score for term in standing.terms))
        assert {term.term for term in standing.terms} <= {*query.terms, *query.expansions}


def test_a_chunk_matches_by_an_added_term_that_is_worth_nothing(base: Base) -> None:
    base.commit([make_document(str(number), f"{'the ' * (number + 1)}{'zebra' if not number else ''}") for number in range(9)])
    query = LexicalQuery(terms={"zebra": 1}, expansions={"the": 0})
    found = _search(base.snapshot(), query)

    assert 9 == found.matching
    assert [0] * 8 == [hit.score for hit in found.hits][1:]


def test_very_heavy_weights_do_not_overflow(base: Base) -> None:
    base.commit([make_document(str(number), "zebra" if number else "the zebra") for number in range(40)])
    (alone,) = _search(base.snapshot(), LexicalQuery(terms={"the": 1})).hits
    found = _search(base.snapshot(), LexicalQuery(terms={"zebra": 1}, expansions={"the": 1 << 24}), limit=1)

    assert found.hits[0].score > (alone.score << 16) > 1 << 31


# --- scores of any chunk ---


def test_what_a_caller_may_not_see_scores_nothing(base: Base) -> None:
    base.commit(
        [make_document("open", "zebra"), make_document("shut", "zebra", access=AccessRule(classification=Classification.RESTRICTED))]
    )
    snapshot = base.snapshot()
    query = LexicalQuery(terms={"zebra": 1})
    hits = _search(snapshot, query).hits
    seen = _scores(_search(snapshot, query, scope=READER))

    scoring: SupportsScoring = snapshot
    scored = scoring.scores(hits, query=query, dense=None, scope=READER)
    assert [seen.get(hit.chunk_id, 0) for hit in hits] == [each.lexical for each in scored]
    assert [None, None] == [each.dense for each in scored]
    assert [] == list(snapshot.scores((), query=query, dense=None, scope=READER))


# --- counted together ---


@pytest.mark.parametrize("sources", [("one",), ("one", "two")])
@pytest.mark.parametrize("scope", [OWNER, READER])
def test_counts_are_of_the_union_within_scope_and_narrowing(base: Base, scope: AccessScope, sources: Sequence[str]) -> None:
    _fill(base, sources=sources)
    snapshot = base.snapshot()
    all_of_them = _search(snapshot, LexicalQuery(terms=dict.fromkeys(WORDS, 1))).hits
    chance = random.Random(2)
    for _ in range(30):
        query, narrowing = _query(chance), chance.choice([None, parse('language = "en"')])
        also = [*chance.sample(all_of_them, 8), all_of_them[0], all_of_them[0]]
        allowed = _wanted(snapshot, all_of_them, scope=scope, narrowing=narrowing)
        words = _search(snapshot, query, scope=scope, narrowing=narrowing)
        union = {hit.chunk_id: hit for hit in (*words.hits, *(hit for hit in also if hit.chunk_id in allowed))}
        for facets in ((), ("source_id",)):
            found = _search(snapshot, query, scope=scope, narrowing=narrowing, facets=facets, also=also, limit=5)
            by_source = {source: sum(hit.source_id == source for hit in union.values()) for source in sources}

            assert words.hits[:5] == found.hits
            assert len(union) == found.matching
            assert {source: count for source, count in by_source.items() if count} == dict(found.matching_by_source)
            if facets:
                documents = {hit.document_id: hit.source_id for hit in union.values()}
                counted = {source: list(documents.values()).count(SourceId(source)) for source in sources}
                assert {source: count for source, count in counted.items() if count} == dict(found.facets["source_id"])


def _wanted(snapshot: EmbeddedSnapshot, hits: Sequence[SearchHit], *, scope: AccessScope, narrowing: Predicate | None) -> set[ChunkId]:
    shown = _search(snapshot, LexicalQuery(terms=dict.fromkeys(WORDS, 1)), scope=scope, narrowing=narrowing).hits
    return {hit.chunk_id for hit in shown} & {hit.chunk_id for hit in hits}


# --- what ranks a chunk besides its match ---


LENGTHS = (1, 2, 2, 5)


def test_signals_are_the_documents_facts_and_what_the_text_is_made_of(base: Base) -> None:
    texts = ["zebra", "$ zebra --all", "zebra = 1", "zebra IL-6 and DNA"]
    kinds = [ContentType.DOCUMENTATION, ContentType.RUNBOOK, ContentType.CONFIG, ContentType.CODE]
    tiers = [AuthorityTier.CANONICAL, AuthorityTier.USER, AuthorityTier.DERIVED, AuthorityTier.CURATED]
    moments = [None, datetime(2026, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC), None]
    expected = {}
    for number, (text, kind, tier, moment) in enumerate(zip(texts, kinds, tiers, moments, strict=True)):
        metadata = DocumentMetadata(source_id=SourceId("test"), content_type=kind, authority_tier=tier, updated_at=moment)
        base.commit([make_document(str(number), text, metadata=metadata)])
        signals = ChunkSignals(authority_tier=tier, content_type=kind, updated_at=moment, features=content_features(text, kind))
        expected[f"test:{number}"] = (signals, LENGTHS[number])
    snapshot = base.snapshot()
    hits = _search(snapshot, LexicalQuery(terms={"zebra": 1})).hits

    assert 4 == len(hits)
    assert [expected[hit.document_id] for hit in hits] == list(zip(snapshot.signals(hits), snapshot.lengths(hits), strict=True))
    assert [] == list(snapshot.signals(()))
    assert [] == list(snapshot.lengths(()))


def test_what_a_document_is_for_may_change_while_its_text_stays(base: Base) -> None:
    for kind in (ContentType.DOCUMENTATION, ContentType.CODE):
        base.commit([make_document("a", "zebra", metadata=DocumentMetadata(source_id=SourceId("test"), content_type=kind))])
        snapshot = base.snapshot()
        (signals,) = snapshot.signals(_search(snapshot, LexicalQuery(terms={"zebra": 1})).hits)

        assert content_features("zebra", kind) == signals.features


def test_a_base_from_before_definitions_and_features_is_searched_all_the_same(base: Base) -> None:
    base.commit([make_document("a", "the service level agreement (SLA) of 2026 says `zebra`")])
    base.strip_traits()
    snapshot = base.snapshot()
    hits = _search(snapshot, LexicalQuery(terms={"zebra": 1})).hits

    assert [ContentFeatures()] == [signals.features for signals in snapshot.signals(hits)]
    assert [] == snapshot.lexicon(OWNER).long_forms("SLA")
    assert [("level", 1)] == snapshot.lexicon(OWNER).similar("levle", edits=1)
