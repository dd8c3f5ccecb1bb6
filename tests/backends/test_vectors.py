"""Vectors of an embedded base: durable a batch at a time, part of every version, and searched only with their own kind."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidentia.backends.embedded.index import EmbeddedIndex
from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.archive import EmbeddedArchive
from evidentia.backends.embedded.records.collector import EmbeddedCollector
from evidentia.backends.embedded.records.writer import EmbeddedWriter, create_base
from evidentia.backends.embedded.vectors import vector_store
from evidentia.backends.embedded.vectors.vector_store import EmbeddedVectors
from evidentia.contracts.access import AccessRule, Principal, local_owner
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import AccessChange, ChangeSet
from evidentia.contracts.errors import BaseBusyError, InvalidFieldError, VersionCollectedError
from evidentia.contracts.ids import DocumentId, PrincipalId
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.search import DenseQuery, LexicalQuery
from evidentia.contracts.settings import SearchSettings
from evidentia.contracts.vectors import VectorIdentity
from evidentia.contracts.vocabulary import Classification, Similarity
from evidentia.policy.access import access_scope
from evidentia.provenance.verification import verify_base
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.testing.documents import make_document
from evidentia.text.tokens import Tokeniser
from older_schemas import forget_signatures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
    from evidentia.contracts.documents import CommitSummary, PreparedDocument
    from evidentia.contracts.ids import EvidenceState
    from evidentia.contracts.ports import SupportsScoring, SupportsVectors, VectorStore
    from evidentia.contracts.provenance import VerifyReport
    from evidentia.contracts.search import AccessScope, DenseHits

DIMENSION = 24
SECRET = AccessRule(classification=Classification.CONFIDENTIAL, acl=("group:x",))
OWNER = access_scope(local_owner(), acl_scope=None, rules=())
READER = access_scope(Principal(principal_id=PrincipalId("r"), clearance=Classification.INTERNAL), acl_scope=None, rules=())


def identity(name: str = "first", *, normalisation: str = "unit") -> VectorIdentity:
    return VectorIdentity(model=sha256_hex(name.encode()), dimension=DIMENSION, normalisation=normalisation, name=name)  # type: ignore[arg-type]  # one of two


FIRST, SECOND = identity("first"), identity("second")


def vector_of(text: str, space: VectorIdentity = FIRST) -> NDArray[np.int32]:
    """Return a vector that follows from a text and a space alone."""
    seed = int.from_bytes(hashlib.sha256(f"{space.name}:{text}".encode()).digest()[:8], "big")
    real = np.random.default_rng(seed).standard_normal(DIMENSION)
    scale = (1 << 22) / np.linalg.norm(real) if space.normalisation == "unit" else (1 << 14)
    made: NDArray[np.int32] = np.rint(real * scale).astype(np.int32)
    return made


def question(text: str, space: VectorIdentity = FIRST) -> DenseQuery:
    return DenseQuery(identity=space, vector=vector_of(text, space).astype("<i4").tobytes())


class Base(NamedTuple):
    """The parts of one base, made from the backend's own classes."""

    directory: Path
    clock: SteppingClock
    entropy: RepeatableEntropy

    def writer(self) -> EmbeddedWriter:
        return EmbeddedWriter(self.directory, clock=self.clock, entropy=self.entropy, language="english", wait_ms=0)

    def store(self) -> EmbeddedVectors:
        return EmbeddedVectors(self.directory, clock=self.clock, entropy=self.entropy, wait_ms=0)

    def collector(self, *, segments_per_size: int = 100) -> EmbeddedCollector:
        return EmbeddedCollector(self.directory, clock=self.clock, entropy=self.entropy, wait_ms=0, segments_per_size=segments_per_size)

    def commit(self, changes: ChangeSet) -> CommitSummary:
        writer = self.writer()
        try:
            return writer.commit(changes)
        finally:
            writer.close()

    def put(self, *documents: PreparedDocument) -> CommitSummary:
        return self.commit(ChangeSet(documents=documents))

    def embed(self, space: VectorIdentity = FIRST, *, batch: int = 1_000, most: int = 1_000_000) -> None:
        """Give every chunk that lacks one its vector, at most so many of them."""
        store = self.store()
        try:
            while most > 0 and (pending := store.pending(space, limit=min(batch, most))):
                store.add(space, {chunk.key: vector_of(chunk.text, space) for chunk in pending})
                most -= len(pending)
        finally:
            store.close()

    def opened(self) -> EmbeddedIndex:
        return EmbeddedIndex(self.directory, tokeniser=Tokeniser("english").identity)

    def snapshot(self, state: EvidenceState | None = None, *, similarity: Similarity = Similarity.COSINE) -> EmbeddedSnapshot:
        return self.opened().at(search=SearchSettings(similarity=similarity), evidence_state=state)

    def verify(self) -> VerifyReport:
        archive = EmbeddedArchive(self.directory)
        try:
            return verify_base(archive)
        finally:
            archive.close()

    def record(self) -> tuple[str, str]:
        """Return what the newest commit says of its vectors, and its evidence_state."""
        commit = self.snapshot().version.commit
        return commit.vectors, commit.evidence_state


