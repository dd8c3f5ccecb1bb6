"""Verifies signed tokens: the signature by a key of the provider, then what the token claims. Nothing in a token chooses how.

Keys come from the file alone; what a header says about where to find keys is not read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import re
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from jwt import PyJWS, PyJWTError

from evidentia.backends.jwt.claims import ClaimError, token_of
from evidentia.backends.jwt.keys import ALGORITHMS, FIELD, ProviderKeys
from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from evidentia.contracts.control import TokenInfo
    from evidentia.contracts.ports import Clock
    from evidentia.contracts.settings import JwtSettings

MAX_LENGTH: Final = 8_192
"""Of a token, in characters."""
MAX_KEPT: Final = 10_000
KEPT_NS: Final = 60_000_000_000
"""For how long a verified token is believed without looking at its signature again."""
RECHECK_NS: Final = 2_000_000_000
"""How often the file of keys is looked at."""
_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
"""RFC 7515, 7.1; parts have no padding."""
_LARGEST_FILE: Final = 1 << 20
_WRONG: Final = (PyJWTError, msgspec.MsgspecError, ValueError, TypeError, RecursionError)
"""What a token that is none may cause."""

_log = logging.getLogger(__name__)


class _Header(msgspec.Struct, frozen=True):
    alg: str
    kid: str | None = None
    crit: object = msgspec.UNSET


class _Kept(NamedTuple):
    token: TokenInfo
    until_ns: int
    until: datetime


class JwtVerifier:
    """Implements `SignedTokens` for one provider. Thread safe.

    The file of keys is read again when it changes. While it cannot be read, no signed token is taken.
    """

    def __init__(self, settings: JwtSettings, *, keys_file: Path, clock: Clock, max_kept: int = MAX_KEPT) -> None:
        _check(settings)
        self._settings = settings
        self._file = keys_file
        self._most_kept = max_kept
        self._clock = clock
        self._jws = PyJWS(algorithms=settings.algorithms)
        self._lock = threading.Lock()
        self._kept: dict[bytes, _Kept] = {}
        self._looked_ns = clock.elapsed_ns()
        self._stamp = self._stamp_of()
        self._keys: ProviderKeys | None = self._read()

    def recall(self, token: str) -> TokenInfo | None:
        """Return what was verified a moment ago, without reading anything; None when it has to be verified."""
        if self._has_changed():
            return None
        kept = self._kept.get(_key(token))
        if kept is None or kept.until_ns <= self._clock.elapsed_ns() or kept.until <= self._clock.now():
            return None
        return kept.token

    def verify(self, token: str) -> TokenInfo | None:
        """Return whose token it is; None when anything about it is wrong. It never raises, and never says what was wrong to who asks."""
        keys = self._present_keys()
        if keys is None or len(token) > MAX_LENGTH or not _FORM.fullmatch(token):
            return None
        try:
            verified = token_of(self._claims_in(token, keys), self._settings, now=self._clock.now())
        except ClaimError as error:
            _log.debug("signed token refused: claim %s", error)
            return None
        except _WRONG as error:
            _log.debug("signed token refused: %s", type(error).__name__)
            return None
        self._keep(token, verified)
        return verified

    def _claims_in(self, token: str, keys: ProviderKeys) -> dict[str, Any]:  # Any: whatever the provider signed
        """Return what a token says once its signature was found right; raise one of `_WRONG` otherwise."""
        header = msgspec.json.decode(_decoded(token.partition(".")[0]), type=_Header)
        if header.alg not in self._settings.algorithms or header.alg not in ALGORITHMS or header.crit is not msgspec.UNSET:
            raise ValueError("header")
        for candidate in keys.candidates(algorithm=header.alg, kid=header.kid):
            try:
                payload = self._jws.decode(token, candidate.key, algorithms=[header.alg])
            except PyJWTError:
                continue
            return msgspec.json.decode(payload, type=dict[str, Any])
        raise ValueError("signature")

    def _keep(self, token: str, verified: TokenInfo) -> None:
        if verified.expires_at is None:
            return
        until = verified.expires_at + timedelta(seconds=self._settings.leeway_s)
        with self._lock:
            if len(self._kept) >= self._most_kept:
                self._kept.clear()
            self._kept[_key(token)] = _Kept(verified, self._clock.elapsed_ns() + KEPT_NS, until)

    def _has_changed(self) -> bool:
        """Tell whether the file is another than the one that was read; it is looked at every few seconds."""
        now = self._clock.elapsed_ns()
        if now - self._looked_ns < RECHECK_NS:
            return False
        if self._stamp_of() != self._stamp:
            return True
        self._looked_ns = now
        return False

    def _present_keys(self) -> ProviderKeys | None:
        with self._lock:
            if self._has_changed():
                self._kept.clear()
                self._looked_ns = self._clock.elapsed_ns()
                self._stamp = self._stamp_of()
                try:
                    self._keys = self._read()
                except InvalidFieldError as error:
                    self._keys = None
                    _log.warning("no signed tokens are taken: %s", error)
            return self._keys

    def _read(self) -> ProviderKeys:
        try:
            with self._file.open("rb") as opened:
                raw = opened.read(_LARGEST_FILE + 1)
        except OSError as error:
            raise InvalidFieldError(FIELD, f"'{self._file}' cannot be read: {error.strerror}") from error
        if len(raw) > _LARGEST_FILE:
            raise InvalidFieldError(FIELD, f"'{self._file}' is larger than {_LARGEST_FILE} bytes")
        return ProviderKeys.read(raw)

    def _stamp_of(self) -> tuple[int, ...] | None:
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _check(settings: JwtSettings) -> None:
    """Refuse settings by which anybody's tokens would be taken."""
    for name, value in (("issuer", settings.issuer), ("audience", settings.audience)):
        if not value:
            raise InvalidFieldError(f"server.jwt.{name}", "with keys it has to be set, or tokens that are for others would open here")
    if not settings.algorithms:
        raise InvalidFieldError("server.jwt.algorithms", f"name one at least of {', '.join(ALGORITHMS)}")
    for name in settings.algorithms:
        if name not in ALGORITHMS:
            raise InvalidFieldError("server.jwt.algorithms", f"'{name}' is none of {', '.join(ALGORITHMS)}")


def _decoded(part: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error as error:
        raise ValueError("base64") from error


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
