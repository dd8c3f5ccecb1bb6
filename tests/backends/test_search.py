"""Exact search over segments agrees with a naive reference that reads every chunk, whatever the history of the base."""

from __future__ import annotations

import random
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest

from evidentia.contracts.access import AccessRule, Principal, local_owner
from evidentia.contracts.documents import ChangeSet, DocumentMetadata
from evidentia.contracts.ids import DocumentId, PrincipalId, SourceId, TenantId
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicate_values import Number
from evidentia.contracts.predicates import And, Compare, Contains, Exists, In, Not, NotIn, Or, matches
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.contracts.vocabulary import AuthorityTier, Classification
from evidentia.policy.access import access_scope
from evidentia.query.lexical import lexical_query
from evidentia.testing.determinism import START
from evidentia.testing.documents import make_document
from evidentia.text.tokens import Tokeniser
from evidentia.text.weights import Bm25, idf_fixed
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from evidentia.contracts.access import AccessRule as Rule
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.predicate_values import Value
    from evidentia.contracts.predicates import Predicate
    from evidentia.contracts.search import AccessScope, LexicalHits
    from evidentia.wiring.embedded import EmbeddedComponents

TOKENISER = Tokeniser("english")
NAMES = ["IL-6", "rotate_keys", "HTTPServer2", "\N{GREEK SMALL LETTER BETA}-catenin"]
WORDS = ["key", "keys", "rotate", "the", "x", "zebra", "don't", "naïve", "☃", "ключ", "東京都", *NAMES]
OWNER = access_scope(local_owner(), acl_scope=None, rules=())
STRANGER = access_scope(Principal(principal_id=PrincipalId("s"), tenant=TenantId("elsewhere")), acl_scope=None, rules=())
READER = access_scope(Principal(principal_id=PrincipalId("r"), clearance=Classification.INTERNAL, groups=("a",)), acl_scope=None, rules=())
FACETS = ("language", "tags", "source_id", "authority_tier", "extra.n", "author", "classification")
SETTINGS = [
    SearchSettings(),
    SearchSettings(idf="robertson"),
    SearchSettings(weighting="tfidf"),
    SearchSettings(k1_milli=0, b_milli=0),
    SearchSettings(k1_milli=10_000, b_milli=1_000, idf="robertson"),
]


# --- the reference ---


class Chunk(NamedTuple):
    chunk_id: str
    document_id: str
    source_id: str
    text: str
    record: dict[str, object]


class Reference:
    """Every visible chunk in a list, scored one by one in plain integers."""

    def __init__(self, documents: Sequence[PreparedDocument], scope: AccessScope, search: SearchSettings) -> None:
        seen = [document for document in documents if _is_seen(document.access, scope)]
        self._chunks = [chunk for document in seen for chunk in _chunks(document)]
        self._terms = [TOKENISER.terms(chunk.text) for chunk in self._chunks]
        self._lengths = [sum(TOKENISER.analyse(word).span for word in chunk.text.split()) for chunk in self._chunks]
        self._containing = Counter(term for terms in self._terms for term in set(terms))
        self._search = search

    def answer(
        self, query: LexicalQuery, *, narrowing: Predicate | None, limit: int
    ) -> tuple[list[tuple[str, int]], int, dict[str, int], dict[str, dict[str, int]]]:
        """Return the best (chunk id, score), how many match, how many per source, and the counts of every facet."""
        found = [
            (self._score(number, query), chunk) for number, chunk in enumerate(self._chunks) if self._is_match(number, query, narrowing)
        ]
        ordered = sorted(found, key=lambda each: (-each[0], each[1].chunk_id))
        matching = [chunk for _, chunk in found]
        return (
            [(chunk.chunk_id, score) for score, chunk in ordered[:limit]],
            len(found),
            _counted([chunk.source_id for chunk in matching]),
            {field: _facet(field, matching) for field in FACETS},
        )

    def _is_match(self, number: int, query: LexicalQuery, narrowing: Predicate | None) -> bool:
        chunk = self._chunks[number]
        is_wanted = narrowing is None or matches(narrowing, chunk.record)
        return (
            is_wanted
            and not set(query.terms).isdisjoint(self._terms[number])
            and all(_has_phrase(chunk.text, each) for each in query.phrases)
        )

    def _score(self, number: int, query: LexicalQuery) -> int:
        held = set(self._terms[number])
        weighed = (
            times * ((self._impact(number, term) * query.weights.get(term, 256)) >> 8)
            for term, times in query.terms.items()
            if term in held
        )
        return sum(weighed) + sum(self._bonus(number, phrase) for phrase in query.preferred)

    def _bonus(self, number: int, phrase: Sequence[str]) -> int:
        """Return what a phrase that is preferred adds where it stands: what its terms are worth, once more."""
        is_held = _has_phrase(self._chunks[number].text, phrase)
        return max(0, sum(self._impact(number, term) for term in set(phrase))) if is_held else 0

    def _impact(self, number: int, term: str) -> int:
        frequency = self._terms[number].count(term)
        if self._search.weighting == "tfidf":
            return frequency * idf_fixed("tfidf", documents=len(self._chunks), containing=self._containing[term])
        weights = Bm25.of(
            total_length=sum(self._lengths), documents=len(self._chunks), k1_milli=self._search.k1_milli, b_milli=self._search.b_milli
        )
        idf = idf_fixed(self._search.idf, documents=len(self._chunks), containing=self._containing[term])
        return weights.impact(frequency, self._lengths[number], idf=idf)


