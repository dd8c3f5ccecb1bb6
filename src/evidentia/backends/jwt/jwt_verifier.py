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
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate
from jwt import PyJWS, PyJWTError
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from evidentia.contracts.control import NAME_PATTERN, SIGNED_PREFIX, Role, TokenFacts, TokenId, TokenInfo
from evidentia.contracts.decoding import convert, decode_json
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vocabulary import Classification
from evidentia.foundation.lru import SharedLruCache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

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


class _SignedToken(TokenInfo, frozen=True, kw_only=True):
    """A token with the key that verified it."""

    key: str


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
        self._clock = clock
        self._jws = PyJWS(algorithms=settings.algorithms)
        self._lock = threading.Lock()
        self._kept: SharedLruCache[bytes, _Kept] = SharedLruCache(max_kept)
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
            claims, key = self._claims_in(token, keys)
            claimed = token_of(claims, self._settings, now=self._clock.now())
            verified = _SignedToken(**{name: getattr(claimed, name) for name in claimed.__struct_fields__}, key=key)
        except ClaimError as error:
            _log.debug("signed token refused: claim %s", error)
            return None
        except _WRONG as error:
            _log.debug("signed token refused: %s", type(error).__name__)
            return None
        self._keep(token, verified)
        return verified

    def holds(self, token: TokenInfo) -> bool:
        """Tell whether a token that was verified here would be so today: its key is still the provider's, and it has not expired."""
        keys, leeway = self._present_keys(), timedelta(seconds=self._settings.leeway_s)
        is_known = keys is not None and isinstance(token, _SignedToken) and token.key in keys.thumbprints
        return is_known and token.expires_at is not None and self._clock.now() < token.expires_at + leeway

    def _claims_in(self, token: str, keys: ProviderKeys) -> tuple[dict[str, Any], str]:  # Any: whatever the provider signed
        """Return what a token says once its signature was found right, and which key did; raise one of `_WRONG` otherwise."""
        header = decode_json(_decoded(token.partition(".")[0]), _Header)
        if header.alg not in self._settings.algorithms or header.alg not in ALGORITHMS or header.crit is not msgspec.UNSET:
            raise ValueError("header")
        for candidate in keys.candidates(algorithm=header.alg, kid=header.kid):
            try:
                payload = self._jws.decode(token, candidate.key, algorithms=[header.alg])
            except PyJWTError:
                continue
            return decode_json(payload, dict[str, Any]), candidate.thumbprint
        raise ValueError("signature")

    def _keep(self, token: str, verified: TokenInfo) -> None:
        if verified.expires_at is None:
            return
        until = verified.expires_at + timedelta(seconds=self._settings.leeway_s)
        self._kept.put(_key(token), _Kept(verified, self._clock.elapsed_ns() + KEPT_NS, until))

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


# --- claims: who, where, as what, until when; what is not as agreed is not believed ---

MAX_NAME_LENGTH: Final = 190
MAX_WORDS: Final = 1_000
MAX_WORD_LENGTH: Final = 200
_LATEST: Final = 253_402_300_799
"""The last second of the year 9999."""
_ID_DIGITS: Final = 24


class ClaimError(ValueError):
    """A claim is missing, or not as agreed; the message names it and never quotes it."""


def token_of(claims: Mapping[str, Any], settings: JwtSettings, *, now: datetime) -> TokenInfo:  # Any: whatever the provider signed
    """Return the token that claims stand for, or raise ClaimError.

    Its id is that of its holder and not of the paper: a new token of the same holder has the same limits.
    """
    _check_address(claims, settings)
    issued_at, expires_at = _check_time(claims, settings, now=now)
    name = _text(claims, settings.principal_claim)
    if len(name) > MAX_NAME_LENGTH or not name.isprintable() or not name.strip():
        raise ClaimError(settings.principal_claim)
    tenant = _text(claims, settings.tenant_claim)
    if not re.fullmatch(NAME_PATTERN, tenant):
        raise ClaimError(settings.tenant_claim)
    words = _words(claims, settings.roles_claim)
    return TokenInfo(
        token_id=_holder_id(settings.issuer, tenant, name),
        name=f"{SIGNED_PREFIX}{name}",
        roles=tuple(role for role in Role if role.value in words),
        tenant=tenant,
        created_at=now if issued_at is None else datetime.fromtimestamp(issued_at, UTC),
        created_by=settings.issuer,
        expires_at=datetime.fromtimestamp(expires_at, UTC),
        facts=TokenFacts(clearance=_clearance(claims, settings.clearance_claim), groups=_words(claims, settings.groups_claim)),
    )