def make_base(directory: Path) -> Base:
    clock, entropy = SteppingClock(), RepeatableEntropy(len(str(directory)))
    create_base(directory, clock=clock, entropy=entropy)
    return Base(directory, clock, entropy)


@pytest.fixture
def base(tmp_path: Path) -> Base:
    return make_base(tmp_path / "base")


def documents(count: int, *, prefix: str = "d") -> list[PreparedDocument]:
    return [make_document(f"{prefix}{number}", f"the text of {prefix} {number}") for number in range(count)]


def ask(snapshot: EmbeddedSnapshot, text: str, *, space: VectorIdentity = FIRST, limit: int = 10, scope: AccessScope = OWNER) -> DenseHits:
    return snapshot.nearest(question(text, space), scope=scope, narrowing=None, phrases=(), limit=limit)


def expected(texts: dict[str, str], text: str, *, space: VectorIdentity = FIRST, limit: int = 10) -> list[tuple[str, int]]:
    """Multiply everything out; `texts` gives the text of each chunk id."""
    wide = vector_of(text, space).astype(np.int64)
    scores = [(chunk_id, int(wide @ vector_of(each, space).astype(np.int64))) for chunk_id, each in texts.items()]
    return sorted(scores, key=lambda each: (-each[1], each[0]))[:limit]


def texts_of(made: Sequence[PreparedDocument]) -> dict[str, str]:
    return {chunk.chunk_id: document.text[chunk.start : chunk.end] for document in made for chunk in document.chunks}


def pairs(hits: DenseHits) -> list[tuple[str, int]]:
    return [(hit.chunk_id, hit.score) for hit in hits.hits]


# --- adding and finding ---


def test_the_parts_are_what_the_ports_ask_for(base: Base) -> None:
    """Type checking does the work."""
    store: VectorStore = base.store()
    dense: SupportsVectors = base.snapshot()
    scoring: SupportsScoring = base.snapshot()

    assert [] == store.pending(FIRST, limit=0)
    assert (0, 0) == dense.similarities(()).shape
    assert [] == scoring.scores((), query=LexicalQuery(terms={}), dense=question("q"), scope=OWNER)


def test_the_nearest_are_those_that_multiplying_out_finds(base: Base) -> None:
    made = documents(60)
    base.put(*made[:40])
    base.put(*made[40:])
    base.embed(batch=7)
    snapshot = base.snapshot()

    for text in ("the text of d 3", "something else", "zebra"):
        hits = ask(snapshot, text, limit=25)
        assert expected(texts_of(made), text, limit=25) == pairs(hits)
        assert (60, 60, {"test": (60, 60)}, 44) == (hits.embedded, hits.visible, dict(hits.embedded_by_source), hits.score_bits)
    assert FIRST == snapshot.vectors
    assert base.verify().ok


def test_equal_vectors_are_ordered_by_chunk_id(base: Base) -> None:
    made = [make_document(f"copy{number}", "the same words") for number in range(30)]
    base.put(*made, *documents(10))
    base.embed()

    hits = ask(base.snapshot(), "the same words", limit=5)

    assert sorted(chunk.chunk_id for each in made for chunk in each.chunks)[:5] == [hit.chunk_id for hit in hits.hits]


