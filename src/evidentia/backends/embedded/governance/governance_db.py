"""The file of a base's governance: policies with all their versions, who changed what, tokens and secrets.

The file is made with the first change. Rows carry a digest, so that a byte that rots is damage and never a looser rule.
"""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.control import AuditEntry, AuditKind, SecretKept
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError, NotFoundError
from evidentia.contracts.ids import Sha256
from evidentia.foundation.disk import BUSY_TIMEOUT_MS
from evidentia.foundation.sqlite_file import SqliteFile, from_microseconds, to_microseconds

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from evidentia.contracts.ports import Clock, Entropy


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


class GovernanceFile(SqliteFile):
    """The file of a base's governance, for its owner's eyes only."""

    def __init__(self, path: Path, *, wait_ms: int = BUSY_TIMEOUT_MS) -> None:
        super().__init__(path, tables=_TABLES, version=FORMAT, wait_ms=wait_ms)


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


# --- governance db audit ---
# Who changed which policy, token or secret: one line per change, written in the transaction of the change.

_COLUMNS: Final = "at_us, by, kind, change, subject, name, version, content"


class AuditChange(NamedTuple):
    """One line of the audit on its way in."""

    kind: AuditKind
    change: str
    subject: str
    name: str
    version: int | None = None
    content: str | None = None
    """The digest of what it is now."""


