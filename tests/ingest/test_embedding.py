"""Every chunk gets its vector exactly once, whatever stops the work in between."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import CommitSummary
from evidentia.contracts.errors import BaseStateError, EvidentiaError, InvalidFieldError
from evidentia.contracts.ids import CorpusVersion, EvidenceState, Sha256
from evidentia.contracts.vectors import EmbeddingState, PendingChunk, VectorIdentity
from evidentia.ingest.embedding import TEXTS_PER_CALL, embed
from evidentia.testing.determinism import START

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from evidentia.contracts.vectors import EmbedProgress

    Vector = NDArray[np.int32]


class ListedChunks:
    """Implements `VectorStore` over a list of texts, as simply as can be; remembers what each commit was given."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.chunks = [PendingChunk(key=key, content_hash=sha256_hex(text.encode()), text=text) for key, text in enumerate(texts)]
        self.vectors: dict[VectorIdentity, dict[int, Vector]] = {}
        self.commits: list[list[int]] = []
        self.in_force: VectorIdentity | None = None

    def state(self, identity: VectorIdentity) -> EmbeddingState:
        return EmbeddingState(identity=self.in_force, embedded=len(self.vectors.get(identity, {})), chunks=len(self.chunks))

    def pending(self, identity: VectorIdentity, *, limit: int) -> Sequence[PendingChunk]:
        held = self.vectors.get(identity, {})
        return [chunk for chunk in self.chunks if chunk.key not in held][:limit]

    def known(self, identity: VectorIdentity, content_hashes: Sequence[Sha256]) -> Mapping[Sha256, Vector]:
        held = self.vectors.get(identity, {})
        vectors = {chunk.content_hash: held[chunk.key] for chunk in self.chunks if chunk.key in held}
        return {content_hash: vectors[content_hash] for content_hash in content_hashes if content_hash in vectors}

    def add(self, identity: VectorIdentity, vectors: Mapping[int, Vector]) -> CommitSummary:
        self.in_force = identity
        self.vectors.setdefault(identity, {}).update(vectors)
        self.commits.append(list(vectors))
        return CommitSummary(
            sequence=len(self.commits),
            corpus_version=CorpusVersion("c"),
            evidence_state=EvidenceState(f"e{len(self.commits)}"),
            log_size=0,
            log_root=Sha256("0"),
            committed_at=START,
        )


class Digests:
    """Implements `Encoder`: a vector is the first bytes of a hash. Refuses one text; remembers what it was asked."""

    def __init__(self, *, name: str = "digests", refused: str | None = None) -> None:
        self._identity = VectorIdentity(model=sha256_hex(name.encode()), dimension=8, normalisation="none", name=name)
        self._refused = refused
        self._lock = threading.Lock()
        self.asked: Counter[str] = Counter()
        self.threads: set[str] = set()

    @property
    def identity(self) -> VectorIdentity:
        return self._identity

    def encode_query(self, text: str) -> Vector:
        return self.encode_document(text)

    def encode_document(self, text: str) -> Vector:
        with self._lock:
            self.asked[text] += 1
            self.threads.add(threading.current_thread().name)
        if text == self._refused:
            raise InvalidFieldError("text", "it is refused")
        return np.frombuffer(hashlib.sha256((self._identity.name + text).encode()).digest()[:8], dtype=np.uint8).astype(np.int32)


class BatchingDigests(Digests):
    """The same, several texts in one call."""

    def __init__(self, *, refused: str | None = None) -> None:
        super().__init__(refused=refused)
        self.calls: list[int] = []

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        with self._lock:
            self.calls.append(len(texts))
        return [self.encode_document(text) for text in texts]


class KilledError(Exception):
    """Stands for the end of the process."""


def held(store: ListedChunks, encoder: Digests) -> dict[int, bytes]:
    return {key: vector.tobytes() for key, vector in store.vectors.get(encoder.identity, {}).items()}