def _check_address(claims: Mapping[str, Any], settings: JwtSettings) -> None:
    if claims.get("iss") != settings.issuer:
        raise ClaimError("iss")
    audience = claims.get("aud")
    if settings.audience not in (audience if isinstance(audience, list) else [audience]):
        raise ClaimError("aud")


def _check_time(claims: Mapping[str, Any], settings: JwtSettings, *, now: datetime) -> tuple[int | None, int]:
    """Return when a token was issued and when it expires, in seconds."""
    present, leeway = int(now.timestamp()), settings.leeway_s
    expires_at = _moment(claims, "exp")
    if expires_at is None or present >= expires_at + leeway:
        raise ClaimError("exp")
    not_before = _moment(claims, "nbf")
    if not_before is not None and present + leeway < not_before:
        raise ClaimError("nbf")
    issued_at = _moment(claims, "iat")
    if issued_at is not None and present + leeway < issued_at:
        raise ClaimError("iat")
    return issued_at, expires_at


def _moment(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a NumericDate (RFC 7519, 2) in whole seconds; None when it is not claimed."""
    value = claims.get(name)
    if name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST:
        raise ClaimError(name)
    return int(value)


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value:
        raise ClaimError(name)
    return value


def _words(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of words; one word may stand without a list, and no claim is no word."""
    value = claims.get(name, [])
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or len(words) > MAX_WORDS:
        raise ClaimError(name)
    if not all(isinstance(word, str) and 0 < len(word) <= MAX_WORD_LENGTH for word in words):
        raise ClaimError(name)
    return tuple(sorted(set(words)))


def _clearance(claims: Mapping[str, Any], name: str) -> Classification:
    value = claims.get(name, Classification.PUBLIC.value)
    if not isinstance(value, str) or value not in Classification.words():
        raise ClaimError(name)
    return Classification(value)


def _holder_id(*parts: str) -> TokenId:
    hashed = hashlib.sha256()
    for part in parts:
        encoded = part.encode(errors="surrogatepass")
        hashed.update(len(encoded).to_bytes(8) + encoded)
    return TokenId(f"{SIGNED_PREFIX}{hashed.hexdigest()[:_ID_DIGITS]}")


# --- public keys of an identity provider, from a JWK set or PEM; PyJWT and cryptography read them ---

FIELD: Final = "server.jwt.keys"
RSA_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
EC_ALGORITHMS: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
ED_ALGORITHM: Final = "EdDSA"
ALGORITHMS: Final = (*RSA_ALGORITHMS, *EC_ALGORITHMS.values(), ED_ALGORITHM)
"""All that are ever taken. Whoever can verify with one of these cannot sign with it."""
SMALLEST_RSA_BITS: Final = 2_048
MAX_KEYS: Final = 100
_READERS: Final = {"RSA": RSAAlgorithm.from_jwk, "EC": ECAlgorithm.from_jwk, "OKP": OKPAlgorithm.from_jwk}
_PUBLIC: Final = (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey, ed448.Ed448PublicKey)
_PEM: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | ed448.Ed448PublicKey


class ProviderKey(NamedTuple):
    """One key, and what it may be used for."""

    key: PublicKey
    algorithms: tuple[str, ...]
    kid: str | None = None

    @property
    def thumbprint(self) -> str:
        """Return what tells this key from every other, whatever it is called."""
        return hashlib.sha256(self.key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


class ProviderKeys:
    """The keys of one file, and the choice among them."""

    def __init__(self, keys: Sequence[ProviderKey], *, is_named: bool) -> None:
        self._keys = tuple(keys)
        self.thumbprints = frozenset(key.thumbprint for key in keys)
        self._is_named = is_named
        """Whether keys have ids, as in a JWK set; in PEM they have none."""

    @classmethod
    def read(cls, raw: bytes) -> ProviderKeys:
        """Return the keys in a JWK set, or in PEM.

        Raises:
            InvalidFieldError: There is none in it that could verify a signature, or one that has to stay secret.
        """
        is_named = raw.lstrip()[:1] == b"{"
        keys = _read_set(raw) if is_named else _read_pem(raw)
        if not keys or len(keys) > MAX_KEYS:
            raise InvalidFieldError(FIELD, f"the file holds {len(keys)} public keys for signatures; name one with 1 to {MAX_KEYS}")
        return cls(keys, is_named=is_named)

    def candidates(self, *, algorithm: str, kid: str | None) -> tuple[ProviderKey, ...]:
        """Return the keys that a signature may be checked with; none where that would be a guess."""
        fitting = tuple(key for key in self._keys if algorithm in key.algorithms)
        if not self._is_named:
            return fitting
        if kid is None:
            return fitting if len(fitting) == 1 else ()
        return tuple(key for key in fitting if key.kid == kid)


def _read_set(raw: bytes) -> list[ProviderKey]:
    try:
        read = decode_json(raw, dict[str, Any])  # Any: each key is checked by itself
        listed = convert(read.get("keys", [read]), list[dict[str, Any]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidFieldError(FIELD, "the file is no JWK set, which is JSON with a list 'keys'") from None
    return [key for each in listed if (key := _read_jwk(each)) is not None]


def _read_jwk(given: dict[str, Any]) -> ProviderKey | None:
    """Return a key; None for one that is for something other than signatures, or of a kind that is not known."""
    reader = _READERS.get(str(given.get("kty")))
    operations = given.get("key_ops")
    if reader is None or given.get("use", "sig") != "sig" or (isinstance(operations, list) and "verify" not in operations):
        return None
    if "d" in given:
        raise InvalidFieldError(FIELD, "the file holds a private key; name a file with public keys only")
    try:
        key = reader(given)
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, AttributeError):
        raise InvalidFieldError(FIELD, "a key in the JWK set cannot be read") from None
    algorithms = _algorithms_of(key)
    if "alg" in given:
        algorithms = tuple(name for name in algorithms if name == given["alg"])
    kid = given.get("kid")
    return ProviderKey(key, algorithms, kid if isinstance(kid, str) else None) if isinstance(key, _PUBLIC) and algorithms else None


def _read_pem(raw: bytes) -> list[ProviderKey]:
    found = []
    for block in _PEM.finditer(raw):
        if b"PRIVATE" in block[1]:
            raise InvalidFieldError(FIELD, "the file holds a private key; name a file with public keys only")
        try:
            key = load_pem_x509_certificate(block[0]).public_key() if block[1] == b"CERTIFICATE" else load_pem_public_key(block[0])
        except (UnsupportedAlgorithm, ValueError):
            raise InvalidFieldError(FIELD, "a key in the PEM file cannot be read") from None
        algorithms = _algorithms_of(key)
        if isinstance(key, _PUBLIC) and algorithms:
            found.append(ProviderKey(key, algorithms))
    return found


def _algorithms_of(key: object) -> tuple[str, ...]:
    """Return the algorithms that a public key is for; none for kinds that are not taken."""
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < SMALLEST_RSA_BITS:
            raise InvalidFieldError(FIELD, f"an RSA key has {key.key_size} bits; it takes {SMALLEST_RSA_BITS} at least")
        return RSA_ALGORITHMS
    if isinstance(key, ec.EllipticCurvePublicKey):
        name = EC_ALGORITHMS.get(key.curve.name)
        return () if name is None else (name,)
    return (ED_ALGORITHM,) if isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey) else ()
