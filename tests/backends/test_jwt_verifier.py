"""Signed tokens: which are taken, as whom, and that nothing a token says makes a wrong one right."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from evidentia.backends.jwt.jwt_verifier import KEPT_NS, MAX_LENGTH, RECHECK_NS, JwtVerifier
from evidentia.contracts.control import Role, TokenFacts
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.settings import JwtSettings
from evidentia.contracts.vocabulary import Classification
from jwt_samples import AUDIENCE, ISSUER, SETTINGS, Provider, ec_key, ed_key, jwk, key_set, pem, rsa_key

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path)


def unsigned(header: dict[str, Any], claims: dict[str, Any], *, signature: bytes = b"") -> str:
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def signed_with_secret(header: dict[str, Any], claims: dict[str, Any], secret: bytes) -> str:
    """Return an HS256 token, whatever the secret looks like: the package refuses to make some of these."""
    start = unsigned(header, claims).removesuffix(".")
    signature = hmac.new(secret, start.encode(), hashlib.sha256).digest()
    return f"{start}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


# --- what is taken ---


def test_claims_become_the_facts_of_a_token(provider: Provider) -> None:
    token = provider.token(roles=["agent", "root", "reader"], groups=["oncall", "blue"], clearance="confidential", iat=provider.seconds)

    found = provider.verifier.verify(token)

    assert found is not None
    assert ("jwt:alice", "acme", ISSUER) == (found.name, found.tenant, found.created_by)
    assert (Role.READER, Role.AGENT) == found.roles
    assert TokenFacts(clearance=Classification.CONFIDENTIAL, groups=("blue", "oncall")) == found.facts
    assert found.expires_at is not None
    assert provider.seconds + 3_600 == int(found.expires_at.timestamp())
    assert provider.clock.now().replace(microsecond=0) == found.created_at


def test_without_a_clearance_it_is_public_and_without_roles_there_is_none(provider: Provider) -> None:
    found = provider.verifier.verify(provider.token(roles=None))

    assert found is not None
    assert (Classification.PUBLIC, (), ()) == (found.facts.clearance, found.facts.groups, found.roles)


def test_a_new_token_of_the_same_holder_has_the_same_id_and_one_of_another_has_another(provider: Provider) -> None:
    tokens = [provider.token(jti=jti, **who) for jti, who in (("1", {}), ("2", {}), ("3", {"sub": "bob"}), ("4", {"tenant": "other"}))]

    found = [provider.verifier.verify(token) for token in tokens]

    ids = [each.token_id for each in found if each is not None]
    assert 4 == len(ids)
    assert ids[0] == ids[1]
    assert 3 == len(set(ids))
    assert all(each.startswith("jwt:") for each in ids)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [(rsa_key(), "RS256"), (ec_key(), "ES256"), (ed_key(), "EdDSA"), (rsa_key(), "PS384"), (ec_key(0, ec.SECP384R1), "ES384")],
    ids=["RS256", "ES256", "EdDSA", "PS384", "ES384"],
)
@pytest.mark.parametrize("form", ["pem", "set"])
def test_every_algorithm_that_is_named_is_taken_and_no_other(tmp_path: Path, key: Any, algorithm: str, form: str) -> None:
    keys = pem(key) if form == "pem" else key_set(jwk(key, kid="one", use="sig"))
    taking = Provider(tmp_path, keys=keys, settings=JwtSettings(keys="k", issuer=ISSUER, audience=AUDIENCE, algorithms=(algorithm,)))
    other = "RS512" if algorithm != "RS512" else "RS256"
    refusing = Provider(tmp_path, keys=keys, settings=JwtSettings(keys="k", issuer=ISSUER, audience=AUDIENCE, algorithms=(other,)))

    assert taking.verifier.verify(taking.token(key=key, algorithm=algorithm)) is not None
    assert refusing.verifier.verify(refusing.token(key=key, algorithm=algorithm)) is None


def test_the_audience_may_be_one_of_several(provider: Provider) -> None:
    assert provider.verifier.verify(provider.token(aud=["other", AUDIENCE])) is not None


def test_clocks_may_be_apart_by_the_leeway_and_no_more(provider: Provider) -> None:
    near, now = SETTINGS.leeway_s, provider.seconds

    for fits, claims in (
        (True, {"exp": now - near + 1}),
        (False, {"exp": now - near}),
        (True, {"nbf": now + near}),
        (False, {"nbf": now + near + 1}),
        (True, {"iat": now + near}),
        (False, {"iat": now + near + 1}),
    ):
        assert fits == (provider.verifier.verify(provider.token(**claims)) is not None), claims


# --- what is not ---


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"exp": -1},
        {"exp": 10**15},
        {"exp": 1e308},
        {"exp": [2_000_000_000]},
        {"nbf": "now"},
        {"nbf": True},
        {"iat": {}},
        {"iss": None},
        {"iss": "https://evil.example"},
        {"iss": [ISSUER]},
        {"iss": ISSUER + "/"},
        {"aud": None},
        {"aud": "another"},
        {"aud": []},
        {"aud": {AUDIENCE: 1}},
        {"aud": [[AUDIENCE]]},
        {"sub": None},
        {"sub": ""},
        {"sub": " "},
        {"sub": 7},
        {"sub": "a" * 300},
        {"sub": "alice\nroot"},
        {"sub": ["alice"]},
        {"tenant": None},
        {"tenant": ""},
        {"tenant": "a/b"},
        {"tenant": "acme\n"},
        {"tenant": ["default"]},
        {"tenant": {"default": True}},
        {"roles": 3},
        {"roles": {"admin": True}},
        {"roles": [["admin"]]},
        {"roles": ["reader"] * 2_000},
        {"groups": [1]},
        {"groups": [""]},
        {"groups": ["g" * 300]},
        {"clearance": "top"},
        {"clearance": 3},
        {"clearance": ["restricted"]},
        {"sub": "a" * 9_000},
    ],
    ids=str,
)
def test_claims_that_are_not_as_agreed_open_nothing(provider: Provider, claims: dict[str, Any]) -> None:
    token = jwt.PyJWS().encode(json.dumps(provider.claims(**claims)).encode(), ec_key(), algorithm="ES256", headers={"kid": "one"})

    assert provider.verifier.verify(token) is None


def test_an_expired_token_and_one_of_tomorrow_open_nothing(provider: Provider) -> None:
    assert provider.verifier.verify(provider.token(exp=provider.seconds - 3_600)) is None
    assert provider.verifier.verify(provider.token(nbf=provider.seconds + 86_400)) is None


def test_a_signature_of_somebody_else_opens_nothing(provider: Provider) -> None:
    assert provider.verifier.verify(provider.token(key=ec_key(1))) is None


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", "HS256", "HS512", "ES256K", None, 1, ["ES256"], {"ES256": 1}])
def test_a_header_that_names_no_algorithm_of_ours_opens_nothing(provider: Provider, algorithm: object) -> None:
    header = {"alg": algorithm, "typ": "JWT", "kid": "one"}

    assert provider.verifier.verify(unsigned(header, provider.claims())) is None
    assert provider.verifier.verify(unsigned(header, provider.claims(), signature=b"x" * 64)) is None


@pytest.mark.parametrize("form", ["pem", "set"])
def test_a_public_key_is_no_secret_to_sign_with(tmp_path: Path, form: str) -> None:
    provider = Provider(tmp_path, keys=pem(rsa_key()) if form == "pem" else key_set(jwk(rsa_key(), kid="one")))
    header = {"alg": "HS256", "typ": "JWT", "kid": "one"}
    secrets = [pem(rsa_key()), pem(rsa_key()).rstrip(b"\n"), provider.file.read_bytes(), json.dumps(jwk(rsa_key())).encode()]

    assert [None] * 4 == [provider.verifier.verify(signed_with_secret(header, provider.claims(), secret)) for secret in secrets]
    for named in ("RS256", "ES256"):  # the same bytes under another name
        assert provider.verifier.verify(signed_with_secret({**header, "alg": named}, provider.claims(), secrets[0])) is None


def test_keys_that_a_header_brings_or_points_at_are_not_used(provider: Provider) -> None:
    foreign = ec_key(1)
    for headers in ({"jwk": jwk(foreign)}, {"jku": "https://evil.example/keys"}, {"x5u": "https://evil.example/x"}, {"x5c": ["MII"]}):
        assert provider.verifier.verify(provider.token(key=foreign, headers=headers)) is None


def test_a_key_is_chosen_by_its_id_and_fits_its_algorithm(tmp_path: Path) -> None:
    keys = key_set(jwk(ec_key(), kid="one"), jwk(ec_key(1), kid="two"), jwk(rsa_key(), kid="rsa", alg="RS256"))
    provider = Provider(tmp_path, keys=keys)
    verify, token = provider.verifier.verify, provider.token

    assert verify(token(kid="one")) is not None
    assert verify(token(key=ec_key(1), kid="two")) is not None
    assert verify(token(kid="two")) is None
    assert verify(token(kid="three")) is None
    assert verify(token(kid="rsa")) is None
    assert verify(token(kid=None)) is None
    assert verify(token(key=rsa_key(), algorithm="RS256", kid=None)) is not None
    assert verify(unsigned({"alg": "ES256", "kid": 1}, provider.claims(), signature=b"x" * 64)) is None


def test_a_key_for_one_algorithm_verifies_no_other(tmp_path: Path) -> None:
    settings = JwtSettings(keys="k", issuer=ISSUER, audience=AUDIENCE, algorithms=("RS256", "PS256"))
    provider = Provider(tmp_path, keys=key_set(jwk(rsa_key(), kid="one", alg="RS256")), settings=settings)

    assert provider.verifier.verify(provider.token(key=rsa_key(), algorithm="RS256")) is not None
    assert provider.verifier.verify(provider.token(key=rsa_key(), algorithm="PS256")) is None


def test_what_a_header_calls_critical_is_refused(provider: Provider) -> None:
    header = {"alg": "ES256", "kid": "one", "crit": ["b64"], "b64": False}
    token = jwt.PyJWS().encode(json.dumps(provider.claims()).encode(), ec_key(), algorithm="ES256", headers=header)

    assert provider.verifier.verify(token) is None


def test_a_token_is_written_in_one_way_only(provider: Provider) -> None:
    token = provider.token()

    assert provider.verifier.verify(token) is not None
    assert [None] * 5 == [provider.verifier.verify(each) for each in (f"{token}==", f" {token}", f"{token}\n", f"{token}.", f"{token}.e30")]


def test_a_huge_token_is_not_even_looked_at(provider: Provider) -> None:
    assert provider.verifier.verify(provider.token(junk="x" * MAX_LENGTH)) is None
    assert provider.verifier.verify("." * 10_000_000) is None
    assert provider.verifier.verify("[" * MAX_LENGTH) is None


@given(st.data())
def test_a_mangled_token_is_never_right_and_never_raises(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    provider = _mangling(tmp_path_factory)
    token = provider.token()
    place = data.draw(st.integers(0, len(token) - 1))
    cut = data.draw(st.integers(0, 3))
    mangled = token[:place] + data.draw(st.text(max_size=3)) + token[place + cut :]

    found = provider.verifier.verify(mangled)

    assert (mangled == token) == (found is not None)
    assert provider.verifier.recall(mangled) == found


@given(st.text(max_size=80), st.text(max_size=80), st.binary(max_size=80))
def test_garbage_never_raises(tmp_path_factory: pytest.TempPathFactory, header: str, payload: str, signature: bytes) -> None:
    provider = _mangling(tmp_path_factory)
    encoded = base64.urlsafe_b64encode(signature).decode()

    for token in (f"{header}.{payload}.{encoded}", header, f"{encoded}.{encoded}.{encoded}"):
        assert provider.verifier.verify(token) is None


@given(
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk"]), st.none() | st.booleans() | st.text() | st.lists(st.text())
    )
)
def test_odd_headers_never_raise(tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any]) -> None:
    provider = _mangling(tmp_path_factory)

    assert provider.verifier.verify(unsigned(header, provider.claims(), signature=b"x" * 64)) is None


_SHARED: dict[str, Provider] = {}


def _mangling(factory: pytest.TempPathFactory) -> Provider:
    """Return one provider for all examples; making one takes longer than asking it."""
    if "one" not in _SHARED:
        _SHARED["one"] = Provider(factory.mktemp("mangled"))
    return _SHARED["one"]


# --- what is remembered ---


def test_what_was_verified_is_recalled_for_a_minute_at_most(provider: Provider) -> None:
    token = provider.token(iat=provider.seconds)

    assert provider.verifier.recall(token) is None
    verified = provider.verifier.verify(token)
    assert verified == provider.verifier.recall(token)
    provider.clock.advance(KEPT_NS / 1e9 - 1)
    assert verified == provider.verifier.recall(token)
    provider.clock.advance(1)
    assert provider.verifier.recall(token) is None
    assert verified == provider.verifier.verify(token)


def test_what_expires_sooner_is_recalled_no_longer(provider: Provider) -> None:
    token = provider.token(exp=provider.seconds + 10)
    assert provider.verifier.verify(token) is not None

    provider.clock.advance(10 + SETTINGS.leeway_s)

    assert provider.verifier.recall(token) is None
    assert provider.verifier.verify(token) is None


def test_no_more_than_so_many_are_remembered(provider: Provider) -> None:
    verifier = JwtVerifier(SETTINGS, keys_file=provider.file, clock=provider.clock, max_kept=5)
    for number in range(12):
        assert verifier.verify(provider.token(sub=f"user {number}")) is not None

    assert len(verifier._kept) <= 5


def test_a_key_that_is_taken_out_of_the_file_opens_nothing_within_seconds(provider: Provider) -> None:
    token = provider.token()
    assert provider.verifier.verify(token) is not None

    provider.file.write_bytes(key_set(jwk(ec_key(1), kid="two")))
    provider.clock.advance(RECHECK_NS / 1e9)

    assert provider.verifier.recall(token) is None
    assert provider.verifier.verify(provider.token(key=ec_key(1), kid="two")) is not None
    assert provider.verifier.recall(token) is None
    assert provider.verifier.verify(token) is None


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"keys": []}'])
def test_while_the_keys_cannot_be_read_nobody_comes_in(provider: Provider, content: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    kept, token = provider.file.read_bytes(), provider.token()
    assert provider.verifier.verify(token) is not None

    if content is None:
        provider.file.unlink()
    else:
        provider.file.write_bytes(content)
    provider.clock.advance(RECHECK_NS / 1e9)
    assert provider.verifier.verify(token) is None
    assert "server.jwt.keys" in caplog.text

    provider.file.write_bytes(kept)
    provider.clock.advance(RECHECK_NS / 1e9)
    assert provider.verifier.verify(token) is not None


def test_no_part_of_a_token_is_in_the_log(provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    tokens = [
        provider.token(sub="mallory-77", exp=1),
        provider.token(sub="mallory-77", key=ec_key(1)),
        provider.token(tenant="a/mallory-77"),
    ]

    for token in tokens:
        assert provider.verifier.verify(token) is None

    assert 3 == len(caplog.records)
    assert "mallory" not in caplog.text
    assert all(part not in caplog.text for token in tokens for part in token.split("."))


# --- settings ---


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"issuer": ""}, "server.jwt.issuer"),
        ({"audience": ""}, "server.jwt.audience"),
        ({"algorithms": ()}, "server.jwt.algorithms"),
        ({"algorithms": ("HS256",)}, "server.jwt.algorithms"),
        ({"algorithms": ("ES256", "none")}, "server.jwt.algorithms"),
    ],
    ids=str,
)
def test_settings_that_would_let_in_the_wrong_people_are_refused(tmp_path: Path, changed: dict[str, Any], field: str) -> None:
    settings = JwtSettings(**{"keys": "k", "issuer": ISSUER, "audience": AUDIENCE, **changed})

    with pytest.raises(InvalidFieldError, match=field):
        Provider(tmp_path, settings=settings)
