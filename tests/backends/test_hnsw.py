"""Approximate search: graphs propose, integers decide, and no graph holds what its reader may not see."""

from __future__ import annotations

import hashlib
import shutil
import sys
import threading
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from evidentia.backends.embedded.index import EmbeddedIndex
from evidentia.backends.embedded.records.archive import EmbeddedArchive
from evidentia.backends.embedded.records.collector import EmbeddedCollector
from evidentia.backends.embedded.records.writer import EmbeddedWriter, create_base
from evidentia.backends.embedded.vectors.hnsw import GRAPHS_NAME, remove_graphs
from evidentia.backends.embedded.vectors.vector_store import EmbeddedVectors
from evidentia.contracts.access import AccessRule, Principal, local_owner
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import AccessChange, ChangeSet
from evidentia.contracts.errors import MissingExtraError
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest
from evidentia.contracts.ids import DocumentId, PrincipalId, TenantId
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.search import DenseQuery, LexicalQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.contracts.vectors import VectorIdentity
from evidentia.contracts.vocabulary import Classification, Similarity
from evidentia.engine.pipeline import Engine
from evidentia.engine.question import Models
from evidentia.policy.access import access_scope
from evidentia.provenance.verification import verify_base
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.testing.documents import make_document
from evidentia.text.tokens import Tokeniser
from evidentia.wiring.embedded import open_parts
from evidentia.wiring.settings_file import SETTINGS_NAME
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
    from evidentia.contracts.documents import CommitSummary, PreparedDocument
    from evidentia.contracts.ids import EvidenceState
    from evidentia.contracts.search import AccessScope, DenseHits

DIMENSION, CLUSTERS = 48, 60
LARGE, SMALL = cases(1_800, of=4_200), 50
SMALLEST_GRAPH = LARGE - 104
"""What is enough rows for a graph here; with EVIDENTIA_SOAK=full, what is enough outside tests."""
QUESTIONS = [f"question {number}" for number in range(100)]
CLOSED = AccessRule(classification=Classification.INTERNAL, acl=("group:x",))
SECRET = AccessRule(classification=Classification.CONFIDENTIAL)
FOREIGN = AccessRule(tenant=TenantId("other"))
OWNER = access_scope(local_owner(), acl_scope=None, rules=())
_READER = Principal(principal_id=PrincipalId("r"), clearance=Classification.INTERNAL)
READER = access_scope(_READER, acl_scope=None, rules=())
RULED = access_scope(_READER, acl_scope=None, rules=('language = "en"',))


def identity(normalisation: str = "unit") -> VectorIdentity:
    return VectorIdentity(model=sha256_hex(b"made up"), dimension=DIMENSION, normalisation=normalisation, name="made up")  # type: ignore[arg-type]  # one of two


UNIT, RAW = identity(), identity("none")


