"""What of a base goes into a backup: records, logs, side files and settings, and what is left out and why."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from evidentia.backends.embedded.backup.backup_format import name_problem
from evidentia.backends.embedded.backup.backup_sink import Sink, pieces
from evidentia.backends.embedded.logs.decision_log_file import DECISIONS_NAME, SUFFIX, list_parts
from evidentia.backends.embedded.logs.receipt_log import RECEIPTS_NAME, read_line
from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.commit_log import stored_head
from evidentia.backends.embedded.records.database import DATABASE_NAME, LOCK_NAME, SEGMENTS_NAME, open_for_reading, storage_errors
from evidentia.backends.embedded.records.head_signer import KEY_NAME
from evidentia.backends.embedded.stored_tables import TABLES_NAME
from evidentia.backends.embedded.vectors.hnsw import GRAPHS_NAME
from evidentia.backends.embedded.vectors.vector_file import VECTORS_NAME
from evidentia.contracts.backups import LeftOut
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import BaseBusyError, BaseDamagedError
from evidentia.foundation.disk import whole_lines
from evidentia.provenance.decision_audit import ChainAudit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from evidentia.contracts.provenance import CommitRecord
    from evidentia.contracts.settings import Settings
    from evidentia.provenance.decision_chain import LogPart


_TEMPORARY: Final = re.compile(r".+(-wal|-shm|-journal|\.new)")
_REBUILT: Final = "it is made again when it is needed"
_PRIVATE: Final = "whoever has it can sign for the base; keep a copy of it apart from backups"
_FOLDERS: Final = (SEGMENTS_NAME, VECTORS_NAME, RECEIPTS_NAME, DECISIONS_NAME)


def copy_synonyms(folder: Path, sink: Sink) -> list[LeftOut]:
    """Copy the synonyms that answers were made with; each is called after its hash, so one that is still being written is known."""
    left_out: list[LeftOut] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        name, content = f"{folder.name}/{path.name}", path.read_bytes()
        if sha256_hex(content) == path.name:
            sink.add(name, [content])
        else:
            left_out.append(LeftOut(name=name, reason="it does not have the hash that it is called after"))
    return left_out


def copy_named(directory: Path, settings: Settings, sink: Sink) -> list[LeftOut]:
    """Copy the models and synonyms that settings name and that lie inside the base."""
    left_out: list[LeftOut] = []
    for named in _named_by(settings):
        place = Path(os.path.normpath(directory / named))
        if not place.is_relative_to(os.path.normpath(directory)):
            left_out.append(LeftOut(name=_shown(named), reason="evidentia.toml names it, and it lies outside the base"))
        elif place.exists():
            left_out += _copy_tree(place, sink, beneath=Path(os.path.normpath(directory)))
        else:
            left_out.append(LeftOut(name=_shown(named), reason="evidentia.toml names it, and it is not there"))
    return left_out


def copy_file(path: Path, sink: Sink) -> None:
    """Copy a file of the base as it is now; one that is not there needs no copy."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        sink.add(path.name, pieces(file))


def left_behind(directory: Path, sink: Sink, *, rebuilt: Sequence[str]) -> list[LeftOut]:
    """Return what lies in a base and was not copied, apart from what SQLite and writers keep beside their files."""
    copied = {each.name.partition("/")[0] for each in sink.files}
    left_out: list[LeftOut] = []
    for path in sorted(directory.iterdir()):
        name = path.name
        if name in copied or name in (*_FOLDERS, DATABASE_NAME, LOCK_NAME) or _TEMPORARY.fullmatch(name):
            continue
        reason = _REBUILT if name in (*rebuilt, GRAPHS_NAME, TABLES_NAME) else _PRIVATE if name == KEY_NAME else "it is no part of a base"
        left_out.append(LeftOut(name=_shown(name), reason=reason))
    return left_out


def _named_by(settings: Settings) -> list[str]:
    embedding = settings.embedding
    folders = (embedding.folder, embedding.query_folder) if embedding.encoder == "folder" else ()
    named = (settings.query.synonyms, settings.ranking.reranker, settings.ranking.merging_model, settings.server.jwt.keys, *folders)
    return list(dict.fromkeys(each for each in named if each))


def _copy_tree(place: Path, sink: Sink, *, beneath: Path) -> list[LeftOut]:
    left_out: list[LeftOut] = []
    present = {each.name for each in sink.files}
    for path in sorted(place.rglob("*")) if place.is_dir() else (place,):
        name = path.relative_to(beneath).as_posix()
        if name in present or not path.is_file():
            continue
        problem = name_problem(name)
        if problem:
            left_out.append(LeftOut(name=_shown(name), reason=f"its name cannot be kept: {problem}"))
            continue
        with path.open("rb") as file:
            sink.add(name, pieces(file))
    return left_out


def _shown(name: str) -> str:
    """Return a name that has a UTF-8 form."""
    return name.encode(errors="backslashreplace").decode()


# --- backup logs ---
# The append-only logs of a base in a backup: of each as many whole lines as there are, checked against their seals once copied.
#
# Others go on writing meanwhile. A line that is not complete yet is left to them; one that does not fit its chain is damage.

_ATTEMPTS: Final = 20


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


def _check_receipts(name: str, blocks: Iterable[bytes]) -> int:
    previous, number = "", 0
    for line in (line for block in blocks for line in block.splitlines()):
        number += 1
        previous = read_line(line, previous=previous, where=f"'{name}', line {number}", subject="it").hash
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


# --- backup records ---
# The records of a base as they stand at one moment, with the immutable files that they name, held until they are copied.
#
# The moment is a read transaction: writers go on. Files are opened within it, and an open file outlives its name, so a collection takes
# nothing away that was seen. One that was quicker is met by looking again at what is named by then.

_BACKUP_RECORDS_ATTEMPTS: Final = 100
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
    for _ in range(_BACKUP_RECORDS_ATTEMPTS):
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