def test_chunks_without_a_vector_are_counted(base: Base) -> None:
    base.put(*documents(10), make_document("other", "of another source", source="elsewhere"))
    base.embed(most=4)

    hits = ask(base.snapshot(), "x", limit=100)

    assert 4 == len(hits.hits)
    assert (4, 11) == (hits.embedded, hits.visible)
    assert {"elsewhere": (0, 1), "test": (4, 10)} == dict(hits.embedded_by_source)


def test_a_base_without_vectors_finds_nothing_and_says_so(base: Base) -> None:
    base.put(*documents(3))
    snapshot = base.snapshot()
    hits = ask(snapshot, "x")

    assert snapshot.vectors is None
    assert ((), 0, 3) == (hits.hits, hits.embedded, hits.visible)
    assert ("", base.record()[1]) == base.record()


def test_a_caller_finds_only_what_it_may_see(base: Base) -> None:
    secret = [make_document(f"s{number}", f"secret {number}", access=SECRET) for number in range(20)]
    made = documents(200)
    base.put(*made, *secret)
    base.embed()
    snapshot = base.snapshot()

    assert expected(texts_of(made), "secret 3") == pairs(ask(snapshot, "secret 3", scope=READER))
    assert expected(texts_of([*made, *secret]), "secret 3") == pairs(ask(snapshot, "secret 3"))
    assert 200 == ask(snapshot, "x", scope=READER).embedded


def test_narrowing_and_phrases_cut_what_is_found(base: Base) -> None:
    made = [*documents(40), make_document("y", "red apple pie", source="kitchen"), make_document("z", "apple red", source="kitchen")]
    base.put(*made)
    base.embed()
    snapshot = base.snapshot()
    kitchen = snapshot.nearest(question("q"), scope=OWNER, narrowing=parse('source_id = "kitchen"'), phrases=(), limit=9)
    phrase = snapshot.nearest(question("q"), scope=OWNER, narrowing=None, phrases=[["red", "appl"]], limit=9)
    nowhere = snapshot.nearest(question("q"), scope=OWNER, narrowing=parse('source_id = "test"'), phrases=[["red", "appl"]], limit=9)

    assert expected(texts_of(made[40:]), "q") == pairs(kitchen)
    assert expected(texts_of(made[40:41]), "q") == pairs(phrase)
    assert ((), 42) == (nowhere.hits, nowhere.embedded)


def test_what_holds_a_preferred_phrase_is_found_besides_the_nearest(base: Base) -> None:
    holding = [make_document(f"h{number}", f"red apple pie {number}", source="kitchen") for number in range(6)]
    secret = make_document("s", "red apple pie", access=SECRET)
    made = [*documents(40), *holding]
    base.put(*made, secret)
    base.embed()
    base.put(make_document("late", "red apple pie without a vector"))
    snapshot = base.snapshot()

    def near(limit: int, narrowing: str | None = None, required: Sequence[Sequence[str]] = ()) -> list[tuple[str, int]]:
        kept = parse(narrowing) if narrowing else None
        preferred = [["red", "appl"], ["nowher", "red"]]
        return pairs(snapshot.nearest(question("q"), scope=READER, narrowing=kept, phrases=required, preferred=preferred, limit=limit))

    nearest, held = expected(texts_of(made), "q", limit=4), expected(texts_of(holding), "q", limit=10)
    others = [each for each in held if each not in nearest][:4]
    assert sorted([*nearest, *others], key=lambda each: (-each[1], each[0])) == near(4)
    assert expected(texts_of(documents(40)), "q", limit=4) == near(4, 'source_id = "test"')
    assert expected(texts_of(holding[:1]), "q") == near(4, required=[["pie", "0"]])


def test_a_preferred_phrase_in_a_base_without_vectors_finds_nothing(base: Base) -> None:
    base.put(*documents(3))

    assert () == base.snapshot().nearest(question("x"), scope=OWNER, narrowing=None, phrases=(), preferred=[["text", "of"]], limit=3).hits


