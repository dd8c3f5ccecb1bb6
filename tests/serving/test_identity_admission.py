"""Who is let in, as whom, and to do what; with the base's own tokens and with signed ones."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.control import Role, TokenFacts
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.settings import JwtSettings, ServerSettings, Settings
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.identity.admission import WRONG, Admission, make_admission
from evidentia.serving.identity.callers import Facts, Grants
from evidentia.serving.operations.api_errors import ApiError
from evidentia.wiring.embedded import create
from evidentia.wiring.governance_runtime import GovernanceRuntime, signed_tokens
from evidentia.wiring.settings_file import SETTINGS_NAME, read_settings
from serving.identity_samples import ASK, Asking, Gate, code_of, run

if TYPE_CHECKING:
    from pathlib import Path

ISSUER, AUDIENCE = "https://login.example", "evidentia"
KEY = ec.generate_private_key(ec.SECP256R1())
EVERYTHING = Asking((Role.ADMIN,), is_base_wide=True)


def settings_in(directory: Path) -> JwtSettings:
    (directory / "provider.pem").write_bytes(KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return JwtSettings(keys="provider.pem", issuer=ISSUER, audience=AUDIENCE)


def signed_gate(directory: Path, **options: Any) -> Gate:
    gate = Gate(directory, **options)
    signed = signed_tokens(settings_in(directory), directory=directory, clock=gate.clock)
    gate.admission = Admission(gate.tokens, limiter=gate.limiter, signed=signed, grants=options.get("grants"))
    return gate


def signed(gate: Gate, **claims: Any) -> str:
    usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "tenant": "acme", "roles": ["reader"]}
    return jwt.encode({**usual, "exp": int(gate.clock.now().timestamp()) + 600, **claims}, KEY, algorithm="ES256")


# --- the base's own tokens ---


def test_the_facts_of_a_token_are_those_of_its_holder(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    facts = TokenFacts(clearance=Classification.RESTRICTED, groups=("red", "blue"), attributes={"site": "north"}, is_delegate=True)
    token = gate.tokens.issue(name="bob", roles=[Role.READER], tenant="acme", by="test", facts=facts).token

    identity = gate.admit(token)

    principal = identity.principal
    assert ("bob", "acme", ("reader",), False) == (principal.principal_id, principal.tenant, principal.roles, principal.is_owner)
    assert (Classification.RESTRICTED, ("blue", "red"), {"site": "north"}) == (principal.clearance, principal.groups, principal.attributes)
    assert identity.token.facts.is_delegate


def test_a_file_of_principals_wins_over_what_a_token_says(tmp_path: Path) -> None:
    grants = Grants({"bob": Facts(clearance=Classification.PUBLIC, groups=("filed",))})
    gate = Gate(tmp_path, grants=grants)
    facts = TokenFacts(clearance=Classification.RESTRICTED, groups=("own",))
    tokens = [gate.tokens.issue(name=name, roles=[Role.READER], tenant="acme", by="test", facts=facts).token for name in ("bob", "eve")]

    bob, eve = (gate.admit(token).principal for token in tokens)

    assert (Classification.PUBLIC, ("filed",)) == (bob.clearance, bob.groups)
    assert (Classification.RESTRICTED, ("own",)) == (eve.clearance, eve.groups)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer  ", "Basic abc", "evt_x_y", "Bearerevt_x_y"])
def test_without_a_credential_nobody_comes_in(tmp_path: Path, header: str) -> None:
    with pytest.raises(ApiError) as raised:
        run(Gate(tmp_path).admission.admit(header, ASK))

    assert (401, "missing_token") == code_of(raised.value)
    assert "Bearer" in raised.value.headers["www-authenticate"]


def test_a_token_is_renewed_as_it_stands_and_not_after_it_was_revoked(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    issued = gate.issue(expires_at=gate.clock.now() + timedelta(hours=1))
    identity = gate.admit(issued.token)

    assert identity == run(gate.admission.renewed(identity)) == run(gate.admission.holder(issued.info.token_id))
    gate.tokens.revoke(issued.info.token_id, tenant=None, by="test")
    assert run(gate.admission.renewed(identity)) is None


def test_no_secret_is_in_what_is_shown_or_raised(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    gate = Gate(tmp_path)
    issued = gate.issue()
    secret = issued.token.split("_", 2)[2]
    identity = gate.admit(issued.token)
    wrong = issued.token[:-1] + ("a" if issued.token[-1] != "a" else "b")
    refusal = gate.refused(wrong)

    shown = [repr(identity), repr(gate.admission), repr(refusal), str(refusal), repr(refusal.fault), repr(refusal.headers), caplog.text]
    assert not [text for text in shown if secret[:12] in text]
    assert refusal.__cause__ is None
    assert secret.encode() not in msgspec.json.encode(list(gate.policies.audit(tenant="acme")))


# --- signed ones ---


def test_a_signed_token_opens_as_its_holder_in_its_tenant(tmp_path: Path) -> None:
    gate = signed_gate(tmp_path)

    identity = gate.admit(signed(gate, groups=["oncall"], clearance="confidential"))

    principal = identity.principal
    assert ("jwt:alice", "acme", ("reader",), ("oncall",)) == (principal.principal_id, principal.tenant, principal.roles, principal.groups)
    assert (Classification.CONFIDENTIAL, False) == (principal.clearance, principal.is_owner)
    assert ISSUER == identity.token.created_by


def test_a_file_of_principals_wins_over_what_is_signed(tmp_path: Path) -> None:
    gate = signed_gate(tmp_path, grants=Grants({"jwt:alice": Facts(groups=("filed",)), "alice": Facts(groups=("other",))}))

    assert ("filed",) == gate.admit(signed(gate, groups=["claimed"])).principal.groups


def test_where_no_keys_are_named_no_signed_token_opens(tmp_path: Path) -> None:
    gate = Gate(tmp_path)

    assert signed_tokens(JwtSettings(), directory=tmp_path, clock=gate.clock) is None
    assert (401, "invalid_token") == code_of(gate.refused(signed(gate)))


def test_an_admin_of_another_tenant_is_an_admin_only_there(tmp_path: Path) -> None:
    gate = signed_gate(tmp_path)
    token = signed(gate, roles=["admin"], tenant="acme")

    assert "acme" == gate.admit(token, Asking((Role.ADMIN,))).token.tenant
    assert (403, "wrong_tenant") == code_of(gate.refused(token, EVERYTHING))
    assert (Role.ADMIN,) == gate.admit(signed(gate, roles=["admin"], tenant="default"), EVERYTHING).token.roles


@pytest.mark.parametrize("roles", [["root", "owner", "ADMIN", " admin", "admin\n"], [], ["operator"]])
def test_words_that_are_no_roles_give_none(tmp_path: Path, roles: list[str]) -> None:
    gate = signed_gate(tmp_path)

    assert (403, "wrong_role") == code_of(gate.refused(signed(gate, roles=roles), Asking(tuple(Role))))


def test_a_name_that_is_signed_is_never_that_of_a_token_of_the_base(tmp_path: Path) -> None:
    gate = signed_gate(tmp_path)
    own = gate.admit(gate.issue("alice").token)
    other = gate.admit(signed(gate, sub="alice"))

    assert own.principal.principal_id != other.principal.principal_id
    assert own.token.token_id != other.token.token_id
    with pytest.raises(InvalidFieldError, match="jwt:"):
        gate.issue("jwt:alice")


@given(st.sampled_from(["acme", "beta", "default"]), st.sampled_from(["acme", "beta", "default"]), st.text(min_size=1, max_size=20))
def test_a_token_of_one_tenant_is_never_a_principal_of_another(
    tmp_path_factory: pytest.TempPathFactory, signed_for: str, claimed: str, name: str
) -> None:
    gate = _shared(tmp_path_factory)
    token = signed(gate, tenant=signed_for, sub=name, tenant_id=claimed, acr=claimed)
    try:
        identity = gate.admit(token)
    except ApiError as refusal:
        assert not name.isprintable() or not name.strip()
        assert (401, "invalid_token") == code_of(refusal)  # noqa: PT017 - either way has its own claim
        return

    assert signed_for == identity.principal.tenant == identity.token.tenant
    assert f"jwt:{name}" == identity.principal.principal_id


@given(st.data())
def test_a_mangled_token_is_always_refused_in_the_same_way(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    gate = _shared(tmp_path_factory)
    good = signed(gate)
    token = data.draw(st.sampled_from([good, "evt_00ff_secret", "a.b.c", ".."]))
    place, cut = data.draw(st.integers(0, len(token) - 1)), data.draw(st.integers(0, 2))
    mangled = token[:place] + data.draw(st.text(st.characters(max_codepoint=255), max_size=3)) + token[place + cut :]
    if mangled == good:
        return
    with pytest.raises(ApiError) as raised:
        run(gate.admission.identify(mangled))

    assert raised.value.status == 401


_GATES: list[Gate] = []


def _shared(factory: pytest.TempPathFactory) -> Gate:
    """Return one way in for all examples, without limits, which many examples would reach."""
    if not _GATES:
        gate = signed_gate(factory.mktemp("shared"))
        gate.admission._limiter = None
        _GATES.append(gate)
    return _GATES[0]


def test_signed_guesses_are_held_back_and_those_that_hold_are_not(tmp_path: Path) -> None:
    gate = signed_gate(tmp_path)
    wrong = signed(gate) + "x"

    seen = [code_of(gate.refused(wrong, client="10.0.0.9")) for _ in range(WRONG.burst + 2)]

    assert [(401, "invalid_token")] * WRONG.burst + [(429, "too_many_attempts")] * 2 == seen
    assert "jwt:alice" == gate.admit(signed(gate), client="10.0.0.9").token.name


def test_a_new_signed_token_has_no_new_share(tmp_path: Path) -> None:
    gate = signed_gate(tmp_path, limits={"requests_per_minute": 2})

    gate.admit(signed(gate, jti="1"))
    gate.admit(signed(gate, jti="2"))

    assert (429, "rate_limited") == code_of(gate.refused(signed(gate, jti="3")))
    assert "jwt:bob" == gate.admit(signed(gate, sub="bob")).token.name


# --- from the settings ---


def test_the_settings_of_a_server_make_its_way_in(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with GovernanceRuntime(tmp_path / "base") as control:
        settings = ServerSettings(requests_per_minute=3, requests_per_day=2, jwt=settings_in(tmp_path / "base"))
        admission = make_admission(control, settings)
        token = control.tokens.issue(name="bob", roles=[Role.READER], tenant="acme", by="test").token
        needs = Asking()
        for _ in range(2):
            run(admission.admit(f"Bearer {token}", needs))
        with pytest.raises(ApiError) as raised:
            run(admission.admit(f"Bearer {token}", needs))
        admission.close()

        assert (429, "quota_exceeded") == code_of(raised.value)
        again = make_admission(control, settings)
        with pytest.raises(ApiError) as raised:
            run(again.admit(f"Bearer {token}", needs))
        again.close()
        assert (429, "quota_exceeded") == code_of(raised.value)


@pytest.mark.parametrize(("changed", "field"), [({"issuer": ""}, "issuer"), ({"audience": ""}, "audience"), ({"keys": "none"}, "keys")])
def test_settings_that_are_not_complete_are_told_at_the_start(tmp_path: Path, changed: dict[str, str], field: str) -> None:
    create(tmp_path / "base")
    settings = msgspec.structs.replace(settings_in(tmp_path / "base"), **changed)
    with GovernanceRuntime(tmp_path / "base") as control, pytest.raises(InvalidFieldError, match=f"server.jwt.{field}"):
        make_admission(control, ServerSettings(jwt=settings))


def test_the_file_that_init_writes_has_a_table_for_signed_tokens(tmp_path: Path) -> None:
    create(tmp_path / "base")
    file = tmp_path / "base" / SETTINGS_NAME
    first, _, rest = file.read_text(encoding="utf-8").partition("\n")
    assert first.startswith("# Settings")
    file.write_text(rest.replace("\n# ", "\n").replace('issuer = ""', f'issuer = "{ISSUER}"'), encoding="utf-8")

    assert Settings(server=ServerSettings(jwt=JwtSettings(issuer=ISSUER))) == read_settings(tmp_path / "base")
