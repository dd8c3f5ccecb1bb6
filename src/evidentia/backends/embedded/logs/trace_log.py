"""The newest requests, kept beside a base for whoever asks what took so long. Refuses to keep a caller waiting.

Traces are put down in memory and written behind the answering thread's back; what the file does not take is lost.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.ports import SupportsTraces, TraceSink
from evidentia.contracts.telemetry import RequestTrace
from evidentia.foundation.background_writer import BackgroundWriter
from evidentia.foundation.sqlite_file import CacheFile

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path

    from evidentia.contracts.ids import RequestId

FORMAT: Final = 2
SHORTEST_PREFIX: Final = 4
"""Digits of a request id that name it, as long as no other one begins so."""
PAUSE_S: Final = 0.2
"""How long traces gather before they are written."""
_TABLES: Final = ("CREATE TABLE traces (number INTEGER PRIMARY KEY, trace BLOB NOT NULL, digest BLOB NOT NULL) STRICT",)

_encoder = msgspec.json.Encoder()
_decode = json_decoder(RequestTrace)


class EmbeddedTraces(TraceSink, SupportsTraces):
    """Implements `TraceSink` and `SupportsTraces` over a file that several processes may share. Thread safe.

    A request is found by its id, by the beginning of its id where that is unambiguous, and by the id of its receipt.
    """

    def __init__(self, path: Path, *, keep: int) -> None:
        self._file = CacheFile(path, tables=_TABLES, version=FORMAT)
        self._keep = keep
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
        self._writer.flush()

    def close(self) -> None:
        """Write what was put down, and take no more."""
        self._writer.close()
        self._file.close()

    def _remembered(self) -> list[RequestTrace]:
        self.flush()
        rows = self._file.rows("SELECT trace, digest FROM traces")
        found = [trace for content, digest in rows if (trace := _read(content, digest)) is not None]
        found.sort(key=lambda trace: (trace.started_at, trace.request_id), reverse=True)
        return found[: self._keep]

    def _write_pending(self) -> None:
        taken = [self._pending.popleft() for _ in range(len(self._pending))]
        rows = [(content, _digest(content)) for content in map(_encoder.encode, taken)]

        def change(database: sqlite3.Connection) -> None:
            database.executemany("INSERT INTO traces (trace, digest) VALUES (?, ?)", rows)
            database.execute("DELETE FROM traces WHERE number <= (SELECT max(number) FROM traces) - ?", (self._keep,))

        if rows:
            self._file.write(change)


def _read(content: bytes, digest: bytes) -> RequestTrace | None:
    """Return a trace; one that has rotted, or that another version wrote in another form, is passed over."""
    try:
        return _decode(content) if _digest(content) == digest else None
    except msgspec.MsgspecError:
        return None


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