def _is_seen(rule: Rule, scope: AccessScope) -> bool:
    caller = scope.principal
    is_cleared = rule.tenant == caller.tenant and rule.classification.rank <= caller.clearance.rank
    return is_cleared and (not rule.acl or caller.is_owner or any(f"group:{group}" in rule.acl for group in caller.groups))


def _chunks(document: PreparedDocument) -> Iterator[Chunk]:
    metadata = document.metadata
    record = {name: getattr(metadata, name) for name in metadata.__struct_fields__}
    record |= {"document_id": document.document_id, "tenant": document.access.tenant, "classification": document.access.classification}
    for chunk in document.chunks:
        text = document.text[chunk.start : chunk.end]
        yield Chunk(chunk.chunk_id, document.document_id, document.source_id, text, record)


def _has_phrase(text: str, phrase: Sequence[str]) -> bool:
    at: dict[int, set[str]] = {}
    for term, position in TOKENISER.terms_with_positions(text):
        at.setdefault(position, set()).add(term)
    return any(all(term in at.get(start + offset, ()) for offset, term in enumerate(phrase)) for start in at)


def _facet(field: str, matching: Sequence[Chunk]) -> dict[str, int]:
    values: list[str] = []
    for record in {chunk.document_id: chunk.record for chunk in matching}.values():
        extra = record["extra"]
        assert isinstance(extra, dict)
        value = extra.get("n") if field == "extra.n" else record[field]
        members = value if isinstance(value, tuple) else () if value is None else (value,)
        values += [str(member) for member in members]
    return _counted(values)


def _counted(values: Sequence[str]) -> dict[str, int]:
    return {value: values.count(value) for value in sorted(set(values))}


# --- random worlds ---


