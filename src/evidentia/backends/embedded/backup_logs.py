"""The append-only logs of a base in a backup: of each as many whole lines as there are, checked against their seals once copied.

Others go on writing meanwhile. A line that is not complete yet is left to them; one that does not fit its chain is damage.
"""

from __future__ import annotations

import hashlib
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.backends.embedded.backup_sink import pieces
from evidentia.backends.embedded.decision_log_file import DECISIONS_NAME, SUFFIX, list_parts
from evidentia.backends.embedded.receipts import RECEIPTS_NAME
from evidentia.contracts.errors import BaseBusyError, BaseDamagedError
from evidentia.provenance.decision_audit import ChainAudit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from evidentia.backends.embedded.backup_sink import Sink
    from evidentia.provenance.decision_chain import LogPart

_ATTEMPTS: Final = 20


class _ReceiptLine(msgspec.Struct, frozen=True, kw_only=True):
    hash: str
    previous: str
    receipt: msgspec.Raw


_decode_receipt_line = msgspec.json.Decoder(_ReceiptLine).decode


def copy_receipts(directory: Path, sink: Sink) -> int:
    """Copy every receipt that is complete, and return how many there are."""
    count = 0
    for path in sorted((directory / RECEIPTS_NAME).glob("*.jsonl")):
        name = f"{RECEIPTS_NAME}/{path.name}"
        with path.open("rb") as file:
            sink.add(name, whole_lines(pieces(file)))
        count += _check_receipts(name, whole_lines(sink.blocks(name)))
    return count


def copy_decisions(directory: Path, sink: Sink) -> int:
    """Copy every decision that is complete, and return how many there are.

    Redacting and retiring put another file in the place of one and say so in another log. Were that to happen halfway, a copy
    would hold the deed without the word, so it is begun again.
    """
    folder = directory / DECISIONS_NAME
    begun = len(sink.files)
    for _ in range(_ATTEMPTS):
        parts = list_parts(folder)
        before = _identities(folder, parts)
        if None not in before and _copy_parts(folder, parts, sink) and before == _identities(folder, parts):
            return _check_decisions(parts, sink)
        sink.rewind(begun)
    raise BaseBusyError(str(folder), waited_ms=0)


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield pieces that end where a line does; what stands after the last end is left out."""
    rest = b""
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = block[end:]
        else:
            rest += block


def _check_receipts(name: str, blocks: Iterable[bytes]) -> int:
    previous, number = "", 0
    for block in blocks:
        for line in block.splitlines():
            number += 1
            try:
                stored = _decode_receipt_line(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise BaseDamagedError(f"'{name}', line {number}", f"it cannot be read ({error})") from error
            seal = hashlib.sha256(previous.encode() + bytes(stored.receipt)).hexdigest()
            if stored.previous != previous or stored.hash != seal:
                raise BaseDamagedError(f"'{name}', line {number}", "it does not have its hash")
            previous = stored.hash
    return number


def _copy_parts(folder: Path, parts: Sequence[LogPart], sink: Sink) -> bool:
    """Copy the parts of all logs; false when one was retired meanwhile."""
    for part in parts:
        try:
            with (folder / f"{part}{SUFFIX}").open("rb") as file:
                sink.add(_name(part), whole_lines(pieces(file)))
        except FileNotFoundError:
            return False
    return True


def _check_decisions(parts: Sequence[LogPart], sink: Sink) -> int:
    records = 0
    for log, of_log in groupby(parts, key=attrgetter("log")):
        audit = ChainAudit(log, ((part, whole_lines(sink.blocks(_name(part)))) for part in of_log))
        if audit.fault is not None:
            raise BaseDamagedError(f"decision log '{audit.fault.log}', line {audit.fault.line}", audit.fault.problem)
        records += audit.records
    return records


def _identities(folder: Path, parts: Sequence[LogPart]) -> list[int | None]:
    """Return which file each part is: one that was rewritten is another."""
    found: list[int | None] = []
    for part in parts:
        try:
            found.append((folder / f"{part}{SUFFIX}").stat().st_ino)
        except FileNotFoundError:
            found.append(None)
    return found


def _name(part: LogPart) -> str:
    return f"{DECISIONS_NAME}/{part}{SUFFIX}"
