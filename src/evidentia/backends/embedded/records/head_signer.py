"""The keys of a base: the secret that keys versions for others than the owner, and the Ed25519 key that signs its heads.

The secret and the public keys are rows of the database and travel with it. The private key is a file of its own that only its owner
may read; no backup takes it along, and a base that is written without it begins another.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.backends.embedded.records import schema
from evidentia.contracts.canonical import encode_record, encode_struct, sha256_hex
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.errors import BaseDamagedError
from evidentia.contracts.provenance import BaseHead, CommitRecord, SignedHead, SigningKey
from evidentia.foundation.disk import open_private, sync_directory
from evidentia.provenance.signed_heads import head_message, head_of, key_message, public_commit

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from evidentia.contracts.ports import Entropy

KEY_NAME: Final = "signing.key"
_NEXT_NAME: Final = f"{KEY_NAME}.new"
_SECRET_BYTES: Final = 32
_REMEDY: Final = "put the right one back, or remove it to begin another"

_decode_head: Final = json_decoder(BaseHead)
_decode_key: Final = json_decoder(SigningKey)


class HeadSigner:
    """Signs the heads of one base, within the transaction of whoever holds the writer's lock."""

    def __init__(self, directory: Path, *, entropy: Entropy) -> None:
        self._directory = directory
        self._entropy = entropy
        self._private: Ed25519PrivateKey | None = None

    def prepare(self, database: sqlite3.Connection, *, base_id: str, sequence: int) -> None:
        """See to it that the base has its secret and a key to sign with, whichever it lacks."""
        if not schema.stored_secret(database):
            database.execute("INSERT INTO version_secrets VALUES (?)", (self._entropy.take(_SECRET_BYTES),))
        keys = stored_keys(database)
        if not keys:
            self._private = _read(self._directory / KEY_NAME) or self._make(KEY_NAME)
            self._begin(database, self._private, base_id=base_id, sequence=sequence)
        elif self._private is None or _public(self._private) != keys[-1].public_key:  # none yet, or one of a commit that was undone
            self._private = self._stored_private(keys[-1].public_key)
            if self._private is None:
                self._private = self._make(_NEXT_NAME)
                self._begin(database, self._private, base_id=base_id, sequence=sequence, previous=keys[-1])

    def sign(self, database: sqlite3.Connection, record: CommitRecord) -> None:
        """Sign the head of a commit and store it."""
        if self._private is None:
            raise AssertionError  # `prepare` came first
        head = head_of(public_commit(record, secret=schema.stored_secret(database)), public_key=_public(self._private))
        signature = self._private.sign(head_message(head))
        database.execute("INSERT INTO signed_heads VALUES (?, ?, ?)", (head.sequence, encode_struct(head), signature))

    def rotate(self, database: sqlite3.Connection, *, base_id: str, sequence: int) -> None:
        """Begin a new key from this commit on; `settle` gives its file the name once the commit is durable."""
        keys = stored_keys(database)
        old = self._stored_private(keys[-1].public_key) if keys else None
        if old is None:
            return  # the commit begins a key in any case
        (self._directory / _NEXT_NAME).unlink(missing_ok=True)
        self._private = self._make(_NEXT_NAME)
        self._begin(database, self._private, base_id=base_id, sequence=sequence, previous=keys[-1], by=old)

    def settle(self, database: sqlite3.Connection) -> SigningKey:
        """Return the key in force, whose file now has its name."""
        key = stored_keys(database)[-1]
        self._private = self._stored_private(key.public_key)
        return key

    def _stored_private(self, public_key: str) -> Ed25519PrivateKey | None:
        """Return the private key in force; None where it is not at hand.

        A key that begins with a commit is in a file of another name until that is durable: the commit says which of them is the key.
        """
        path, coming = self._directory / KEY_NAME, self._directory / _NEXT_NAME
        found = _read(coming)
        if found is not None and _public(found) == public_key:
            coming.replace(path)
            sync_directory(self._directory)
            return found
        coming.unlink(missing_ok=True)
        found = _read(path)
        if found is not None and _public(found) != public_key:
            raise BaseDamagedError(KEY_NAME, f"it is not the key that this base signs with; {_REMEDY}")
        return found

    def _make(self, name: str) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        made = Ed25519PrivateKey.from_private_bytes(self._entropy.take(_SECRET_BYTES))
        content = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        with open_private(self._directory / name, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self._directory)
        return made

    def _begin(
        self,
        database: sqlite3.Connection,
        private: Ed25519PrivateKey,
        *,
        base_id: str,
        sequence: int,
        previous: SigningKey | None = None,
        by: Ed25519PrivateKey | None = None,
    ) -> None:
        """Store a key; `by` is the one that vouches for it, and the first vouches for itself."""
        key = SigningKey(
            base_id=base_id,
            sequence=sequence,
            public_key=_public(private),
            previous="" if previous is None else previous.public_key,
            signature="",
        )
        voucher = private if previous is None else by
        if voucher is not None:
            key = msgspec.structs.replace(key, signature=voucher.sign(key_message(key)).hex())
        database.execute("INSERT INTO signing_keys VALUES (?, ?)", (sequence, encode_struct(key)))


def stored_keys(database: sqlite3.Connection) -> tuple[SigningKey, ...]:
    """Return the public keys of the base, oldest first."""
    if not schema.holds_signatures(database):
        return ()
    return tuple(_decode_key(record) for (record,) in database.execute("SELECT record FROM signing_keys ORDER BY sequence"))


def keys_hash(database: sqlite3.Connection) -> str:
    """Return the hash of the secret and the keys, which the commit record names; empty where there are none."""
    keys, secret = stored_keys(database), schema.stored_secret(database)
    if not keys and not secret:
        return ""
    return sha256_hex(encode_record({"keys": [msgspec.to_builtins(key) for key in keys], "secret": sha256_hex(secret)}))


def stored_signed_heads(database: sqlite3.Connection, *, sequence: int | None = None) -> Iterator[SignedHead]:
    """Yield the signed heads, oldest first, or the one of a commit."""
    if not schema.holds_signatures(database):
        return
    keys = stored_keys(database)
    statement = "SELECT sequence, head, signature FROM signed_heads WHERE ?1 IS NULL OR sequence = ?1 ORDER BY sequence"
    for stored, head, signature in database.execute(statement, (sequence,)):
        decoded = _decode_head(head)
        if decoded.sequence != stored or encode_struct(decoded) != head:
            raise BaseDamagedError(f"head {stored}", "the record is not the one that was signed")
        known = tuple(key for key in keys if key.sequence <= decoded.sequence)
        yield SignedHead(head=decoded, signature=signature.hex(), keys=known)


def _read(path: Path) -> Ed25519PrivateKey | None:
    """Return the private key in a file; None where there is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        found = load_pem_private_key(path.read_bytes(), password=None)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BaseDamagedError(path.name, f"it holds no private key; {_REMEDY}") from error
    if not isinstance(found, Ed25519PrivateKey):
        raise BaseDamagedError(path.name, f"it holds a key of another kind; {_REMEDY}")
    return found


def _public(private: Ed25519PrivateKey) -> str:
    return private.public_key().public_bytes_raw().hex()
