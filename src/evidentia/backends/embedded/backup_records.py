"""The records of a base as they stand at one moment, with the immutable files that they name, held until they are copied.

The moment is a read transaction: writers go on. Files are opened within it, and an open file outlives its name, so a collection
takes nothing away that was seen. One that was quicker is met by looking again at what is named by then.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.backends.embedded import schema
from evidentia.backends.embedded.backup_sink import pieces
from evidentia.backends.embedded.database import SEGMENTS_NAME, open_for_reading, storage_errors
from evidentia.backends.embedded.seal import stored_head
from evidentia.backends.embedded.vector_file import VECTORS_NAME
from evidentia.contracts.errors import BaseBusyError, BaseDamagedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from evidentia.backends.embedded.backup_sink import Sink
    from evidentia.contracts.provenance import CommitRecord

_ATTEMPTS: Final = 100
PAGES_AT_ONCE: Final = 4_096
_NAMED: Final = ((SEGMENTS_NAME, "segments"), (VECTORS_NAME, "vector_files"))
_SIDE_WAIT_MS: Final = 10_000


class HeldFile(NamedTuple):
    """An immutable file that the records name, open."""

    name: str
    file: BinaryIO
    file_hash: str


class RecordsSnapshot(NamedTuple):
    """The records at one moment."""

    head: CommitRecord
    database: sqlite3.Connection
    files: tuple[HeldFile, ...]


@contextmanager
def records_snapshot(directory: Path, *, held: ExitStack) -> Iterator[RecordsSnapshot]:
    """Give the records in a read transaction that ends with the context; their files stay open until `held` is closed."""
    with closing(open_for_reading(directory)) as database:
        yield _hold(directory, database, held=held)


def copy_records(snapshot: RecordsSnapshot, sink: Sink, name: str, *, pages_at_once: int, advance: Callable[[], None]) -> None:
    """Copy the database of a snapshot, some pages at a time, and end its transaction as soon as all of them are there."""
    sink.add_database(name, lambda target: _copy_pages(snapshot.database, target, pages_at_once=pages_at_once, advance=advance))


def copy_held(snapshot: RecordsSnapshot, sink: Sink) -> None:
    """Copy the files of a snapshot, refusing one that is not the one that was committed."""
    for each in snapshot.files:
        with each.file:
            copied = sink.add(each.name, pieces(each.file))
        if copied.sha256 != each.file_hash:
            raise BaseDamagedError(f"'{each.name}'", "the file is not the one that was committed")


def copy_side_file(path: Path, sink: Sink, *, advance: Callable[[], None]) -> None:
    """Copy a database beside the base, as it stands at one moment; one that is not there needs no copy."""
    if not path.is_file():
        return
    with storage_errors(path.parent, name=path.name), closing(_open_side_file(path)) as database:
        database.execute("BEGIN")
        database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        sink.add_database(path.name, lambda target: _copy_pages(database, target, pages_at_once=PAGES_AT_ONCE, advance=advance))


def _hold(directory: Path, database: sqlite3.Connection, *, held: ExitStack) -> RecordsSnapshot:
    seen = -1
    for _ in range(_ATTEMPTS):
        database.execute("BEGIN")
        head = stored_head(database)[0]
        try:
            return RecordsSnapshot(head, database, _open_named(directory, database, held=held))
        except FileNotFoundError as error:
            database.execute("COMMIT")
            if head.sequence == seen:  # no collection took it: it is named, and it was not there before either
                raise BaseDamagedError(f"'{error.filename}'", "the file is missing") from error
            seen = head.sequence
    raise BaseBusyError(str(directory), waited_ms=0)


def _open_named(directory: Path, database: sqlite3.Connection, *, held: ExitStack) -> tuple[HeldFile, ...]:
    found: list[HeldFile] = []
    with ExitStack() as opened:
        for folder, table in _NAMED:
            if table == "vector_files" and not schema.holds_vectors(database):
                continue
            for name, file_hash in database.execute(f"SELECT name, file_hash FROM {table} ORDER BY name"):
                file = opened.enter_context((directory / folder / name).open("rb"))
                found.append(HeldFile(f"{folder}/{name}", file, file_hash.hex()))
        held.enter_context(opened.pop_all())
    return tuple(found)


def _copy_pages(source: sqlite3.Connection, target: sqlite3.Connection, *, pages_at_once: int, advance: Callable[[], None]) -> None:
    source.backup(target, pages=pages_at_once, progress=lambda _status, _remaining, _total: advance())
    source.execute("COMMIT")  # syncing and hashing the copy is nothing that writers should wait for


def _open_side_file(path: Path) -> sqlite3.Connection:
    has_log = path.with_name(f"{path.name}-wal").exists()
    is_fixed = not has_log and not os.access(path.parent, os.W_OK)
    uri = f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if is_fixed else ''}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_SIDE_WAIT_MS / 1_000)