@cache
def vector_of(text: str, space: VectorIdentity = UNIT) -> NDArray[np.int32]:
    """Return a vector near one of a few centres; which, and how near, follows from the text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    centre = np.random.default_rng(seed % CLUSTERS).standard_normal(DIMENSION)
    real = centre + 0.7 * np.random.default_rng(seed).standard_normal(DIMENSION)
    scale = (1 << 22) / np.linalg.norm(real) if space.normalisation == "unit" else (1 << 14)
    made: NDArray[np.int32] = np.rint(real * scale).astype(np.int32)
    return made


class MadeUpEncoder:
    """Implements `Encoder` by `vector_of`."""

    identity = UNIT

    def encode_query(self, text: str) -> NDArray[np.int32]:
        return vector_of(text)

    def encode_document(self, text: str) -> NDArray[np.int32]:
        return vector_of(text)


class Base(NamedTuple):
    """The parts of one base."""

    directory: Path
    clock: SteppingClock
    entropy: RepeatableEntropy

    def commit(self, changes: ChangeSet) -> CommitSummary:
        writer = EmbeddedWriter(self.directory, clock=self.clock, entropy=self.entropy, language="english", wait_ms=0)
        try:
            return writer.commit(changes)
        finally:
            writer.close()

    def embed(self, space: VectorIdentity, *, batch: int) -> None:
        store = EmbeddedVectors(self.directory, clock=self.clock, entropy=self.entropy, wait_ms=0)
        try:
            while pending := store.pending(space, limit=batch):
                store.add(space, {chunk.key: vector_of(chunk.text, space) for chunk in pending})
        finally:
            store.close()

    def snapshot(
        self, dense_index: str = "hnsw", *, similarity: Similarity = Similarity.COSINE, state: EvidenceState | None = None
    ) -> EmbeddedSnapshot:
        """Open the base anew."""
        search = SearchSettings(dense_index=dense_index, similarity=similarity)  # type: ignore[arg-type]  # one of two
        return EmbeddedIndex(self.directory, tokeniser=Tokeniser("english").identity).at(search=search, evidence_state=state)

    def files(self) -> dict[str, bytes]:
        """Return the stored graphs."""
        return {path.name: path.read_bytes() for path in sorted((self.directory / GRAPHS_NAME).glob("*"))}

    def replace_files(self, content: bytes) -> None:
        for path in (self.directory / GRAPHS_NAME).glob("*"):
            path.write_bytes(content)


def make_base(directory: Path, *documents: PreparedDocument, commits: int = 1, batch: int = 100_000, space: VectorIdentity = UNIT) -> Base:
    clock, entropy = SteppingClock(), RepeatableEntropy(len(str(directory)))
    create_base(directory, clock=clock, entropy=entropy)
    base = Base(directory, clock, entropy)
    for number in range(commits):
        base.commit(ChangeSet(documents=documents[number::commits]))
    base.embed(space, batch=batch)
    return base


def documents(count: int, *, prefix: str = "d", access: AccessRule | None = None, source: str = "test") -> list[PreparedDocument]:
    texts = [f"the text of {prefix} {number}" for number in range(count)]
    return [make_document(f"{prefix}{number}", text, access=access, source=source) for number, text in enumerate(texts)]


@pytest.fixture(autouse=True)
def smaller_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidentia.backends.embedded.vectors.hnsw.SMALLEST_GRAPH", SMALLEST_GRAPH)


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("made") / "base", *documents(LARGE)).directory


@pytest.fixture
def base(made_once: Path, tmp_path: Path) -> Base:
    shutil.copytree(made_once, tmp_path / "base")
    clock = SteppingClock(start=datetime(2026, 6, 1, tzinfo=UTC))
    return Base(tmp_path / "base", clock, RepeatableEntropy(7))


def ask(
    snapshot: EmbeddedSnapshot, text: str, *, scope: AccessScope = READER, limit: int = 10, narrowing: str = "", phrase: str = ""
) -> DenseHits:
    identity = snapshot.vectors or UNIT
    query = DenseQuery(identity=identity, vector=vector_of(text, identity).astype("<i4").tobytes())
    phrases = [phrase.split()] if phrase else []
    return snapshot.nearest(query, scope=scope, narrowing=parse(narrowing) if narrowing else None, phrases=phrases, limit=limit)


def found(snapshot: EmbeddedSnapshot, texts: Sequence[str] = QUESTIONS, *, scope: AccessScope = READER) -> list[list[tuple[str, int]]]:
    """Return ids and scores, each list of which a graph took part in."""
    answers = [ask(snapshot, text, scope=scope) for text in texts]
    assert all(answer.is_approximate for answer in answers)
    return [[(hit.chunk_id, hit.score) for hit in answer.hits] for answer in answers]


def ids(answer: DenseHits) -> list[str]:
    return [hit.chunk_id for hit in answer.hits]


@pytest.mark.parametrize("similarity", list(Similarity))
def test_nineteen_of_twenty_of_the_nearest_are_found_and_scored_exactly(tmp_path: Path, similarity: Similarity) -> None:
    space = UNIT if similarity is Similarity.COSINE else RAW
    base = make_base(tmp_path / "base", *documents(LARGE), space=space)
    approximate, exact = base.snapshot(similarity=similarity), base.snapshot("exact", similarity=similarity)
    shared = 0
    for text in QUESTIONS:
        near, true = ask(approximate, text), ask(exact, text)
        query = DenseQuery(identity=space, vector=vector_of(text, space).astype("<i4").tobytes())
        known = approximate.scores(near.hits, query=LexicalQuery(terms={}), dense=query, scope=READER)
        shared += len(set(ids(near)) & set(ids(true)))

        assert not true.is_approximate
        assert [each.dense for each in known] == [hit.score for hit in near.hits]
        assert sorted(near.hits, key=lambda hit: (-hit.score, hit.chunk_id)) == list(near.hits)
        assert (true.score_bits, true.embedded, true.visible) == (near.score_bits, near.embedded, near.visible)

    assert 0.95 <= shared / (10 * len(QUESTIONS))


def test_order_and_batches_of_an_ingest_decide_nothing(tmp_path: Path) -> None:
    made = documents(LARGE)
    first = make_base(tmp_path / "first", *made)
    second = make_base(tmp_path / "second", *reversed(made), commits=5, batch=999)

    hashes = answer_hashes(first)
    assert 100 == len(set(hashes))
    assert hashes == answer_hashes(second)
    assert first.files() == second.files()
    assert hashes == answer_hashes(first), "after a restart"


def answer_hashes(base: Base) -> list[str]:
    """Return the hash of each answer of an engine that has just been started."""
    (base.directory / SETTINGS_NAME).write_text('[search]\ndense_index = "hnsw"\n[ranking]\ncandidates = 50\n')
    parts = open_parts(base.directory, clock=SteppingClock(step_s=0), entropy=base.entropy)
    nothing = Models(encoder=MadeUpEncoder, reranker=lambda: None, rewriter=lambda: None, merger=lambda: None, synonyms=None)
    engine = Engine(parts.index, receipts=parts.receipts, config=parts.config, models=nothing, clock=parts.clock, entropy=base.entropy)
    try:
        requests = [EvidenceRequest(query=DecomposedQuery(text=text), as_of=parts.clock.now(), receipt=False) for text in QUESTIONS]
        answers = [engine.answer(request, principal=local_owner()) for request in requests]
    finally:
        parts.close()
    assert all(answer.is_approximate and not answer.degraded for answer in answers)
    return [answer.result_hash for answer in answers]


def test_a_stored_graph_is_used_again(base: Base) -> None:
    before = found(base.snapshot())
    (path,) = (base.directory / GRAPHS_NAME).glob("*")
    written = path.stat()

    assert before == found(base.snapshot())
    assert (written.st_ino, written.st_mtime_ns) == (path.stat().st_ino, path.stat().st_mtime_ns)


@pytest.mark.parametrize("kind", ["flipped", "cut", "empty", "other"])
def test_a_damaged_graph_is_made_anew(base: Base, kind: str) -> None:
    before = found(base.snapshot(), QUESTIONS[:20])
    ((name, content),) = base.files().items()
    middle = len(content) // 2
    wrong = b"no graph at all" * 100
    damaged = {
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "cut": content[:middle],
        "empty": b"",
        "other": hashlib.sha256(wrong).digest() + wrong,
    }
    base.replace_files(damaged[kind])

    assert before == found(base.snapshot(), QUESTIONS[:20])
    assert {name: content} == base.files()


def test_a_graph_of_another_usearch_is_replaced(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(base.snapshot(), "q")
    before = base.files()
    base.replace_files(b"what another version wrote")
    monkeypatch.setattr("usearch.__version__", "0.0.1")
    ask(base.snapshot(), "q")

    assert list(before.values()) == list(base.files().values())
    assert list(before) != list(base.files())


def test_a_graph_that_cannot_be_stored_is_used_all_the_same(base: Base) -> None:
    (base.directory / GRAPHS_NAME).write_text("in the way of the directory")

    assert found(base.snapshot(), QUESTIONS[:5])


def test_what_takes_away_part_of_a_partition_has_it_scanned(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base", *documents(LARGE), *documents(SMALL, prefix="k", source="kitchen"))
    approximate, exact = base.snapshot(), base.snapshot("exact")

    assert ask(approximate, "q", narrowing='language = "en"').is_approximate
    for narrowing, phrase in (('source_id = "test"', ""), ("", "text of d 17"), ('source_id = "test"', "text of d 17")):
        near = ask(approximate, "q", narrowing=narrowing, phrase=phrase)
        assert near.hits
        assert ask(exact, "q", narrowing=narrowing, phrase=phrase) == near


def test_rules_over_metadata_have_everything_scanned(base: Base) -> None:
    near = ask(base.snapshot(), "q", scope=RULED)

    assert not near.is_approximate
    assert ask(base.snapshot("exact"), "q", scope=RULED) == near


def test_small_partitions_and_long_lists_are_scanned(base: Base, tmp_path: Path) -> None:
    few = make_base(tmp_path / "few", *documents(SMALLEST_GRAPH - 1))

    assert ask(few.snapshot("exact"), "q") == ask(few.snapshot(), "q")
    assert ask(base.snapshot("exact"), "q", limit=1_000) == ask(base.snapshot(), "q", limit=1_000)
    assert ask(base.snapshot("exact"), "q", limit=0) == ask(base.snapshot(), "q", limit=0)


def test_a_query_longer_than_any_row_is_measured_by_the_scan(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base", *documents(LARGE), space=RAW)
    far = DenseQuery(identity=RAW, vector=(vector_of("q", RAW) * 9).astype("<i4").tobytes())
    near, true = (
        base.snapshot(name, similarity=Similarity.EUCLIDEAN).nearest(far, scope=READER, narrowing=None, phrases=(), limit=10)
        for name in ("hnsw", "exact")
    )

    assert true == near


def test_rows_outside_the_graphs_are_found_exactly(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base", *documents(LARGE), *documents(SMALL, prefix="s", access=SECRET))
    text = "the text of s 7"
    for scope, first in ((OWNER, "test:s7#"), (READER, "test:d")):
        near = ask(base.snapshot(), text, scope=scope)
        assert near.is_approximate
        assert ids(near)[0].startswith(first)


def test_a_search_walks_the_graphs_of_its_caller_only(tmp_path: Path) -> None:
    hidden = [*documents(LARGE, prefix="s", access=SECRET), *documents(LARGE, prefix="f", access=FOREIGN)]
    base = make_base(tmp_path / "base", *documents(LARGE), *hidden)
    snapshot = base.snapshot()
    found(snapshot, scope=READER)
    of_reader = base.files()
    found(snapshot, scope=OWNER)
    of_owner = base.files()

    assert 1 == len(of_reader)
    assert 2 == len(of_owner), "the other tenant's is never made"
    assert of_reader.items() < of_owner.items()


@pytest.mark.parametrize("hidden", [SMALL, LARGE])
def test_hidden_rows_change_neither_answer_nor_label_nor_graph(tmp_path: Path, hidden: int) -> None:
    made = documents(LARGE)
    without = make_base(tmp_path / "without", *made)
    within = make_base(tmp_path / "within", *documents(hidden, prefix="a", access=CLOSED), *made)

    assert found(without.snapshot()) == found(within.snapshot())
    assert without.files() == within.files()


def test_an_old_version_does_not_show_what_was_closed_since(base: Base) -> None:
    text = "the text of d 17"
    state = base.snapshot().version.commit.evidence_state
    before = ask(base.snapshot(), text)
    base.commit(ChangeSet(access_changes=(AccessChange(document_id=DocumentId("test:d17"), access=CLOSED),)))
    after = ask(base.snapshot(state=state), text)  # type: ignore[arg-type]  # a record holds it as text

    assert before.is_approximate
    assert after.is_approximate
    assert ids(before)[0].startswith("test:d17#")
    assert not any(each.startswith("test:d17#") for each in ids(after))


def test_versions_over_the_same_rows_share_a_graph_and_others_replace_it(base: Base) -> None:
    ask(base.snapshot(), "q")
    first = base.files()
    base.commit(ChangeSet(documents=tuple(documents(1, prefix="s", access=SECRET))))
    base.embed(UNIT, batch=10)
    ask(base.snapshot(), "q")
    same = base.files()
    base.commit(ChangeSet(documents=tuple(documents(1, prefix="e"))))
    base.embed(UNIT, batch=10)
    ask(base.snapshot(), "q")

    assert first == same
    assert 1 == len(base.files())
    assert first != base.files()


def test_nothing_of_what_was_removed_stays_in_a_graph(base: Base) -> None:
    found(base.snapshot(), QUESTIONS[:1])
    assert base.files()
    base.commit(ChangeSet(removals=(DocumentId("test:d0"),)))
    collector = EmbeddedCollector(base.directory, clock=base.clock, entropy=base.entropy, wait_ms=0, segments_per_size=2)
    collector.collect(keep_versions=1)

    assert {} == base.files()


def test_verifying_and_collecting_leave_graphs_alone(base: Base) -> None:
    before = found(base.snapshot(), QUESTIONS[:20])
    base.commit(ChangeSet(documents=tuple(documents(1, prefix="s", access=SECRET))))
    EmbeddedCollector(base.directory, clock=base.clock, entropy=base.entropy, wait_ms=0, segments_per_size=2).collect(keep_versions=1)
    archive = EmbeddedArchive(base.directory)
    report = verify_base(archive)
    archive.close()

    assert report.ok
    assert before == found(base.snapshot(), QUESTIONS[:20])

    remove_graphs(base.directory)
    assert {} == base.files()
    assert before == found(base.snapshot(), QUESTIONS[:20])


def test_many_threads_make_one_graph_and_agree(base: Base) -> None:
    snapshot = base.snapshot()
    results: dict[int, list[list[tuple[str, int]]]] = {}
    threads = [
        threading.Thread(target=lambda number=number: results.update({number: found(snapshot, QUESTIONS[:30])})) for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [found(base.snapshot(), QUESTIONS[:30])] * 4 == [results[number] for number in range(4)]
    assert 1 == len(base.files())


def test_a_missing_extra_is_named(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usearch.index", None)

    with pytest.raises(MissingExtraError, match=r"search\.dense_index = 'hnsw' needs the extra 'hnsw'"):
        base.snapshot()
    assert not ask(base.snapshot("exact"), "q").is_approximate
