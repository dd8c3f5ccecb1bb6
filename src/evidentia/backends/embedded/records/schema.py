"""The tables of a base, the steps from one schema to the next, and rows as messages and back.

Every value in them is covered by a hash that `verify` recomputes: texts, chunks and custody by the chain, versions and
access by `corpus_version`, attachments by the metadata of versions, events by the Merkle root, and those together with
sources, roots, segments and vectors by the chain of commit records.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evidentia.contracts.access import AccessRule
from evidentia.contracts.canonical import encode_struct
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.documents import CommitSummary, DocumentMetadata, PreparedChunk, StoredChunk
from evidentia.contracts.errors import BaseDamagedError, BaseVersionError
from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, Sha256, SourceId, chunk_id_of
from evidentia.contracts.provenance import CommitRecord, DocumentCustody, IngestEvent
from evidentia.contracts.sources import SourceDescriptor
from evidentia.text.contexts import CONTEXT_FORM

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable


SCHEMA_VERSION = 7
APPLICATION_ID = 0x45564944  # "EVID", so that `file` and doctor know a base from any other SQLite file

TABLES: dict[str, str] = {
    "contents": "CREATE TABLE contents (text_hash BLOB PRIMARY KEY, body BLOB NOT NULL) STRICT",
    "revisions": """CREATE TABLE revisions (
    revision_key INTEGER PRIMARY KEY, text_hash BLOB NOT NULL, custody BLOB NOT NULL,
    first_chunk INTEGER NOT NULL, chunk_count INTEGER NOT NULL) STRICT""",
    "chunks": """CREATE TABLE chunks (
    chunk_key INTEGER PRIMARY KEY, revision_key INTEGER NOT NULL, position INTEGER NOT NULL,
    start INTEGER NOT NULL, stop INTEGER NOT NULL, byte_start INTEGER NOT NULL, byte_stop INTEGER NOT NULL,
    content_hash BLOB NOT NULL, custody_head BLOB NOT NULL,
    segment_key INTEGER NOT NULL, ordinal INTEGER NOT NULL, event_index INTEGER NOT NULL) STRICT""",
    "versions": """CREATE TABLE versions (
    version_key INTEGER PRIMARY KEY, document_id TEXT NOT NULL, source_id TEXT NOT NULL,
    revision_key INTEGER NOT NULL, metadata BLOB NOT NULL, access_key INTEGER NOT NULL,
    fingerprint BLOB NOT NULL, root_key INTEGER NOT NULL, event_index INTEGER NOT NULL,
    added_seq INTEGER NOT NULL, removed_seq INTEGER) STRICT""",
    "access_rules": "CREATE TABLE access_rules (access_key INTEGER PRIMARY KEY, rule BLOB NOT NULL UNIQUE) STRICT",
    "roots": "CREATE TABLE roots (root_key INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT",
    "segments": """CREATE TABLE segments (
    segment_key INTEGER PRIMARY KEY, name TEXT NOT NULL, file_hash BLOB NOT NULL, byte_count INTEGER NOT NULL,
    chunk_count INTEGER NOT NULL) STRICT""",
    "events": "CREATE TABLE events (event_index INTEGER PRIMARY KEY, leaf BLOB NOT NULL) STRICT",
    "log_tiles": """CREATE TABLE log_tiles (
    level INTEGER NOT NULL, tile INTEGER NOT NULL, nodes BLOB NOT NULL, PRIMARY KEY (level, tile)) STRICT, WITHOUT ROWID""",
    "commits": """CREATE TABLE commits (
    sequence INTEGER PRIMARY KEY, record BLOB NOT NULL, record_hash BLOB NOT NULL, corpus_state BLOB) STRICT""",
}
INDEXES: dict[str, str] = {
    "versions_by_document": "CREATE INDEX versions_by_document ON versions (document_id, removed_seq)",
}
VECTOR_TABLES: dict[str, str] = {
    "vector_spaces": "CREATE TABLE vector_spaces (space_key INTEGER PRIMARY KEY, identity BLOB NOT NULL UNIQUE) STRICT",
    "vector_reigns": """CREATE TABLE vector_reigns (
    sequence INTEGER PRIMARY KEY, space_key INTEGER NOT NULL, set_state BLOB) STRICT""",
    "vector_files": """CREATE TABLE vector_files (
    file_key INTEGER PRIMARY KEY, space_key INTEGER NOT NULL, name TEXT NOT NULL, file_hash BLOB NOT NULL,
    byte_count INTEGER NOT NULL, row_count INTEGER NOT NULL) STRICT""",
    "vectors": """CREATE TABLE vectors (
    space_key INTEGER NOT NULL, chunk_key INTEGER NOT NULL, added_seq INTEGER NOT NULL, content_mark INTEGER NOT NULL,
    vector_hash BLOB NOT NULL, PRIMARY KEY (space_key, chunk_key)) STRICT, WITHOUT ROWID""",
}
"""Since schema 2. `vector_reigns` says from which commit on which space is in force; `content_mark` is the beginning of a text's hash."""
VECTOR_INDEXES: dict[str, str] = {
    "vectors_by_content": "CREATE INDEX vectors_by_content ON vectors (space_key, content_mark)",
}

