"""A store that is a dict, a clock that is set, and questions with answers, for the tests of the cache."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.records.key_values import EmbeddedKeyValues
from evidentia.contracts.access import AccessRule, Principal
from evidentia.contracts.evidence import SubQuery
from evidentia.contracts.ids import ChunkId, DocumentId, PrincipalId, SessionId, Sha256, SourceId
from evidentia.contracts.retrieval import ExternalCandidate, SourceAsk
from evidentia.contracts.sources import SourceDescriptor
from evidentia.contracts.vocabulary import AuthorityTier
from evidentia.federation.candidate_cache import CacheKey, CandidateCache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evidentia.contracts.evidence import TimeWindow
    from evidentia.contracts.ports import KeyValueStore
    from evidentia.contracts.settings import CacheSettings

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
WIKI = SourceDescriptor(source_id=SourceId("wiki"))
ALICE = Principal(principal_id=PrincipalId("alice"))
SPACE = "minilm"


class SetClock:
    """Implements `Clock`; it stands still until it is moved."""

    def __init__(self) -> None:
        self.moment = START

    def now(self) -> datetime:
        return self.moment

    def elapsed_ns(self) -> int:
        return (self.moment - START) // timedelta(microseconds=1) * 1_000

    def move(self, *, seconds: float = 0, microseconds: int = 0) -> None:
        self.moment += timedelta(seconds=seconds, microseconds=microseconds)


class DictStore:
    """Implements `KeyValueStore` in memory. Thread safe: every step is one of the dict's own."""

    def __init__(self, clock: SetClock) -> None:
        self.kept: dict[str, tuple[bytes, datetime | None]] = {}
        self._clock = clock

    def get(self, key: str) -> bytes | None:
        value, expires_at = self.kept.get(key, (None, None))
        return None if expires_at is not None and expires_at <= self._clock.now() else value

    def put(self, key: str, value: bytes, *, expires_at: datetime | None = None) -> None:
        self.kept[key] = (value, expires_at)

    def delete(self, prefix: str) -> int:
        names = [key for key in list(self.kept) if key.startswith(prefix)]
        return sum(self.kept.pop(key, None) is not None for key in names)

    def items(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        names = sorted(key for key in list(self.kept) if key.startswith(prefix))
        return iter([(key, value) for key in names if (value := self.get(key)) is not None])

    def close(self) -> None:
        self.kept.clear()


class CacheBench:
    """A cache over a store and a clock, and short ways to ask it; with a directory the store is the embedded one."""

    def __init__(self, settings: CacheSettings, *, directory: Path | None = None) -> None:
        self.clock = SetClock()
        self.settings = settings
        self._directory = directory
        self._embedded: list[EmbeddedKeyValues] = []
        self._dict = DictStore(self.clock)
        self.cache = self.another()

    @property
    def kept(self) -> dict[str, tuple[bytes, datetime | None]]:
        """Return the rows of a store that is a dict, to be tampered with."""
        assert self._directory is None
        return self._dict.kept

    @property
    def store(self) -> KeyValueStore:
        """Return the store as the first process has it."""
        return self._dict if self._directory is None else self._embedded[0]

    def another(self, *, intake: str = "") -> CandidateCache:
        """Return the cache as another process has it: the same store, and nothing in memory."""
        return CandidateCache(self._connected(), settings=self.settings, clock=self.clock, intake=intake)

    def close(self) -> None:
        """Close every connection."""
        for store in self._embedded:
            store.close()

    def _connected(self) -> KeyValueStore:
        if self._directory is None:
            return self._dict
        self._embedded.append(EmbeddedKeyValues(self._directory / "runtime.sqlite", clock=self.clock))
        return self._embedded[-1]

    def asked(
        self,
        text: str = "how are keys rotated",
        *,
        descriptor: SourceDescriptor = WIKI,
        principal: Principal = ALICE,
        data_version: str = "",
        fingerprint: str | None = None,
        limit: int = 10,
        session: str | None = None,
        agent_name: str = "",
        time_window: TimeWindow | None = None,
        as_of: datetime | None = None,
        vector: bytes | None = None,
        space: str = SPACE,
        max_staleness_ms: int | None = None,
    ) -> CacheKey:
        """Return a question that is asked now."""
        return CacheKey(
            descriptor=descriptor,
            data_version=data_version,
            ask=SourceAsk(
                query=SubQuery(text=text),
                principal=principal,
                limit=limit,
                budget_ms=100,
                as_of=self.clock.now() if as_of is None else as_of,
                agent_name=agent_name,
                session=None if session is None else SessionId(session),
                time_window=time_window,
            ),
            fingerprint=fingerprint_of(principal.principal_id if fingerprint is None else fingerprint),
            generation=self.cache.generation(descriptor.source_id),
            vector=vector,
            vector_space=space if vector is not None else "",
            max_staleness_ms=max_staleness_ms,
        )

    def keep(self, asked: CacheKey, *contents: str, precomputed: bool = False) -> tuple[ExternalCandidate, ...]:
        """Keep an answer that came now."""
        candidates = answer(*contents, source=asked.source_id, at=self.clock.now(), query=asked.ask.query.text)
        self.cache.put(asked, candidates, retrieved_at=self.clock.now(), precomputed=precomputed)
        return candidates


def answer(*contents: str, at: datetime, source: SourceId = WIKI.source_id, query: str = "") -> tuple[ExternalCandidate, ...]:
    """Return candidates with these contents."""
    return tuple(candidate(content, rank=rank, at=at, source=source, query=query) for rank, content in enumerate(contents, start=1))


def candidate(content: str, *, rank: int, at: datetime = START, source: SourceId = WIKI.source_id, query: str = "") -> ExternalCandidate:
    """Return a candidate as the intake makes them."""
    content_hash = Sha256(hashlib.sha256(content.encode()).hexdigest())
    return ExternalCandidate(
        chunk_id=ChunkId(f"{source}:{content_hash[:12]}#0@{content_hash[:16]}"),
        document_id=DocumentId(f"{source}:{content_hash[:12]}"),
        source_id=source,
        content=content,
        content_hash=content_hash,
        received_hash=content_hash,
        received_length=len(content),
        rank=rank,
        query=query,
        origin=f"https://wiki.example/{content_hash[:6]}",
        retrieved_at=at,
        authority_tier=AuthorityTier.CURATED,
        access=AccessRule(),
    )


def fingerprint_of(word: str) -> Sha256:
    """Return something that looks like an access fingerprint."""
    return Sha256(hashlib.sha256(word.encode()).hexdigest())


def unit(*components: float) -> bytes:
    """Return a unit vector as questions carry them."""
    row = np.array(components, dtype=np.float64)
    return np.rint(row / np.sqrt(row @ row) * (1 << 22)).astype("<i4").tobytes()


def contents(candidates: Sequence[ExternalCandidate]) -> tuple[str, ...]:
    """Return what candidates say."""
    return tuple(found.content for found in candidates)