class World:
    """A base and, beside it, the list of documents that it should hold."""

    def __init__(self, directory: Path) -> None:
        embedded.create(directory)
        self.parts = embedded.open_parts(directory)
        self.documents: dict[str, PreparedDocument] = {}

    def commit(self, documents: Sequence[PreparedDocument] = (), removals: Sequence[str] = ()) -> None:
        writer = self.parts.writer()
        try:
            writer.commit(ChangeSet(documents=tuple(documents), removals=tuple(DocumentId(each) for each in removals)))
        finally:
            writer.close()
        for removed in removals:
            del self.documents[removed]
        self.documents |= {document.document_id: document for document in documents}

    def check(
        self, query: LexicalQuery, *, scope: AccessScope, narrowing: Predicate | None, search: SearchSettings, limit: int
    ) -> LexicalHits:
        """Compare one search, with and without facets, with the reference."""
        snapshot = self.parts.index.at(search=search)
        best, matching, by_source, facets = Reference(list(self.documents.values()), scope, search).answer(
            query, narrowing=narrowing, limit=limit
        )
        plain = snapshot.search(query, scope=scope, narrowing=narrowing, facets=(), limit=limit)
        listed = snapshot.search(query, scope=scope, narrowing=narrowing, facets=FACETS, limit=limit)

        for hits in (plain, listed):
            assert best == [(hit.chunk_id, hit.score) for hit in hits.hits]
            assert matching == hits.matching
            assert by_source == dict(hits.matching_by_source)
        assert facets == {field: dict(counts) for field, counts in listed.facets.items()}
        for counts in listed.facets.values():
            assert sorted(counts.items(), key=lambda each: (-each[1], each[0])) == list(counts.items())
        self._check_standings(query, plain, scope=scope, narrowing=narrowing, search=search)
        return plain

    def _check_standings(
        self, query: LexicalQuery, hits: LexicalHits, *, scope: AccessScope, narrowing: Predicate | None, search: SearchSettings
    ) -> None:
        snapshot = self.parts.index.at(search=search)
        for rank, hit in enumerate(hits.hits[:3], start=1):
            standing = snapshot.standing(query, scope=scope, narrowing=narrowing, chunk_id=hit.chunk_id)
            assert standing is not None
            assert (rank, hit.score) == (standing.rank, standing.score)
            assert hit.score == sum(term.score for term in standing.terms)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return an empty world."""
    made = World(tmp_path / "base")
    yield made
    made.parts.close()


def _document(own_id: str, chance: random.Random) -> PreparedDocument:
    """Return a document of one to three chunks whose words, metadata and access are drawn."""
    pieces = [" ".join(chance.choices(WORDS, k=chance.randint(0, 12))) for _ in range(chance.randint(1, 3))]
    text = "\n".join(piece or "-" for piece in pieces)
    spans, start = [], 0
    for piece in text.split("\n"):
        spans.append((start, start + len(piece)))
        start += len(piece) + 1
    source = chance.choice(["one", "two"])
    metadata = DocumentMetadata(
        source_id=SourceId(source),
        language=chance.choice(["en", "de", "und"]),
        tags=tuple(sorted(chance.sample(["a", "b", "c"], chance.randint(0, 3)))),
        authority_tier=chance.choice(list(AuthorityTier)),
        author=PrincipalId("ann") if chance.random() < 0.3 else None,
        updated_at=START if chance.random() < 0.5 else None,
        extra={"n": chance.choice(["1", "2", "1.5", "true", "false", "x"])} if chance.random() < 0.8 else {},
    )
    access = AccessRule(
        tenant=TenantId(chance.choice(["default", "default", "elsewhere"])),
        classification=chance.choice(list(Classification)),
        acl=chance.choice([(), (), ("group:a",), ("group:b", "user:z")]),
    )
    return make_document(f"{source}-{own_id}", text, source=source, metadata=metadata, access=access, spans=spans)


def _query(chance: random.Random) -> LexicalQuery:
    text = " ".join(chance.choices([*WORDS, "nowhere"], k=chance.randint(1, 6)))
    if chance.random() < 0.3:
        text += f' {chance.choice(["", "", "+"])}"{" ".join(chance.choices(WORDS, k=2))}"'
    return lexical_query(text, TOKENISER)


def _narrowing(chance: random.Random, depth: int = 2) -> Predicate:
    if depth and chance.random() < 0.5:
        clauses = tuple(_narrowing(chance, depth - 1) for _ in range(chance.randint(0, 3)))
        composed: list[Predicate] = [And(clauses), Or(clauses), Not(_narrowing(chance, depth - 1))]
        return chance.choice(composed)
    literals: list[Value] = [1, True, False, "1", Number("1.5")]
    atoms: list[Predicate] = [
        Compare("language", chance.choice(["=", "!="]), chance.choice(["en", "de", "fr"])),
        Compare("authority_tier", chance.choice(["<", "<=", ">", ">="]), "derived"),
        Compare("extra.n", "=", chance.choice(literals)),
        Compare("updated_at", ">=", "2026-01-01T00:00:00Z"),
        Contains("tags", "a"),
        In("tags", ("a", "b")),
        NotIn("extra.n", (1, "x")),
        Exists("author"),
        Compare("classification", "<=", "internal"),
        In("source_id", ("one",)),
    ]
    return chance.choice(atoms)


# --- exactness ---


@pytest.mark.parametrize("seed", range(12))
def test_search_equals_the_reference_after_any_history(tmp_path: Path, seed: int) -> None:
    """Documents are added, replaced and removed over several commits, with collections in between; each state is asked."""
    chance = random.Random(seed)
    world = World(tmp_path / "base")
    try:
        for _ in range(4):
            fresh = [_document(str(chance.randrange(24)), chance) for _ in range(chance.randint(1, 12))]
            gone = sorted(world.documents.keys() - {document.document_id for document in fresh})
            distinct = {document.document_id: document for document in fresh}
            world.commit(list(distinct.values()), chance.sample(gone, chance.randint(0, len(gone) // 3)))
            if chance.random() < 0.4:
                world.parts.collector().collect(keep_versions=chance.randint(1, 2))
            for _ in range(12):
                world.check(
                    _query(chance),
                    scope=chance.choice([OWNER, OWNER, READER, STRANGER]),
                    narrowing=_narrowing(chance) if chance.random() < 0.6 else None,
                    search=chance.choice(SETTINGS),
                    limit=chance.choice([1, 2, 3, 10, 100]),
                )
    finally:
        world.parts.close()


@pytest.mark.parametrize("search", SETTINGS)
def test_a_term_in_every_document_matches_whatever_it_is_worth(world: World, search: SearchSettings) -> None:
    """Under tf-idf such a term is worth nothing, under Robertson's idf less than nothing; it matches all the same."""
    world.commit([make_document(str(number), f"the {'the ' * (number % 3)}{'zebra' if number < 2 else 'x'}") for number in range(9)])
    for text in ("the", "the zebra", "the nowhere"):
        for limit in (1, 4, 9, 100):
            hits = world.check(lexical_query(text, TOKENISER), scope=OWNER, narrowing=None, search=search, limit=limit)
            assert 9 == hits.matching


