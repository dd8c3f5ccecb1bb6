"""Secrets of a tenant: sealed with AES-256-GCM under a key from outside the base, listed by name, and opened for a judge alone."""

from __future__ import annotations

import hashlib
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from evidentia.backends.embedded.governance_db_audit import EPOCH, Change, note_change
from evidentia.backends.embedded.key_value_rows import microseconds
from evidentia.contracts.control import AuditKind, SecretKept
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError, NotFoundError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from evidentia.backends.embedded.governance_db import GovernanceFile
    from evidentia.contracts.ports import Clock, Entropy

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
        with self._file.changing() as database:
            cipher = self._cipher(key, _salt_of(database) or self._new_salt(database))
            nonce = self._entropy.take(_NONCE_BYTES)
            sealed = cipher.encrypt(nonce, value.encode(), _bound_to(tenant, name))
            is_new = not database.execute("SELECT 1 FROM secrets WHERE tenant = ? AND name = ?", (tenant, name)).fetchone()
            row = (tenant, name, nonce, sealed, microseconds(now), by)
            database.execute("INSERT OR REPLACE INTO secrets VALUES (?, ?, ?, ?, ?, ?)", row)
            change = Change(AuditKind.SECRET, "created" if is_new else "updated", name, name)
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
        return SecretKept(name=name, updated_at=EPOCH + timedelta(microseconds=found[0]), updated_by=found[1])

    def remove(self, name: str, *, tenant: str, by: str) -> None:
        """Forget a secret."""
        self.kept(name, tenant=tenant)
        with self._file.changing() as database:
            if not database.execute("DELETE FROM secrets WHERE tenant = ? AND name = ?", (tenant, name)).rowcount:
                raise NotFoundError("secret", name)
            change = Change(AuditKind.SECRET, "removed", name, name)
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