def test_both_legs_score_any_chunk(base: Base) -> None:
    made = documents(12)
    base.put(*made)
    base.embed(most=6)
    snapshot = base.snapshot()
    words = LexicalQuery(terms={"text": 1, "7": 1})
    hits = snapshot.search(words, scope=OWNER, narrowing=None, facets=(), limit=12).hits
    scores = snapshot.scores(hits, query=words, dense=question("q"), scope=OWNER)
    known = dict(expected(texts_of(made[:6]), "q", limit=12))

    assert [hit.score for hit in hits] == [each.lexical for each in scores]
    assert [known.get(hit.chunk_id) for hit in hits] == [each.dense for each in scores]
    assert [None] * 12 == [each.dense for each in snapshot.scores(hits, query=words, dense=None, scope=OWNER)]


def test_what_was_just_searched_for_changes_no_score(base: Base) -> None:
    base.put(*documents(40))
    base.embed(most=30)
    words = LexicalQuery(terms={"text": 1})
    hits = base.snapshot().search(words, scope=OWNER, narrowing=None, facets=(), limit=40).hits
    fresh = {text: base.snapshot().scores(hits, query=words, dense=question(text), scope=OWNER) for text in ("q", "zebra")}
    for asked, other in (("q", "zebra"), ("zebra", "q")):
        snapshot = base.snapshot()
        ask(snapshot, asked, limit=5)

        assert fresh[asked] == snapshot.scores(hits, query=words, dense=question(asked), scope=OWNER)
        assert fresh[other] == snapshot.scores(hits, query=words, dense=question(other), scope=OWNER)


def test_similarities_are_cosines_of_pairs(base: Base) -> None:
    base.put(*documents(5), make_document("copy", "the text of d 1"))
    base.embed(most=6)
    base.put(make_document("late", "without a vector"))
    snapshot = base.snapshot()
    hits = snapshot.search(LexicalQuery(terms={"text": 1, "vector": 1}), scope=OWNER, narrowing=None, facets=(), limit=9).hits
    cosines = snapshot.similarities(hits)
    numbers = {hit.document_id: number for number, hit in enumerate(hits)}

    assert 7 == len(hits)
    for row, hit in enumerate(hits):
        has_vector = hit.document_id != "test:late"
        assert (65_535 <= cosines[row, row] <= 65_536) if has_vector else -1 == cosines[row, row]
    assert 65_535 <= cosines[numbers[DocumentId("test:d1")], numbers[DocumentId("test:copy")]]
    first, second = (vector_of(f"the text of d {number}").astype(float) for number in (0, 2))
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert max(0, int(np.floor(cosine * 65_536))) == cosines[numbers[DocumentId("test:d0")], numbers[DocumentId("test:d2")]]
    assert np.array_equal(cosines, cosines.T)


@pytest.mark.parametrize("similarity", [Similarity.DOT, Similarity.EUCLIDEAN])
def test_vectors_that_keep_their_length_are_compared_by_it(base: Base, similarity: Similarity) -> None:
    space = identity("raw", normalisation="none")
    made = documents(50)
    base.put(*made)
    base.embed(space)
    hits = ask(base.snapshot(similarity=similarity), "q", space=space, limit=7)
    real = {chunk_id: vector_of(text, space) / (1 << 14) for chunk_id, text in texts_of(made).items()}
    asked = vector_of("q", space) / (1 << 14)
    if similarity is Similarity.DOT:
        scored = {chunk_id: float(asked @ vector) for chunk_id, vector in real.items()}
    else:
        scored = {chunk_id: 1 / (1 + float(np.linalg.norm(asked - vector))) for chunk_id, vector in real.items()}

    assert sorted(scored, key=lambda each: -scored[each])[:7] == [hit.chunk_id for hit in hits.hits]
    for hit in hits.hits:
        assert scored[hit.chunk_id] == pytest.approx(hit.score / 2**hits.score_bits, rel=1e-9)


def test_what_cannot_be_compared_is_refused(base: Base) -> None:
    base.put(*documents(3))
    base.embed()
    snapshot = base.snapshot()

    with pytest.raises(InvalidFieldError, match="it is of 'second', and the base's are of 'first'"):
        ask(snapshot, "q", space=SECOND)
    with pytest.raises(InvalidFieldError, match="24 integers"):
        snapshot.nearest(DenseQuery(identity=FIRST, vector=b"1234"), scope=OWNER, narrowing=None, phrases=(), limit=1)
    raw = identity("raw", normalisation="none")
    base.embed(raw)
    snapshot = base.snapshot()
    with pytest.raises(InvalidFieldError, match="cosine needs vectors of unit length"):
        ask(snapshot, "q", space=raw)


