"""The file of a base's governance: policies with all their versions, who changed what, tokens and secrets.

The file is made with the first change. Rows carry a digest, so that a byte that rots is damage and never a looser rule.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from evidentia.backends.embedded.side_file import WAIT_MS, SideFile
from evidentia.contracts.errors import BaseDamagedError

if TYPE_CHECKING:
    from pathlib import Path

GOVERNANCE_NAME: Final = "governance.db"
FORMAT: Final = 1
_TABLES: Final = (
    """CREATE TABLE policy_versions (
    tenant TEXT NOT NULL, policy_id TEXT NOT NULL, version INTEGER NOT NULL, stored BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (tenant, policy_id, version)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE policies (
    tenant TEXT NOT NULL, policy_id TEXT NOT NULL, version INTEGER NOT NULL, name TEXT NOT NULL, is_removed INTEGER NOT NULL,
    digest BLOB NOT NULL, PRIMARY KEY (tenant, policy_id)) STRICT, WITHOUT ROWID""",
    "CREATE UNIQUE INDEX policies_by_name ON policies (tenant, name) WHERE is_removed = 0",
    """CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, at_us INTEGER NOT NULL, by TEXT NOT NULL, kind TEXT NOT NULL,
    change TEXT NOT NULL, subject TEXT NOT NULL, name TEXT NOT NULL, version INTEGER, content TEXT) STRICT""",
    "CREATE INDEX audit_by_tenant ON audit (tenant, seq)",
    """CREATE TABLE tokens (
    token_id TEXT PRIMARY KEY, tenant TEXT NOT NULL, info BLOB NOT NULL, salt BLOB NOT NULL, hash BLOB NOT NULL,
    digest BLOB NOT NULL) STRICT, WITHOUT ROWID""",
    """CREATE TABLE secrets (
    tenant TEXT NOT NULL, name TEXT NOT NULL, nonce BLOB NOT NULL, sealed BLOB NOT NULL, updated_us INTEGER NOT NULL,
    updated_by TEXT NOT NULL, PRIMARY KEY (tenant, name)) STRICT, WITHOUT ROWID""",
    "CREATE TABLE key_salt (salt BLOB NOT NULL) STRICT",
)


class GovernanceFile(SideFile):
    """The file of a base's governance, for its owner's eyes only."""

    def __init__(self, path: Path, *, wait_ms: int = WAIT_MS) -> None:
        super().__init__(path, tables=_TABLES, format_number=FORMAT, wait_ms=wait_ms, is_private=True)


def digest_of(*parts: bytes | str) -> bytes:
    """Return what vouches for a row: the hash of its parts, each with its length."""
    hashed = hashlib.sha256()
    for part in parts:
        encoded = part.encode() if isinstance(part, str) else part
        hashed.update(len(encoded).to_bytes(8) + encoded)
    return hashed.digest()


def damaged(what: str) -> BaseDamagedError:
    """Return the error for a row that is not what was written."""
    return BaseDamagedError(GOVERNANCE_NAME, f"{what} is not what was written")
