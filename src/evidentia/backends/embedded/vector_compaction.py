"""The vectors' part of a collection: what no readable version uses goes, and small files become large ones.

Merging never takes a version anything away, because each row keeps the commit that added it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.backends.embedded.database import sync_directory
from evidentia.backends.embedded.vector_file import VECTORS_NAME, Part, VectorFile, write_merged
from evidentia.backends.embedded.vector_files import insert_file, new_path

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from evidentia.contracts.ports import Entropy

LARGEST_FILE = 1 << 18
"""No merged file holds more rows than this, and files of more than half as many are left alone. Wide files scan faster."""

_SWEEPS = (
    "DELETE FROM vector_spaces WHERE space_key NOT IN (SELECT space_key FROM vector_reigns)",
    "DELETE FROM vectors WHERE space_key NOT IN (SELECT space_key FROM vector_spaces)",
    "DELETE FROM vectors WHERE chunk_key NOT IN (SELECT chunk_key FROM chunks)",
)


class Swept(NamedTuple):
    """What a sweep did: paths that are no longer named, new ones, and whether anything changed at all."""

    replaced: list[Path]
    written: list[Path]
    is_changed: bool


class _StoredFile(NamedTuple):
    key: int
    space_key: int
    name: str
    rows: int


class VectorSweep:
    """Works in the collector's transaction; `choose` says which files are too many, by their sizes."""

    def __init__(
        self, database: sqlite3.Connection, directory: Path, *, entropy: Entropy, choose: Callable[[dict[int, int]], set[int]]
    ) -> None:
        self._database = database
        self._directory = directory
        self._entropy = entropy
        self._choose = choose

    @property
    def is_crowded(self) -> bool:
        """Tell whether there are more files than there should be."""
        return bool(self._crowded(self._stored()))

    def run(self, *, oldest: int | None, written: list[Path]) -> Swept:
        """Drop what versions before `oldest` alone needed and merge files; every new path is put into `written` at once.

        None drops nothing.
        """
        dropped, gone = (0, 0) if oldest is None else self._drop(oldest)
        stored = self._stored()
        chosen = self._crowded(stored)
        replaced: list[Path] = []
        for space_key in sorted({each.space_key for each in stored}):
            files = [each for each in stored if each.space_key == space_key]
            replaced += self._merge(space_key, files, chosen=chosen, has_lost=bool(gone), written=written)
        return Swept(replaced, written, bool(dropped or gone or replaced))

    def _drop(self, oldest: int) -> tuple[int, int]:
        """Return how many reigns have gone, and how many spaces and vectors."""
        dropped = self._database.execute(
            "DELETE FROM vector_reigns WHERE sequence < (SELECT max(sequence) FROM vector_reigns WHERE sequence <= ?)", (oldest,)
        ).rowcount
        return dropped, sum(self._database.execute(statement).rowcount for statement in _SWEEPS)

    def _merge(self, space_key: int, files: list[_StoredFile], *, chosen: set[int], has_lost: bool, written: list[Path]) -> list[Path]:
        if not has_lost and not any(each.key in chosen for each in files):
            return []
        alive = self._alive(space_key) if has_lost else None
        parts: list[Part] = []
        replaced: list[Path] = []
        for each in files:
            if alive is None and each.key not in chosen:
                continue
            path = self._directory / VECTORS_NAME / each.name
            file = VectorFile(path)
            ordinals = np.arange(file.count) if alive is None else np.flatnonzero(np.isin(file.chunk_keys, alive))
            if each.key in chosen or len(ordinals) < file.count:
                self._database.execute("DELETE FROM vector_files WHERE file_key = ?", (each.key,))
                replaced.append(path)
                parts.append(Part(file, ordinals))
        for group in _groups([part for part in parts if len(part.ordinals)]):
            path = new_path(self._directory, kind="merged", entropy=self._entropy)
            merged = write_merged(path, group)
            written.append(path)
            sync_directory(path.parent)
            insert_file(self._database, merged, space_key=space_key)
        return replaced

    def _alive(self, space_key: int) -> NDArray[np.int64]:
        found = self._database.execute("SELECT chunk_key FROM vectors WHERE space_key = ?", (space_key,))
        return np.fromiter((key for (key,) in found), dtype=np.int64)

    def _stored(self) -> list[_StoredFile]:
        found = self._database.execute("SELECT file_key, space_key, name, row_count FROM vector_files ORDER BY file_key")
        return [_StoredFile(*row) for row in found]

    def _crowded(self, stored: list[_StoredFile]) -> set[int]:
        chosen: set[int] = set()
        for space_key in sorted({each.space_key for each in stored}):
            chosen |= self._choose({each.key: each.rows for each in stored if each.space_key == space_key})
        return chosen


def _groups(parts: list[Part]) -> Iterator[list[Part]]:
    """Yield what becomes one file."""
    group: list[Part] = []
    for part in parts:
        if group and sum(len(each.ordinals) for each in group) + len(part.ordinals) > LARGEST_FILE:
            yield group
            group = []
        group.append(part)
    if group:
        yield group