# --- the store ---


def test_an_embedding_goes_on_where_it_stopped(base: Base) -> None:
    base.put(*documents(25))
    base.embed(batch=4, most=9)
    store = base.store()
    first, again = store.pending(FIRST, limit=5), store.pending(FIRST, limit=5)
    state = store.state(FIRST)
    store.close()
    base.embed(batch=4)

    assert first == again
    assert sorted(chunk.key for chunk in first) == [chunk.key for chunk in first]
    assert (FIRST, 9, 25) == (state.identity, state.embedded, state.chunks)
    assert 25 == ask(base.snapshot(), "q").embedded


def test_the_store_sees_what_others_commit(base: Base) -> None:
    base.put(*documents(3))
    store = base.store()
    store.add(FIRST, {chunk.key: vector_of(chunk.text) for chunk in store.pending(FIRST, limit=10)})
    base.commit(ChangeSet(documents=tuple(documents(2, prefix="new")), removals=(DocumentId("test:d0"),)))

    assert ["the text of new 0", "the text of new 1"] == [chunk.text for chunk in store.pending(FIRST, limit=10)]
    assert (2, 4) == (store.state(FIRST).embedded, store.state(FIRST).chunks)
    store.close()


def test_texts_that_have_a_vector_are_known(base: Base) -> None:
    base.put(*documents(6))
    base.embed(batch=2, most=4)
    store = base.store()
    texts = ["the text of d 0", "the text of d 3", "the text of d 5", "never seen"]
    known = store.known(FIRST, [sha256_hex(text.encode()) for text in texts])

    assert {sha256_hex(text.encode()): vector_of(text).tolist() for text in texts[:2]} == {
        key: each.tolist() for key, each in known.items()
    }
    assert {} == store.known(SECOND, [sha256_hex(texts[0].encode())])
    store.close()


def test_chunks_that_are_gone_or_done_are_passed_over(base: Base) -> None:
    base.put(*documents(4))
    store = base.store()
    pending = store.pending(FIRST, limit=4)
    vectors = {chunk.key: vector_of(chunk.text) for chunk in pending}
    base.commit(ChangeSet(removals=(DocumentId("test:d1"),)))
    first = store.add(FIRST, {**vectors, 999: vector_of("nobody")})
    second = store.add(FIRST, vectors)
    store.close()

    assert first == second
    assert 3 == ask(base.snapshot(), "q").embedded
    assert base.verify().ok


def test_only_adding_holds_the_right_to_write(base: Base) -> None:
    base.put(*documents(2))
    writer = base.writer()
    store = base.store()
    pending = store.pending(FIRST, limit=5)

    assert 2 == len(pending)
    with pytest.raises(BaseBusyError):
        store.add(FIRST, {chunk.key: vector_of(chunk.text) for chunk in pending})
    writer.close()
    store.add(FIRST, {chunk.key: vector_of(chunk.text) for chunk in pending})
    base.writer().close()
    store.close()


def test_a_failing_transaction_leaves_the_version_before(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    base.put(*documents(5))
    base.embed(most=2)
    before = base.record()
    monkeypatch.setattr(vector_store, "seal", _failing)
    with pytest.raises(RuntimeError, match="in the middle"):
        base.embed()
    monkeypatch.undo()

    assert before == base.record()
    assert 1 == len(list((base.directory / "vectors").iterdir()))
    assert base.verify().ok
    base.embed()
    assert 5 == ask(base.snapshot(), "q").embedded


def _failing(*_: object, **__: object) -> None:
    problem = "in the middle"
    raise RuntimeError(problem)


@pytest.mark.slow
def test_an_embedding_that_is_killed_leaves_a_whole_base_and_goes_on(base: Base, tmp_path: Path) -> None:
    made = documents(120)
    base.put(*made)
    script = textwrap.dedent(f"""
        import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[1])!r}]
        from pathlib import Path
        import test_vectors as t
        base = t.Base(Path(sys.argv[1]), t.SteppingClock(), t.RepeatableEntropy(int(sys.argv[2])))
        print("ready", flush=True)
        base.embed(batch=1)
    """)
    reached = []
    for number in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(base.directory), str(number)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert child.stdout is not None
        assert b"ready\n" == child.stdout.readline()
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=0.02 + 0.07 * number)
        child.kill()
        child.communicate()
        assert base.verify().ok
        reached.append(ask(base.snapshot(), "q").embedded)
    base.embed()
    direct = make_base(tmp_path / "direct")
    direct.put(*made)
    direct.embed()

    assert sorted(reached) == reached
    assert 0 < reached[-1]
    assert direct.record() == base.record()


