"""The public keys of an identity provider, from a JWK set or PEM; each knows with which algorithms it may be used, and no other is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate
from jwt import PyJWTError
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class ProviderKeys:
    """The keys of one file, and the choice among them."""

    def __init__(self, keys: Sequence[ProviderKey], *, is_named: bool) -> None:
        self._keys = tuple(keys)
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
        read = msgspec.json.decode(raw, type=dict[str, Any])  # Any: each key is checked by itself
        listed = msgspec.convert(read.get("keys", [read]), list[dict[str, Any]])
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
