"""Receipts on disk: one append-only file per writing process, one line per receipt, each line sealing the one before.

    line = canonical({"hash": H, "mark": ..., "previous": hash of the line before, "receipt": ...}), H over previous, receipt and mark

A line is synced before its id is handed out; several that wait for the disk are synced at once. An id names its file and the line's mark,
which nobody guesses who was not given it; lines of before there were marks are named by their number.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from evidentia.backends.embedded.records.database import storage_errors
from evidentia.contracts.decoding import decode_json, json_decoder
from evidentia.contracts.errors import BaseDamagedError, NotFoundError
from evidentia.contracts.ids import ReceiptId
from evidentia.contracts.ports import Entropy, ReceiptLog
from evidentia.contracts.receipts import Receipt
from evidentia.foundation.disk import AppendFile

if TYPE_CHECKING:
    from pathlib import Path


RECEIPTS_NAME = "receipts"
_LOG_ID_BYTES = 6
_SECRET_BYTES = 32
_MARK_DIGITS = 32
_ID = re.compile(r"r-(?P<log>[0-9a-f]{12})-(?P<line>[0-9a-f]{32}|[0-9]{1,12})")

_encoder = msgspec.json.Encoder(order="sorted")


class ReceiptLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a log: a receipt, and the hash that seals it with the line before."""

    hash: str
    previous: str
    receipt: msgspec.Raw
    mark: str = ""
    """What the id names it by; empty in lines of older releases."""


_decode_line = json_decoder(ReceiptLine)


@dataclass(slots=True)
class _Log:
    """The file that this process writes to, and how far it has come."""

    name: str
    file: AppendFile
    secret: bytes
    """What its marks are made with; it is kept nowhere."""
    lines: int = 0
    synced: int = 0
    previous: str = ""
    is_abandoned: bool = False


class EmbeddedReceipts(ReceiptLog):
    """Implements `ReceiptLog`. Thread safe; the file is made with the first receipt."""

    def __init__(self, directory: Path, *, entropy: Entropy) -> None:
        self._directory = directory
        self._entropy = entropy
        self._lock = threading.Lock()
        """Held by whoever writes: the order of lines is the order of their seals."""
        self._syncing = threading.Lock()
        """Held by whoever waits for the disk, and taken before the other, so that lines are written while a sync is under way."""
        self._log: _Log | None = None

    def append(self, receipt: Receipt) -> ReceiptId:
        """Store a receipt durably and return its id."""
        encoded = _encoder.encode(receipt)
        with storage_errors(self._directory):
            with self._lock:
                log, mark = self._write(encoded)
                line = log.lines
            self._sync(log, line)
        return ReceiptId(f"r-{log.name}-{mark}")

    def read(self, receipt_id: ReceiptId) -> Receipt:
        """Return a receipt, or raise NotFoundError; the seals up to it are checked."""
        named = _ID.fullmatch(receipt_id)
        path = self._directory / RECEIPTS_NAME / f"{named['log']}.jsonl" if named else None
        if named is None or path is None or not path.is_file():
            raise NotFoundError("receipt", receipt_id)
        previous, wanted = "", named["line"]
        with storage_errors(self._directory), path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                stored = read_line(line, previous=previous, where=f"receipt {number} of '{path.name}'")
                if wanted == (stored.mark or str(number)):
                    return decode_json(stored.receipt, Receipt)
                previous = stored.hash
        raise NotFoundError("receipt", receipt_id)

    def close(self) -> None:
        """Let go of the file."""
        with self._syncing, self._lock:
            if self._log is not None:
                self._log.file.close()
                self._log = None

    def _write(self, encoded: bytes) -> tuple[_Log, str]:
        """Write one line and return the log it went to, and its mark; the lock is held."""
        log = self._log or self._open()
        mark = hmac.new(log.secret, str(log.lines).encode(), hashlib.sha256).hexdigest()[:_MARK_DIGITS]
        digest = _seal(log.previous, encoded, mark)
        line = ReceiptLine(hash=digest, previous=log.previous, receipt=msgspec.Raw(encoded), mark=mark)
        try:
            log.file.write(_encoder.encode(line) + b"\n")
        except OSError:
            self._abandon(log)
            raise
        log.previous = digest
        log.lines += 1
        return log, mark

    def _sync(self, log: _Log, line: int) -> None:
        """Wait until a line is on disk: whoever comes to the disk first syncs for all who have written by then."""
        with self._syncing:
            if log.synced >= line:
                return
            with self._lock:
                written = log.lines
            if log.is_abandoned:
                raise OSError(errno.EIO, "the file was left after a line before this one could not be written", log.name)
            try:
                log.file.sync()
            except OSError:
                with self._lock:
                    self._abandon(log)
                raise
            log.synced = written

    def _open(self) -> _Log:
        name = self._entropy.take(_LOG_ID_BYTES).hex()
        file = AppendFile(self._directory / RECEIPTS_NAME / f"{name}.jsonl")
        self._log = _Log(name=name, file=file, secret=self._entropy.take(_SECRET_BYTES))
        return self._log

    def _abandon(self, log: _Log) -> None:
        """Leave a file whose last lines may be torn: nothing is written after them, and the next receipt begins another."""
        log.is_abandoned = True
        if self._log is log:
            self._log = None
        log.file.close()


def read_line(line: bytes, *, previous: str, where: str, subject: str = "the line") -> ReceiptLine:
    """Return a line that seals the one before it, or raise BaseDamagedError."""
    try:
        stored = _decode_line(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BaseDamagedError(where, f"{subject} cannot be read ({error})") from error
    if stored.previous != previous or stored.hash != _seal(previous, bytes(stored.receipt), stored.mark):
        raise BaseDamagedError(where, f"{subject} does not have its hash")
    return stored


def _seal(previous: str, receipt: bytes, mark: str) -> str:
    return hashlib.sha256(previous.encode() + receipt + mark.encode()).hexdigest()