def test_what_a_dead_writer_left_is_removed(base: Base) -> None:
    base.put(*documents(2))
    base.embed()
    left = base.directory / "vectors" / "00000009-dead.vec"
    left.write_bytes(b"half a file")
    base.put(make_document("more", "more"))

    assert not left.exists()
    assert base.verify().ok


# --- versions ---


def test_the_state_depends_on_the_live_vectors_alone(tmp_path: Path) -> None:
    direct, winding = make_base(tmp_path / "direct"), make_base(tmp_path / "winding")
    made = documents(12)
    direct.put(*made)
    direct.embed()
    winding.put(*reversed(made[:7]), make_document("x", "on the way"))
    winding.embed(batch=2, most=5)
    winding.commit(ChangeSet(documents=(*made[7:], make_document("d3", "another text")), removals=(DocumentId("test:x"),)))
    winding.embed(batch=3)
    winding.put(made[3])
    winding.embed()

    assert direct.record() == winding.record()
    assert "" != direct.record()[0]
    assert winding.verify().ok


def test_removing_and_adding_again_goes_back_to_the_same_state(base: Base) -> None:
    made = documents(5)
    base.put(*made)
    plain = base.record()
    base.embed()
    embedded = base.record()
    base.commit(ChangeSet(removals=tuple(each.document_id for each in made)))
    empty = base.record()
    base.put(*made)
    bare = base.record()
    base.embed()

    assert embedded == base.record()
    assert plain == bare
    assert ("", "") == (plain[0], empty[0])
    assert base.verify().ok


def test_access_and_metadata_leave_the_vectors(base: Base) -> None:
    base.put(*documents(3))
    base.embed()
    before = base.record()
    base.commit(ChangeSet(access_changes=(AccessChange(document_id=DocumentId("test:d1"), access=SECRET),)))

    assert before[0] == base.record()[0]
    assert before[1] != base.record()[1]
    assert 3 == ask(base.snapshot(), "q").embedded
    assert base.verify().ok


def test_another_identity_replaces_the_vectors_and_can_be_left_halfway(base: Base) -> None:
    made = documents(8)
    base.put(*made)
    base.embed()
    first = base.record()
    base.embed(SECOND, most=3)
    snapshot = base.snapshot()
    halfway = ask(snapshot, "q", space=SECOND)
    base.embed(SECOND)
    second = base.record()
    store = base.store()
    back = store.add(FIRST, {})
    store.close()

    assert SECOND == snapshot.vectors
    assert expected(texts_of(made[:3]), "q", space=SECOND) == pairs(halfway)
    assert first[1] != second[1]
    assert first[1] == back.evidence_state
    assert expected(texts_of(made), "q") == pairs(ask(base.snapshot(), "q"))
    assert base.verify().ok


def test_names_make_different_spaces(base: Base) -> None:
    base.put(*documents(2))
    base.embed(FIRST)
    first = base.record()
    renamed = VectorIdentity(model=FIRST.model, dimension=DIMENSION, normalisation="unit", name="other")
    store = base.store()
    store.add(renamed, {chunk.key: vector_of(chunk.text) for chunk in store.pending(renamed, limit=9)})
    store.close()

    assert first != base.record()


