"""Who changed which policy, token or secret: one line per change, written in the transaction of the change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.backends.embedded.key_value_rows import microseconds
from evidentia.contracts.control import AuditEntry, AuditKind
from evidentia.contracts.ids import Sha256

if TYPE_CHECKING:
    import sqlite3

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS: Final = "at_us, by, kind, change, subject, name, version, content"


class Change(NamedTuple):
    """One line of the audit on its way in."""

    kind: AuditKind
    change: str
    subject: str
    name: str
    version: int | None = None
    content: str | None = None
    """The digest of what it is now."""


def note_change(database: sqlite3.Connection, change: Change, *, tenant: str, by: str, at: datetime) -> None:
    """Write a line of the audit, in the transaction of what it tells."""
    row = (tenant, microseconds(at), by, change.kind.value, change.change, change.subject, change.name, change.version, change.content)
    database.execute(f"INSERT INTO audit (tenant, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def read_changes(database: sqlite3.Connection, *, tenant: str, after: int, limit: int, kind: AuditKind | None = None) -> list[AuditEntry]:
    """Return the lines after a number, oldest first; of one kind where that is given."""
    statement = f"SELECT seq, {_COLUMNS} FROM audit WHERE tenant = ? AND seq > ? AND (? IS NULL OR kind = ?) ORDER BY seq LIMIT ?"
    word = None if kind is None else kind.value
    return [_entry(row) for row in database.execute(statement, (tenant, after, word, word, limit))]


def _entry(row: tuple[int, int, str, str, str, str, str, int | None, str | None]) -> AuditEntry:
    seq, at_us, by, kind, change, subject, name, version, content = row
    return AuditEntry(
        seq=seq,
        at=EPOCH + timedelta(microseconds=at_us),
        by=by,
        kind=AuditKind(kind),
        change=change,
        subject=subject,
        name=name,
        version=version,
        digest=None if content is None else Sha256(content),
    )
