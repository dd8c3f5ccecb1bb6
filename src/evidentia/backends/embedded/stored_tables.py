"""The tables of a version in a file, so that a base with many documents opens without reading them all.

The file is a copy of what the database says, in the container of `segments`, and is called after its own SHA-256: one that is
missing, damaged, or of a version that was collected since is not used, and a base that cannot be written does without.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from evidentia.backends.embedded.lexical.segments import Segment, hash_file, write_segment
from evidentia.backends.embedded.records import schema
from evidentia.backends.embedded.records.document_table import DocumentTable, StoredDocuments
from evidentia.backends.embedded.records.growing_array import GrowingArray, GrowingTexts
from evidentia.backends.embedded.records.metadata_columns import MetadataColumn, MetadataColumns, decode_values, is_prepared
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import BaseDamagedError
from evidentia.contracts.ids import SourceId
from evidentia.contracts.provenance import CommitRecord
from evidentia.foundation.disk import make_private_directory

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from evidentia.backends.embedded.lexical.segments import Array
    from evidentia.backends.embedded.version_tables import VersionTables

TABLES_NAME = "tables"
"""The directory of a base's stored tables."""
_ENDING: Final = ".tab"
_FORMAT: Final = 1


class _Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Which version a file is of, its sources, and the fields that have a column."""

    format: int
    sequence: int
    record_hash: str
    sources: tuple[str, ...]
    fields: tuple[str, ...]


class StoredTables(msgspec.Struct, frozen=True, kw_only=True):
    """What was stored of a version."""

    commit: CommitRecord
    documents: StoredDocuments
    columns: dict[str, MetadataColumn]


def store_tables(directory: Path, tables: VersionTables, *, record_hash: str) -> None:
    """Write the tables of a version in one step, and remove what was stored before."""
    documents, numbers = tables.table.stored()
    encoded, ends = documents.ids.arrays
    columns = {field: column for field, column in tables.columns.laid_out.items() if is_prepared(field)}
    arrays: dict[str, Array] = {**documents.arrays, "id_bytes": encoded, "id_ends": ends}
    for number, (_, column) in enumerate(sorted(columns.items())):
        arrays[f"codes_{number}"] = column.codes[numbers]
        arrays[f"values_{number}"] = np.frombuffer(msgspec.json.encode(column.values), dtype=np.uint8)
    commit = tables.commit
    facts = _Facts(
        format=_FORMAT,
        sequence=commit.sequence,
        record_hash=record_hash,
        sources=documents.sources,
        fields=tuple(sorted(columns)),
    )
    arrays["facts"] = np.frombuffer(msgspec.json.encode(facts), dtype=np.uint8)
    folder = directory / TABLES_NAME
    with suppress(OSError):  # a base that cannot be written is searched all the same
        make_private_directory(folder)
        unfinished = folder / f"unfinished.{os.getpid()}-{threading.get_ident()}"
        name = write_segment(unfinished, tokeniser="", chunk_count=len(numbers), arrays=arrays).hex() + _ENDING
        unfinished.replace(folder / name)
        for path in folder.iterdir():
            if path.name != name:
                path.unlink(missing_ok=True)


def stored_tables(directory: Path, reading: sqlite3.Connection, newest: CommitRecord) -> StoredTables | None:
    """Return what is stored of a version from which the newest can be derived; None where nothing is."""
    for path in sorted((directory / TABLES_NAME).glob(f"*{_ENDING}")):
        with suppress(OSError, BaseDamagedError, msgspec.MsgspecError, ValueError):
            if hash_file(path).hex() == path.stem:
                found = _read(Segment(path), reading)
                if found is not None and found.commit.oldest_readable == newest.oldest_readable:
                    return found
    return None


def differs(stored: StoredTables, database: sqlite3.Connection) -> bool:
    """Tell whether stored tables say anything else than the database does."""
    table = DocumentTable(database, sequence=stored.commit.sequence, segments=())
    columns = MetadataColumns(table.records)
    columns.prepare()
    fresh, kept = columns.laid_out, stored.columns
    said = [_spelt(stored.documents, {field: kept.get(field, MetadataColumn.of(())) for field in fresh})]
    said += [_spelt(table.documents, fresh)]
    return kept.keys() - fresh.keys() != set() or said[0] != said[1]


def _spelt(documents: StoredDocuments, columns: dict[str, MetadataColumn]) -> list[list[object]]:
    """Return every document that has chunks as a list of values, whatever their codes are."""
    arrays, chosen = documents.arrays, np.flatnonzero(documents.arrays["chunk_counts"])
    spelt: list[list[object]] = [[*documents.ids.take(chosen)]]
    spelt += [array[chosen].tolist() for name, array in sorted(arrays.items()) if name != "source_codes"]
    spelt.append([documents.sources[code] for code in arrays["source_codes"][chosen].tolist()])
    for _, column in sorted(columns.items()):
        codes = column.codes[chosen] if len(column.codes) else chosen[:0]
        spelt.append([column.values[code] for code in codes.tolist()])
    return spelt


def remove_tables(directory: Path) -> None:
    """Remove what is stored; it may name documents that are gone."""
    for path in (directory / TABLES_NAME).glob("*"):
        path.unlink(missing_ok=True)


def _read(file: Segment, reading: sqlite3.Connection) -> StoredTables | None:
    facts = decode_json(file.array("facts").tobytes(), _Facts)
    row = reading.execute("SELECT record, record_hash FROM commits WHERE sequence = ?", (facts.sequence,)).fetchone()
    if facts.format != _FORMAT or row is None or facts.record_hash != row[1].hex():
        return None
    ids = GrowingTexts(GrowingArray(file.array("id_bytes")), GrowingArray(file.array("id_ends")))
    arrays = {name: file.array(name) for name in ("version_keys", "source_codes", "access_keys", "first_chunks", "chunk_counts")}
    columns = {
        field: MetadataColumn(GrowingArray(file.array(f"codes_{number}")), decode_values(field, file.array(f"values_{number}").tobytes()))
        for number, field in enumerate(facts.fields)
    }
    sources = tuple(map(SourceId, facts.sources))
    return StoredTables(commit=schema.decode_commit(row[0]), documents=StoredDocuments(ids, arrays, sources), columns=columns)
