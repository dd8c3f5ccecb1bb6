"""Signed tokens, limits and hosts through a plane on a real socket."""

from __future__ import annotations

import base64
import socket
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from evidentia.backends.embedded.logs.usage_log import USAGE_NAME
from evidentia.contracts.control import Role, TokenFacts, TokenLimits
from evidentia.contracts.errors import InvalidFieldError
from evidentia.serving.identity.admission import WRONG
from evidentia.testing.virtual_time import VirtualClock
from evidentia.wiring.embedded import create
from serving.rest_planes import SEED_BODY, Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2

KEY = ec.generate_private_key(ec.SECP256R1())
SETTINGS = """
[server.jwt]
keys = "provider.pem"
issuer = "https://login.example"
audience = "evidentia"
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    create(tmp_path / "base")
    (tmp_path / "base" / "evidentia.toml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "base" / "provider.pem").write_bytes(KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return tmp_path / "base"


@pytest.fixture
def plane(base: Path) -> Iterator[Served]:
    with serving(base) as served:
        yield served


def signed(plane: Served, **claims: Any) -> dict[str, str]:
    usual = {"iss": "https://login.example", "aud": "evidentia", "sub": "alice", "tenant": "acme", "roles": ["admin"]}
    expires = int(plane.control.clock.now().timestamp()) + 600
    return {"authorization": f"Bearer {jwt.encode({**usual, 'exp': expires, **claims}, KEY, algorithm='ES256')}"}


def code_of(reply: httpx2.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["code"]


def test_a_signed_admin_governs_its_tenant_and_no_other(plane: Served) -> None:
    created = plane.nobody.post("/v1/policies", json=SEED_BODY, headers=signed(plane))

    assert 201 == created.status_code, created.text
    policy_id = created.json()["policy"]["policy_id"]
    assert 200 == plane.nobody.get(f"/v1/policies/{policy_id}", headers=signed(plane, sub="bob")).status_code
    for other in ("default", "beta"):
        assert 404 == plane.nobody.get(f"/v1/policies/{policy_id}", headers=signed(plane, tenant=other)).status_code
    assert (403, "wrong_tenant") == code_of(plane.nobody.get("/v1/base/doctor", headers=signed(plane)))
    changes = plane.nobody.get("/v1/audit", headers=signed(plane)).json()["changes"]
    assert ["jwt:alice"] == [change["by"].partition(" ")[0] for change in changes]


def test_a_signed_token_that_does_not_hold_is_nobody_s(plane: Served) -> None:
    foreign = ec.generate_private_key(ec.SECP256R1())
    good = signed(plane)["authorization"].removeprefix("Bearer ")
    claims = jwt.decode(good, options={"verify_signature": False})
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    for token in (jwt.encode(claims, foreign, algorithm="ES256"), f"{none}.{good.split('.')[1]}.", good[:-2], "a.b.c"):
        reply = plane.nobody.get("/v1/policies", headers={"authorization": f"Bearer {token}"})
        assert (401, "invalid_token") == code_of(reply)
        assert token not in reply.text


def test_limits_are_told_with_the_time_to_come_back_and_survive_a_restart(base: Path) -> None:
    with serving(base) as plane:
        facts = TokenFacts(limits=TokenLimits(requests_per_day=2))
        token = plane.control.tokens.issue(name="few", roles=[Role.READER], tenant="acme", by="test", facts=facts).token
        headers = {"authorization": f"Bearer {token}"}
        assert [200, 200] == [plane.nobody.get("/v1/policies", headers=headers).status_code for _ in range(2)]
    with serving(base) as plane:
        refused = plane.nobody.get("/v1/policies", headers=headers)

    assert (429, "quota_exceeded") == code_of(refused)
    assert 0 < int(refused.headers["retry-after"]) <= 86_400
    assert (base / USAGE_NAME).exists()


def test_wrong_tokens_of_one_client_are_held_back_and_right_ones_are_not(base: Path) -> None:
    with serving(base, clock=VirtualClock()) as plane:
        client, headers = plane.nobody, {"authorization": "Bearer evt_x_y"}
        seen = [code_of(client.get("/v1/policies", headers=headers)) for _ in range(WRONG.burst + 2)]

        assert [(401, "invalid_token")] * WRONG.burst + [(429, "too_many_attempts")] * 2 == seen
        assert 200 == plane.reader.get("/v1/policies").status_code


def test_a_request_for_another_host_is_misdirected_whatever_its_token(plane: Served) -> None:
    port = int(plane.url.rpartition(":")[2])
    token = plane.token(Role.ADMIN)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        request = f"GET /v1/policies HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        answer = b"".join(iter(lambda: connection.recv(4_096), b""))

    assert answer.startswith(b"HTTP/1.1 421")
    assert b"wrong_host" in answer


def test_a_plane_whose_signed_tokens_would_be_anybody_s_does_not_start(base: Path) -> None:
    (base / "evidentia.toml").write_text(SETTINGS.replace('audience = "evidentia"', ""), encoding="utf-8")

    with pytest.raises(InvalidFieldError, match=r"server\.jwt\.audience"), serving(base):
        pass
