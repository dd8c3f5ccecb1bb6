"""Under which names the cache keeps what: one name per question, caller, source and state of the source.

Whatever may change an answer is in the name, so that what does not fit is not found rather than found and refused. How important a part
of a question is, how long the caller waits and `as_of` are not: the first two do not change what a source says, the last is checked.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

import msgspec

from evidentia.contracts.vocabulary import CacheTier, SourceType

if TYPE_CHECKING:
    from evidentia.contracts.ids import Sha256, SourceId
    from evidentia.contracts.retrieval import SourceAsk
    from evidentia.contracts.sources import SourceDescriptor

FORMAT: Final = 2
"""Counts up when what is kept changes its form or its meaning; what older ones kept is then not found."""
ROOT: Final = "cache/"
ENTRIES: Final = f"{ROOT}entry/"
USED: Final = f"{ROOT}used/"
NEAR: Final = f"{ROOT}near/"
GENERATIONS: Final = f"{ROOT}generation/"
INVALIDATED: Final = (ENTRIES, USED, NEAR)
"""Everything that goes when a source is forgotten; its generation stays, since it says so."""

_DIGEST_BYTES: Final = 20
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class CacheKey(NamedTuple):
    """A question to one source, with all that decides whether what was kept answers it.

    `data_version` and `generation` have to be read before the source is asked: what it says is then at least as new as they are.
    """

    descriptor: SourceDescriptor
    data_version: str
    """What `SupportsDataVersion` said, else empty."""
    ask: SourceAsk
    fingerprint: Sha256
    """The caller's access fingerprint."""
    generation: int
    """What `CandidateCache.generation` said of the source."""
    vector: bytes | None = None
    """The question's vector: little-endian 32-bit integers."""
    vector_space: str = ""
    """What makes two vectors comparable; empty without one."""
    max_staleness_ms: int | None = None
    """How old what was kept may be; None: the settings alone decide; 0: nothing kept will do."""

    @property
    def source_id(self) -> SourceId:
        """Return the source that is asked."""
        return self.descriptor.source_id


class EntryNames(NamedTuple):
    """The names of one question: `scope` is a digest of everything but its words, `question` one of everything."""

    source: str
    scope: bytes
    question: bytes
    session: bytes | None
    space: bytes

    def entry(self, tier: CacheTier) -> str:
        """Return where a tier keeps the answer to just this question; the session's tier is for a question with a session."""
        key = _digest(self.session or b"", key=self.question) if tier is CacheTier.SESSION else self.question
        return f"{ENTRIES}{self.source}/{tier}/{key.hex()}"

    def bucket(self, bucket: int) -> str:
        """Return where the session's questions are listed whose vectors fall into a bucket."""
        key = _digest(_encode((self.session, self.space, bucket)), key=self.scope)
        return f"{NEAR}{self.source}/{CacheTier.SESSION}/{key.hex()}"

    def leaders(self) -> str:
        """Return where the leading questions of the global tier are listed."""
        return f"{NEAR}{self.source}/{CacheTier.GLOBAL}/{_digest(self.space, key=self.scope).hex()}"


class Namer:
    """Names questions. `intake` identifies what else shapes what is kept, such as the settings of the intake. Thread safe."""

    def __init__(self, *, intake: str = "") -> None:
        self._intake = intake
        self._descriptors: dict[SourceId, tuple[SourceDescriptor, bytes]] = {}

    def names(self, key: CacheKey) -> EntryNames | None:
        """Return the names of a question; None when a source or caller gave text that has no bytes, which is then not kept."""
        try:
            return self._names(key)
        except UnicodeEncodeError:
            return None

    def _names(self, key: CacheKey) -> EntryNames:
        ask = key.ask
        is_memory = key.descriptor.source_type is SourceType.MEMORY_LAYER
        scope = _digest(
            _encode(
                (
                    self._intake,
                    self._descriptor(key.descriptor),
                    key.data_version,
                    key.generation,
                    key.fingerprint,
                    # Sources are told who asks: what they say may turn on attributes that the fingerprint leaves out.
                    ask.principal,
                    ask.limit,
                    ask.time_window,
                    ask.query.required_capabilities,
                    (ask.agent_name, ask.session) if is_memory else None,
                )
            )
        )
        return EntryNames(
            source=quoted(key.source_id),
            scope=scope,
            question=_digest(ask.query.text.encode(), key=scope),
            session=None if ask.session is None else ask.session.encode(),
            space=key.vector_space.encode(),
        )

    def _descriptor(self, descriptor: SourceDescriptor) -> bytes:
        """Return a digest of the whole descriptor: its schema version, and its tier and policy, which candidates carry."""
        known = self._descriptors.get(descriptor.source_id)
        if known is not None and known[0] is descriptor:
            return known[1]
        digest = _digest(_encode(descriptor))
        self._descriptors[descriptor.source_id] = (descriptor, digest)
        return digest


@lru_cache(maxsize=1_024)
def quoted(source_id: SourceId) -> str:
    """Return a source id as one step of a name, so that none begins with another and forgetting one spares all others."""
    return quote(source_id, safe="", errors="surrogatepass")


def used_name(entry: str) -> str:
    """Return where it is noted when an entry was last used."""
    return USED + entry.removeprefix(ENTRIES)


def entry_name(used: str) -> str:
    """Return the entry whose use is noted under a name."""
    return ENTRIES + used.removeprefix(USED)


def tier_of(used: str) -> CacheTier | None:
    """Return the tier of the entry whose use is noted under a name; None when the name is not ours."""
    word = used.removeprefix(USED).partition("/")[2].partition("/")[0]
    return next((tier for tier in CacheTier if tier.value == word), None)


def generation_name(source_id: SourceId) -> str:
    """Return where a source's generation is kept."""
    return GENERATIONS + quoted(source_id)


def _digest(content: bytes, *, key: bytes = b"") -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES, key=key, person=b"evidentia-%d" % FORMAT).digest()
