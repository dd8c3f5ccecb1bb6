"""Chunks behind hits with their custody, read in one statement and kept for a while; events and proofs of those that are answered."""

from __future__ import annotations

from collections import OrderedDict
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import structs

from evidentia.backends.embedded import rows

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from evidentia.backends.embedded.document_table import DocumentTable
    from evidentia.backends.embedded.event_log import EventLogReader
    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.provenance import InclusionProof, IngestEvent
    from evidentia.contracts.search import SearchHit

KEPT_CHARS: Final = 1 << 22
"""How much one version keeps of what it read, in characters of content."""
KEPT_PROOFS: Final = 2_048
"""How many events one version keeps with their proofs."""
_OVERHEAD_CHARS: Final = 1_000
"""What a chunk takes besides its content, about."""
_CHUNKS_PER_QUERY: Final = 250
_CHUNKS: Final = f"""WITH wanted (number, chunk_key, version_key) AS (VALUES %s)
    SELECT wanted.number, v.metadata, r.custody, r.text_hash,
        substr(t.body, byte_start + 1, byte_stop - byte_start), {rows.CHUNK_COLUMNS}
    FROM wanted CROSS JOIN chunks ON chunks.chunk_key = wanted.chunk_key JOIN versions v ON v.version_key = wanted.version_key
    JOIN revisions r ON r.revision_key = chunks.revision_key JOIN contents t ON t.text_hash = r.text_hash"""
_EVENTS_PER_QUERY: Final = 1_000
_EVENTS: Final = "SELECT event_index, leaf FROM events WHERE event_index IN (%s)"


class _Kept(NamedTuple):
    """A chunk with the bytes of its records, which are read anew each time: they hold maps, and a caller may change those."""

    chunk: StoredChunk
    custody: bytes
    metadata: bytes

    def again(self) -> StoredChunk:
        return structs.replace(self.chunk, custody=rows.decode_custody(self.custody), metadata=rows.decode_metadata(self.metadata))

    @property
    def chars(self) -> int:
        return len(self.chunk.content) + _OVERHEAD_CHARS


class FragmentReader:
    """Reads what the fragments of one version are made of. The caller holds the database's lock."""

    def __init__(
        self,
        database: sqlite3.Connection,
        *,
        table: DocumentTable,
        log: EventLogReader,
        kept_chars: int = KEPT_CHARS,
        kept_proofs: int = KEPT_PROOFS,
    ) -> None:
        self._database = database
        self._table = table
        self._log = log
        self._most_chars = kept_chars
        self._most_proofs = kept_proofs
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._kept_chars = 0
        self._seen = bytearray(len(table.document_of))
        self._proven: OrderedDict[int, tuple[IngestEvent, InclusionProof]] = OrderedDict()

    def read(self, hits: Sequence[SearchHit]) -> list[StoredChunk] | None:
        """Return what is behind hits, in their order; None when some of it is no longer there."""
        missing = {hit.place: hit for hit in hits if hit.place not in self._kept}
        loaded = dict(self._load(list(missing.values()))) if missing else {}
        if len(loaded) < len(missing):
            return None
        chunks = [self._kept[hit.place].again() if hit.place in self._kept else loaded[hit.place].chunk for hit in hits]
        for hit in hits:
            if hit.place in self._kept:
                self._kept.move_to_end(hit.place)
        self._keep(loaded)
        return chunks

    def prove(self, chunks: Sequence[StoredChunk]) -> list[tuple[IngestEvent, InclusionProof]] | None:
        """Return the event of each chunk and the proof that the log holds it; None when an event is no longer there."""
        asked = [chunk.event_index for chunk in chunks]
        missing = list(dict.fromkeys(index for index in asked if index not in self._proven))
        loaded = dict(self._load_proofs(missing))
        if len(loaded) < len(missing):
            return None
        proofs = [self._proven[index] if index in self._proven else loaded[index] for index in asked]
        self._proven.update(loaded)
        for index in asked:
            self._proven.move_to_end(index)
        while len(self._proven) > self._most_proofs:
            self._proven.popitem(last=False)
        return proofs

    def _load_proofs(self, indices: Sequence[int]) -> Iterator[tuple[int, tuple[IngestEvent, InclusionProof]]]:
        for start in range(0, len(indices), _EVENTS_PER_QUERY):
            part = indices[start : start + _EVENTS_PER_QUERY]
            statement = _EVENTS % ",".join("?" * len(part))
            for index, leaf in self._database.execute(statement, part):
                yield index, (rows.decode_event(leaf), self._log.inclusion(index))

    def _keep(self, loaded: Mapping[int, _Kept]) -> None:
        """Keep what is read for the second time: most chunks are read once, and keeping them costs more than it saves."""
        for place, each in loaded.items():
            if self._seen[place]:
                self._kept[place] = each
                self._kept_chars += each.chars
            self._seen[place] = True
        while self._kept_chars > self._most_chars:
            _, dropped = self._kept.popitem(last=False)
            self._kept_chars -= dropped.chars

    def _load(self, hits: Sequence[SearchHit]) -> Iterator[tuple[int, _Kept]]:
        places = np.asarray([hit.place for hit in hits], dtype=np.int64)
        documents = self._table.document_of[places]
        keys = zip(range(len(hits)), self._table.chunk_keys[places].tolist(), self._table.version_keys[documents].tolist(), strict=True)
        rules = self._table.access_keys[documents].tolist()
        asked = list(chain.from_iterable(keys))
        for start in range(0, len(asked), _CHUNKS_PER_QUERY * 3):
            part = asked[start : start + _CHUNKS_PER_QUERY * 3]
            statement = _CHUNKS % ",".join(["(?, ?, ?)"] * (len(part) // 3))
            for number, metadata, custody, text_hash, content, *row in self._database.execute(statement, part):
                hit = hits[number]
                chunk = rows.stored_chunk(
                    tuple(row),
                    document_id=hit.document_id,
                    source_id=hit.source_id,
                    content=content,
                    text_hash=text_hash,
                    custody=custody,
                    metadata=metadata,
                    rule=self._table.rules[rules[number]],
                    is_live=True,
                )
                yield hit.place, _Kept(chunk, custody, metadata)
