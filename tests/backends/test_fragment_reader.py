"""Chunks come back the same whether they are read, kept or given up, each with a proof, and nobody can change them for the next one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from evidentia.backends.embedded.index import EmbeddedIndex
from evidentia.backends.embedded.lexical.segments import Segment
from evidentia.backends.embedded.records.commit_log import EventLogReader
from evidentia.backends.embedded.records.database import SEGMENTS_NAME, open_for_reading
from evidentia.backends.embedded.records.document_table import DocumentTable
from evidentia.backends.embedded.records.reader import FragmentReader
from evidentia.backends.embedded.records.writer import EmbeddedWriter, create_base
from evidentia.contracts.access import local_owner
from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.errors import VersionCollectedError
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.policy.access import access_scope
from evidentia.provenance import merkle
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.testing.documents import make_document
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
    from evidentia.contracts.search import SearchHit

OWNER = access_scope(local_owner(), acl_scope=None, rules=())
DOCUMENTS = 1_050


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a base with more chunks than one statement reads, and more events."""
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


def _reader(directory: Path, snapshot: EmbeddedSnapshot, *, kept_chars: int = 0, kept_proofs: int = 0) -> FragmentReader:
    database = open_for_reading(directory)
    segments = [Segment(path) for path in sorted((directory / SEGMENTS_NAME).iterdir())]
    commit = snapshot.version.commit
    table = DocumentTable(database, sequence=commit.sequence, segments=segments)
    log = EventLogReader(database, size=commit.log_size)
    return FragmentReader(database, table=table, log=log, kept_chars=kept_chars, kept_proofs=kept_proofs)


def _hits(snapshot: EmbeddedSnapshot) -> tuple[SearchHit, ...]:
    return snapshot.search(LexicalQuery(terms={"text": 1}), scope=OWNER, narrowing=None, facets=(), limit=DOCUMENTS).hits


@pytest.mark.parametrize("kept_chars", [0, 5_000, 1 << 22])
def test_what_is_kept_is_what_was_read(directory: Path, snapshot: EmbeddedSnapshot, kept_chars: int) -> None:
    hits, reader = _hits(snapshot), _reader(directory, snapshot, kept_chars=kept_chars)
    first = reader.read(hits)

    assert first is not None
    assert [hit.chunk_id for hit in hits] == [each.chunk_id for each in first]
    for chosen in (hits, hits[:7], hits[::-1], hits[3:5] * 2, ()):
        expected = [first[hits.index(hit)] for hit in chosen]
        assert expected == reader.read(chosen) == reader.read(chosen)


def test_every_chunk_has_its_own_event_and_a_proof_that_holds(snapshot: EmbeddedSnapshot) -> None:
    chunks = snapshot.chunks(_hits(snapshot))
    commit = snapshot.version.commit
    for chosen in ([*chunks[3:5], *chunks[3:5]], chunks, chunks[::-1], ()):
        proofs = snapshot.proofs(chosen)
        assert [(each.event_index, each.chunk_id) for each in chosen] == [(event.index, event.chunk_id) for event, _ in proofs]
        for event, proof in proofs:
            assert (event.index, commit.log_size, commit.log_root) == (proof.leaf_index, proof.tree_size, proof.root)
            assert merkle.verify_inclusion(
                merkle.leaf_hash(encode_struct(event)),
                index=proof.leaf_index,
                size=proof.tree_size,
                path=[bytes.fromhex(each) for each in proof.hashes],
                root=bytes.fromhex(proof.root),
            )


@pytest.mark.parametrize("kept_proofs", [0, 5, DOCUMENTS])
def test_a_proof_that_is_kept_is_the_one_that_was_found(directory: Path, snapshot: EmbeddedSnapshot, kept_proofs: int) -> None:
    chunks, reader = snapshot.chunks(_hits(snapshot)), _reader(directory, snapshot, kept_proofs=kept_proofs)
    found = dict(zip([each.chunk_id for each in chunks], snapshot.proofs(chunks), strict=True))

    for chosen in (chunks[:7], chunks[3:20], chunks, chunks[::-1], [*chunks[3:5], *chunks[3:5]]):
        expected = [found[each.chunk_id] for each in chosen]
        assert expected == reader.prove(chosen) == reader.prove(chosen)


def test_a_chunk_whose_event_is_not_there_has_no_proof(snapshot: EmbeddedSnapshot) -> None:
    known, stranger = snapshot.chunks(_hits(snapshot)[:2])
    stranger = structs.replace(stranger, event_index=DOCUMENTS)

    with pytest.raises(VersionCollectedError):
        snapshot.proofs([known, stranger])


def test_a_caller_that_changes_a_record_changes_its_own(snapshot: EmbeddedSnapshot) -> None:
    hits = _hits(snapshot)[:2]
    untouched = snapshot.chunks(hits)
    for _ in range(3):
        again = snapshot.chunks(hits)
        assert list(untouched) == list(again)
        for each in again:
            for step in each.custody.transformations:
                step.parameters["spoilt"] = 1  # type: ignore[index]  # a map by type, a dict in fact
            each.metadata.extra["spoilt"] = "yes"  # type: ignore[index]  # likewise


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