def note_change(database: sqlite3.Connection, change: AuditChange, *, tenant: str, by: str, at: datetime) -> None:
    """Write a line of the audit, in the transaction of what it tells."""
    row = (tenant, to_microseconds(at), by, change.kind.value, change.change, change.subject, change.name, change.version, change.content)
    database.execute(f"INSERT INTO audit (tenant, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def read_changes(database: sqlite3.Connection, *, tenant: str, after: int, limit: int, kind: AuditKind | None = None) -> list[AuditEntry]:
    """Return the lines after a number, oldest first; of one kind where that is given.

    A tenant's lines are numbered by themselves, since the numbers of the file would count what others changed.
    """
    own = f"SELECT row_number() OVER (ORDER BY seq) AS place, {_COLUMNS} FROM audit WHERE tenant = ?"
    statement = f"SELECT place, {_COLUMNS} FROM ({own}) WHERE place > ? AND (? IS NULL OR kind = ?) ORDER BY place LIMIT ?"
    word = None if kind is None else kind.value
    return [_entry(row) for row in database.execute(statement, (tenant, after, word, word, limit))]


def _entry(row: tuple[int, int, str, str, str, str, str, int | None, str | None]) -> AuditEntry:
    seq, at_us, by, kind, change, subject, name, version, content = row
    return AuditEntry(
        seq=seq,
        at=from_microseconds(at_us),
        by=by,
        kind=AuditKind(kind),
        change=change,
        subject=subject,
        name=name,
        version=version,
        digest=None if content is None else Sha256(content),
    )


# --- governance db secrets ---
# Secrets of a tenant: sealed with AES-256-GCM under a key from outside the base, listed by name, and opened for a judge alone.

KEY_VARIABLE: Final = "EVIDENTIA_SECRET_KEY"
SHORTEST_KEY: Final = 16
_NONCE_BYTES: Final = 12
_SALT_BYTES: Final = 16
_COST: Final = {"n": 1 << 14, "r": 8, "p": 1, "maxmem": 1 << 26, "dklen": 32}


class EmbeddedSecrets:
    """The secrets of every tenant of a base. `master_key` gives the text that the sealing key follows from; None when there is none."""

    def __init__(self, file: GovernanceFile, *, master_key: Callable[[], str | None], clock: Clock, entropy: Entropy) -> None:
        self._file = file
        self._master_key = master_key
        self._clock = clock
        self._entropy = entropy
        self._lock = threading.Lock()
        self._derived: dict[tuple[str, bytes], bytes] = {}

    def put(self, name: str, value: str, *, tenant: str, by: str) -> SecretKept:
        """Keep a secret in place of what had its name; refused while no key is set."""
        key, now = self._checked_key(), self._clock.now()
        with self._file.transaction() as database:
            cipher = self._cipher(key, _salt_of(database) or self._new_salt(database))
            nonce = self._entropy.take(_NONCE_BYTES)
            sealed = cipher.encrypt(nonce, value.encode(), _bound_to(tenant, name))
            is_new = not database.execute("SELECT 1 FROM secrets WHERE tenant = ? AND name = ?", (tenant, name)).fetchone()
            row = (tenant, name, nonce, sealed, to_microseconds(now), by)
            database.execute("INSERT OR REPLACE INTO secrets VALUES (?, ?, ?, ?, ?, ?)", row)
            change = AuditChange(AuditKind.SECRET, "created" if is_new else "updated", name, name)
            note_change(database, change, tenant=tenant, by=by, at=now)
        return SecretKept(name=name, updated_at=now, updated_by=by)

    def names(self, *, tenant: str) -> Sequence[str]:
        """Return what the secrets of a tenant are called, in order."""
        with self._file.reading() as database:
            found = [] if database is None else database.execute("SELECT name FROM secrets WHERE tenant = ? ORDER BY name", (tenant,))
            return [name for (name,) in found]

    def kept(self, name: str, *, tenant: str) -> SecretKept:
        """Return since when a secret is kept, or raise NotFoundError; never what it is."""
        with self._file.reading() as database:
            statement = "SELECT updated_us, updated_by FROM secrets WHERE tenant = ? AND name = ?"
            found = None if database is None else database.execute(statement, (tenant, name)).fetchone()
        if found is None:
            raise NotFoundError("secret", name)
        return SecretKept(name=name, updated_at=from_microseconds(found[0]), updated_by=found[1])

    def remove(self, name: str, *, tenant: str, by: str) -> None:
        """Forget a secret."""
        self.kept(name, tenant=tenant)
        with self._file.transaction() as database:
            if not database.execute("DELETE FROM secrets WHERE tenant = ? AND name = ?", (tenant, name)).rowcount:
                raise NotFoundError("secret", name)
            change = AuditChange(AuditKind.SECRET, "removed", name, name)
            note_change(database, change, tenant=tenant, by=by, at=self._clock.now())

    def secret(self, name: str, tenant: str) -> str | None:
        """Return a secret for use in this process; None when there is none of this name."""
        with self._file.reading() as database:
            statement = "SELECT nonce, sealed FROM secrets WHERE tenant = ? AND name = ?"
            found = None if database is None else database.execute(statement, (tenant, name)).fetchone()
            salt = None if database is None else _salt_of(database)
        if found is None or salt is None:
            return None
        cipher = self._cipher(self._checked_key(), salt)
        from cryptography.exceptions import InvalidTag

        nonce, sealed = found
        try:
            return cipher.decrypt(nonce, sealed, _bound_to(tenant, name)).decode()
        except InvalidTag:
            problem = f"secret '{name}' does not open with the key in {KEY_VARIABLE}; set the one it was written with, or write it again"
            raise BaseDamagedError("governance.db", problem) from None

    def _checked_key(self) -> str:
        key = self._master_key()
        if not key:
            raise InvalidFieldError(KEY_VARIABLE, "the environment variable is not set, and a secret is kept encrypted or not at all")
        if len(key) < SHORTEST_KEY:
            raise InvalidFieldError(KEY_VARIABLE, f"it has fewer than {SHORTEST_KEY} characters; set a long random text")
        return key

    def _cipher(self, key: str, salt: bytes) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        with self._lock:
            if (key, salt) not in self._derived:
                self._derived = {(key, salt): hashlib.scrypt(key.encode(errors="surrogateescape"), salt=salt, **_COST)}
            return AESGCM(self._derived[key, salt])

    def _new_salt(self, database: sqlite3.Connection) -> bytes:
        salt = self._entropy.take(_SALT_BYTES)
        database.execute("INSERT INTO key_salt VALUES (?)", (salt,))
        return salt


def _salt_of(database: sqlite3.Connection) -> bytes | None:
    found = database.execute("SELECT salt FROM key_salt").fetchone()
    return None if found is None else bytes(found[0])


def _bound_to(tenant: str, name: str) -> bytes:
    """Return what a sealed value belongs to, so that it opens under no other name and in no other tenant."""
    return f"{len(tenant)} {tenant} {name}".encode()
