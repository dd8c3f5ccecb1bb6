"""A store that is a dict, a clock that is set, and questions with answers, for the tests of the cache."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.records.responses import EmbeddedResponses
from evidentia.contracts.access import AccessRule, Principal
from evidentia.contracts.evidence import SubQuery
from evidentia.contracts.ids import ChunkId, DocumentId, PrincipalId, SessionId, Sha256, SourceId
from evidentia.contracts.retrieval import ExternalCandidate, SourceAsk, StoredResponse
from evidentia.contracts.sources import SourceDescriptor
from evidentia.contracts.vocabulary import AuthorityTier
from evidentia.federation.candidate_cache import CacheKey, CandidateCache
from evidentia.foundation.sqlite_file import to_microseconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evidentia.contracts.evidence import TimeWindow
    from evidentia.contracts.ports import Clock, ResponseStore
    from evidentia.contracts.settings import CacheSettings
    from evidentia.contracts.vocabulary import CacheTier

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


class DictResponses:
    """Implements `ResponseStore` in memory. Thread safe."""

    def __init__(self, clock: Clock, *, most_entries: int = 10_000) -> None:
        self.kept: dict[bytes, StoredResponse] = {}
        """The response that was not used for longest comes first."""
        self.begun: dict[SourceId, int] = {}
        self._clock = clock
        self._most = most_entries
        self._newest: dict[SourceId, int] = {}
        self._listed: dict[bytes, None] = {}
        self._lock = threading.RLock()

    def generations(self, source_ids: Sequence[SourceId]) -> dict[SourceId, int]:
        with self._lock:
            self._begin([source for source in source_ids if source not in self.begun])
            return dict(self.begun)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, StoredResponse]:
        with self._lock:
            return {key: self.kept[key] for key in keys if key in self.kept and self._is_alive(self.kept[key])}

    def neighbours(self, group: bytes, *, limit: int) -> list[StoredResponse]:
        with self._lock:
            listed = [self.kept[key] for key in reversed(self._listed) if key in self.kept]
            return [each for each in listed if each.group == group and self._is_alive(each)][:limit]

    def put(self, responses: Sequence[StoredResponse]) -> list[StoredResponse]:
        with self._lock:
            now_us = to_microseconds(self._clock.now())
            last_us = {each.key: known.last_us for each in responses if (known := self.kept.get(each.key)) and known.last_us <= now_us}
            alive = [each for each in responses if each.generation == self.begun.get(each.source_id)]
            kept = [each for each in alive if each.last_us >= last_us.get(each.key, 0)]
            for each in kept:
                for order in (self.kept, self._listed):
                    order.pop(each.key, None)
                self.kept[each.key], self._listed[each.key] = each, None
            self.kept = {key: each for key, each in self.kept.items() if self._is_alive(each)}
            for key in list(self.kept)[: max(0, len(self.kept) - self._most)]:
                del self.kept[key]
            return kept

    def invalidate(self, source_id: SourceId | None = None) -> int:
        with self._lock:
            self._begin(list(self._newest) if source_id is None else [source_id])
            gone = [key for key, each in self.kept.items() if source_id in (None, each.source_id)]
            return len([self.kept.pop(key) for key in gone])

    def touch(self, keys: Sequence[bytes]) -> None:
        with self._lock:
            for key in keys:
                if key in self.kept:
                    self.kept[key] = self.kept.pop(key)

    def counts(self) -> Counter[CacheTier]:
        with self._lock:
            return Counter(each.tier for each in self.kept.values() if self._is_alive(each))

    def close(self) -> None:
        self.kept.clear()

    def _begin(self, sources: Sequence[SourceId]) -> None:
        for source in sources:
            self._newest[source] = max(to_microseconds(self._clock.now()), self._newest.get(source, 0) + 1)
            self.begun[source] = self._newest[source]

    def _is_alive(self, each: StoredResponse) -> bool:
        return each.expires_us is None or each.expires_us > to_microseconds(self._clock.now())


class CacheBench:
    """A cache over a store and a clock, and short ways to ask it; with a directory the store is the embedded one."""

    def __init__(self, settings: CacheSettings, *, directory: Path | None = None) -> None:
        self.clock = SetClock()
        self.settings = settings
        self._directory = directory
        self._embedded: list[EmbeddedResponses] = []
        self.dict = DictResponses(self.clock, most_entries=settings.most_entries)
        self.cache = self.another()

    @property
    def kept(self) -> dict[bytes, StoredResponse]:
        """Return the responses of a store that is a dict, to be tampered with."""
        assert self._directory is None
        return self.dict.kept

    @property
    def store(self) -> ResponseStore:
        """Return the store as the first process has it."""
        return self.dict if self._directory is None else self._embedded[0]

    def another(self, *, intake: str = "") -> CandidateCache:
        """Return the cache as another process has it: the same store, and nothing in memory."""
        return CandidateCache(self._connected(), settings=self.settings, clock=self.clock, intake=intake)

    def close(self) -> None:
        """Close every connection."""
        for store in self._embedded:
            store.close()

    def _connected(self) -> ResponseStore:
        if self._directory is None:
            return self.dict
        path = self._directory / "responses.db"
        self._embedded.append(EmbeddedResponses(path, clock=self.clock, most_entries=self.settings.most_entries))
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
            generation=self.cache.generations([descriptor.source_id])[descriptor.source_id],
            vector=vector,
            vector_space=space if vector is not None else "",
            max_staleness_ms=max_staleness_ms,
        )

    def keep(self, asked: CacheKey, *contents: str, precomputed: bool = False) -> tuple[ExternalCandidate, ...]:
        """Keep an answer that came now."""
        candidates = answer(*contents, source=asked.source_id, at=self.clock.now(), query=asked.ask.query.text)
        self.cache.for_request().put_all([(asked, candidates, self.clock.now())], precomputed=precomputed)
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
