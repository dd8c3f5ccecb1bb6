"""Who gets in, what is refused at the door, and what a refusal gives away: nothing."""

from __future__ import annotations

import json
import logging
import socket
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role
from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.wiring.embedded import create
from serving.rest_planes import SEED_BODY, Served, serving, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.serving.operations.endpoint import Endpoint

pytest.importorskip("starlette", reason="the extra `server` is not installed")

TENANTS = count(1)
MEGABYTE = 1 << 20
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("plane") / "base"
    create(base)
    with serving(base) as served:
        yield served


@pytest.fixture
def plane(shared: Served) -> Served:
    """Return the plane as a tenant of its own sees it."""
    return shared.within(f"t{next(TENANTS)}")


def filled(endpoint: Endpoint) -> str:
    return endpoint.path.format_map({name: "1" if name == "seq" else "x" for name in endpoint.path_names})


def test_health_and_description_are_open_and_nothing_else_is(shared: Served) -> None:
    nobody = shared.nobody
    refused = [nobody.request(each.method, filled(each)) for each in ENDPOINTS]

    assert "ok" == nobody.get("/v1/health").json()["status"]
    assert "3.1.0" == nobody.get("/v1/openapi.json").json()["openapi"]
    assert {401} == {reply.status_code for reply in refused}
    assert {'Bearer realm="evidentia"'} == {reply.headers["www-authenticate"] for reply in refused}


@pytest.mark.parametrize("header", ["Bearer", "Basic eDp5", "Bearer evt_x_y", "Bearer evt_0_" + "a" * 5000, "Bearer \xff", "evt_a_b"])
def test_what_is_no_token_does_not_open(shared: Served, header: str) -> None:
    reply = shared.nobody.get("/v1/policies", headers=[(b"authorization", header.encode("latin-1"))])

    assert 401 == reply.status_code
    assert reply.headers["www-authenticate"].startswith("Bearer")


def test_a_wrong_secret_with_a_right_id_does_not_open(plane: Served) -> None:
    token = plane.token(Role.READER)
    wrong = token[:-4] + ("aaaa" if not token.endswith("aaaa") else "bbbb")

    assert 401 == plane.nobody.get("/v1/policies", headers={"authorization": f"Bearer {wrong}"}).status_code
    assert 200 == plane.nobody.get("/v1/policies", headers={"authorization": f"bearer {token}"}).status_code


def test_each_role_opens_its_doors_and_no_others(plane: Served) -> None:
    for role in Role:
        client = plane.client(role)
        for endpoint in ENDPOINTS:
            if endpoint.name == "revoke_token":
                continue
            reply = client.request(endpoint.method, filled(endpoint), json={} if endpoint.request else None)
            code = reply.json().get("error", {}).get("code")
            assert (role not in endpoint.roles) == (code == "wrong_role"), (role, endpoint.name, code)
            assert (role in endpoint.roles and endpoint.is_base_wide) == (code == "wrong_tenant"), (role, endpoint.name, code)


def test_a_revoked_token_is_worthless_at_once(plane: Served) -> None:
    issued = plane.admin.post("/v1/tokens", json={"name": "bob", "roles": ["reader"]}).json()
    headers = {"authorization": f"Bearer {issued['token']}"}

    assert 200 == plane.nobody.get("/v1/policies", headers=headers).status_code
    assert 200 == plane.admin.delete(f"/v1/tokens/{issued['info']['token_id']}").status_code
    assert 401 == plane.nobody.get("/v1/policies", headers=headers).status_code


def test_tokens_are_listed_without_their_secrets_and_within_the_tenant(plane: Served) -> None:
    issued = plane.admin.post("/v1/tokens", json={"name": "bob", "roles": ["agent", "reader"]})
    secret = issued.json()["token"].rpartition("_")[2]
    listed = plane.admin.get("/v1/tokens")
    strange = plane.within("stranger").admin

    assert (201, ["reader", "agent"]) == (issued.status_code, issued.json()["info"]["roles"])
    assert ["a admin", "bob"] == [each["name"] for each in listed.json()["tokens"]]
    assert secret not in listed.text
    assert 404 == strange.delete(f"/v1/tokens/{issued.json()['info']['token_id']}").status_code
    assert "bob" not in strange.get("/v1/tokens").text


