"""The vector files that a base names: opening each once, adding one, and removing what nobody names."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from evidentia.backends.embedded.database import sync_directory
from evidentia.backends.embedded.vector_file import VECTORS_NAME, VectorFile
from evidentia.backends.embedded.vector_scan_rows import ScanRows

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from evidentia.backends.embedded.vector_file import WrittenFile
    from evidentia.contracts.ports import Entropy


class OpenFile:
    """An open file, and what searching needs of it from the first search on."""

    def __init__(self, path: Path) -> None:
        self.file = VectorFile(path)

    @cached_property
    def scanned(self) -> ScanRows:
        """Return what searching needs besides the arrays."""
        return ScanRows(self.file)


class OpenFiles:
    """Keeps open what somebody uses; a file never changes, so one map serves every version. Thread safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / VECTORS_NAME
        self._open: WeakValueDictionary[str, OpenFile] = WeakValueDictionary()
        self._lock = threading.Lock()

    def of_space(self, database: sqlite3.Connection, space_key: int) -> list[OpenFile]:
        """Open the files that are named now; a caller whom a collection may overtake looks again."""
        statement = "SELECT name FROM vector_files WHERE space_key = ? ORDER BY file_key"
        return [self._get(name) for (name,) in database.execute(statement, (space_key,)).fetchall()]

    def _get(self, name: str) -> OpenFile:
        with self._lock:
            kept = self._open.get(name)
            if kept is None:
                kept = self._open[name] = OpenFile(self._directory / name)
            return kept


def new_path(directory: Path, *, kind: str, entropy: Entropy) -> Path:
    """Return where a new file goes, and make sure that there is such a place."""
    folder = directory / VECTORS_NAME
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        sync_directory(directory)
    return folder / f"{kind}-{entropy.take(4).hex()}.vec"


def insert_file(database: sqlite3.Connection, written: WrittenFile, *, space_key: int) -> None:
    """Name a durable file in the transaction that is open."""
    (highest,) = database.execute("SELECT coalesce(max(file_key), 0) FROM vector_files").fetchone()
    row = (highest + 1, space_key, written.path.name, written.file_hash, written.byte_count, written.rows)
    database.execute("INSERT INTO vector_files VALUES (?, ?, ?, ?, ?, ?)", row)


def remove_unnamed_files(database: sqlite3.Connection, directory: Path) -> None:
    """Delete what a writer that died left behind; only the holder of the lock may."""
    named = {name for (name,) in database.execute("SELECT name FROM vector_files")}
    for path in (directory / VECTORS_NAME).glob("*.vec"):
        if path.name not in named:
            path.unlink()
