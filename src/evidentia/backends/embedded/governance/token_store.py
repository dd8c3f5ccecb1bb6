"""Bearer tokens: the secret is shown once, a slow hash of it is kept, and what was verified is remembered for a moment.

A token is `evt_ID_SECRET`. Revoking counts at once in this process, and within `RECHECK_NS` in any other.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.backends.embedded.governance.governance_db import AuditChange, GovernanceFile, damaged, digest_of, note_change
from evidentia.contracts.control import NO_FACTS, SIGNED_PREFIX, AuditKind, IssuedToken, Role, TokenFacts, TokenId, TokenInfo
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.errors import InvalidFieldError, NotFoundError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from evidentia.contracts.ports import Clock, Entropy

PREFIX: Final = "evt"
RECHECK_NS: Final = 2_000_000_000
"""For how long a verified token is believed without asking the file again."""
MAX_KEPT: Final = 10_000
_ID_BYTES: Final = 6
_SALT_BYTES: Final = 16
_SECRET_BYTES: Final = 32
_MAX_LENGTH: Final = 200
_PARTS: Final = 3
_COST: Final = {"n": 1 << 14, "r": 8, "p": 1, "maxmem": 1 << 26}
_ROW: Final = "SELECT info, salt, hash, digest FROM tokens WHERE token_id = ?"

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = json_decoder(TokenInfo)


class _TokenRow(NamedTuple):
    info: TokenInfo
    salt: bytes
    hash: bytes


class _VerifiedToken(NamedTuple):
    row: _TokenRow
    until_ns: int


class EmbeddedTokens:
    """The tokens of a base. Thread safe; several processes may share the file."""

    def __init__(self, file: GovernanceFile, *, clock: Clock, entropy: Entropy) -> None:
        self._file = file
        self._clock = clock
        self._entropy = entropy
        self._kept: dict[bytes, _VerifiedToken] = {}
        self._revoked: set[TokenId] = set()
        """Revoked in this process, so that a verification under way cannot bring one back."""
        self._lock = threading.Lock()
        # One hash at a time: each takes 16 MB and a core, and anybody may ask.
        self._hashing = threading.Lock()

    def issue(
        self,
        *,
        name: str,
        roles: Sequence[Role],
        tenant: str,
        by: str,
        expires_at: datetime | None = None,
        facts: TokenFacts = NO_FACTS,
    ) -> IssuedToken:
        """Make a token, and return it with its secret, which nobody can read again."""
        now = self._clock.now()
        if name.startswith(SIGNED_PREFIX):
            raise InvalidFieldError("name", f"names that begin with '{SIGNED_PREFIX}' are for those with signed tokens; choose another")
        if expires_at is not None and expires_at <= now:
            raise InvalidFieldError("expires_at", "it has passed; name a moment that is to come")
        token_id = TokenId(self._entropy.take(_ID_BYTES).hex())
        secret = base64.urlsafe_b64encode(self._entropy.take(_SECRET_BYTES)).rstrip(b"=").decode()
        info = TokenInfo(
            token_id=token_id,
            name=name,
            roles=tuple(role for role in Role if role in roles),
            tenant=tenant,
            created_at=now,
            created_by=by,
            expires_at=expires_at,
            facts=facts,
        )
        salt = self._entropy.take(_SALT_BYTES)
        with self._hashing:
            row = _TokenRow(info, salt, self._hash(secret, salt))
        with self._file.transaction() as database:
            _write(database, row)
            note_change(database, AuditChange(AuditKind.TOKEN, "created", token_id, name), tenant=tenant, by=by, at=now)
        return IssuedToken(token=f"{PREFIX}_{token_id}_{secret}", info=info)

    def recall(self, token: str) -> TokenInfo | None:
        """Return a token that was verified a moment ago, without looking anywhere; None when it has to be verified."""
        kept = self._kept.get(_key(token))
        if kept is None or kept.until_ns < self._clock.elapsed_ns():
            return None
        return kept.row.info if self._holds(kept.row.info) else None

    def verify(self, token: str, *, before_hash: Callable[[], None] | None = None) -> TokenInfo | None:
        """Return whose token it is; None when it is unknown, wrong, expired or revoked. It may take as long as a slow hash does.

        `before_hash` is called where a hash has to be taken, which is not so for a token that was verified before; it may raise.
        """
        row = self._row_of(token)
        if row is None or not self._holds(row.info):
            self._forget(token)
            return None
        if self._has_verified(token, row):
            self._keep(token, row)
            return row.info
        if before_hash is not None:
            before_hash()
        with self._hashing:
            # Who waited here while another showed the same token finds it verified.
            if not self._has_verified(token, row) and not hmac.compare_digest(self._hash(_secret(token), row.salt), row.hash):
                return None
            self._keep(token, row)
        return row.info

    def standing(self, token_id: TokenId) -> TokenInfo | None:
        """Return the token of an id; None when it is unknown, expired or revoked."""
        row = self._row(token_id)
        return row.info if row is not None and self._holds(row.info) else None

    def tokens(self, *, tenant: str | None = None) -> Sequence[TokenInfo]:
        """Return every token without its secret, by the time it was made; of one tenant where that is given."""
        with self._file.reading() as database:
            statement = "SELECT token_id, info, salt, hash, digest FROM tokens WHERE ? IS NULL OR tenant = ?"
            rows = [] if database is None else database.execute(statement, (tenant, tenant)).fetchall()
        found = [_read(token_id, *row).info for token_id, *row in rows]
        return sorted(found, key=lambda info: (info.created_at, info.token_id))

    def revoke(self, token_id: TokenId, *, tenant: str | None, by: str) -> TokenInfo:
        """Make a token worthless from now on; one that was revoked stays as it is."""
        with self._file.reading() as existing:
            if existing is None:
                raise NotFoundError("token", token_id)
        with self._file.transaction() as database:
            found = database.execute(_ROW, (token_id,)).fetchone()
            row = None if found is None else _read(token_id, *found)
            if row is None or (tenant is not None and row.info.tenant != tenant):
                raise NotFoundError("token", token_id)
            if row.info.revoked_at is not None:
                return row.info
            now = self._clock.now()
            revoked = msgspec.structs.replace(row.info, revoked_at=now)
            _write(database, row._replace(info=revoked))
            note_change(database, AuditChange(AuditKind.TOKEN, "revoked", token_id, row.info.name), tenant=revoked.tenant, by=by, at=now)
        with self._lock:
            self._revoked.add(token_id)
            self._kept = {key: kept for key, kept in self._kept.items() if kept.row.info.token_id != token_id}
        return revoked

    def _row_of(self, token: str) -> _TokenRow | None:
        parts = token.split("_", _PARTS - 1)
        if len(token) > _MAX_LENGTH or not token.isascii() or len(parts) != _PARTS or parts[0] != PREFIX:
            return None
        return self._row(parts[1])

    def _row(self, token_id: str) -> _TokenRow | None:
        with self._file.reading() as database:
            found = None if database is None else database.execute(_ROW, (token_id,)).fetchone()
        return None if found is None else _read(token_id, *found)

    def _holds(self, info: TokenInfo) -> bool:
        is_revoked = info.revoked_at is not None or info.token_id in self._revoked
        return not is_revoked and (info.expires_at is None or self._clock.now() < info.expires_at)

    def _hash(self, secret: str, salt: bytes) -> bytes:
        return hashlib.scrypt(secret.encode(), salt=salt, **_COST)

    def _has_verified(self, token: str, row: _TokenRow) -> bool:
        known = self._kept.get(_key(token))
        return known is not None and known.row.hash == row.hash

    def _keep(self, token: str, row: _TokenRow) -> None:
        with self._lock:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[_key(token)] = _VerifiedToken(row, self._clock.elapsed_ns() + RECHECK_NS)

    def _forget(self, token: str) -> None:
        with self._lock:
            self._kept.pop(_key(token), None)


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _secret(token: str) -> str:
    return token.split("_", _PARTS - 1)[-1]


def _write(database: sqlite3.Connection, row: _TokenRow) -> None:
    info = row.info
    encoded = _encode(info)
    vouching = digest_of(info.token_id, info.tenant, encoded, row.salt, row.hash)
    values = (info.token_id, info.tenant, encoded, row.salt, row.hash, vouching)
    database.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?)", values)


def _read(token_id: str, info: bytes, salt: bytes, hashed: bytes, digest: bytes) -> _TokenRow:
    try:
        read = _decode(info)
    except msgspec.MsgspecError as error:
        raise damaged(f"token {token_id!a}") from error
    if digest_of(token_id, read.tenant, info, salt, hashed) != digest:
        raise damaged(f"token {token_id!a}")
    return _TokenRow(read, salt, hashed)
