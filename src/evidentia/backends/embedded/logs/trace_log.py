"""The newest requests, kept beside a base for whoever asks what took so long. Refuses to keep a caller waiting.

    name = traces/<microseconds at which it was written>/<id of its first request>.<how many>    value = the traces of one batch

Traces are put down in memory and written behind the answering thread's back; what the store does not take is lost.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol
from zlib import crc32

import msgspec

from evidentia.contracts.ports import Clock, KeyValueStore, SupportsKeyScan, SupportsTraces, TraceSink
from evidentia.contracts.telemetry import RequestTrace
from evidentia.foundation.background_writer import BackgroundWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.ids import RequestId

PREFIX: Final = "traces/"
SHORTEST_PREFIX: Final = 4
"""Digits of a request id that name it, as long as no other one begins so."""
BATCH: Final = 100
"""At most this many traces are written under one name."""
PAUSE_S: Final = 0.2
"""How long traces gather before they are written."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MAX_DIGITS: Final = len(str(BATCH))

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[RequestTrace])


class TraceStore(KeyValueStore, SupportsKeyScan, Protocol):
    """What traces are kept in."""


class EmbeddedTraces(TraceSink, SupportsTraces):
    """Implements `TraceSink` and `SupportsTraces` over a store that several processes may share. Thread safe.

    A request is found by its id, by the beginning of its id where that is unambiguous, and by the id of its receipt.
    """

    def __init__(self, store: TraceStore, *, keep: int, clock: Clock) -> None:
        self._store = store
        self._keep = keep
        self._clock = clock
        self._pending: deque[RequestTrace] = deque(maxlen=keep)
        self._writer = BackgroundWriter(self._write_pending, name="evidentia-traces", pause_s=PAUSE_S)

    def record(self, trace: RequestTrace) -> None:
        """Put a trace down to be written soon; after `close` it is passed over."""
        if not self._writer.is_closed:
            self._pending.append(trace)
            self._writer.notify()

    def traces(self, *, limit: int) -> Sequence[RequestTrace]:
        """Return the newest requests, newest first: by their beginning, then by id."""
        return self._remembered()[: max(0, limit)]

    def trace(self, request_id: RequestId) -> RequestTrace | None:
        """Return a request by its id, the id of its receipt, or an unambiguous beginning of its id; None if it is not remembered."""
        remembered = self._remembered()
        for each in remembered:
            if request_id in (each.request_id, each.receipt_id):
                return each
        if len(request_id) < SHORTEST_PREFIX:
            return None
        alike = [each for each in remembered if each.request_id.startswith(request_id)]
        return alike[0] if len(alike) == 1 else None

    def flush(self) -> None:
        """Write what was put down."""
        with suppress(Exception):  # a store that fails loses traces and nothing else
            self._writer.flush()

    def close(self) -> None:
        """Write what was put down, and take no more; the store stays open."""
        with suppress(Exception):  # likewise
            self._writer.close()

    def _remembered(self) -> list[RequestTrace]:
        self.flush()
        found = [trace for _, value in self._store.items(PREFIX) for trace in _read(value)]
        found.sort(key=lambda trace: (trace.started_at, trace.request_id), reverse=True)
        return found[: self._keep]

    def _write_pending(self) -> None:
        while batch := self._taken():
            self._write(batch)

    def _taken(self) -> list[RequestTrace]:
        return [trace for _ in range(BATCH) if (trace := self._pop()) is not None]

    def _pop(self) -> RequestTrace | None:
        try:
            return self._pending.popleft()
        except IndexError:
            return None

    def _write(self, batch: list[RequestTrace]) -> None:
        written_us = (self._clock.now() - _EPOCH) // _MICROSECOND
        self._store.put(f"{PREFIX}{written_us:017d}/{batch[0].request_id}.{len(batch)}", _encoder.encode(batch))
        if self._is_time_to_prune(batch):
            self._prune()

    def _is_time_to_prune(self, batch: list[RequestTrace]) -> bool:
        """Tell it by the ids, which are random: about once in a quarter of `keep`, however many processes write how few each."""
        rarity = max(1, self._keep // 4)
        return any(crc32(trace.request_id.encode()) % rarity == 0 for trace in batch)

    def _prune(self) -> None:
        """Forget the oldest batches that the newest `keep` traces do not need."""
        newer = 0
        counted = [(name, _count(name)) for name in self._store.names(PREFIX)]
        for place, (oldest, count) in reversed(list(enumerate(counted))):
            newer += count
            if newer >= self._keep:
                for prefix in _covering([name for name, _ in counted[:place]], oldest):
                    self._store.delete(prefix)
                return


def _covering(names: Sequence[str], oldest: str) -> Iterator[str]:
    """Yield few prefixes that all of these names have, which are in order and before `oldest`, and no name from there on has."""
    prefix = oldest
    for name in names:
        if not name.startswith(prefix):
            shared = next(place for place, (one, other) in enumerate(zip(name, oldest, strict=False)) if one != other)
            prefix = name[: shared + 1]
            yield prefix


def _read(value: bytes) -> Iterator[RequestTrace]:
    """Yield the traces of a batch; one that another version wrote in another form is passed over."""
    with suppress(msgspec.MsgspecError):
        yield from _decoder.decode(value)


def _count(name: str) -> int:
    """Return how many traces a name says there are under it; at least one, since older releases did not say."""
    digits = name.rpartition(".")[2]
    return min(int(digits), BATCH) if digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS else 1