def test_an_old_evidence_state_gives_the_old_hits(base: Base) -> None:
    made = documents(10)
    base.put(*made[:6])
    base.embed(batch=2)
    states = {}
    index = base.opened()
    states[index.at(search=SearchSettings()).version.commit.evidence_state] = (FIRST, made[:6])
    base.commit(ChangeSet(documents=tuple(made[6:]), removals=(made[0].document_id,)))
    states[base.record()[1]] = (FIRST, made[1:6])
    base.embed()
    states[base.record()[1]] = (FIRST, made[1:])
    base.embed(SECOND, most=4)
    states[base.record()[1]] = (SECOND, made[1:5])
    base.collector(segments_per_size=1).compact()

    assert 4 == len(states)
    for state, (space, shown) in states.items():
        for opened in (index, base.opened()):
            snapshot = opened.at(search=SearchSettings(), evidence_state=state)  # type: ignore[arg-type]  # as a caller would write it
            assert expected(texts_of(shown), "q", space=space) == pairs(ask(snapshot, "q", space=space))
    assert base.verify().ok


def test_a_commit_of_vectors_alone_reloads_nothing_else(base: Base) -> None:
    base.put(*documents(10))
    index = base.opened()
    before = index.at(search=SearchSettings())
    view = before.view(OWNER)
    base.embed(batch=3)
    after = index.at(search=SearchSettings())
    base.put(make_document("new", "new"))
    later = index.at(search=SearchSettings())

    assert view is after.view(OWNER)
    assert before.version.commit.sequence + 4 == after.version.commit.sequence
    assert before.vectors is None
    assert 10 == ask(after, "q").embedded
    assert view is not later.view(OWNER)
    assert (10, 11) == (ask(later, "q").embedded, ask(later, "q").visible)


# --- collection ---


def test_a_collection_drops_what_no_version_uses(base: Base) -> None:
    made = documents(20)
    base.put(*made)
    base.embed(batch=6)
    base.embed(SECOND, batch=6)
    base.commit(ChangeSet(removals=tuple(each.document_id for each in made[:5])))
    before = base.record()
    old = base.snapshot()
    base.collector().collect(keep_versions=1)
    left = _count(base, "SELECT count(*) FROM vectors"), _count(base, "SELECT count(*) FROM vector_spaces")

    assert before == base.record()
    assert (15, 1) == left
    assert base.verify().ok
    assert expected(texts_of(made[5:]), "q", space=SECOND) == pairs(ask(base.snapshot(), "q", space=SECOND))
    assert 15 == ask(old, "q", space=SECOND).embedded
    store = base.store()
    assert 15 == len(store.pending(FIRST, limit=100))
    store.close()


def test_a_version_that_can_be_read_keeps_its_vectors(base: Base) -> None:
    made = documents(6)
    base.put(*made)
    base.embed(batch=2)
    first = base.record()[1]
    base.embed(SECOND)
    base.collector().collect(keep_versions=2)
    snapshot = base.snapshot(first)  # type: ignore[arg-type]  # as a caller would write it

    assert expected(texts_of(made), "q") == pairs(ask(snapshot, "q"))
    assert base.verify().ok
    base.collector().collect(keep_versions=1)
    with pytest.raises(VersionCollectedError):
        base.snapshot(first)  # type: ignore[arg-type]  # likewise


def test_many_small_files_become_few(base: Base) -> None:
    made = documents(30)
    base.put(*made)
    base.embed(batch=1)
    before = base.record()
    base.collector(segments_per_size=4).compact()

    assert 1 == len(list((base.directory / "vectors").iterdir()))
    assert before == base.record()
    assert expected(texts_of(made), "q") == pairs(ask(base.snapshot(), "q"))
    assert base.verify().ok
    sequence = base.snapshot().version.commit.sequence
    base.collector(segments_per_size=4).compact()
    assert sequence == base.snapshot().version.commit.sequence


