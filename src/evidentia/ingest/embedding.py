"""Chunks get their vectors: a batch at a time, each durable before the next begins, and equal texts are encoded once.

Refuses to hold more than one batch. Killed at any moment it loses the batch under way, and goes on from there when run again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from evidentia.contracts.errors import BaseStateError, EvidentiaError, InvalidFieldError, ServiceUnavailableError
from evidentia.contracts.ids import CHUNK_HASH_DIGITS, Sha256
from evidentia.contracts.ports import Encoder, SupportsBatches, VectorStore
from evidentia.contracts.vectors import EmbedProgress, EmbedReport, PendingChunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.documents import CommitSummary

    Vector = NDArray[np.int32]

OnProgress = Callable[[EmbedProgress], None]
TEXTS_PER_CALL = 64
"""How many texts an encoder that takes batches is given in one call."""


def embed(
    store: VectorStore,
    encoder: Encoder,
    *,
    batch_chunks: int,
    threads: int = 1,
    on_progress: OnProgress | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> EmbedReport:
    """Give every live chunk a vector of this encoder, make those the vectors of the base, and account for it.

    For each batch: 1. take chunks without a vector  2. find the vectors their texts have already  3. encode the other texts
    4. make the vectors durable  5. tell the progress

    It ends early when `is_cancelled` says so, and with an error at a text that cannot be encoded; what the batch has by
    then is kept. Without a commit the version fields of the report are empty, for the caller to fill in from the base's head.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="encoding") if threads > 1 else None
    try:
        texts = _Texts(encoder, pool=pool, is_cancelled=is_cancelled)
        run = _EmbeddingRun(store, encoder, texts=texts, on_progress=on_progress)
        while not is_cancelled() and run.take_batch(limit=batch_chunks):
            pass
        if not is_cancelled():
            run.put_in_force()
        return run.report()
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


class _EmbeddingRun:
    """Counts as an embedding goes on."""

    def __init__(self, store: VectorStore, encoder: Encoder, *, texts: _Texts, on_progress: OnProgress | None) -> None:
        self._store = store
        self._identity = encoder.identity
        self._texts = texts
        self._on_progress = on_progress
        self._state = store.state(self._identity)
        self._given: frozenset[int] = frozenset()
        self._embedded = self._reused = 0
        self._last: CommitSummary | None = None
        self._tell(ahead=0)

    def take_batch(self, *, limit: int) -> bool:
        """Embed the next chunks; False when there are none."""
        chunks = self._store.pending(self._identity, limit=limit)
        if not chunks:
            return False
        self._refuse_repetition(chunks)
        wanted = _by_text(chunks)
        known = self._store.known(self._identity, list(wanted))
        vectors = {key: known[content_hash] for content_hash, each in wanted.items() if content_hash in known for key in each.keys}
        if vectors:
            self._tell(ahead=len(vectors))
        reused = len(vectors)
        failure: EvidentiaError | None = None
        for content_hash, outcome in self._texts.encoded({name: each.text for name, each in wanted.items() if name not in known}):
            if isinstance(outcome, EvidentiaError):
                failure = failure or _unencodable(content_hash, outcome)
                continue
            keys = wanted[content_hash].keys
            vectors.update(dict.fromkeys(keys, outcome))
            reused += len(keys) - 1
            self._tell(ahead=len(vectors))
        if vectors:
            self._keep(vectors, reused=reused)
        if failure is not None:
            raise failure
        return True

    def put_in_force(self) -> None:
        """Make the vectors of this encoder those of the base; they may all be there from a time before another one."""
        if self._state.embedded and self._state.identity != self._identity:
            self._keep({}, reused=0)

    def report(self) -> EmbedReport:
        """Return the account."""
        return EmbedReport(
            identity=self._identity,
            embedded=self._embedded,
            reused=self._reused,
            remaining=self._state.chunks - self._state.embedded,
            evidence_state=self._last.evidence_state if self._last else "",
            sequence=self._last.sequence if self._last else 0,
        )

    def _keep(self, vectors: Mapping[int, Vector], *, reused: int) -> None:
        self._last = self._store.add(self._identity, vectors)
        self._given = frozenset(vectors)
        self._embedded += len(vectors)
        self._reused += reused
        self._state = self._store.state(self._identity)
        self._tell(ahead=0, commit=self._last)

    def _refuse_repetition(self, chunks: Sequence[PendingChunk]) -> None:
        """Refuse to run for ever: what was just given a vector can only lack one again when somebody took it away."""
        if any(chunk.key in self._given for chunk in chunks):
            problem = f"vectors of '{self._identity.name}' were replaced while they were being made"
            raise BaseStateError(f"{problem}; let one encoder finish before another one embeds the same base")

    def _tell(self, *, ahead: int, commit: CommitSummary | None = None) -> None:
        if self._on_progress is not None:
            embedded = min(self._state.embedded + ahead, self._state.chunks)
            self._on_progress(EmbedProgress(embedded=embedded, chunks=self._state.chunks, commit=commit))


