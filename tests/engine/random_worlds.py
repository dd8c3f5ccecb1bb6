"""Small random worlds for the noninterference test: corpora with a history, some of it with vectors, people, and what they ask.

Texts repeat on purpose, so that equal scores are common and the order between them is put to the test. The same instant
is written with several offsets, and the same free value as text, number and flag, because two spellings of one value
are where a neighbour could show through.
"""

from __future__ import annotations

import codecs
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from engine.access_oracle import RULES, may_see
from engine.visible_contents import drawn_layout
from engine.world_texts import LEANING, make_query, make_texts, spans_of
from evidentia.contracts.access import AccessRule, Principal
from evidentia.contracts.documents import AccessChange, ChangeSet, DocumentMetadata
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest, RankingWeights, SubQuery, Task, TimeWindow, Turn
from evidentia.contracts.ids import PrincipalId, SemanticVersion, SourceId, TenantId
from evidentia.contracts.settings import AccessSettings, QuerySettings, RankingSettings, SearchSettings, Settings
from evidentia.contracts.sources import SourcePolicy
from evidentia.contracts.vocabulary import (
    AuthorityTier,
    Classification,
    ContentType,
    DeprecationStatus,
    FusionMethod,
    QueryStepName,
    RetrievalMode,
    Similarity,
)
from evidentia.testing.documents import make_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from engine.access_oracle import Rule
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.ids import DocumentId

Choice = TypeVar("Choice")