@given(
    st.lists(st.sampled_from(["put", "remove", "change", "embed", "other", "collect", "compact"]), min_size=1, max_size=9),
    st.integers(0, 99),
)
@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_whatever_happened_the_base_is_whole_and_finds_its_own(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], seed: int
) -> None:
    base = make_base(tmp_path_factory.mktemp("history") / "base")
    live: dict[str, PreparedDocument] = {}
    space = FIRST
    chance = np.random.default_rng(seed)
    for number, step in enumerate(steps):
        if step == "put":
            live |= {f"test:{number}-{each}": make_document(f"{number}-{each}", f"text {number} {each}") for each in range(3)}
            base.put(*(live[f"test:{number}-{each}"] for each in range(3)))
        elif step in ("remove", "change") and live:
            name = sorted(live)[int(chance.integers(len(live)))]
            if step == "remove":
                base.commit(ChangeSet(removals=(live.pop(name).document_id,)))
            else:
                live[name] = make_document(name.removeprefix("test:"), f"changed by {number}")
                base.put(live[name])
        elif step in ("embed", "other"):
            space = FIRST if step == "embed" else SECOND
            base.embed(space, batch=2)
        elif step == "collect":
            base.collector().collect(keep_versions=1 + int(chance.integers(3)))
        elif step == "compact":
            base.collector(segments_per_size=1).compact()
    base.embed(space)
    snapshot = base.snapshot()
    ruling = snapshot.vectors

    assert base.verify().ok
    assert (ruling is None) == (snapshot.version.commit.vectors == "") == (not live)
    if ruling is not None:
        hits = ask(snapshot, "q", space=ruling)
        assert len(live) == hits.embedded
        assert expected(texts_of(list(live.values())), "q", space=ruling) == pairs(hits)


# --- storage ---


def test_a_base_of_the_first_schema_is_read_and_brought_up(base: Base) -> None:
    base.put(*documents(3))
    database = sqlite3.connect(base.directory / "evidentia.sqlite")
    forget_signatures(database)
    for name in (*schema.VECTOR_TABLES, *schema.SOURCE_TABLES, *schema.ATTACHMENT_TABLES):
        database.execute(f"DROP TABLE {name}")
    database.execute(schema.SOURCES_TABLE["sources"])
    for name in schema.LIST_INDEXES:
        database.execute(f"DROP INDEX {name}")
    database.execute("PRAGMA user_version = 1")
    database.commit()
    database.close()
    store = base.store()

    assert base.verify().ok
    assert base.snapshot().vectors is None
    assert (None, 0, 3) == (store.state(FIRST).identity, store.state(FIRST).embedded, store.state(FIRST).chunks)
    assert 3 == len(store.pending(FIRST, limit=9))
    store.close()
    base.embed()
    assert base.verify().ok
    assert 3 == ask(base.snapshot(), "q").embedded


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vectors SET vector_hash = zeroblob(32) WHERE chunk_key = 2",
        "UPDATE vectors SET added_seq = added_seq - 1 WHERE chunk_key = 2",
        "UPDATE vectors SET content_mark = content_mark + 1 WHERE chunk_key = 2",
        "UPDATE vectors SET chunk_key = 99 WHERE chunk_key = 2",
        "DELETE FROM vectors WHERE chunk_key = 2",
        "UPDATE vector_reigns SET sequence = sequence + 1 WHERE sequence = 2",
        "UPDATE vector_reigns SET set_state = zeroblob(2048)",
        "UPDATE vector_reigns SET set_state = NULL",
        "UPDATE vector_spaces SET identity = CAST(replace(CAST(identity AS TEXT), 'first', 'frist') AS BLOB)",
        "UPDATE vector_files SET row_count = row_count + 1 WHERE file_key = 1",
        "UPDATE vector_files SET name = 'x' WHERE file_key = 1",
        "DELETE FROM vector_files WHERE file_key = 1",
        "INSERT INTO vector_spaces VALUES (7, x'00')",
    ],
)
def test_every_value_about_vectors_is_covered(base: Base, statement: str) -> None:
    base.put(*documents(5))
    base.embed(batch=3)
    base.put(make_document("more", "more"))
    database = sqlite3.connect(base.directory / "evidentia.sqlite")
    database.execute(statement)
    database.commit()
    database.close()

    assert not base.verify().ok


def test_every_byte_of_a_vector_file_is_covered(base: Base) -> None:
    base.put(*documents(3))
    base.embed()
    (path,) = (base.directory / "vectors").iterdir()
    original = path.read_bytes()
    for place in range(0, len(original), max(1, len(original) // 60)):
        flipped = bytearray(original)
        flipped[place] ^= 16
        path.write_bytes(flipped)
        assert not base.verify().ok
    path.write_bytes(original)

    assert base.verify().ok


def _count(base: Base, statement: str) -> int:
    database = sqlite3.connect(base.directory / "evidentia.sqlite")
    try:
        (count,) = database.execute(statement).fetchone()
        return int(count)
    finally:
        database.close()
