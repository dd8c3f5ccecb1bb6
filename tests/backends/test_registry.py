"""The registry of sources: every change is a version, and every version keeps the sources it had."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.commit_log import seal, stored_head
from evidentia.backends.embedded.records.database import open_for_writing
from evidentia.backends.embedded.records.head_signer import HeadSigner
from evidentia.backends.embedded.records.source_registry import EmbeddedRegistry, change_sources, sources_hash
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.errors import InvalidFieldError, NotFoundError, VersionCollectedError
from evidentia.contracts.ids import DocumentId, EvidenceState, SourceId
from evidentia.contracts.settings import SearchSettings
from evidentia.contracts.sources import SourceConnection, SourceDescriptor
from evidentia.contracts.vocabulary import AuthorityTier, ConnectionKind, LatencyTier
from evidentia.provenance.corpus_hash import CorpusState
from evidentia.provenance.verification import verify_base
from evidentia.testing.determinism import START, RepeatableEntropy, SteppingClock
from evidentia.testing.documents import make_document
from evidentia.wiring import embedded
from evidentia.wiring.settings_file import has_base
from older_schemas import forget_signatures

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
    from evidentia.contracts.documents import CommitSummary
    from evidentia.contracts.provenance import VerifyReport
    from evidentia.wiring.embedded import EmbeddedComponents

WIKI = SourceDescriptor(source_id=SourceId("wiki"), connection=SourceConnection(kind=ConnectionKind.PYTHON))
BOOK = SourceDescriptor(source_id=SourceId("book"), connection=SourceConnection(kind=ConnectionKind.MEMORY))
OLD_TEST = (
    b'{"access_policy":{"groups":[],"minimum_clearance":"public","predicate":"","principals":[],"roles":[]},"authority_tier":"curated",'
    b'"cost_per_query_micros":0,"freshness_sla_s":null,"latency_tier":"hot","max_qps":10,"query_capabilities":["exact_match"],'
    b'"schema":{"fields":[],"tables":{}},"source_id":"test","source_type":"inverted_index","version":"1.0.0"}'
)
OLD_DOCS = OLD_TEST.replace(b'"max_qps":10', b'"max_qps":null').replace(b'"source_id":"test"', b'"source_id":"docs"')
OLD_HASH = "5b0fe9ce71f72a3ef5764052a8531e239df9f72b6121528554354054234da94c"
"""The hash of both as a base of schema 2 recorded it."""


class Registered:
    """A base with its registry, and what it looked like after each commit."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        clock, entropy = SteppingClock(), RepeatableEntropy()
        if not has_base(directory):
            embedded.create(directory, clock=clock, entropy=entropy)
        self.parts: EmbeddedComponents = embedded.open_parts(directory, clock=clock, entropy=entropy)
        self.registry = EmbeddedRegistry(directory, open_writer=self.parts.writer)

    def put(self, own_id: str, text: str = "some text", *, source: str = "test") -> CommitSummary:
        writer = self.parts.writer()
        try:
            return writer.commit(ChangeSet(documents=(make_document(own_id, text, source=source),)))
        finally:
            writer.close()

    def drop(self, document_id: str) -> CommitSummary:
        writer = self.parts.writer()
        try:
            return writer.commit(ChangeSet(removals=(DocumentId(document_id),)))
        finally:
            writer.close()

    def snapshot(self, version: CommitSummary | None = None) -> EmbeddedSnapshot:
        state = None if version is None else EvidenceState(version.evidence_state)
        return self.parts.index.at(search=SearchSettings(), evidence_state=state)

    def at(self, version: CommitSummary | None = None) -> Mapping[SourceId, SourceDescriptor]:
        return self.snapshot(version).descriptors()

    def verify(self) -> VerifyReport:
        archive = self.parts.archive()
        try:
            return verify_base(archive)
        finally:
            archive.close()


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Registered]:
    """Return an empty base."""
    made = Registered(tmp_path / "base")
    yield made
    made.parts.close()


def test_an_empty_base_has_no_sources(base: Registered) -> None:
    assert {} == base.registry.descriptors()
    assert {} == base.at()
    assert base.verify().ok