def test_ties_at_the_limit_are_cut_by_chunk_id(world: World) -> None:
    """Equal texts in 60 documents over 3 segments, ingested in an order that is not that of their ids."""
    for part in range(3):
        world.commit([make_document(f"{(number * 37 + part) % 101:03}-{part}", "same words") for number in range(20)])
    everything = sorted(chunk.chunk_id for document in world.documents.values() for chunk in document.chunks)
    for limit in (1, 7, 59, 60, 61):
        hits = world.check(lexical_query("words", TOKENISER), scope=OWNER, narrowing=None, search=SearchSettings(), limit=limit)
        assert everything[:limit] == [hit.chunk_id for hit in hits.hits]


def test_the_best_are_found_among_many_places(world: World) -> None:
    """More places than the first bound looks at, common and rare terms, small limits."""
    chance = random.Random(5)
    texts = [
        " ".join(chance.choices(["a1", "b1", "c1", "rare" if number % 97 == 0 else "d1"], k=chance.randint(1, 9)))
        for number in range(1_200)
    ]
    world.commit([make_document(str(number), text) for number, text in enumerate(texts)])
    reference = Reference(list(world.documents.values()), OWNER, SearchSettings())
    snapshot = world.parts.index.at(search=SearchSettings())
    for text in ("a1", "rare", "a1 rare"):
        query = lexical_query(text, TOKENISER)
        best, matching, _, _ = reference.answer(query, narrowing=None, limit=10)
        hits = snapshot.search(query, scope=OWNER, narrowing=None, facets=(), limit=10)

        assert best == [(hit.chunk_id, hit.score) for hit in hits.hits]
        assert matching == hits.matching


