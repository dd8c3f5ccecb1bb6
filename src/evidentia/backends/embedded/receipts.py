"""Receipts on disk: one append-only file per writing process, one line per receipt, each line sealing the one before.

    line = canonical({"hash": H, "previous": hash of the line before, "receipt": ...}), H over previous and receipt

A line is synced before its id is handed out. An id names its file and its line.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from evidentia.backends.embedded.database import storage_errors, sync_directory
from evidentia.contracts.errors import BaseDamagedError, NotFoundError
from evidentia.contracts.ids import ReceiptId
from evidentia.contracts.receipts import Receipt

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from evidentia.contracts.ports import Entropy

RECEIPTS_NAME = "receipts"
_LOG_ID_BYTES = 6
_ID = re.compile(r"r-(?P<log>[0-9a-f]{12})-(?P<line>[0-9]{1,12})")

_encoder = msgspec.json.Encoder(order="sorted")


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    hash: str
    previous: str
    receipt: msgspec.Raw


class EmbeddedReceipts:
    """Implements `ReceiptLog`. Thread safe; the file is made with the first receipt."""

    def __init__(self, directory: Path, *, entropy: Entropy) -> None:
        self._directory = directory
        self._entropy = entropy
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._log = ""
        self._lines = 0
        self._previous = ""

    def append(self, receipt: Receipt) -> ReceiptId:
        """Store a receipt durably and return its id."""
        encoded = _encoder.encode(receipt)
        with self._lock, storage_errors(self._directory):
            file = self._file or self._open()
            digest = _seal(self._previous, encoded)
            try:
                file.write(_encoder.encode(_Line(hash=digest, previous=self._previous, receipt=msgspec.Raw(encoded))) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                self._abandon(file)
                raise
            self._previous = digest
            self._lines += 1
            return ReceiptId(f"r-{self._log}-{self._lines}")

    def read(self, receipt_id: ReceiptId) -> Receipt:
        """Return a receipt, or raise NotFoundError; the seals up to it are checked."""
        named = _ID.fullmatch(receipt_id)
        path = self._directory / RECEIPTS_NAME / f"{named['log']}.jsonl" if named else None
        if named is None or path is None or not path.is_file():
            raise NotFoundError("receipt", receipt_id)
        previous, wanted = "", int(named["line"])
        with storage_errors(self._directory), path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                stored = _read(line, previous=previous, where=f"receipt {number} of '{path.name}'")
                if number == wanted:
                    return msgspec.json.decode(stored.receipt, type=Receipt)
                previous = stored.hash
        raise NotFoundError("receipt", receipt_id)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _open(self) -> BinaryIO:
        folder = self._directory / RECEIPTS_NAME
        folder.mkdir(exist_ok=True)
        self._log, self._lines, self._previous = self._entropy.take(_LOG_ID_BYTES).hex(), 0, ""
        self._file = (folder / f"{self._log}.jsonl").open("xb")
        sync_directory(folder)
        sync_directory(self._directory)
        return self._file

    def _abandon(self, file: BinaryIO) -> None:
        """Leave a file whose last line may be torn: nothing is written after it, and the next receipt begins another."""
        self._file = None
        with suppress(OSError):  # closing tries once more to write what is left over
            file.close()


def _read(line: bytes, *, previous: str, where: str) -> _Line:
    try:
        stored = msgspec.json.decode(line, type=_Line)
    except msgspec.MsgspecError as error:
        raise BaseDamagedError(where, f"the line cannot be read ({error})") from error
    if stored.previous != previous or stored.hash != _seal(previous, bytes(stored.receipt)):
        raise BaseDamagedError(where, "the line does not have its hash")
    return stored


def _seal(previous: str, receipt: bytes) -> str:
    return hashlib.sha256(previous.encode() + receipt).hexdigest()
