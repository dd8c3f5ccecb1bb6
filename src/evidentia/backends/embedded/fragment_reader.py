"""Chunks behind hits with their custody, their events and the proofs, read in one statement and kept for a while."""

from __future__ import annotations

from collections import OrderedDict
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec import structs

from evidentia.backends.embedded import rows
from evidentia.contracts.search import StoredFragment

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from evidentia.backends.embedded.document_table import DocumentTable
    from evidentia.backends.embedded.event_log import EventLogReader
    from evidentia.contracts.search import SearchHit

KEPT_CHARS: Final = 1 << 22
"""How much one version keeps of what it read, in characters of content."""
_OVERHEAD_CHARS: Final = 1_000
"""What a fragment takes besides its content, about."""
_FRAGMENTS_PER_QUERY: Final = 250
_FRAGMENTS: Final = f"""WITH wanted (number, chunk_key, version_key) AS (VALUES %s)
    SELECT wanted.number, v.metadata, r.custody, r.text_hash, e.leaf,
        substr(t.body, byte_start + 1, byte_stop - byte_start), {rows.CHUNK_COLUMNS}
    FROM wanted CROSS JOIN chunks ON chunks.chunk_key = wanted.chunk_key JOIN versions v ON v.version_key = wanted.version_key
    JOIN revisions r ON r.revision_key = chunks.revision_key JOIN contents t ON t.text_hash = r.text_hash
    JOIN events e ON e.event_index = chunks.event_index"""


class _Kept(NamedTuple):
    """A fragment with the bytes of its records, which are read anew each time: they hold maps, and a caller may change those."""

    fragment: StoredFragment
    custody: bytes
    metadata: bytes

    def again(self) -> StoredFragment:
        chunk = structs.replace(
            self.fragment.chunk, custody=rows.decode_custody(self.custody), metadata=rows.decode_metadata(self.metadata)
        )
        return structs.replace(self.fragment, chunk=chunk)

    @property
    def chars(self) -> int:
        return len(self.fragment.chunk.content) + _OVERHEAD_CHARS


class FragmentReader:
    """Reads the fragments of one version. The caller holds the database's lock."""

    def __init__(self, database: sqlite3.Connection, *, table: DocumentTable, log: EventLogReader, kept_chars: int = KEPT_CHARS) -> None:
        self._database = database
        self._table = table
        self._log = log
        self._most_chars = kept_chars
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._kept_chars = 0
        self._seen = bytearray(len(table.document_of))

    def read(self, hits: Sequence[SearchHit]) -> list[StoredFragment] | None:
        """Return what is behind hits, in their order; None when some of it is no longer there."""
        missing = {hit.place: hit for hit in hits if hit.place not in self._kept}
        loaded = dict(self._load(list(missing.values()))) if missing else {}
        if len(loaded) < len(missing):
            return None
        fragments = [self._kept[hit.place].again() if hit.place in self._kept else loaded[hit.place].fragment for hit in hits]
        for hit in hits:
            if hit.place in self._kept:
                self._kept.move_to_end(hit.place)
        self._keep(loaded)
        return fragments

    def _keep(self, loaded: Mapping[int, _Kept]) -> None:
        """Keep what is read for the second time: most fragments are read once, and keeping them costs more than it saves."""
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
        for start in range(0, len(asked), _FRAGMENTS_PER_QUERY * 3):
            part = asked[start : start + _FRAGMENTS_PER_QUERY * 3]
            statement = _FRAGMENTS % ",".join(["(?, ?, ?)"] * (len(part) // 3))
            for number, metadata, custody, text_hash, leaf, content, *row in self._database.execute(statement, part):
                hit, event = hits[number], rows.decode_event(leaf)
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
                proof = self._log.inclusion(event.index)
                yield hit.place, _Kept(StoredFragment(chunk=chunk, event=event, inclusion=proof), custody, metadata)