@pytest.mark.parametrize("search", [SearchSettings(), SearchSettings(k1_milli=10_000), SearchSettings(weighting="tfidf")])
def test_very_many_query_terms_do_not_overflow(world: World, search: SearchSettings) -> None:
    """Sums beyond 32 bits, by many terms and by one term asked for very often, common or rare."""
    chance = random.Random(2)
    vocabulary = [f"w{number}" for number in range(300)]
    world.commit([make_document(str(number), " ".join(chance.choices(vocabulary, k=60))) for number in range(40)])
    world.commit(
        [make_document("once", "zebra"), make_document("often", "zebra " * 50), *(make_document(f"c{n}", "common") for n in range(6))]
    )
    many = lexical_query(" ".join(vocabulary), TOKENISER)
    for terms in (many.terms, {"zebra": 16_000}, {"common": 16_000, "zebra": 9_000}, dict.fromkeys(many.terms, 400)):
        hits = world.check(LexicalQuery(terms=terms), scope=OWNER, narrowing=None, search=search, limit=5)
        assert all(hit.score > 0 for hit in hits.hits)
    assert world.check(LexicalQuery(terms={"zebra": 1 << 15}), scope=OWNER, narrowing=None, search=search, limit=1).hits[0].score > 2**31


# --- phrases ---


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"rotate keys"', ["a", "c"]),
        ('"keys rotate"', ["b"]),
        ('"rotate the keys"', ["d"]),
        ('"rotate keys" zebra', ["a", "c"]),
        ('zebra "nowhere keys"', []),
        ('"東京"', ["e"]),
        ('"京東"', []),
        ('"IL 6"', ["f"]),
        ('"rotate keys" "keys rotate"', []),
    ],
)
def test_a_required_phrase_stands_together_and_in_order(world: World, text: str, found: list[str]) -> None:
    texts = {
        "a": "rotate keys now",
        "b": "keys rotate",
        "c": "call rotate_keys",
        "d": "rotate the keys zebra",
        "e": "東京都",
        "f": "IL-6 rises",
    }
    world.commit([make_document(own_id, content) for own_id, content in texts.items()])
    hits = world.check(lexical_query(_required(text), TOKENISER), scope=OWNER, narrowing=None, search=SearchSettings(), limit=10)

    assert sorted(f"test:{own_id}" for own_id in found) == sorted(hit.document_id for hit in hits.hits)


def test_a_phrase_does_not_reach_from_one_chunk_into_the_next(world: World) -> None:
    world.commit([make_document("two", "rotate\nkeys", spans=[(0, 6), (7, 11)]), make_document("one", "rotate\nkeys")])
    hits = world.check(lexical_query('+"rotate keys"', TOKENISER), scope=OWNER, narrowing=None, search=SearchSettings(), limit=10)

    assert ["test:one"] == [hit.document_id for hit in hits.hits]


def test_a_word_longer_than_a_term_makes_no_phrase_of_what_is_not_there(world: World) -> None:
    """Its whole and its first part are cut to the same term at the same position, so that term stands there twice."""
    long_word = "a" * 70
    world.commit([make_document("long", f"{long_word}-1 foo"), make_document("other", "bar")])
    for text in (f'foo "{long_word} qqq"', f'foo "{long_word}-1 qqq"', f'foo "{long_word} bar"', f'"{long_word}-1 foo"'):
        for asked in (text, _required(text)):
            world.check(lexical_query(asked, TOKENISER), scope=OWNER, narrowing=None, search=SearchSettings(), limit=10)


def _required(text: str) -> str:
    return re.sub(r'"[^"]+"', lambda quoted: f"+{quoted[0]}", text)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("search", SETTINGS)
