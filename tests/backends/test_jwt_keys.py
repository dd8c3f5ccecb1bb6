"""Files of public keys: what is read, and what is refused with a reason."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jwt.algorithms import ECAlgorithm

from evidentia.backends.jwt.jwt_verifier import ProviderKeys
from evidentia.contracts.errors import InvalidFieldError
from jwt_samples import ec_key, ed_key, jwk, key_set, pem, rsa_key

WEAK = rsa_key(1_024)
PRIVATE = ec_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def algorithms_in(raw: bytes) -> list[tuple[str, ...]]:
    return [key.algorithms for key in ProviderKeys.read(raw)._keys]


def test_several_keys_may_stand_in_one_pem_file() -> None:
    keys = ProviderKeys.read(pem(ec_key()) + b"\n# a comment\n" + pem(rsa_key()) + pem(ed_key()))

    for algorithm in ("ES256", "RS256", "EdDSA"):
        assert 1 == len(keys.candidates(algorithm=algorithm, kid="whatever"))
    assert () == keys.candidates(algorithm="HS256", kid=None)


def test_a_certificate_stands_for_its_key() -> None:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "login")])
    start = datetime.datetime(2026, 1, 1)  # noqa: DTZ001 - certificates have no zone
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(ec_key().public_key()).serial_number(1)
    made = builder.not_valid_before(start).not_valid_after(start + datetime.timedelta(days=1)).sign(ec_key(), SHA256())

    assert [("ES256",)] == algorithms_in(made.public_bytes(Encoding.PEM))


def test_one_key_alone_is_a_set_of_one() -> None:
    assert [("ES256",)] == algorithms_in(json.dumps(jwk(ec_key(), kid="one")).encode())


def test_keys_for_something_else_are_passed_over() -> None:
    others: list[dict[str, Any]] = [
        jwk(rsa_key(), use="enc"),
        jwk(rsa_key(), key_ops=["encrypt"]),
        jwk(rsa_key(), alg="RSA-OAEP"),
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "new"},
        {},
    ]

    assert [("ES256",)] == algorithms_in(key_set(*others, jwk(ec_key(), kid="one")))


@pytest.mark.parametrize("curve", [ec.SECP384R1, ec.SECP521R1])
def test_each_curve_has_one_algorithm(curve: type[ec.EllipticCurve]) -> None:
    expected = {ec.SECP384R1: "ES384", ec.SECP521R1: "ES512"}[curve]

    assert [(expected,)] == algorithms_in(pem(ec_key(0, curve)))


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "0 public keys"),
        (b"hello", "0 public keys"),
        (b"{", "no JWK set"),
        (b'{"keys": 3}', "no JWK set"),
        (b'{"keys": [3]}', "no JWK set"),
        (b"[]", "0 public keys"),
        (key_set({"kty": "oct", "k": "c2VjcmV0"}), "0 public keys"),
        (key_set({"kty": "RSA", "n": "!", "e": "AQAB"}), "cannot be read"),
        (key_set({"kty": "EC", "crv": "P-256", "x": 1, "y": 2}), "cannot be read"),
        (key_set({**jwk(ec_key()), "x": jwk(ec_key(1))["x"]}), "cannot be read"),
        (key_set(json.loads(ECAlgorithm.to_jwk(ec_key()))), "private"),
        (PRIVATE, "private"),
        (pem(ec_key()).replace(b"M", b"N"), "cannot be read"),
        (pem(WEAK), "1024 bits"),
        (key_set(jwk(WEAK)), "1024 bits"),
        (pem(ec_key(0, ec.SECP256K1)), "0 public keys"),
        (pem(ec_key()) * 101, "101 public keys"),
    ],
    ids=range(17),
)
def test_a_file_without_usable_keys_says_why(raw: bytes, problem: str) -> None:
    with pytest.raises(InvalidFieldError, match=problem) as raised:
        ProviderKeys.read(raw)
    assert "server.jwt.keys" == raised.value.field
    assert raised.value.__cause__ is None


def test_what_has_to_stay_secret_is_not_in_the_error() -> None:
    with pytest.raises(InvalidFieldError) as raised:
        ProviderKeys.read(PRIVATE)

    assert PRIVATE.decode().splitlines()[1] not in str(raised.value)