def test_sources_are_ordered_by_id_whatever_the_order_in_which_they_came(base: Registered) -> None:
    base.registry.register(WIKI)
    base.registry.register(BOOK)

    assert [("book", BOOK), ("wiki", WIKI)] == list(base.registry.descriptors().items())
    assert [("book", BOOK), ("wiki", WIKI)] == list(base.at().items())


def test_every_change_is_a_version_that_keeps_the_sources_it_had(base: Registered) -> None:
    first = base.registry.register(WIKI)
    changed = SourceDescriptor(source_id=WIKI.source_id, authority_tier=AuthorityTier.CANONICAL, connection=WIKI.connection)
    second = base.registry.register(changed)
    third = base.registry.register(BOOK)
    fourth = base.registry.remove(WIKI.source_id)

    assert [1, 2, 3, 4] == [version.sequence for version in (first, second, third, fourth)]
    assert {WIKI.source_id: WIKI} == base.at(first)
    assert {WIKI.source_id: changed} == base.at(second)
    assert {BOOK.source_id: BOOK, WIKI.source_id: changed} == base.at(third)
    assert {BOOK.source_id: BOOK} == base.at(fourth) == base.at() == base.registry.descriptors()
    assert base.verify().ok


def test_a_version_that_shares_its_documents_with_another_has_sources_of_its_own(base: Registered) -> None:
    """Snapshots over the same documents share what they loaded."""
    before = base.put("1")
    shown = base.snapshot(before)
    assert {} == shown.descriptors()
    base.registry.register(WIKI)

    assert {WIKI.source_id: WIKI} == base.at()
    assert {} == shown.descriptors() == base.at(before)


def test_the_same_descriptor_again_is_no_new_version(base: Registered) -> None:
    first = base.registry.register(WIKI)

    assert first.sequence == base.registry.register(WIKI).sequence


def test_a_source_that_was_removed_can_come_back(base: Registered) -> None:
    base.registry.register(WIKI)
    without = base.registry.remove(WIKI.source_id)
    base.registry.register(WIKI)

    assert {} == base.at(without)
    assert {WIKI.source_id: WIKI} == base.at()
    assert base.verify().ok


def test_an_unknown_source_cannot_be_removed(base: Registered) -> None:
    with pytest.raises(NotFoundError, match="no source 'wiki'"):
        base.registry.remove(WIKI.source_id)

    assert 0 == base.parts.reader.head().sequence


def test_a_source_with_documents_cannot_be_removed_until_they_are_gone(base: Registered) -> None:
    base.registry.register(SourceDescriptor(source_id=SourceId("test")))
    base.put("1")
    with pytest.raises(InvalidFieldError, match="source 'test' still has documents; remove them first, then the source"):
        base.registry.remove(SourceId("test"))
    base.drop("test:1")
    base.registry.remove(SourceId("test"))

    assert {} == base.registry.descriptors()
    assert base.verify().ok


def test_a_source_with_documents_stays_the_bases_own(base: Registered) -> None:
    base.put("1", source="wiki")
    with pytest.raises(InvalidFieldError, match=r"'connection.kind': source 'wiki' has documents in the base, so its kind stays 'own'"):
        base.registry.register(WIKI)

    assert {} == base.registry.descriptors()


def test_a_source_that_is_being_removed_takes_no_documents(base: Registered) -> None:
    base.registry.register(SourceDescriptor(source_id=SourceId("test")))
    writer = base.parts.writer()
    writer.remove_source(SourceId("test"))
    with pytest.raises(InvalidFieldError, match="source 'test' is being removed"):
        writer.commit(ChangeSet(documents=(make_document("1", "text"),)))
    writer.close()


def test_what_the_check_raises_refuses_the_change_and_frees_the_writer(base: Registered) -> None:
    seen: list[tuple[SourceDescriptor | None, SourceDescriptor]] = []

    def check(old: SourceDescriptor | None, new: SourceDescriptor) -> None:
        seen.append((old, new))
        if old is not None:
            raise InvalidFieldError("version", "it must be higher")

    registry = EmbeddedRegistry(base.directory, open_writer=base.parts.writer, check=check)
    registry.register(WIKI)
    changed = SourceDescriptor(source_id=WIKI.source_id)
    with pytest.raises(InvalidFieldError, match="it must be higher"):
        registry.register(changed)
    registry.register(BOOK)

    assert [(None, WIKI), (WIKI, changed), (None, BOOK)] == seen
    assert [BOOK, WIKI] == list(registry.descriptors().values())