class _Texts:
    """Encodes texts, several at a time where there is a pool; after a failure or a cancellation no further one is begun."""

    def __init__(self, encoder: Encoder, *, pool: ThreadPoolExecutor | None, is_cancelled: Callable[[], bool]) -> None:
        self._encoder = encoder
        self._batching = encoder if isinstance(encoder, SupportsBatches) else None
        self._pool = pool
        self._is_cancelled = is_cancelled
        self._has_failed = threading.Event()

    def encoded(self, texts: Mapping[Sha256, str]) -> Iterator[tuple[Sha256, Vector | EvidentiaError]]:
        """Yield each text's vector or the error it gave, in the order given; texts that were not begun are left out."""
        names = list(texts)
        size = TEXTS_PER_CALL if self._batching is not None else 1
        calls = [names[start : start + size] for start in range(0, len(names), size)]
        contents = ([texts[name] for name in call] for call in calls)
        outcomes: Iterable[Sequence[Vector] | EvidentiaError | None]
        outcomes = self._pool.map(self._encode, contents) if self._pool is not None else map(self._encode, contents)
        for call, outcome in zip(calls, outcomes, strict=True):
            if isinstance(outcome, EvidentiaError):
                yield call[0], outcome
            elif outcome is not None:
                yield from zip(call, outcome, strict=True)

    def _encode(self, texts: Sequence[str]) -> Sequence[Vector] | EvidentiaError | None:
        if self._has_failed.is_set() or self._is_cancelled():
            return None
        try:
            if self._batching is not None:
                return self._batching.encode_documents(texts)
            return [self._encoder.encode_document(text) for text in texts]
        except EvidentiaError as error:
            self._has_failed.set()
            return error


class _Wanted(NamedTuple):
    """A text and the chunks that hold it."""

    text: str
    keys: list[int]


def _by_text(chunks: Sequence[PendingChunk]) -> dict[Sha256, _Wanted]:
    wanted: dict[Sha256, _Wanted] = {}
    for chunk in chunks:
        wanted.setdefault(chunk.content_hash, _Wanted(chunk.text, [])).keys.append(chunk.key)
    return wanted


def _unencodable(content_hash: Sha256, error: EvidentiaError) -> EvidentiaError:
    """Return the error of the same kind that names the chunk, by the end of its id, which is all that is known of it here.

    A service that gives no answer fails for every text alike, so its error stays what it is.
    """
    if isinstance(error, ServiceUnavailableError):
        return error
    problem = f"the chunk whose id ends in '@{content_hash[:CHUNK_HASH_DIGITS]}' got no vector: {error}"
    named = BaseStateError(problem) if isinstance(error, BaseStateError) else InvalidFieldError("embedding.encoder", problem)
    named.__cause__ = error
    return named