def texts_of(count: int) -> list[str]:
    return [f"text {number}" for number in range(count)]


TEXTS = st.lists(st.sampled_from("abcdefghij"), max_size=30)


@given(texts=TEXTS, batch_chunks=st.integers(1, 7), threads=st.integers(1, 3))
def test_every_chunk_gets_the_vector_of_its_text_and_no_text_is_encoded_twice(texts: list[str], batch_chunks: int, threads: int) -> None:
    store, encoder = ListedChunks(texts), Digests()
    report = embed(store, encoder, batch_chunks=batch_chunks, threads=threads)

    assert set(texts) == set(encoder.asked)
    assert {1} >= set(encoder.asked.values())
    assert {key: Digests().encode_document(text).tobytes() for key, text in enumerate(texts)} == held(store, encoder)
    assert (len(texts), len(texts) - len(set(texts)), 0) == (report.embedded, report.reused, report.remaining)
    assert all(len(commit) <= batch_chunks for commit in store.commits)


@given(texts=TEXTS, batch_chunks=st.integers(1, 7), kills=st.lists(st.integers(0, 12), max_size=6))
def test_killed_anywhere_it_goes_on_and_loses_at_most_one_batch_each_time(texts: list[str], batch_chunks: int, kills: list[int]) -> None:
    store, encoder = ListedChunks(texts), Digests()
    for steps in kills:
        left = [steps]

        def dies(_: EmbedProgress, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise KilledError

        with contextlib.suppress(KilledError):
            embed(store, encoder, batch_chunks=batch_chunks, on_progress=dies)
    embed(store, encoder, batch_chunks=batch_chunks)
    whole = ListedChunks(texts)
    embed(whole, Digests(), batch_chunks=batch_chunks)

    assert held(whole, encoder) == held(store, encoder)
    assert encoder.asked.total() <= len(set(texts)) + len(kills) * batch_chunks


def test_a_second_run_has_nothing_to_do_and_makes_no_version() -> None:
    store, encoder = ListedChunks(texts_of(5)), Digests()
    embed(store, encoder, batch_chunks=2)
    report = embed(store, encoder, batch_chunks=2)

    assert (0, 0, 0, "", 0) == (report.embedded, report.reused, report.remaining, report.evidence_state, report.sequence)
    assert [2, 2, 1] == [len(commit) for commit in store.commits]


def test_progress_never_goes_back_and_ends_at_the_whole() -> None:
    store, told = ListedChunks([*texts_of(5), "text 0"]), list["EmbedProgress"]()
    report = embed(store, Digests(), batch_chunks=4, on_progress=told.append)

    assert [0, 1, 2, 3, 4, 4, 5, 6, 6] == [progress.embedded for progress in told]
    assert {6} == {progress.chunks for progress in told}
    assert [4, 6] == [progress.embedded for progress in told if progress.commit is not None]
    assert told[-1].commit is not None
    assert (told[-1].commit.evidence_state, told[-1].commit.sequence) == (report.evidence_state, report.sequence)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_text_that_cannot_be_encoded_is_named_and_the_others_are_kept(threads: int) -> None:
    store, encoder = ListedChunks(texts_of(10)), Digests(refused="text 6")
    name = store.chunks[6].content_hash[:16]

    with pytest.raises(InvalidFieldError, match=f"the chunk whose id ends in '@{name}' got no vector: field 'text': it is refused"):
        embed(store, encoder, batch_chunks=5, threads=threads)

    assert set(range(6)) <= set(held(store, encoder))
    assert 6 not in held(store, encoder)
    assert set(encoder.asked) - {"text 6"} == {store.chunks[key].text for key in held(store, encoder)}


def test_after_a_failure_no_further_text_is_begun() -> None:
    store, encoder = ListedChunks(texts_of(10)), Digests(refused="text 6")

    with pytest.raises(EvidentiaError):
        embed(store, encoder, batch_chunks=100)

    assert 7 == encoder.asked.total()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_cancelled_run_keeps_what_is_encoded_and_says_what_remains(threads: int) -> None:
    store, encoder = ListedChunks(texts_of(50)), Digests()
    report = embed(store, encoder, batch_chunks=20, threads=threads, is_cancelled=lambda: encoder.asked.total() >= 27)

    assert encoder.asked.total() == report.embedded == len(held(store, encoder))
    assert 27 <= report.embedded < 27 + threads
    assert 50 - report.embedded == report.remaining


def test_vectors_of_another_encoder_are_never_reused() -> None:
    store, first, second = ListedChunks(["a", "b", "a"]), Digests(name="first"), Digests(name="second")
    embed(store, first, batch_chunks=2)
    report = embed(store, second, batch_chunks=2)

    assert {"a": 1, "b": 1} == second.asked
    assert (3, 1) == (report.embedded, report.reused)
    assert held(store, first).keys() == held(store, second).keys()
    assert all(held(store, first)[key] != held(store, second)[key] for key in range(3))


def test_an_encoder_that_comes_back_finds_its_vectors_and_puts_them_in_force() -> None:
    store, first, second = ListedChunks(["a", "b"]), Digests(name="first"), Digests(name="second")
    for encoder in (first, second):
        embed(store, encoder, batch_chunks=10)
    report = embed(store, first, batch_chunks=10)

    assert (0, 0, "e3") == (report.embedded, report.remaining, report.evidence_state)
    assert first.identity == store.in_force
    assert {"a": 1, "b": 1} == first.asked


def test_several_threads_encode_at_a_time() -> None:
    encoder = Digests()
    embed(ListedChunks(texts_of(200)), encoder, batch_chunks=100, threads=2)

    assert all(name.startswith("encoding") for name in encoder.threads)


def test_a_callback_that_fails_ends_the_run_without_the_rest_of_the_batch() -> None:
    gate = threading.Event()

    class Gated(Digests):
        def encode_document(self, text: str) -> Vector:
            vector = super().encode_document(text)
            if text != "text 0":
                gate.wait()
            return vector

    def fail(progress: EmbedProgress) -> None:
        if progress.embedded:
            gate.set()
            raise KilledError

    encoder = Gated()
    with pytest.raises(KilledError):
        embed(ListedChunks(texts_of(20_000)), encoder, batch_chunks=20_000, threads=2, on_progress=fail)

    assert encoder.asked.total() < 20_000


def test_an_encoder_that_takes_batches_is_given_batches() -> None:
    store, encoder = ListedChunks(texts_of(2 * TEXTS_PER_CALL + 3)), BatchingDigests()
    embed(store, encoder, batch_chunks=1_000)

    assert [TEXTS_PER_CALL, TEXTS_PER_CALL, 3] == encoder.calls
    assert {key: Digests().encode_document(chunk.text).tobytes() for key, chunk in enumerate(store.chunks)} == held(store, encoder)


def test_a_failed_call_is_named_by_its_first_chunk() -> None:
    store, encoder = ListedChunks(texts_of(TEXTS_PER_CALL + 9)), BatchingDigests(refused=f"text {TEXTS_PER_CALL + 5}")

    with pytest.raises(InvalidFieldError, match=store.chunks[TEXTS_PER_CALL].content_hash[:16]):
        embed(store, encoder, batch_chunks=1_000)

    assert list(range(TEXTS_PER_CALL)) == list(held(store, encoder))


def test_a_store_whose_vectors_vanish_is_an_error_and_no_endless_run() -> None:
    class Forgetful(ListedChunks):
        def add(self, identity: VectorIdentity, vectors: Mapping[int, Vector]) -> CommitSummary:
            summary = super().add(identity, vectors)
            self.vectors.clear()
            return summary

    with pytest.raises(BaseStateError, match="vectors of 'digests' were replaced while they were being made"):
        embed(Forgetful(texts_of(3)), Digests(), batch_chunks=2)