def test_a_collection_forgets_descriptors_that_no_version_has(base: Registered) -> None:
    first = base.registry.register(WIKI)
    held = base.snapshot(first)
    base.registry.register(BOOK)
    base.registry.remove(WIKI.source_id)
    kept = base.put("1")
    base.parts.collector().collect(keep_versions=1)

    assert [("book", 4, None)] == _history(base.directory)
    assert {BOOK.source_id: BOOK} == base.at(kept) == base.at()
    assert base.verify().ok
    with pytest.raises(VersionCollectedError):
        held.descriptors()


def test_a_version_whose_sources_were_read_keeps_them_through_a_collection(base: Registered) -> None:
    held = base.snapshot(base.registry.register(WIKI))
    before = held.descriptors()
    base.registry.remove(WIKI.source_id)
    base.put("1")
    base.parts.collector().collect(keep_versions=1)

    assert {WIKI.source_id: WIKI} == before == held.descriptors()


# --- bases of schema 2 ---


def test_the_hash_of_sources_registered_before_holds() -> None:
    assert OLD_HASH == sources_hash({SourceId("test"): OLD_TEST, SourceId("docs"): OLD_DOCS})


@pytest.fixture
def old_base(tmp_path: Path) -> Iterator[Registered]:
    """Return a base as schema 2 left it: nothing, then one source, then two, then two in another version."""
    directory = tmp_path / "base"
    embedded.create(directory, clock=SteppingClock(), entropy=RepeatableEntropy())
    _commit_stored(directory, {SourceId("test"): OLD_TEST})
    _commit_stored(directory, {SourceId("docs"): OLD_DOCS})
    _commit_stored(directory, {})
    database = sqlite3.connect(directory / "evidentia.sqlite")
    database.execute(schema.SOURCES_TABLE["sources"])
    database.execute("INSERT INTO sources SELECT source_id, descriptor FROM source_versions WHERE removed_seq IS NULL")
    forget_signatures(database)
    for name in (*schema.SOURCE_TABLES, *schema.ATTACHMENT_TABLES):
        database.execute(f"DROP TABLE {name}")
    for name in schema.LIST_INDEXES:
        database.execute(f"DROP INDEX {name}")
    database.execute("PRAGMA user_version = 2")
    database.commit()
    database.close()
    made = Registered(directory)
    yield made
    made.parts.close()


def _commit_stored(directory: Path, changes: Mapping[SourceId, bytes]) -> None:
    """Commit descriptors in the bytes they once had."""
    database = open_for_writing(directory)
    head, head_hash, state = stored_head(database)
    database.execute("BEGIN IMMEDIATE")
    change_sources(database, changes, sequence=head.sequence + 1)
    signer = HeadSigner(directory, entropy=RepeatableEntropy())
    seal(database, signer=signer, parent=head, parent_hash=head_hash, log_size=0, corpus=CorpusState(state), vectors="", now=START)
    database.execute("COMMIT")
    database.close()


OLD_SOURCES = [
    SourceDescriptor(source_id=SourceId("docs"), latency_tier=LatencyTier.HOT),
    SourceDescriptor(source_id=SourceId("test"), max_qps=10, latency_tier=LatencyTier.HOT),
]


def test_a_base_that_was_not_brought_up_is_read_and_verified(old_base: Registered) -> None:
    assert OLD_SOURCES == list(old_base.at().values()) == list(old_base.registry.descriptors().values())
    assert old_base.verify().ok
    assert 2 == _schema_of(old_base.directory)


def test_damage_in_a_base_that_was_not_brought_up_is_found(old_base: Registered) -> None:
    database = sqlite3.connect(old_base.directory / "evidentia.sqlite")
    database.execute("UPDATE sources SET descriptor = ? WHERE source_id = 'test'", (OLD_TEST.replace(b":10,", b":11,"),))
    database.commit()
    database.close()

    assert [("commit", "sources")] == [(link.check, link.where) for link in old_base.verify().broken]


