"""Under which keys the cache stores responses: one key per question, caller, source, state of the source and tier.

Whatever may change an answer is in the key, so that what does not fit is not found rather than found and refused. How important a part
of a question is, how long the caller waits and `as_of` are not: the first two do not change what a source says, the last is checked.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.vocabulary import CacheTier, SourceType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.ids import Sha256, SourceId
    from evidentia.contracts.retrieval import SourceAsk
    from evidentia.contracts.sources import SourceDescriptor

FORMAT: Final = 3
"""Counts up when what is kept changes its form or its meaning; what older ones kept is then not found."""
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
    """What `CandidateCache.generations` said of the source."""
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


class EntryKeys(NamedTuple):
    """The keys of one question: `scope` is a digest of everything but its words, `question` one of everything."""

    scope: bytes
    question: bytes
    session: bytes | None
    space: bytes
    entries: Mapping[CacheTier, bytes]
    """Where each tier that may have an answer keeps it, in the order in which they are looked in."""

    def bucket(self, bucket: int) -> bytes:
        """Return the group of the session's questions whose vectors fall into a bucket."""
        return _digest(_encode((self.session, self.space, bucket)), key=self.scope)

    def leaders(self) -> bytes:
        """Return the group of the leading questions of the global tier."""
        return _digest(self.space, key=self.scope)


class EntryKeyMaker:
    """Makes the keys of questions. `intake` identifies what else shapes what is kept, such as its settings. Thread safe."""

    def __init__(self, *, intake: str = "") -> None:
        self._intake = intake
        self._descriptors: dict[SourceId, tuple[SourceDescriptor, bytes]] = {}

    def keys(self, key: CacheKey) -> EntryKeys | None:
        """Return the keys of a question; None when a source or caller gave text that has no bytes, which is then not kept."""
        try:
            return self._keys(key)
        except UnicodeEncodeError:
            return None

    def _keys(self, key: CacheKey) -> EntryKeys:
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
        question = _digest(ask.query.text.encode(), key=scope)
        entries = {CacheTier.PRECOMPUTED: question + b"p", CacheTier.GLOBAL: question + b"g"}
        session = None if ask.session is None else ask.session.encode()
        if session is not None:
            entries = {CacheTier.SESSION: _digest(session, key=question) + b"s", **entries}
        return EntryKeys(scope, question, session, key.vector_space.encode(), entries)

    def _descriptor(self, descriptor: SourceDescriptor) -> bytes:
        """Return a digest of the whole descriptor: its schema version, and its tier and policy, which candidates carry."""
        known = self._descriptors.get(descriptor.source_id)
        if known is not None and known[0] is descriptor:
            return known[1]
        digest = _digest(_encode(descriptor))
        self._descriptors[descriptor.source_id] = (descriptor, digest)
        return digest


def _digest(content: bytes, *, key: bytes = b"") -> bytes:
    return blake2b(content, digest_size=_DIGEST_BYTES, key=key, person=b"evidentia-%d" % FORMAT).digest()
