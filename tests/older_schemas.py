"""A base as releases left it that did not sign heads, or did not index contexts, yet."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from evidentia.backends.embedded.records import schema
from evidentia.contracts.ids import CorpusVersion
from evidentia.provenance.corpus_hash import evidence_state

if TYPE_CHECKING:
    import sqlite3


def forget_signatures(database: sqlite3.Connection) -> None:
    """Take out keys and signed heads, and the mention of them in the commit records; the caller sets the schema and commits."""
    for name in schema.SIGNATURE_TABLES:
        database.execute(f"DROP TABLE {name}")
    _rewrite_records(database, keys_hash="")
    if database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'context_forms'").fetchone():
        forget_contexts(database)


def forget_contexts(database: sqlite3.Connection) -> None:
    """Take out what is said of contexts; the caller sets the schema and commits. Signed heads stay those of the records before."""
    for name in schema.CONTEXT_TABLES:
        database.execute(f"DROP TABLE {name}")
    _rewrite_records(database, contexts="")


def _rewrite_records(database: sqlite3.Connection, **fields: str) -> None:
    parent = b""
    for sequence, stored in database.execute("SELECT sequence, record FROM commits ORDER BY sequence").fetchall():
        record = msgspec.structs.replace(schema.decode_commit(stored), parent=parent.hex(), **fields)
        state = evidence_state(
            CorpusVersion(record.corpus_version), sources=record.sources_hash, vectors=record.vectors, contexts=record.contexts
        )
        record = msgspec.structs.replace(record, evidence_state=state)
        parent = hashlib.sha256(schema.encode(record)).digest()
        database.execute("UPDATE commits SET record = ?, record_hash = ? WHERE sequence = ?", (schema.encode(record), parent, sequence))
        if database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'source_history'").fetchone():
            database.execute("UPDATE source_history SET record_hash = ? WHERE since = ?", (parent, sequence))