SOURCES_TABLE: dict[str, str] = {"sources": "CREATE TABLE sources (source_id TEXT PRIMARY KEY, descriptor BLOB NOT NULL) STRICT"}
"""Until schema 2: the sources of the newest version."""
SOURCE_TABLES: dict[str, str] = {
    "source_versions": """CREATE TABLE source_versions (
    source_id TEXT NOT NULL, added_seq INTEGER NOT NULL, removed_seq INTEGER, descriptor BLOB NOT NULL,
    PRIMARY KEY (source_id, added_seq)) STRICT, WITHOUT ROWID""",
    "source_history": "CREATE TABLE source_history (since INTEGER PRIMARY KEY, record_hash BLOB NOT NULL) STRICT",
}
"""Since schema 3: the sources of every version from the commit on that the one row of `source_history` names."""

ATTACHMENT_TABLES: dict[str, str] = {
    "attachments": "CREATE TABLE attachments (content_hash BLOB PRIMARY KEY, body BLOB NOT NULL) STRICT",
}
"""Since schema 4: layouts, and the images and cells that they name."""

LIST_INDEXES: dict[str, str] = {
    "live_versions": "CREATE INDEX live_versions ON versions (source_id, access_key, document_id, removed_seq) WHERE removed_seq IS NULL",
    "ended_versions": "CREATE INDEX ended_versions ON versions (removed_seq) WHERE removed_seq IS NOT NULL",
    "laid_out_versions": """CREATE INDEX laid_out_versions ON versions (document_id)
    WHERE instr(metadata, CAST('"layout":"' AS BLOB)) > 0""",
}
"""Since schema 5: what lists and counts documents in time that follows the page or the change, not the base."""

SIGNATURE_TABLES: dict[str, str] = {
    "version_secrets": "CREATE TABLE version_secrets (secret BLOB PRIMARY KEY) STRICT",
    "signing_keys": "CREATE TABLE signing_keys (sequence INTEGER PRIMARY KEY, record BLOB NOT NULL) STRICT",
    "signed_heads": "CREATE TABLE signed_heads (sequence INTEGER PRIMARY KEY, head BLOB NOT NULL, signature BLOB NOT NULL) STRICT",
}
"""Since schema 6: the one secret that keys versions for others than the owner, the public keys, and the heads that they signed."""

CONTEXT_TABLES: dict[str, str] = {
    "context_forms": "CREATE TABLE context_forms (since INTEGER PRIMARY KEY, form TEXT NOT NULL) STRICT",
}
"""Since schema 7: in its one row, from which revision on chunks are indexed with their context, and in which form."""


def create(database: sqlite3.Connection) -> None:
    """Make the tables of an empty base."""
    database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("BEGIN IMMEDIATE")
    for statement in _expected(SCHEMA_VERSION).values():
        database.execute(statement)
    _begin_contexts(database)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    database.execute("COMMIT")


def migrate(database: sqlite3.Connection) -> None:
    """Bring an older base up to the present schema, one step and one transaction at a time."""
    found = schema_version(database)
    for step in range(found, SCHEMA_VERSION):
        database.execute("BEGIN IMMEDIATE")
        for change in MIGRATIONS[step]:
            if isinstance(change, str):
                database.execute(change)
            else:
                change(database)
        database.execute(f"PRAGMA user_version = {step + 1}")
        database.execute("COMMIT")