def test_quotation_marks_never_take_a_match_away(tmp_path: Path, seed: int, search: SearchSettings) -> None:
    """Any stretch of a question may be quoted, by any marks: what matches stays, nothing that holds the stretch scores less."""
    chance = random.Random(seed)
    world = World(tmp_path / "base")
    try:
        world.commit([_document(str(number), chance) for number in range(20)])
        snapshot = world.parts.index.at(search=search)
        for scope in (OWNER, READER):
            words = chance.choices(WORDS, k=chance.randint(2, 6))
            start = chance.randrange(len(words) - 1)
            stretch = words[start : start + chance.randint(2, 4)]
            marks = chance.choice(['""', "``", "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"])
            quoted = " ".join([*words[:start], f"{marks[0]}{' '.join(stretch)}{marks[1]}", *words[start + len(stretch) :]])
            plain, preferring = (
                snapshot.search(lexical_query(text, TOKENISER), scope=scope, narrowing=None, facets=(), limit=1_000)
                for text in (" ".join(words), quoted)
            )
            before, after = ({hit.chunk_id: hit.score for hit in found.hits} for found in (plain, preferring))

            assert before.keys() == after.keys()
            assert plain.matching == preferring.matching
            assert all(score <= after[chunk_id] for chunk_id, score in before.items())
            assert [after[hit.chunk_id] for hit in preferring.hits] == [
                legs.lexical for legs in snapshot.scores(preferring.hits, query=lexical_query(quoted, TOKENISER), dense=None, scope=scope)
            ]
            assert all(score <= preferring.attainable for score in after.values())
    finally:
        world.parts.close()


def test_what_holds_a_quotation_is_raised_above_what_has_its_words_apart(world: World) -> None:
    world.commit([make_document("apart", "keys keys rotate rotate zebra"), make_document("together", "zebra x x x rotate keys")])
    plain, quoted = (
        world.check(lexical_query(text, TOKENISER), scope=OWNER, narrowing=None, search=SearchSettings(), limit=10)
        for text in ("rotate keys", '"rotate keys"')
    )

    assert ["test:apart", "test:together"] == [plain.hits[0].document_id, quoted.hits[0].document_id]
    assert 2 == plain.matching == quoted.matching


def test_a_hidden_document_has_no_part_in_a_phrase(world: World) -> None:
    """The same question, asked by a reader with and without a hidden document that holds the phrase."""
    shown = [make_document("a", "rotate keys"), make_document("b", "keys rotate x")]
    query = lexical_query('"rotate keys"', TOKENISER)
    world.commit(shown)
    before = world.check(query, scope=READER, narrowing=None, search=SearchSettings(), limit=10)
    hidden = AccessRule(classification=Classification.RESTRICTED)
    world.commit([make_document("hidden", "rotate keys rotate keys", access=hidden)])
    after = world.check(query, scope=READER, narrowing=None, search=SearchSettings(), limit=10)

    assert [(hit.chunk_id, hit.score) for hit in before.hits] == [(hit.chunk_id, hit.score) for hit in after.hits]
    assert (before.matching, before.attainable) == (after.matching, after.attainable)


# --- filters ---


def test_filters_that_python_holds_to_be_equal_stay_apart(world: World) -> None:
    """`1` and `true` are equal to Python, not to a filter; what was asked first must not answer what is asked next."""
    values = ["1", "true", "1.0", "false", "0"]
    metadata = [DocumentMetadata(source_id=SourceId("test"), extra={"n": value}) for value in values]
    world.commit([make_document(value, "key", metadata=each) for value, each in zip(values, metadata, strict=True)])
    found = {}
    for text in ("extra.n = 1", "extra.n = true", "extra.n = 1.0", "extra.n = 0", "extra.n = false", 'extra.n = "1"'):
        hits = world.check(lexical_query("key", TOKENISER), scope=OWNER, narrowing=parse(text), search=SearchSettings(), limit=9)
        found[text] = sorted(hit.document_id for hit in hits.hits)

    assert ["test:1", "test:1.0"] == found["extra.n = 1"]
    assert ["test:true"] == found["extra.n = true"]
    assert ["test:false"] == found["extra.n = false"]