SOURCES = ("wiki", "code", "mail", "logs")
TENANTS = ("default", "default", "default", "default", "other")
TAGS = ("ops", "open", "draft", "legal")
REGIONS = ("eu", "us")
ENTRIES = ("user:ann", "user:bob", "group:ops", "group:legal", "role:auditor", "role:pilot")
NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)
MOMENTS = (
    NOON,
    NOON.astimezone(timezone(timedelta(hours=2))),
    NOON.astimezone(timezone(timedelta(hours=-5))),
    datetime(2025, 3, 1, 10, tzinfo=UTC),
    datetime(2023, 1, 1, tzinfo=UTC),
)
AS_OF = datetime(2026, 2, 1, tzinfo=UTC)
BEFORE_TEXT = (0, 35, 35, 100, 250)
"""Tokens of a budget that go to the tags (about 35 each) and to whole fragments before one that may have to be cut."""
WEIGHTS = (
    (0.45, 0.25, 0.15, 0.15), (0.45, 0.25, 0.15, 0.15), (1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (0.25, 0.25, 0.25, 0.25),
    (0.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.333333, 0.333333, 0.333334, 0.0), (0.7, 0.0, 0.0, 0.3),
)  # fmt: skip
TASKS = ("coding", "Operations", "configuration", "explanation", "dancing")
FACETS = (
    "source_id", "document_id", "title", "path", "content_type", "language", "created_at", "updated_at", "author", "classification",
    "tags", "version", "deprecation_status", "authority_tier", "tenant", "media_type", "extra.region", "extra.level",
)  # fmt: skip
FILTERS = (
    'source_id = "wiki"', 'source_id not in ("wiki", "logs")', 'document_id contains "a"', 'title contains "pier"', 'path < "m"',
    'content_type in ("runbook", "log")', 'language != "de"', 'created_at < "2025-01-01"', 'updated_at = "2024-06-01T12:00:00Z"',
    "author exists", 'author = "ann"', 'classification <= "internal"', 'classification = "restricted"', 'tags contains "ops"',
    'tags != "draft"', 'version >= "1.2"', 'deprecation_status = "active"', 'authority_tier >= "curated"', 'tenant = "default"',
    'media_type = "text/plain"', 'extra.region = "eu"', "extra.level >= 2", "extra.level = 1", "extra.level = true",
    "extra.level in (1, 2)", "extra.level in (true, 2)", 'extra.level = "1"', "NOT extra.region exists", "FALSE",
)  # fmt: skip


class World(NamedTuple):
    """A corpus with its past: the commits that made it, what was live after each of them, and which texts had vectors then."""

    settings: Settings
    rules: tuple[Rule, ...]
    commits: tuple[ChangeSet, ...]
    versions: tuple[Mapping[DocumentId, PreparedDocument], ...]
    embedded: tuple[frozenset[str], ...]

    @property
    def documents(self) -> Mapping[DocumentId, PreparedDocument]:
        """Return what is live at the end."""
        return self.versions[-1]

    def last_known(self, document_id: DocumentId) -> PreparedDocument:
        """Return a document as it was last, whether or not it is still live."""
        return next(version[document_id] for version in reversed(self.versions) if document_id in version)


def make_world(rng: Random) -> World:
    """Return a world of 3 to 12 documents at each moment of a history of three commits."""
    texts = make_texts(rng)
    rules = tuple(rng.sample(RULES, rng.choice((0, 0, 0, 1, 1, 2))))
    settings = Settings(
        search=_search(rng),
        access=AccessSettings(rules=tuple(rule.text for rule in rules)),
        query=_query_settings(rng),
        ranking=_ranking(rng),
    )
    live: dict[DocumentId, PreparedDocument] = {}
    commits, versions = [], []
    for stage in range(3):
        changes = _changes(rng, live, texts=texts, is_first=stage == 0)
        live = _applied(live, changes)
        commits.append(changes)
        versions.append(live)
    return World(settings=settings, rules=rules, commits=tuple(commits), versions=tuple(versions), embedded=_embedded(rng, texts))


def make_principal(rng: Random) -> Principal:
    """Return someone with random rights; one in ten is an owner."""
    attributes = {
        "team": rng.choice(TAGS),
        "region": rng.choice(REGIONS),
        "banned": rng.choice(TAGS),
        "language": rng.choice(("en", "de")),
        "since": rng.choice(("2024-01-01", "2025-03-01T12:00:00+02:00", "soon")),
        "ceiling": rng.choice(("internal", "Confidential", "restricted", "cosmic")),
        "login": rng.choice(("ann", "bob")),
        "mark": rng.choice(("a", "wiki", "$caller.team")),
    }
    return Principal(
        principal_id=PrincipalId(rng.choice(("ann", "bob", "cid"))),
        tenant=TenantId(rng.choice(TENANTS)),
        clearance=rng.choice((*Classification, Classification.CONFIDENTIAL, Classification.RESTRICTED)),
        roles=tuple(rng.sample(("auditor", "pilot", "cook"), rng.randint(0, 2))),
        groups=tuple(rng.sample(("ops", "legal", "choir"), rng.randint(0, 2))),
        attributes={name: value for name, value in attributes.items() if rng.random() < 0.8},
        is_owner=rng.random() < 0.1,
    )


def make_request(rng: Random) -> EvidenceRequest:
    """Return a request that leaves no field of the contract unused for long."""
    is_leaning = rng.random() < 0.1
    return EvidenceRequest(
        query=_query(rng, is_leaning=is_leaning),
        turns=(Turn(role="user", text=make_query(rng)),) if is_leaning else (),
        task=_maybe(rng, 0.4, Task(type=rng.choice(TASKS))),
        ranking_weights=RankingWeights(**dict(zip(RankingWeights.__struct_fields__, rng.choice(WEIGHTS), strict=True))),
        diversity_constraint=rng.choice((0.7, 0.7, 0.0, 0.3, 1.0, 1.0)),
        source_policy=_policy(rng),
        token_budget=_maybe(rng, 0.45, rng.choice(BEFORE_TEXT) + rng.randint(1, 40)),
        tokenizer=rng.choice(("chars4", "o200k_base")),
        as_of=_maybe(rng, 0.5, AS_OF),
        time_window=_maybe(rng, 0.15, _window(rng)),
        filter=_maybe(rng, 0.35, _filter(rng)),
        facets=tuple(rng.sample(FACETS, rng.choice((0, 1, 3)))),
        mode=rng.choice((*3 * (RetrievalMode.HYBRID,), RetrievalMode.LEXICAL, RetrievalMode.DENSE)),
        fusion=rng.choice((FusionMethod.LINEAR, FusionMethod.RRF, FusionMethod.RRF)),
        without=tuple(rng.sample(tuple(QueryStepName), rng.choice((0, 0, 0, 1, 2)))),
        limit=rng.choice((1, 2, 3, 5, 10, 20)),
        explain=rng.random() < 0.4,
        receipt=False,
    )


def make_documents(rng: Random, count: int, *, text: str) -> list[PreparedDocument]:
    """Return documents with one text and every kind of access and metadata."""
    return [make_document_named(rng, source=rng.choice(SOURCES), own_id=f"{rng.choice('abcxyz')}{n}", text=text) for n in range(count)]


def make_document_named(rng: Random, *, source: str, own_id: str, text: str) -> PreparedDocument:
    """Return a document with random access and metadata, one chunk per line; some have pictures and tables."""
    access, metadata = make_access(rng), _metadata(rng, source)
    images, tables = drawn_layout(Random(f"{source} {own_id} {text} {access}"))
    spans = spans_of(text)
    return make_document(own_id, text, source=source, access=access, metadata=metadata, spans=spans, images=images, tables=tables)


def make_access(rng: Random) -> AccessRule:
    """Return an access rule; one in four is open to the tenant, half of the others have no ACL."""
    if rng.random() < 0.25:
        return AccessRule(tenant=TenantId("default"), classification=Classification.PUBLIC)
    return AccessRule(
        tenant=TenantId(rng.choice(TENANTS)),
        classification=rng.choice((*Classification, Classification.PUBLIC, Classification.PUBLIC, Classification.INTERNAL)),
        acl=tuple(sorted(rng.sample(ENTRIES, rng.choice((0, 0, 0, 1, 2, 3))))),
    )


def hidden_from(person: Principal, world: World) -> frozenset[DocumentId]:
    """Return the documents of which a person sees nothing in the newest version, by the last rule that each had."""
    ever = {document_id for version in world.versions for document_id in version}
    return frozenset(each for each in ever if not may_see(person, world.last_known(each), rules=world.rules))


def disguised_commit(changes: ChangeSet, hidden: AbstractSet[DocumentId]) -> ChangeSet:
    """Return a commit in which some documents say something else, in as many words and as long ones."""
    documents = tuple(_disguised(each) if each.document_id in hidden else each for each in changes.documents)
    return msgspec.structs.replace(changes, documents=documents)


def disguised_text(text: str) -> str:
    """Return a text whose words occur nowhere."""
    return codecs.encode(text, "rot13")


def _disguised(document: PreparedDocument) -> PreparedDocument:
    own_id = document.document_id.partition(":")[2]
    text = disguised_text(document.text)
    return make_document(own_id, text, source=document.source_id, access=document.access, metadata=_bare(document), spans=spans_of(text))


def _bare(document: PreparedDocument) -> DocumentMetadata:
    return msgspec.structs.replace(document.metadata, layout=None)


def _changes(rng: Random, live: Mapping[DocumentId, PreparedDocument], *, texts: Sequence[str], is_first: bool) -> ChangeSet:
    """Return a commit: at first only new documents, later also other texts, other access and removals."""
    documents: dict[DocumentId, PreparedDocument] = {}
    for _ in range(rng.randint(4, 9) if is_first else rng.randint(1, 4)):
        own_id = f"{rng.choice('abxy')}{rng.randint(1, 3)}"
        made = make_document_named(rng, source=rng.choice(SOURCES), own_id=own_id, text=rng.choice(texts))
        documents[made.document_id] = made
    untouched = [document_id for document_id in live if document_id not in documents]
    rng.shuffle(untouched)
    removed = 0 if is_first else rng.randint(0, min(2, len(untouched)))
    moved = 0 if is_first else rng.randint(0, min(3, len(untouched) - removed))
    moves = tuple(AccessChange(document_id=each, access=make_access(rng)) for each in untouched[removed : removed + moved])
    return ChangeSet(documents=tuple(documents.values()), removals=tuple(untouched[:removed]), access_changes=moves)


def _applied(live: Mapping[DocumentId, PreparedDocument], changes: ChangeSet) -> dict[DocumentId, PreparedDocument]:
    after = dict(live) | {document.document_id: document for document in changes.documents}
    for change in changes.access_changes:
        after[change.document_id] = msgspec.structs.replace(after[change.document_id], access=change.access)
    return {document_id: document for document_id, document in after.items() if document_id not in changes.removals}


def _embedded(rng: Random, texts: Sequence[str]) -> tuple[frozenset[str], ...]:
    """Return the chunks that have vectors after each commit: never fewer than before; often all, sometimes none."""
    chunks = [text[start:stop] for text in texts for start, stop in spans_of(text)]
    shares = sorted(rng.choice(((1, 1, 1), (1, 1, 1), (0, 0.5, 0.8), (0.3, 0.5, 0.7), (0, 0, 0.2), (0, 0, 0))))
    drawn = {chunk: rng.random() for chunk in chunks}
    return tuple(frozenset(chunk for chunk in chunks if drawn[chunk] < share) for share in shares)


def _search(rng: Random) -> SearchSettings:
    search = SearchSettings(weighting=rng.choice(("bm25", "bm25", "tfidf")), idf=rng.choice(("lucene", "robertson")))
    similarity = rng.choice((Similarity.COSINE, Similarity.COSINE, Similarity.DOT, Similarity.EUCLIDEAN))
    return msgspec.structs.replace(search, b_milli=rng.choice((750, 0, 1000)), similarity=similarity)


def _query_settings(rng: Random) -> QuerySettings:
    spelling, abbreviations, decompose = (rng.random() < 0.75 for _ in range(3))
    synonyms = rng.choice(("synonyms.txt", ""))
    return QuerySettings(spelling=spelling, abbreviations=abbreviations, synonyms=synonyms, decompose=decompose)


def _ranking(rng: Random) -> RankingSettings:
    """Return settings under which a leg often proposes fewer candidates than there are."""
    return RankingSettings(
        candidates=rng.choice((1, 2, 3, 5, 100)), lexical_milli=rng.choice((500, 0, 300, 1000)), weights=rng.choice(("fixed", "by_query"))
    )


def _metadata(rng: Random, source: str) -> DocumentMetadata:
    extra = {"region": rng.choice(REGIONS), "team": rng.choice((*TAGS, "shared")), "level": rng.choice(("1", "2", "true", "1.0"))}
    return DocumentMetadata(
        source_id=SourceId(source),
        title=rng.choice(("", "", "", "The pier", "A crane")),
        path=rng.choice(("", "a/b.md", "z.md")),
        media_type=rng.choice(("text/plain", "text/markdown")),
        content_type=rng.choice(tuple(ContentType)),
        authority_tier=rng.choice(tuple(AuthorityTier)),
        language=rng.choice(("en", "en", "de")),
        created_at=_maybe(rng, 0.7, rng.choice(MOMENTS)),
        updated_at=_maybe(rng, 0.7, rng.choice(MOMENTS)),
        author=_maybe(rng, 0.6, PrincipalId(rng.choice(("ann", "bob")))),
        tags=tuple(sorted(rng.sample(TAGS, rng.randint(0, 3)))),
        version=_maybe(rng, 0.5, SemanticVersion(rng.choice(("1.0.0", "1.2.0", "1.10.0")))),
        deprecation_status=rng.choice(tuple(DeprecationStatus)),
        extra={name: value for name, value in extra.items() if rng.random() < 0.7},
    )


def _query(rng: Random, *, is_leaning: bool) -> DecomposedQuery:
    parts = tuple(SubQuery(text=make_query(rng), weight=rng.choice((1.0, 0.5, 0.0))) for _ in range(rng.randint(1, 3)))
    text = rng.choice(LEANING) if is_leaning else make_query(rng)
    return DecomposedQuery(text=text, subqueries=parts if rng.random() < 0.1 else ())


def _policy(rng: Random) -> SourcePolicy:
    allowed = tuple(SourceId(each) for each in rng.sample((*SOURCES, "nowhere"), rng.randint(1, 4)))
    denied = tuple(SourceId(each) for each in rng.sample((*SOURCES, "nowhere"), rng.randint(0, 2)))
    return SourcePolicy(
        allowed_sources=_maybe(rng, 0.15, allowed),
        denied_sources=denied if rng.random() < 0.2 else (),
        minimum_authority=rng.choice(tuple(AuthorityTier)) if rng.random() < 0.2 else AuthorityTier.EPHEMERAL,
        acl_scope=_maybe(rng, 0.25, tuple(rng.sample(ENTRIES, rng.randint(0, 4)))),
    )


def _window(rng: Random) -> TimeWindow:
    start, end = sorted((rng.choice(MOMENTS), rng.choice(MOMENTS)))
    return TimeWindow(start=_maybe(rng, 0.7, start), end=_maybe(rng, 0.7, end))


def _filter(rng: Random) -> str:
    parts = rng.sample(FILTERS, rng.choice((1, 1, 2)))
    joined = f" {rng.choice(('AND', 'OR'))} ".join(parts)
    return f"NOT ({joined})" if rng.random() < 0.2 else joined


def _maybe(rng: Random, share: float, value: Choice) -> Choice | None:
    return value if rng.random() < share else None