def _keep_known_sources(database: sqlite3.Connection) -> None:
    """Fill the history of sources with what is known: since when the present ones are as they are."""
    since, since_hash, present = 0, b"", None
    for sequence, record, record_hash in database.execute("SELECT sequence, record, record_hash FROM commits ORDER BY sequence DESC"):
        named = _decode_commit(record).sources_hash
        if named != (present or named):
            break
        since, since_hash, present = sequence, record_hash, named
    database.execute("INSERT INTO source_history VALUES (?, ?)", (since, since_hash))
    database.execute("INSERT INTO source_versions SELECT source_id, ?, NULL, descriptor FROM sources", (since,))


def _begin_contexts(database: sqlite3.Connection) -> None:
    """Note that every revision from now on is indexed with its context."""
    (last,) = database.execute("SELECT coalesce(max(revision_key), 0) FROM revisions").fetchone()
    database.execute("INSERT INTO context_forms VALUES (?, ?)", (last + 1, CONTEXT_FORM))


_decode_commit = json_decoder(CommitRecord)

MIGRATIONS: dict[int, tuple[str | Callable[[sqlite3.Connection], None], ...]] = {
    1: (*VECTOR_TABLES.values(), *VECTOR_INDEXES.values()),
    2: (*SOURCE_TABLES.values(), _keep_known_sources, "DROP TABLE sources"),
    3: tuple(ATTACHMENT_TABLES.values()),
    4: tuple(LIST_INDEXES.values()),
    5: tuple(SIGNATURE_TABLES.values()),
    6: (*CONTEXT_TABLES.values(), _begin_contexts),
}
"""What leads from a schema to the next, by the schema it starts from."""


def schema_version(database: sqlite3.Connection) -> int:
    """Return the schema a base has, refusing one from the future."""
    (found,) = database.execute("PRAGMA user_version").fetchone()
    if found > SCHEMA_VERSION:
        raise BaseVersionError(found, known=SCHEMA_VERSION)
    return int(found)


def holds_vectors(database: sqlite3.Connection) -> bool:
    """Tell whether a base has the tables of vectors; a reader may meet one that no writer has brought up to date."""
    return schema_version(database) >= _VECTORS_SINCE


def holds_source_history(database: sqlite3.Connection) -> bool:
    """Tell whether a base knows the sources of its older versions; a reader may meet one that no writer has brought up to date."""
    return schema_version(database) >= _SOURCE_HISTORY_SINCE


def holds_attachments(database: sqlite3.Connection) -> bool:
    """Tell whether a base can hold layouts; a reader may meet one that no writer has brought up to date."""
    return schema_version(database) >= _ATTACHMENTS_SINCE


def holds_list_indexes(database: sqlite3.Connection) -> bool:
    """Tell whether a base has the indexes of lists; a reader may meet one that no writer has brought up to date."""
    return schema_version(database) >= _LIST_INDEXES_SINCE


def holds_signatures(database: sqlite3.Connection) -> bool:
    """Tell whether a base can hold signed heads; a reader may meet one that no writer has brought up to date."""
    return schema_version(database) >= _SIGNATURES_SINCE


def context_form(database: sqlite3.Connection) -> tuple[int, str]:
    """Return from which revision on chunks are indexed with their context, and in which form; a reader may meet a base without any."""
    if schema_version(database) < _CONTEXTS_SINCE:
        return _NEVER, ""
    since, form = database.execute("SELECT since, form FROM context_forms").fetchone()
    return int(since), str(form)


def schema_faults(database: sqlite3.Connection) -> list[str]:
    """Return what differs between the tables of this base and the tables that its schema has."""
    stored = dict(database.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall())
    expected = _expected(schema_version(database))
    faults = [f"'{name}' is not defined as it should be" for name, sql in expected.items() if stored.get(name) != sql]
    faults += [f"'{name}' does not belong here" for name in sorted(stored.keys() - expected.keys(), key=str)]
    (application_id,) = database.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        faults.append("the file is not marked as a base")
    return faults


_VECTORS_SINCE = 2
_SOURCE_HISTORY_SINCE = 3
_ATTACHMENTS_SINCE = 4
_LIST_INDEXES_SINCE = 5
_SIGNATURES_SINCE = 6
_CONTEXTS_SINCE = 7
_NEVER = 1 << 62