def test_a_filter_leaves_the_scores_as_they_are(world: World) -> None:
    chance = random.Random(3)
    world.commit([_document(str(number), chance) for number in range(30)])
    query = lexical_query("key rotate zebra", TOKENISER)
    snapshot = world.parts.index.at(search=SearchSettings())
    everything = {hit.chunk_id: hit.score for hit in snapshot.search(query, scope=OWNER, narrowing=None, facets=(), limit=1_000).hits}
    kept = snapshot.search(query, scope=OWNER, narrowing=parse('language = "en"'), facets=(), limit=1_000).hits

    assert kept
    assert all(everything[hit.chunk_id] == hit.score for hit in kept)


# --- edges ---


def test_an_empty_base_and_a_blind_caller_find_nothing(world: World) -> None:
    query = lexical_query("key", TOKENISER)
    empty = world.check(query, scope=OWNER, narrowing=parse('language = "en"'), search=SearchSettings(), limit=10)
    world.commit([make_document(str(number), "key") for number in range(3)])
    blind = world.check(query, scope=STRANGER, narrowing=None, search=SearchSettings(), limit=10)
    world.commit(removals=sorted(world.documents))
    emptied = world.check(query, scope=OWNER, narrowing=None, search=SearchSettings(), limit=10)

    assert [0, 0, 0] == [empty.matching, blind.matching, emptied.matching]
    assert {} == world.parts.index.at(search=SearchSettings()).sources(OWNER)


def test_a_query_without_terms_finds_nothing(world: World) -> None:
    world.commit([make_document("a", "key"), make_document("b", "☃ …")])

    assert 0 == world.check(lexical_query("☃ ?!", TOKENISER), scope=OWNER, narrowing=None, search=SearchSettings(), limit=10).matching


def test_a_chunk_that_is_not_seen_has_no_standing(world: World) -> None:
    world.commit([make_document("a", "key")])
    (chunk,) = world.documents["test:a"].chunks
    snapshot = world.parts.index.at(search=SearchSettings())
    query = lexical_query("key", TOKENISER)

    assert snapshot.standing(query, scope=OWNER, narrowing=None, chunk_id=chunk.chunk_id) is not None
    assert snapshot.standing(query, scope=STRANGER, narrowing=None, chunk_id=chunk.chunk_id) is None
    for wrong in ("", "test:a", "test:a#0", "test:a#1@00", "test:a#x@00", "test:a#0@0000000000000000", "test:a#²@00", f"test:a#{2**70}@00"):
        assert snapshot.standing(query, scope=OWNER, narrowing=None, chunk_id=msgspec.convert(wrong, type(chunk.chunk_id))) is None


# --- threads ---


@pytest.mark.parametrize("search", [SearchSettings(), SearchSettings(idf="robertson"), SearchSettings(weighting="tfidf")])
def test_many_threads_on_one_snapshot_get_what_one_gets(world: World, search: SearchSettings) -> None:
    chance = random.Random(11)
    for _ in range(3):
        world.commit([_document(str(number), chance) for number in chance.sample(range(60), 30)])
    asked = [(_query(chance), chance.choice([OWNER, READER]), _narrowing(chance), chance.choice([1, 5, 50])) for _ in range(120)]
    alone = [_searcher(world.parts, search)(each) for each in asked]
    fresh = embedded.open_parts(world.parts.directory)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(_searcher(fresh, search), asked * 5))
    fresh.close()

    assert alone * 5 == together


def _searcher(
    parts: EmbeddedComponents, search: SearchSettings
) -> Callable[[tuple[LexicalQuery, AccessScope, Predicate, int]], tuple[LexicalHits, LexicalHits]]:
    snapshot = parts.index.at(search=search)

    def ask(asked: tuple[LexicalQuery, AccessScope, Predicate, int]) -> tuple[LexicalHits, LexicalHits]:
        query, scope, narrowing, limit = asked
        return (
            snapshot.search(query, scope=scope, narrowing=narrowing, facets=FACETS, limit=limit),
            snapshot.search(query, scope=scope, narrowing=None, facets=(), limit=limit),
        )

    return ask
