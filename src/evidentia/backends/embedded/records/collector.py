"""Garbage collection and compaction: versions nobody needs any more go, and segments and vector files are merged.

The event log and the commit records stay whole, so that what was proved can still be proved. A collection is a commit:
it happens entirely or not at all, and readers of the versions that stay notice nothing.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evidentia.backends.embedded.lexical.postings import LARGEST_MERGED, merge
from evidentia.backends.embedded.lexical.segments import Segment, write_segment
from evidentia.backends.embedded.records import attachments
from evidentia.backends.embedded.records.commit_log import seal, stored_head
from evidentia.backends.embedded.records.database import (
    SEGMENTS_NAME,
    WriterLock,
    open_for_writing,
    storage_errors,
)
from evidentia.backends.embedded.records.head_signer import HeadSigner
from evidentia.backends.embedded.records.schema import decode_commit
from evidentia.backends.embedded.records.source_registry import forget_sources
from evidentia.backends.embedded.stored_tables import remove_tables
from evidentia.backends.embedded.vectors.hnsw import remove_graphs
from evidentia.backends.embedded.vectors.vector_file import VECTORS_NAME, FileRows, VectorFile, insert_file, new_path, write_merged
from evidentia.contracts.ports import Clock, Collector, Entropy
from evidentia.contracts.reports import GcReport
from evidentia.foundation.disk import sync_directory
from evidentia.foundation.sqlite_file import checkpoint
from evidentia.provenance.corpus_hash import CorpusState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray


_UNUSED_ROWS = (
    "DELETE FROM revisions WHERE revision_key NOT IN (SELECT revision_key FROM versions)",
    "DELETE FROM chunks WHERE revision_key NOT IN (SELECT revision_key FROM revisions)",
    "DELETE FROM contents WHERE text_hash NOT IN (SELECT text_hash FROM revisions)",
    "DELETE FROM access_rules WHERE access_key NOT IN (SELECT access_key FROM versions)",
)


class EmbeddedCollector(Collector):
    """Implements `Collector`; holds the writer's lock while it works."""

    def __init__(self, directory: Path, *, clock: Clock, entropy: Entropy, wait_ms: int, segments_per_size: int) -> None:
        self._directory = directory
        self._clock = clock
        self._entropy = entropy
        self._wait_ms = wait_ms
        self._segments_per_size = segments_per_size

    def compact(self, *, full: bool = False) -> GcReport:
        """Merge segments and vector files when there are more than the settings allow; every version stays readable.

        `full` merges all files of vectors that are not large yet: a wide file is scanned faster than several narrow ones.
        """
        return self.collect(keep_versions=None, full=full)

    def collect(self, *, keep_versions: int | None, full: bool = False) -> GcReport:
        """Remove all but the newest versions and merge segments; the event log is never shortened. None keeps every version."""
        lock = WriterLock(self._directory, wait_ms=self._wait_ms)
        try:
            database = open_for_writing(self._directory)
            try:
                with storage_errors(self._directory):
                    return self._collect(database, keep_versions=keep_versions, full=full)
            finally:
                database.close()
        finally:
            lock.release()

    def _collect(self, database: sqlite3.Connection, *, keep_versions: int | None, full: bool) -> GcReport:
        """Do the work.

        1. find the oldest version that stays, and drop what no version from there on can see
        2. write one new segment in place of those that hold dropped chunks, or of all when there are too many, and the
           same with the files of vectors
        3. commit, then delete the files that are no longer named and give the space back
        """
        crowded = partial(_surplus, most=self._segments_per_size, largest=LARGEST_FILE)
        vectors = VectorCompaction(database, self._directory, entropy=self._entropy, choose=_narrow if full else crowded)
        if keep_versions is None and not self._crowded(_segment_sizes(database)) and not vectors.is_crowded:
            return _nothing_done(self._directory)
        bytes_before = _size_of(self._directory)
        parent, parent_hash, state = stored_head(database)
        oldest = parent.oldest_readable
        if keep_versions is not None:
            oldest = max(oldest, _last_change(database) - keep_versions + 1)
        new_segments: list[Path] = []
        new_vectors: list[Path] = []
        try:
            database.execute("BEGIN IMMEDIATE")
            rows, chunks = (0, 0) if keep_versions is None else self._delete(database, oldest=oldest)
            replaced, new_segments = self._merge(database, has_lost=bool(chunks))
            compacted = vectors.run(oldest=None if keep_versions is None else oldest, written=new_vectors)
            if not rows and not replaced and not compacted.is_changed and oldest == parent.oldest_readable:
                database.execute("ROLLBACK")
                return _nothing_done(self._directory)
            seal(
                database,
                signer=HeadSigner(self._directory, entropy=self._entropy),
                parent=parent,
                parent_hash=parent_hash,
                log_size=parent.log_size,
                corpus=CorpusState(state),
                vectors=parent.vectors,
                now=self._clock.now(),
                oldest_readable=oldest,
            )
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            for path in (*new_segments, *new_vectors):
                path.unlink(missing_ok=True)
            raise
        # Only after the commit: until then they are the files of the version that stays. Readers that map them keep what they map.
        for name in replaced:
            (self._directory / SEGMENTS_NAME / name).unlink(missing_ok=True)
        for path in compacted.replaced:
            path.unlink(missing_ok=True)
        if keep_versions is not None:
            remove_tables(self._directory)  # they may name documents that are gone; the next search stores them again
        if keep_versions is not None and (rows or compacted.is_changed):
            remove_graphs(self._directory)  # they may hold vectors of what is gone; the next search builds them again
        database.execute("PRAGMA incremental_vacuum").fetchall()
        checkpoint(database)
        return GcReport(
            versions_removed=oldest - parent.oldest_readable,
            chunks_removed=chunks,
            segments_removed=len(replaced),
            bytes_before=bytes_before,
            bytes_after=_size_of(self._directory),
        )

    def _crowded(self, sizes: dict[int, int]) -> set[int]:
        return _surplus(sizes, most=self._segments_per_size)

    def _delete(self, database: sqlite3.Connection, *, oldest: int) -> tuple[int, int]:
        """Drop what no version from `oldest` on can see; return how many versions of documents went, and how many chunks."""
        versions = database.execute("DELETE FROM versions WHERE removed_seq IS NOT NULL AND removed_seq <= ?", (oldest,)).rowcount
        forget_sources(database, oldest=oldest)
        chunks = self._delete_unused(database)
        if versions:
            attachments.delete_unnamed(database)
        return versions, chunks

    def _delete_unused(self, database: sqlite3.Connection) -> int:
        (before,) = database.execute("SELECT count(*) FROM chunks").fetchone()
        for statement in _UNUSED_ROWS:
            database.execute(statement)
        (after,) = database.execute("SELECT count(*) FROM chunks").fetchone()
        return int(before) - int(after)

    def _merge(self, database: sqlite3.Connection, *, has_lost: bool) -> tuple[list[str], list[Path]]:
        """Replace segments that hold dropped chunks, which are looked for where some were lost, or all of them when there are too many."""
        stored = database.execute("SELECT segment_key, name, chunk_count FROM segments ORDER BY segment_key").fetchall()
        alive = dict(database.execute("SELECT segment_key, count(*) FROM chunks GROUP BY segment_key")) if has_lost else None
        surplus = self._crowded({key: count for key, _, count in stored})
        chosen = [(key, name) for key, name, count in stored if key in surplus or (alive is not None and alive.get(key, 0) < count)]
        if not chosen:
            return [], []
        database.executemany("DELETE FROM segments WHERE segment_key = ?", [(key,) for key, _ in chosen])
        written: list[Path] = []
        next_key = max(key for key, _, _ in stored) + 1
        for segments in _groups([Segment(self._directory / SEGMENTS_NAME / name) for _, name in chosen]):
            kept = [_kept(database, segment) for segment in segments]
            if any(bool(each.any()) for each in kept):
                written.append(self._write_merged(database, segments, kept, key=next_key + len(written)))
        return [name for _, name in chosen], written

    def _write_merged(self, database: sqlite3.Connection, segments: list[Segment], kept: list[NDArray[np.bool_]], *, key: int) -> Path:
        arrays = merge(segments, keep=kept)
        chunk_keys = arrays["chunk_keys"].tolist()
        path = self._directory / SEGMENTS_NAME / f"merged-{key:08d}-{self._entropy.take(4).hex()}.seg"
        file_hash = write_segment(path, tokeniser=segments[0].header.tokeniser, chunk_count=len(chunk_keys), arrays=arrays)
        sync_directory(path.parent)
        row = (key, path.name, file_hash, path.stat().st_size, len(chunk_keys))
        database.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?)", row)
        places = [(key, ordinal, chunk_key) for ordinal, chunk_key in enumerate(chunk_keys)]
        database.executemany("UPDATE chunks SET segment_key = ?, ordinal = ? WHERE chunk_key = ?", places)
        return path