BAD_TOKENS: list[dict[str, Any]] = [
    {"name": "x", "roles": []},
    {"name": "", "roles": ["reader"]},
    {"name": "x", "roles": ["root"]},
    {"name": "x", "roles": ["reader"], "tenant": "y"},
    {"name": "x", "roles": ["reader"], "expires_at": "2001-01-01T00:00:00Z"},
    {"name": "x", "roles": ["reader"], "expires_at": "2101-01-01T00:00:00"},
]


def test_a_token_that_cannot_be_right_is_refused(shared: Served) -> None:
    assert [422] * 6 == [shared.admin.post("/v1/tokens", json=body).status_code for body in BAD_TOKENS]


# --- secrets ---


def test_without_a_key_no_secret_is_taken(plane: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVIDENTIA_SECRET_KEY", raising=False)

    reply = plane.admin.put("/v1/secrets/OPENAI_API_KEY", json={"value": "hush"})

    assert (409, "secrets_unavailable") == (reply.status_code, reply.json()["error"]["code"])
    assert "EVIDENTIA_SECRET_KEY" in reply.text
    assert [] == plane.admin.get("/v1/secrets").json()["names"]


def test_a_secret_goes_in_and_never_comes_out(plane: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVIDENTIA_SECRET_KEY", "a long text that nobody guesses")
    replies = [
        plane.admin.put("/v1/secrets/OPENAI_API_KEY", json={"value": "hush-hush-1"}),
        plane.admin.put("/v1/secrets/OPENAI_API_KEY", json={"value": "hush-hush-2"}),
        plane.admin.get("/v1/secrets"),
        plane.admin.get("/v1/secrets/OPENAI_API_KEY"),
        plane.admin.get("/v1/audit"),
    ]

    assert [200] * 5 == [reply.status_code for reply in replies]
    assert ["OPENAI_API_KEY"] == replies[2].json()["names"]
    assert not any("hush" in reply.text for reply in replies)
    assert "hush-hush-2" == plane.control.secrets.secret("OPENAI_API_KEY", plane.tenant)
    assert [] == plane.within("stranger").admin.get("/v1/secrets").json()["names"]
    assert 200 == plane.admin.delete("/v1/secrets/OPENAI_API_KEY").status_code
    assert 404 == plane.admin.get("/v1/secrets/OPENAI_API_KEY").status_code
    kinds = [(each["kind"], each["change"]) for each in plane.admin.get("/v1/audit").json()["changes"] if each["kind"] == "secret"]
    assert [("secret", "created"), ("secret", "updated"), ("secret", "removed")] == kinds


def test_a_tenants_secret_is_the_judges_key(plane: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVIDENTIA_SECRET_KEY", "a long text that nobody guesses")
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-house")
    plane.admin.put("/v1/secrets/OPENAI_API_KEY", json={"value": "of-the-tenant"})

    assert "of-the-tenant" == plane.control._key(plane.tenant, "OPENAI_API_KEY")
    assert "of-the-house" == plane.control._key(DEFAULT_TENANT, "OPENAI_API_KEY")
    assert plane.control._key("stranger", "OPENAI_API_KEY") is None


# --- bodies ---


BAD_BODIES: list[tuple[bytes, dict[str, str], int, str]] = [
    (b"{}", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
    (b"{}", {}, 415, "unsupported_media_type"),
    (b"\x1f\x8b", {**JSON, "content-encoding": "gzip"}, 415, "unsupported_media_type"),
    (b"", JSON, 400, "malformed_json"),
    (b"{", JSON, 400, "malformed_json"),
    (b"\xff\xfe", JSON, 400, "malformed_json"),
    (b'{"name": "\xff"}', JSON, 400, "malformed_json"),
    (b'{"name": "\\ud800", "category": "retrieval"}', JSON, 400, "malformed_json"),
    (b'{"name": ' + b"[" * 100_000, JSON, 400, "malformed_json"),
    (b"[]", JSON, 422, "invalid_field"),
    (b"3", JSON, 422, "invalid_field"),
    (b"null", {"content-type": "application/json; charset=utf-8"}, 422, "invalid_field"),
    (b'{"name": "x", "category": "retrieval", "rules": {"max_chunks": 1e400}}', JSON, 422, "invalid_field"),
]


def test_bodies_that_cannot_be_read_are_refused(shared: Served) -> None:
    client = shared.admin

    told = []
    for body, headers, _, _ in BAD_BODIES:
        reply = client.post("/v1/policies", content=body, headers=headers)
        told.append((reply.status_code, reply.json()["error"]["code"]))

    assert [(status, code) for _, _, status, code in BAD_BODIES] == told


def test_a_body_that_is_too_large_is_refused_announced_or_not(shared: Served) -> None:
    client = shared.admin

    announced = client.post("/v1/policies", content=b" " * (MEGABYTE + 1), headers=JSON)
    chunked = client.post("/v1/policies", content=(b" " * 65_536 for _ in range(40)), headers=JSON)

    assert [413, 413] == [announced.status_code, chunked.status_code]
    assert "body_too_large" == chunked.json()["error"]["code"]


def test_a_body_that_never_ends_is_cut_off(shared: Served) -> None:
    token = shared.token(Role.ADMIN)
    host, _, port = shared.url.removeprefix("http://").partition(":")
    head = (
        f"POST /v1/policies HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n"
        "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head.encode())
        sent = 0
        try:
            while sent < 16 * MEGABYTE:
                connection.sendall(b"10000\r\n" + b" " * 65_536 + b"\r\n")
                sent += 65_536
        except OSError:
            pass
        answer = connection.recv(64) if sent >= 16 * MEGABYTE else b"HTTP/1.1 413"

    assert answer.startswith(b"HTTP/1.1 413")


def test_a_path_or_method_that_is_not_there_is_told_so(shared: Served) -> None:
    nothing, wrong = shared.admin.get("/v1/nothing"), shared.admin.delete("/v1/policies")

    assert (404, "not_found") == (nothing.status_code, nothing.json()["error"]["code"])
    assert (405, "method_not_allowed") == (wrong.status_code, wrong.json()["error"]["code"])
    assert {"GET", "HEAD", "POST"} == set(wrong.headers["allow"].split(", "))
    assert 404 == shared.admin.get("/v1//policies").status_code


def test_every_answer_has_the_headers_that_keep_browsers_off(shared: Served) -> None:
    for reply in (
        shared.nobody.get("/v1/health"),
        shared.nobody.get("/v1/policies"),
        shared.admin.get("/v1/policies"),
        shared.nobody.get("/x"),
    ):
        assert "nosniff" == reply.headers["x-content-type-options"]
        assert "no-store" == reply.headers["cache-control"]
        assert reply.headers["content-security-policy"].startswith("default-src 'none'")
        assert "application/json" == reply.headers["content-type"]


# --- faults of our own ---


class Failing:
    """A log that fails in a way nobody foresaw, with words that nobody may read."""

    def flush(self) -> None:
        raise RuntimeError("the secret word is xyzzy")


def test_a_fault_of_the_plane_gives_nothing_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base") as plane:
        real, plane.control.log = plane.control.log, Failing()  # type: ignore[assignment]
        with caplog.at_level(logging.DEBUG):
            reply = plane.admin.get("/v1/decisions")
        plane.control.log = real

    assert (500, "internal") == (reply.status_code, reply.json()["error"]["code"])
    assert "xyzzy" not in reply.text + caplog.text
    assert "RuntimeError" in caplog.text


def test_nothing_that_was_sent_is_in_the_log(plane: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="evidentia"):
        plane.admin.post("/v1/policies", json={**SEED_BODY, "name": "xyzzy"})
        plane.admin.post("/v1/policies", json={**SEED_BODY, "name": "xyzzy", "rules": {"xyzzy": 1}})
        started(plane, agent_name="xyzzy")

    assert "xyzzy" not in "".join(record.getMessage() for record in caplog.records if record.name.startswith(("evidentia", "uvicorn")))


def test_a_damaged_file_is_unavailable_and_not_a_fault(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base") as plane:
        client = plane.admin
        client.post("/v1/policies", json=SEED_BODY)
        with plane.control._file.transaction() as database:
            database.execute("UPDATE policies SET is_removed = 1")
        reply = client.get("/v1/policies")

    assert (503, "base_damaged") == (reply.status_code, reply.json()["error"]["code"])
    assert json.loads(reply.text)["error"]["hint"]
