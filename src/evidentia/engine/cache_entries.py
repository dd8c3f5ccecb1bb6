"""What is kept of one answer, as bytes and as objects, and whether it is still good.

Bytes that are cut, changed, of another form or under another name than they were kept under are no entry; nothing is repaired.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.retrieval import ExternalCandidate
from evidentia.engine.cache_keys import FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.engine.cache_keys import CacheAsk

SECOND_US: Final = 1_000_000
MAX_DURATION_US: Final = 100 * 366 * 86_400 * SECOND_US
"""A time to live longer than a century counts as one, so that every end of it is a date."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SEAL_BYTES: Final = 16
_HELD_ENTRIES: Final = 1_024
_HELD_BYTES: Final = 32 * 1024 * 1024


class Entry(NamedTuple):
    """Candidates with the moments, in microseconds, between which the source gave them; the older one tells their age."""

    first_us: int
    last_us: int
    candidates: tuple[ExternalCandidate, ...]


class Demand(NamedTuple):
    """What a question asks of an entry, all in microseconds."""

    now_us: int
    as_of_us: int
    max_age_us: int | None

    @classmethod
    def of(cls, asked: CacheAsk, *, now: datetime, is_any_age: bool = False) -> Demand:
        """Return the demand of a question that is asked now."""
        limit = None if is_any_age else asked.max_staleness_ms
        return cls(microseconds(now), microseconds(asked.ask.as_of), None if limit is None else limit * 1_000)

    def admits(self, entry: Entry, *, lifetime_us: int | None) -> bool:
        """Tell whether an entry is from before `as_of`, young enough for the request and within a lifetime; None is without end.

        What seems to come from the future is not admitted: then one of two clocks is wrong.
        """
        if entry.last_us > self.as_of_us or entry.last_us > self.now_us:
            return False
        return self.is_young(entry) and (lifetime_us is None or self.now_us - entry.first_us < lifetime_us)

    def is_young(self, entry: Entry) -> bool:
        """Tell whether an entry is young enough for the request."""
        return self.max_age_us is None or self.now_us - entry.first_us <= self.max_age_us

    def age_ms(self, entry: Entry) -> int:
        """Return how old the oldest of an entry is."""
        return max(0, self.now_us - entry.first_us) // 1_000


def entry_of(candidates: Sequence[ExternalCandidate], *, retrieved_at: datetime) -> Entry:
    """Return what is kept of an answer."""
    moments = [retrieved_at, *[candidate.retrieved_at for candidate in candidates]]
    return Entry(microseconds(min(moments)), microseconds(max(moments)), tuple(candidates))


_Row = msgspec.defstruct(
    "_Row", [(field.name, field.type) for field in msgspec.structs.fields(ExternalCandidate)], frozen=True, array_like=True
)
"""A candidate without the names of its fields, which are a third of it: what is kept is hashed, written and read all the time."""
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(tuple[int, int, tuple[_Row, ...]])  # type: ignore[valid-type]  # mypy takes no type made so


def encode_entry(entry: Entry, *, name: str) -> bytes | None:
    """Return the bytes to keep under a name; None when a text of a candidate has no bytes."""
    rows = [msgspec.structs.astuple(candidate) for candidate in entry.candidates]
    try:
        return seal(_encoder.encode((entry.first_us, entry.last_us, rows)), name=name)
    except UnicodeEncodeError:
        return None


def decode_entry(kept: bytes | None, *, name: str) -> Entry | None:
    """Return the entry that bytes under a name hold, if they do."""
    content = unseal(kept, name=name)
    if content is None:
        return None
    try:
        first_us, last_us, rows = _decoder.decode(content)
    except (msgspec.MsgspecError, ValueError):
        return None
    return Entry(first_us, last_us, tuple([ExternalCandidate(**msgspec.structs.asdict(row)) for row in rows]))


def seal(content: bytes, *, name: str) -> bytes:
    """Return content behind a checksum of it and of its name."""
    return _checksum(content, name) + content


def unseal(kept: bytes | None, *, name: str) -> bytes | None:
    """Return sealed content when it is whole and in its place."""
    if kept is None or len(kept) < _SEAL_BYTES:
        return None
    content = kept[_SEAL_BYTES:]
    return content if _checksum(content, name) == kept[:_SEAL_BYTES] else None


class Held(NamedTuple):
    """An entry in memory: its size in bytes, and when it was last read from the store or written there."""

    entry: Entry
    size: int
    read_us: int


class HeldEntries:
    """The entries used last, as objects, so that they need not be read again. Thread safe.

    At most 1,024 of them, and at most 32 MiB by their size as bytes.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, name: str) -> Held | None:
        """Return an entry, without counting this as a use."""
        return self._held.get(name)

    def put(self, name: str, held: Held) -> None:
        """Hold an entry as the one used last."""
        with self._lock:
            self._remove(name)
            self._held[name] = held
            self._bytes += held.size
            while len(self._held) > _HELD_ENTRIES or self._bytes > _HELD_BYTES:
                self._remove(next(iter(self._held)))

    def drop(self, names: Iterable[str]) -> None:
        """Let go of some entries."""
        with self._lock:
            for name in names:
                self._remove(name)

    def drop_under(self, prefix: str) -> None:
        """Let go of every entry whose name begins so."""
        with self._lock:
            for name in [name for name in self._held if name.startswith(prefix)]:
                self._remove(name)

    def _remove(self, name: str) -> None:
        held = self._held.pop(name, None)
        if held is not None:
            self._bytes -= held.size


def microseconds(moment: datetime) -> int:
    """Return a moment as whole microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_at(microseconds: int) -> datetime:
    """Return the moment so many microseconds after 1970."""
    return _EPOCH + microseconds * _MICROSECOND


def _checksum(content: bytes, name: str) -> bytes:
    place = blake2b(name.encode(), digest_size=_SEAL_BYTES).digest()
    return blake2b(content, digest_size=_SEAL_BYTES, key=place, person=b"kept-%d" % FORMAT).digest()
