"""A base as releases left it that did not sign heads yet."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from evidentia.backends.embedded.records import schema

if TYPE_CHECKING:
    import sqlite3


def forget_signatures(database: sqlite3.Connection) -> None:
    """Take out keys and signed heads, and the mention of them in the commit records; the caller sets the schema and commits."""
    for name in schema.SIGNATURE_TABLES:
        database.execute(f"DROP TABLE {name}")
    parent = b""
    for sequence, stored in database.execute("SELECT sequence, record FROM commits ORDER BY sequence").fetchall():
        record = msgspec.structs.replace(schema.decode_commit(stored), keys_hash="", parent=parent.hex())
        parent = hashlib.sha256(schema.encode(record)).digest()
        database.execute("UPDATE commits SET record = ?, record_hash = ? WHERE sequence = ?", (schema.encode(record), parent, sequence))
        if database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'source_history'").fetchone():
            database.execute("UPDATE source_history SET record_hash = ? WHERE since = ?", (parent, sequence))
