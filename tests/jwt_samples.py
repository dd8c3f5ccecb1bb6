"""An identity provider with real keys, and tokens that it signed."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from evidentia.backends.jwt.jwt_verifier import JwtVerifier
from evidentia.contracts.settings import JwtSettings
from evidentia.testing.virtual_time import VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

ISSUER = "https://login.example"
AUDIENCE = "evidentia"
SETTINGS = JwtSettings(keys="keys.json", issuer=ISSUER, audience=AUDIENCE)
WRITERS: dict[str, Any] = {"RSA": RSAAlgorithm.to_jwk, "EC": ECAlgorithm.to_jwk, "OKP": OKPAlgorithm.to_jwk}


@cache
def rsa_key(bits: int = 2_048, which: int = 0) -> rsa.RSAPrivateKey:
    """Return a key; another one for another `which`."""
    del which
    return rsa.generate_private_key(public_exponent=65_537, key_size=bits)


@cache
def ec_key(which: int = 0, curve: type[ec.EllipticCurve] = ec.SECP256R1) -> ec.EllipticCurvePrivateKey:
    """Return a key; another one for another `which`."""
    del which
    return ec.generate_private_key(curve())


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    """Return a key."""
    return ed25519.Ed25519PrivateKey.generate()


def pem(key: Any) -> bytes:
    """Return the public half of a key as PEM."""
    return bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def jwk(key: Any, **fields: object) -> dict[str, Any]:
    """Return the public half of a key as JWK."""
    kind = "RSA" if isinstance(key, rsa.RSAPrivateKey) else "EC" if isinstance(key, ec.EllipticCurvePrivateKey) else "OKP"
    written: dict[str, Any] = json.loads(WRITERS[kind](key.public_key()))
    return {**written, **fields}


def key_set(*keys: dict[str, Any]) -> bytes:
    """Return a JWK set."""
    return json.dumps({"keys": keys}).encode()


class Provider:
    """Signs for a verifier that reads its keys from a file."""

    def __init__(self, directory: Path, *, keys: bytes | None = None, settings: JwtSettings = SETTINGS) -> None:
        self.clock = VirtualClock()
        self.file = directory / "keys.json"
        self.file.write_bytes(key_set(jwk(ec_key(), kid="one")) if keys is None else keys)
        self.verifier = JwtVerifier(settings, keys_file=self.file, clock=self.clock)

    @property
    def seconds(self) -> int:
        """Return the present moment."""
        return int(self.clock.now().timestamp())

    def claims(self, **claims: Any) -> dict[str, Any]:
        """Return claims that hold, with some changed; None leaves one out."""
        usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "tenant": "acme", "roles": ["reader"], "exp": self.seconds + 3_600}
        return {name: value for name, value in {**usual, **claims}.items() if value is not None}

    def token(self, *, key: Any = None, algorithm: Any = "ES256", kid: Any = "one", headers: Any = None, **claims: Any) -> str:
        """Return a signed token."""
        given = {**({} if kid is None else {"kid": kid}), **(headers or {})}
        return jwt.encode(self.claims(**claims), ec_key() if key is None else key, algorithm=algorithm, headers=given)