def test_a_base_is_brought_up_with_what_is_known_of_its_sources(old_base: Registered) -> None:
    shown = old_base.snapshot()
    assert OLD_SOURCES == list(shown.descriptors().values())
    after = old_base.registry.register(WIKI)

    assert schema.SCHEMA_VERSION == _schema_of(old_base.directory)
    assert [("docs", 2, None), ("test", 2, None), ("wiki", 4, None)] == _history(old_base.directory)
    assert OLD_SOURCES == list(shown.descriptors().values()) == list(old_base.at(_of(old_base, 3)).values())
    assert OLD_SOURCES == list(old_base.at(_of(old_base, 2)).values())
    assert [*OLD_SOURCES, WIKI] == list(old_base.at(after).values())
    assert old_base.verify().ok


def test_a_version_before_the_history_has_the_first_known_sources(old_base: Registered) -> None:
    old_base.registry.register(WIKI)

    assert OLD_SOURCES == list(old_base.at(_of(old_base, 1)).values())


def test_an_old_descriptor_that_says_the_same_is_not_written_again(old_base: Registered) -> None:
    for descriptor in OLD_SOURCES:
        assert 3 == old_base.registry.register(descriptor).sequence


def test_a_base_that_was_brought_up_can_be_collected(old_base: Registered) -> None:
    old_base.registry.register(WIKI)
    old_base.parts.collector().collect(keep_versions=1)

    assert [("docs", 4, None), ("test", 4, None), ("wiki", 4, None)] == _history(old_base.directory)
    assert [*OLD_SOURCES, WIKI] == list(old_base.at().values())
    assert old_base.verify().ok


def _history(directory: Path) -> list[tuple[str, int, int | None]]:
    database = sqlite3.connect(directory / "evidentia.sqlite")
    try:
        return database.execute("SELECT source_id, added_seq, removed_seq FROM source_versions ORDER BY source_id, added_seq").fetchall()
    finally:
        database.close()


def _schema_of(directory: Path) -> int:
    database = sqlite3.connect(directory / "evidentia.sqlite")
    try:
        return schema.schema_version(database)
    finally:
        database.close()


def _of(base: Registered, sequence: int) -> CommitSummary:
    archive = base.parts.archive()
    try:
        record = next(record for record, _ in archive.commits() if record.sequence == sequence)
    finally:
        archive.close()
    head = base.parts.reader.head()
    return type(head)(
        sequence=sequence,
        corpus_version=head.corpus_version,
        evidence_state=EvidenceState(record.evidence_state),
        log_size=record.log_size,
        log_root=record.log_root,
        committed_at=record.committed_at,
    )


# --- the law ---

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), st.sampled_from("abc"), st.integers(min_value=1, max_value=3)),
        st.tuples(st.just("remove"), st.sampled_from("abc"), st.just(0)),
        st.tuples(st.just("put"), st.just("x"), st.integers(min_value=1, max_value=2)),
        st.tuples(st.just("collect"), st.just(""), st.integers(min_value=1, max_value=3)),
    ),
    max_size=12,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_every_readable_version_has_the_sources_it_had(steps: list[tuple[str, str, int]]) -> None:
    with TemporaryDirectory() as folder:
        base = Registered(Path(folder) / "base")
        present: dict[SourceId, SourceDescriptor] = {}
        had: dict[int, dict[SourceId, SourceDescriptor]] = {0: {}}
        for step in steps:
            _take(base, step, present)
            had[base.parts.reader.head().sequence] = dict(present)
        archive = base.parts.archive()
        commits = [record for record, _ in archive.commits()]
        archive.close()

        assert base.verify().ok
        for record in commits[commits[-1].oldest_readable :]:
            found = base.parts.index.at(search=SearchSettings(), evidence_state=EvidenceState(record.evidence_state))
            expected = had[found.version.commit.sequence]
            assert sorted(expected.items()) == list(found.descriptors().items())
        base.parts.close()


def _take(base: Registered, step: tuple[str, str, int], present: dict[SourceId, SourceDescriptor]) -> None:
    kind, name, number = step
    source_id = SourceId(name)
    if kind == "register":
        present[source_id] = SourceDescriptor(source_id=source_id, max_qps=number)
        base.registry.register(present[source_id])
    elif kind == "remove" and source_id in present:
        del present[source_id]
        base.registry.remove(source_id)
    elif kind == "put":
        base.put("1", f"text number {number}")
    elif kind == "collect":
        base.parts.collector().collect(keep_versions=number)
