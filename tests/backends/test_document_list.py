"""Lists, pages and counts of documents are those of a naive reading of the base, whoever asks and whatever happened before."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.document_list import PAGE, first_key_after
from evidentia.contracts.access import AccessRule, Principal, local_owner
from evidentia.contracts.documents import AccessChange, ChangeSet, DocumentMetadata
from evidentia.contracts.ids import DocumentId, PrincipalId, SourceId, TenantId
from evidentia.contracts.vocabulary import Classification
from evidentia.policy.access import access_scope
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.testing.documents import make_document
from evidentia.wiring import embedded
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.search import AccessScope
    from evidentia.wiring.embedded import EmbeddedComponents

RULES = (
    AccessRule(),
    AccessRule(classification=Classification.RESTRICTED),
    AccessRule(acl=("group:oncall",)),
    AccessRule(tenant=TenantId("acme")),
)
SOURCES = ("book", "book-2", "wiki")
CALLERS = (
    Principal(principal_id=PrincipalId("ann"), clearance=Classification.INTERNAL),
    Principal(principal_id=PrincipalId("bob"), clearance=Classification.RESTRICTED, groups=("oncall",)),
    Principal(principal_id=PrincipalId("cat"), tenant=TenantId("acme"), clearance=Classification.INTERNAL),
    Principal(principal_id=PrincipalId("dan"), tenant=TenantId("nobody")),
)
SCOPES: tuple[AccessScope | None, ...] = (
    None,
    access_scope(local_owner(), acl_scope=None, rules=()),
    *(access_scope(caller, acl_scope=None, rules=rules) for caller in CALLERS for rules in ((), ('tags contains "odd"',))),
)
NAMES = st.sampled_from([f"{source}:{name}" for source in SOURCES for name in "abcd"])
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"), st.lists(st.tuples(NAMES, st.integers(0, 3), st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=4)
        ),
        st.tuples(st.just("remove"), st.lists(NAMES, min_size=1, max_size=3)),
        st.tuples(st.just("access"), st.lists(st.tuples(NAMES, st.integers(0, 3)), min_size=1, max_size=3)),
        st.tuples(st.just("collect"), st.none()),
        st.tuples(st.just("look"), st.none()),
    ),
    min_size=1,
    max_size=9,
)


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[EmbeddedComponents]:
    """Return an empty base."""
    embedded.create(tmp_path / "base", clock=SteppingClock(), entropy=RepeatableEntropy())
    made = embedded.open_parts(tmp_path / "base", clock=SteppingClock(), entropy=RepeatableEntropy())
    yield made
    made.close()


@settings(max_examples=cases(25, of=1_500), deadline=None)
@given(steps=STEPS, after=st.one_of(st.just(""), NAMES), limit=st.integers(1, 5), is_old=st.booleans())
def test_pages_and_counts_are_those_of_a_naive_list(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]], *, after: str, limit: int, is_old: bool
) -> None:
    directory = tmp_path_factory.mktemp("base")
    embedded.create(directory, clock=SteppingClock(), entropy=RepeatableEntropy())
    parts = embedded.open_parts(directory, clock=SteppingClock(), entropy=RepeatableEntropy())
    try:
        for step, given_ in steps:
            _take(parts, step, given_)
            if step == "look":
                _check(parts, after=after, limit=limit)
        if is_old:
            _make_old(directory)
        _check(parts, after=after, limit=limit)
    finally:
        parts.close()


def test_a_page_of_few_documents_among_many_hidden_ones_is_read_by_their_key(parts: EmbeddedComponents) -> None:
    hidden = tuple(make_document(f"{number:04d}", "text", access=RULES[1]) for number in range(400))
    _commit(parts, ChangeSet(documents=(*hidden, make_document("0200a", "text"), make_document("9", "text"))))
    scope = access_scope(CALLERS[0], acl_scope=None, rules=())
    steps = _steps_of(parts, lambda: parts.reader.documents(scope=scope, limit=5))

    assert ["test:0200a", "test:9"] == [each[0] for each in parts.reader.documents(scope=scope, limit=5)]
    assert steps < 10 * len(hidden)


def test_a_rule_that_few_documents_pass_finds_them_beyond_one_page(parts: EmbeddedComponents) -> None:
    odd = DocumentMetadata(source_id=SourceId("test"), tags=("odd",))
    plain = tuple(make_document(f"{number:05d}", "text") for number in range(PAGE + 10))
    _commit(parts, ChangeSet(documents=(*plain, make_document("99999", "text", metadata=odd))))
    scope = access_scope(CALLERS[0], acl_scope=None, rules=('tags contains "odd"',))

    assert ["test:99999"] == [each[0] for each in parts.reader.documents(scope=scope, limit=1)]
    assert PAGE + 11 == len(parts.reader.documents())


def test_the_key_that_follows_a_commit_is_found_whatever_was_collected(parts: EmbeddedComponents) -> None:
    for number in range(5):
        _commit(parts, ChangeSet(documents=tuple(make_document(f"{each}", f"text {number} {each}") for each in range(number + 1))))
    parts.collector().collect(keep_versions=2)
    database = sqlite3.connect(parts.directory / "evidentia.sqlite")
    rows = database.execute("SELECT version_key, added_seq FROM versions ORDER BY version_key").fetchall()

    for sequence in range(7):
        expected = min((key for key, added in rows if added > sequence), default=rows[-1][0] + 1)
        assert [key for key, _ in rows if key >= expected] == [key for key, _ in rows if key >= first_key_after(database, sequence)]
    database.close()


def _check(parts: EmbeddedComponents, *, after: str, limit: int) -> None:
    live = [(name, access, len(parts.reader.chunks_of(name))) for name, access, _ in parts.reader.documents()]
    assert live == sorted(live, key=lambda each: each[0])
    assert {name: access for name, access, _ in live} == parts.reader.access_of([name for name, _, _ in live])
    for scope in SCOPES:
        seen = [each for each in live if scope is None or parts.index.visibility(each[0], scope=scope)]
        rest = [each for each in seen if each[0] > after]

        assert seen == list(parts.reader.documents(scope=scope))
        assert rest[:limit] == list(parts.reader.documents(scope=scope, after=after, limit=limit))
        by_source = {source: sum(each[0].startswith(f"{source}:") for each in seen) for source in SOURCES}
        assert {source: count for source, count in by_source.items() if count} == {
            source: count.documents for source, count in parts.counts(scope).items()
        }
        newest = parts.history.versions(limit=1, scope=scope)[0]
        assert (len(seen), sum(chunks for _, _, chunks in seen)) == (newest.documents, newest.chunks)
    dates: dict[str, list[datetime | None]] = {}
    for name, _, _ in live:
        dates.setdefault(name.partition(":")[0], []).append(parts.reader.chunks_of(name)[0].metadata.updated_at)
    newest_dates = {source: max((each for each in found if each is not None), default=None) for source, found in dates.items()}
    assert newest_dates == {source: count.newest_at for source, count in parts.counts(None, is_dated=True).items()}


def _take(parts: EmbeddedComponents, step: str, given_: Any) -> None:
    live = {name for name, _, _ in parts.reader.documents()}
    if step == "put":
        chosen = {name: (rule, chunks, day) for name, rule, chunks, day in given_}
        documents = tuple(_document(name, *each) for name, each in chosen.items())
        _commit(parts, ChangeSet(documents=documents))
    elif step == "remove":
        _commit(parts, ChangeSet(removals=tuple(DocumentId(name) for name in dict.fromkeys(given_) if name in live)))
    elif step == "access":
        wanted = {name: RULES[rule] for name, rule in given_ if name in live}
        _commit(parts, ChangeSet(access_changes=tuple(AccessChange(document_id=DocumentId(n), access=rule) for n, rule in wanted.items())))
    elif step == "collect":
        parts.collector().collect(keep_versions=1)


def _document(name: str, rule: int, chunks: int, day: int) -> PreparedDocument:
    source, _, own = name.partition(":")
    spans = [(number * 20, number * 20 + 20) for number in range(chunks)]
    updated_at = datetime(2026, 1, day, tzinfo=UTC) if day else None
    metadata = DocumentMetadata(source_id=SourceId(source), tags=("odd",) if (rule + chunks) % 2 else (), updated_at=updated_at)
    return make_document(own, f"{rule} " * 10 * chunks, source=source, spans=spans, access=RULES[rule], metadata=metadata)


def _commit(parts: EmbeddedComponents, changes: ChangeSet) -> None:
    writer = parts.writer()
    try:
        writer.commit(changes)
    finally:
        writer.close()


def _make_old(directory: Path) -> None:
    """Take away what schema 5 brought; such a base is read as it is until somebody writes."""
    database = sqlite3.connect(directory / "evidentia.sqlite")
    for name in schema.LIST_INDEXES:
        database.execute(f"DROP INDEX {name}")
    database.execute("PRAGMA user_version = 4")
    database.commit()
    database.close()


def _steps_of(parts: EmbeddedComponents, work: Callable[[], object]) -> int:
    """Return how many instructions of the database's machine a call takes, to the nearest ten."""
    counted = 0

    def tick() -> None:
        nonlocal counted
        counted += 10

    parts.reader._database.set_progress_handler(tick, 10)
    work()
    parts.reader._database.set_progress_handler(None, 0)
    return counted