def _surplus(sizes: dict[int, int], *, most: int, largest: int = LARGEST_MERGED) -> set[int]:
    """Choose what to merge where more than `most` files are of about the same size, smallest first.

    Sizes count as about the same within a factor of four. What was merged moves up and may complete the next size, so a
    base has a logarithmic number of files, and each chunk is rewritten a logarithmic number of times.
    """
    tiers: dict[int, list[int]] = {}
    for key, size in sizes.items():
        if size <= largest // 2:
            tiers.setdefault(_tier(size), []).append(key)
    chosen: set[int] = set()
    gathered = 0
    for tier, keys in sorted(tiers.items()):
        is_passed = bool(gathered) and _tier(gathered) > tier
        is_crowded = len(keys) + (bool(gathered) and _tier(gathered) == tier) > most
        if is_passed or is_crowded:
            chosen.update(keys)
            gathered += sum(sizes[key] for key in keys)
    return chosen


def _narrow(sizes: dict[int, int]) -> set[int]:
    """Choose every file that is not large yet, if there are several."""
    narrow = {key for key, size in sizes.items() if size <= LARGEST_FILE // 2}
    return narrow if len(narrow) > 1 else set()


def _tier(size: int) -> int:
    return (max(1, size).bit_length() - 1) // 2


def _groups(segments: list[Segment]) -> list[list[Segment]]:
    """Group what becomes one segment: terms that mean the same, and not too many chunks."""
    groups: dict[str, list[list[Segment]]] = {}
    for segment in segments:
        alike = groups.setdefault(segment.header.tokeniser, [[]])
        if alike[-1] and sum(each.header.chunk_count for each in alike[-1]) + segment.header.chunk_count > LARGEST_MERGED:
            alike.append([])
        alike[-1].append(segment)
    return [group for alike in groups.values() for group in alike]


def _kept(database: sqlite3.Connection, segment: Segment) -> NDArray[np.bool_]:
    keys = segment.array("chunk_keys")
    statement = "SELECT chunk_key FROM chunks WHERE chunk_key BETWEEN ? AND ?"
    alive = np.asarray([key for (key,) in database.execute(statement, (int(keys.min()), int(keys.max())))], dtype=np.int64)
    return np.isin(keys, alive)


def _segment_sizes(database: sqlite3.Connection) -> dict[int, int]:
    return dict(database.execute("SELECT segment_key, chunk_count FROM segments"))


def _last_change(database: sqlite3.Connection) -> int:
    """Return the newest version that is not a collection's own: nobody wants to keep that one instead of another.

    Only a collection raises the oldest version that can be read.
    """
    newest = (decode_commit(record) for (record,) in database.execute("SELECT record FROM commits ORDER BY sequence DESC"))
    commit = next(newest)
    for before in newest:
        if before.oldest_readable == commit.oldest_readable:
            break
        commit = before
    return commit.sequence


def _nothing_done(directory: Path) -> GcReport:
    size = _size_of(directory)
    return GcReport(versions_removed=0, chunks_removed=0, segments_removed=0, bytes_before=size, bytes_after=size)


def _size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


# --- vector compaction ---
# The vectors' part of a collection: what no readable version uses goes, and small files become large ones.
#
# Merging never takes a version anything away, because each row keeps the commit that added it.

LARGEST_FILE = 1 << 18
"""No merged file holds more rows than this, and files of more than half as many are left alone. Wide files scan faster."""

_UNUSED_VECTORS = (
    "DELETE FROM vector_spaces WHERE space_key NOT IN (SELECT space_key FROM vector_reigns)",
    "DELETE FROM vectors WHERE space_key NOT IN (SELECT space_key FROM vector_spaces)",
    "DELETE FROM vectors WHERE chunk_key NOT IN (SELECT chunk_key FROM chunks)",
)


class CompactedVectors(NamedTuple):
    """What a compaction did: paths that are no longer named, new ones, and whether anything changed at all."""

    replaced: list[Path]
    written: list[Path]
    is_changed: bool


class _StoredFile(NamedTuple):
    key: int
    space_key: int
    name: str
    rows: int


class VectorCompaction:
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

    def run(self, *, oldest: int | None, written: list[Path]) -> CompactedVectors:
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
        return CompactedVectors(replaced, written, bool(dropped or gone or replaced))

    def _drop(self, oldest: int) -> tuple[int, int]:
        """Return how many periods of spaces have gone, and how many spaces and vectors."""
        dropped = self._database.execute(
            "DELETE FROM vector_reigns WHERE sequence < (SELECT max(sequence) FROM vector_reigns WHERE sequence <= ?)", (oldest,)
        ).rowcount
        return dropped, sum(self._database.execute(statement).rowcount for statement in _UNUSED_VECTORS)

    def _merge(self, space_key: int, files: list[_StoredFile], *, chosen: set[int], has_lost: bool, written: list[Path]) -> list[Path]:
        if not has_lost and not any(each.key in chosen for each in files):
            return []
        alive = self._alive(space_key) if has_lost else None
        parts: list[FileRows] = []
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
                parts.append(FileRows(file, ordinals))
        for group in _file_groups([part for part in parts if len(part.ordinals)]):
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


def _file_groups(parts: list[FileRows]) -> Iterator[list[FileRows]]:
    """Yield what becomes one file."""
    group: list[FileRows] = []
    for part in parts:
        if group and sum(len(each.ordinals) for each in group) + len(part.ordinals) > LARGEST_FILE:
            yield group
            group = []
        group.append(part)
    if group:
        yield group