def _expected(version: int) -> dict[str, str]:
    vectors = VECTOR_TABLES | VECTOR_INDEXES if version >= _VECTORS_SINCE else {}
    sources = SOURCE_TABLES if version >= _SOURCE_HISTORY_SINCE else SOURCES_TABLE
    attachments = ATTACHMENT_TABLES if version >= _ATTACHMENTS_SINCE else {}
    lists = LIST_INDEXES if version >= _LIST_INDEXES_SINCE else {}
    signatures = SIGNATURE_TABLES if version >= _SIGNATURES_SINCE else {}
    contexts = CONTEXT_TABLES if version >= _CONTEXTS_SINCE else {}
    return TABLES | INDEXES | vectors | sources | attachments | lists | signatures | contexts


# --- rows ---
# Rows of the database as messages and back; the only module that knows the column order.

decode_access: Final = lru_cache(maxsize=1_024)(json_decoder(AccessRule))
"""Rules are few and never change, so that the chunks of an answer share theirs."""
decode_metadata: Final = json_decoder(DocumentMetadata)
decode_custody: Final = json_decoder(DocumentCustody)
decode_event: Final = json_decoder(IngestEvent)
decode_commit: Final = json_decoder(CommitRecord)
decode_descriptor: Final = json_decoder(SourceDescriptor)

encode: Final = encode_struct

CHUNK_COLUMNS: Final = "position, start, stop, byte_start, byte_stop, content_hash, custody_head, chunks.event_index"
ChunkRow = tuple[int, int, int, int, int, bytes, bytes, int]


def chunk_from_row(row: ChunkRow, document_id: DocumentId) -> PreparedChunk:
    """Return a chunk from its row in the order of `CHUNK_COLUMNS`."""
    position, start, stop, byte_start, byte_stop, content_hash, custody_head, _ = row
    digest = Sha256(content_hash.hex())
    return PreparedChunk(
        chunk_id=chunk_id_of(document_id, position=position, content_hash=digest),
        position=position,
        start=start,
        end=stop,
        byte_start=byte_start,
        byte_end=byte_stop,
        content_hash=digest,
        custody_head=Sha256(custody_head.hex()),
    )


def stored_chunk(
    row: ChunkRow, *, document_id: DocumentId, source_id: SourceId, content: bytes, text_hash: bytes,
    custody: bytes, metadata: bytes, rule: bytes, is_live: bool,
) -> StoredChunk:  # fmt: skip
    """Return a chunk as read back, from its row in the order of `CHUNK_COLUMNS` and what its document holds."""
    position, start, stop, _, _, content_hash, custody_head, event_index = row
    digest = Sha256(content_hash.hex())
    return StoredChunk(
        chunk_id=chunk_id_of(document_id, position=position, content_hash=digest),
        document_id=document_id,
        source_id=source_id,
        position=position,
        start=start,
        end=stop,
        content=content.decode(),
        content_hash=digest,
        text_hash=Sha256(text_hash.hex()),
        custody_head=Sha256(custody_head.hex()),
        event_index=event_index,
        metadata=decode_metadata(metadata),
        access=decode_access(rule),
        custody=decode_custody(custody),
        is_live=is_live,
    )


def summary_of(record: CommitRecord, **counts: int) -> CommitSummary:
    """Return what a caller is told of a commit."""
    return CommitSummary(
        sequence=record.sequence,
        corpus_version=CorpusVersion(record.corpus_version),
        evidence_state=EvidenceState(record.evidence_state),
        log_size=record.log_size,
        log_root=record.log_root,
        committed_at=record.committed_at,
        **counts,
    )


def stored_secret(database: sqlite3.Connection) -> bytes:
    """Return the secret that keys versions; empty in a base that nobody has written to since there is one."""
    rows = database.execute("SELECT secret FROM version_secrets").fetchall() if holds_signatures(database) else []
    if len(rows) > 1:
        raise BaseDamagedError("version secret", "there is more than one")
    return bytes(rows[0][0]) if rows else b""


def attachment(database: sqlite3.Connection, content_hash: Sha256) -> bytes | None:
    """Return what has a hash; None where nothing has."""
    if not holds_attachments(database):
        return None
    row = database.execute("SELECT body FROM attachments WHERE content_hash = ?", (attachment_key(content_hash),)).fetchone()
    return None if row is None else bytes(row[0])


def attachment_key(content_hash: str) -> bytes:
    """Return the key of an attachment's row; what is no hash names none."""
    try:
        return bytes.fromhex(content_hash)
    except ValueError:
        return b""
