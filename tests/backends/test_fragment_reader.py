"""Fragments come back the same whether they are read, kept or given up, and nobody can change them for the next one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from evidentia.backends.embedded.database import SEGMENTS_NAME, open_for_reading
from evidentia.backends.embedded.document_table import DocumentTable
from evidentia.backends.embedded.event_log import EventLogReader
from evidentia.backends.embedded.fragment_reader import FragmentReader
from evidentia.backends.embedded.index import EmbeddedIndex
from evidentia.backends.embedded.segments import Segment
from evidentia.backends.embedded.writer import EmbeddedWriter, create_base
from evidentia.contracts.access import local_owner
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.policy.access import access_scope
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.testing.documents import make_document
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
    from evidentia.contracts.search import SearchHit

OWNER = access_scope(local_owner(), acl_scope=None, rules=())
DOCUMENTS = 600


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a base with more fragments than one statement reads."""
    path = tmp_path_factory.mktemp("fragments") / "base"
    clock, entropy = SteppingClock(), RepeatableEntropy()
    create_base(path, clock=clock, entropy=entropy)
    writer = EmbeddedWriter(path, clock=clock, entropy=entropy, language="english", wait_ms=0)
    writer.commit(ChangeSet(documents=tuple(make_document(f"d{number}", f"the text of number {number}") for number in range(DOCUMENTS))))
    writer.close()
    return path


@pytest.fixture
def snapshot(directory: Path) -> Iterator[EmbeddedSnapshot]:
    """Return the newest version."""
    index = EmbeddedIndex(directory, tokeniser=Tokeniser().identity)
    yield index.at(search=SearchSettings())
    index.close()


def _reader(directory: Path, snapshot: EmbeddedSnapshot, *, kept_chars: int) -> FragmentReader:
    database = open_for_reading(directory)
    segments = [Segment(path) for path in sorted((directory / SEGMENTS_NAME).iterdir())]
    commit = snapshot.version.commit
    table = DocumentTable(database, sequence=commit.sequence, segments=segments)
    return FragmentReader(database, table=table, log=EventLogReader(database, size=commit.log_size), kept_chars=kept_chars)


def _hits(snapshot: EmbeddedSnapshot) -> tuple[SearchHit, ...]:
    return snapshot.search(LexicalQuery(terms={"text": 1}), scope=OWNER, narrowing=None, facets=(), limit=DOCUMENTS).hits


@pytest.mark.parametrize("kept_chars", [0, 5_000, 1 << 22])
def test_what_is_kept_is_what_was_read(directory: Path, snapshot: EmbeddedSnapshot, kept_chars: int) -> None:
    hits, reader = _hits(snapshot), _reader(directory, snapshot, kept_chars=kept_chars)
    first = reader.read(hits)

    assert first is not None
    assert [hit.chunk_id for hit in hits] == [each.chunk.chunk_id for each in first]
    assert [each.event.index for each in first] == [each.inclusion.leaf_index for each in first]
    for chosen in (hits, hits[:7], hits[::-1], hits[3:5] * 2, ()):
        expected = [first[hits.index(hit)] for hit in chosen]
        assert expected == reader.read(chosen) == reader.read(chosen)


def test_a_caller_that_changes_a_record_changes_its_own(snapshot: EmbeddedSnapshot) -> None:
    hits = _hits(snapshot)[:2]
    untouched = snapshot.fragments(hits)
    for _ in range(3):
        again = snapshot.fragments(hits)
        assert list(untouched) == list(again)
        for each in again:
            for step in each.chunk.custody.transformations:
                step.parameters["spoilt"] = 1  # type: ignore[index]  # a map by type, a dict in fact
            each.chunk.metadata.extra["spoilt"] = "yes"  # type: ignore[index]  # likewise


@pytest.mark.parametrize("search", [SearchSettings(), SearchSettings(idf="robertson"), SearchSettings(weighting="tfidf")])
def test_the_last_match_of_a_thread_changes_no_score(snapshot: EmbeddedSnapshot, search: SearchSettings, directory: Path) -> None:
    index = EmbeddedIndex(directory, tokeniser=Tokeniser().identity)
    scored = index.at(search=search)
    hits = _hits(snapshot)
    queries = [LexicalQuery(terms={"text": 2, str(number): 1}, expansions={"number": 100}) for number in range(3)]
    found: list[list[list[int]]] = []

    def ask() -> None:
        matched = []
        for query in queries:
            scored.search(query, scope=OWNER, narrowing=None, facets=(), limit=5)
            # The second of these two is of a query that was not the last to be matched.
            matched += [[each.lexical for each in scored.scores(hits, query=one, dense=None, scope=OWNER)] for one in (query, queries[0])]
        found.append(matched)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Nothing was matched in this thread, so every score is added up from the terms.
    alone = [[each.lexical for each in scored.scores(hits, query=query, dense=None, scope=OWNER)] for query in queries]
    index.close()

    expected = [scores for query_scores in alone for scores in (query_scores, alone[0])]
    assert [expected, expected] == found
