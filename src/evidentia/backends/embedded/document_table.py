"""The documents that one version shows, as arrays, and where their chunks lie.

Places number the chunks of all segments one after the other; `document_of` gives the document of each place, or -1
where this version does not show the chunk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evidentia.backends.embedded.columns import record_of
from evidentia.backends.embedded.database import select_in
from evidentia.backends.embedded.impact_table import CodedLengths
from evidentia.backends.embedded.rows import decode_metadata
from evidentia.backends.embedded.traits import marks_of
from evidentia.contracts.errors import VersionCollectedError
from evidentia.contracts.ids import CHUNK_HASH_DIGITS, ChunkId, DocumentId, Sha256, SourceId, chunk_id_of, chunk_parts

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from evidentia.backends.embedded.segments import Segment

_VISIBLE = "v.added_seq <= :at AND (v.removed_seq IS NULL OR v.removed_seq > :at)"
_DOCUMENTS = f"""SELECT v.version_key, v.document_id, v.source_id, v.access_key, r.first_chunk, r.chunk_count
    FROM versions v JOIN revisions r USING (revision_key) WHERE {_VISIBLE} ORDER BY v.version_key"""
_METADATA = f"SELECT v.document_id, v.metadata, v.access_key FROM versions v WHERE {_VISIBLE} ORDER BY v.version_key"
_OWN_METADATA = "SELECT metadata FROM versions WHERE version_key = ?"
_LAST_KNOWN = "SELECT document_id, metadata, access_key FROM versions WHERE added_seq <= ? ORDER BY version_key"
_HASHES = "SELECT chunk_key, content_hash FROM chunks WHERE chunk_key IN (%s)"


class DocumentTable:
    """Loaded once per snapshot; the caller holds the database's lock."""

    def __init__(self, database: sqlite3.Connection, *, sequence: int, segments: Sequence[Segment]) -> None:
        self._database = database
        self._sequence = sequence
        self._numbers: dict[DocumentId, int] | None = None
        self._load_documents()
        self._load_places(segments)

    def records(self) -> Sequence[Mapping[str, object]]:
        """Return the fields of every document that filters and facets may name."""
        found = self._database.execute(_METADATA, {"at": self._sequence}).fetchall()
        if len(found) != len(self.document_ids):
            raise VersionCollectedError(str(self._sequence))
        return [record_of(document_id, metadata, self.rules[access_key]) for document_id, metadata, access_key in found]

    def layout_of(self, document: int) -> Sha256 | None:
        """Return the hash of the layout that a document has; None where it has none."""
        row = self._database.execute(_OWN_METADATA, (int(self.version_keys[document]),)).fetchone()
        if row is None:
            raise VersionCollectedError(str(self._sequence))
        return decode_metadata(row[0]).layout

    def last_known(self, sequence: int) -> tuple[NDArray[np.int64], Sequence[Mapping[str, object]]]:
        """Return the access keys and fields that each document had last up to another version, removed or not."""
        last: dict[DocumentId, tuple[bytes, int]] = {}
        for document_id, metadata, access_key in self._database.execute(_LAST_KNOWN, (sequence,)):
            last[document_id] = (metadata, access_key)
        found = [last[document_id] for document_id in self.document_ids]
        records = [
            record_of(document_id, metadata, self.rules[access_key])
            for document_id, (metadata, access_key) in zip(self.document_ids, found, strict=True)
        ]
        return np.asarray([access_key for _, access_key in found], dtype=np.int64), records

    def chunk_ids(self, places: NDArray[np.int64]) -> list[ChunkId]:
        """Return the ids of the chunks at these places."""
        documents = self.document_of[places]
        positions = self.chunk_keys[places] - self.first_chunks[documents]
        return [
            chunk_id_of(self.document_ids[document], position=position, content_hash=mark)
            for document, position, mark in zip(documents.tolist(), positions.tolist(), self._marks_at(places), strict=True)
        ]

    def place_of(self, chunk_id: ChunkId) -> int | None:
        """Return where a chunk lies, or None when this version does not show it."""
        parts = chunk_parts(chunk_id)
        document = None if parts is None else self.number_of(parts.document_id)
        if parts is None or document is None or parts.position >= self.chunk_counts[document]:
            return None
        found = np.flatnonzero(self.chunk_keys == self.first_chunks[document] + parts.position)
        if not len(found):
            return None
        place = int(found[0])
        return place if self.chunk_ids(np.asarray([place], dtype=np.int64)) == [chunk_id] else None

    def _marks_at(self, places: NDArray[np.int64]) -> list[Sha256]:
        """Return the beginnings of content hashes; those of segments without marks are asked of the database."""
        if self._marks is not None:
            digits = self._marks[places].tobytes().hex()
            return [Sha256(digits[start : start + CHUNK_HASH_DIGITS]) for start in range(0, len(digits), CHUNK_HASH_DIGITS)]
        keys = self.chunk_keys[places].tolist()
        hashes: dict[int, bytes] = dict(select_in(self._database, _HASHES, keys))
        try:
            return [Sha256(hashes[key].hex()) for key in keys]
        except KeyError as error:
            raise VersionCollectedError(str(self._sequence)) from error

    def _load_documents(self) -> None:
        found = self._database.execute(_DOCUMENTS, {"at": self._sequence}).fetchall()
        columns = list(zip(*found, strict=True)) or [()] * 6
        self.version_keys = np.asarray(columns[0], dtype=np.int64)
        self.document_ids: list[DocumentId] = list(columns[1])
        self.sources: list[SourceId] = sorted(set(columns[2]))
        number = {source: code for code, source in enumerate(self.sources)}
        self.source_codes = np.fromiter((number[source] for source in columns[2]), dtype=np.int32, count=len(found))
        self.access_keys = np.asarray(columns[3], dtype=np.int64)
        self.first_chunks = np.asarray(columns[4], dtype=np.int64)
        self.chunk_counts = np.asarray(columns[5], dtype=np.int64)
        self.rules = dict(self._database.execute("SELECT access_key, rule FROM access_rules"))

    def _load_places(self, segments: Sequence[Segment]) -> None:
        keys = [segment.array("chunk_keys") for segment in segments]
        self.chunk_keys: NDArray[np.int64] = np.concatenate(keys) if keys else np.empty(0, dtype=np.int64)
        lengths = [segment.array("lengths") for segment in segments]
        self.lengths: NDArray[np.int32] = np.concatenate(lengths) if lengths else np.empty(0, dtype=np.int32)
        self.coded_lengths = CodedLengths.of(self.lengths)
        marks = [each for segment in segments if (each := marks_of(segment)) is not None]
        self._marks: NDArray[np.uint8] | None = np.concatenate(marks) if marks and len(marks) == len(segments) else None
        documents = np.repeat(np.arange(len(self.document_ids), dtype=np.int32), self.chunk_counts)
        starts = np.repeat(self.first_chunks - np.cumsum(self.chunk_counts) + self.chunk_counts, self.chunk_counts)
        visible = starts + np.arange(len(documents))
        owner = np.full(int(max(self.chunk_keys.max(initial=-1), visible.max(initial=-1))) + 1, -1, dtype=np.int32)
        owner[visible] = documents
        self.document_of: NDArray[np.int32] = owner[self.chunk_keys]

    def number_of(self, document_id: DocumentId) -> int | None:
        """Return the number of a document, or None when this version does not show it."""
        if self._numbers is None:
            self._numbers = {each: number for number, each in enumerate(self.document_ids)}
        return self._numbers.get(document_id)
