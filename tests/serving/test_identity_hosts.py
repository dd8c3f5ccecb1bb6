"""Which requests are for this server, and from its own pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from evidentia.contracts.control import Role
from evidentia.contracts.errors import InvalidFieldError
from evidentia.serving.hosting.application import make_app
from evidentia.serving.identity.host_check import HostCheck, HostRule, host_in
from evidentia.serving.operations.api_errors import ApiError
from evidentia.wiring.embedded import create
from evidentia.wiring.governance_runtime import GovernanceRuntime
from evidentia.wiring.settings_file import SETTINGS_NAME
from serving.identity_samples import run
from serving.rest_planes import Served, serving

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from pathlib import Path

    import httpx2

RULE = HostRule(["Evidence.Example", "10.1.2.3", "fd00::7"])
PASSED = "passed"


def asked(*headers: tuple[str, str], kind: str = "http") -> list[MutableMapping[str, Any]]:
    """Return what the middleware sends for a request with these headers."""
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": f"{kind}.request"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    app = HostCheck(PlainTextResponse(PASSED), hosts=["evidence.example"])
    run(app({"type": kind, "method": "GET", "path": "/", "headers": raw}, receive, send))
    return sent


def code_for(*headers: tuple[str, str]) -> str:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    try:
        RULE.check(Headers(raw=raw))
    except ApiError as refusal:
        return refusal.fault.code
    return PASSED


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8321",
        "127.0.0.1:1",
        "[::1]:8321",
        "[::1]",
        "evidence.example",
        "EVIDENCE.example:443",
        "10.1.2.3",
        "[fd00::7]:9",
    ],
)
def test_names_of_this_server_pass(host: str) -> None:
    assert PASSED == code_for(("host", host))
    assert PASSED == code_for(("host", host), ("origin", f"https://{host}"))


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "evidence.example.",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost/evil",
        "localhost\\evil",
        "localhost#",
        "localhost?",
        " localhost",
        "[::1",
        "127.0.0.2",
        "[::ffff:127.0.0.1]",
    ],
)
def test_other_names_are_misdirected(host: str) -> None:
    assert "wrong_host" == code_for(("host", host))


def test_without_a_host_or_with_two_nothing_passes() -> None:
    assert "wrong_host" == code_for()
    assert "wrong_host" == code_for(("host", "localhost"), ("host", "localhost"))
    assert "wrong_host" == code_for(("host", "localhost"), ("host", "evil.example"))


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "", "file://", "http://localhost.evil.example", "ftp://localhost", "http://localhost@evil.example"],
)
def test_pages_of_others_are_refused(origin: str) -> None:
    assert "wrong_origin" == code_for(("host", "localhost"), ("origin", origin))
    assert "wrong_origin" == code_for(("host", "localhost"), ("origin", "http://localhost"), ("origin", origin))


def test_a_refusal_is_an_answer_that_nobody_keeps() -> None:
    start, body = asked(("host", "evil.example"))

    headers = Headers(raw=start["headers"])
    assert (421, "no-store", "application/json") == (start["status"], headers["cache-control"], headers["content-type"])
    assert "wrong_host" == json.loads(body["body"])["error"]["code"]
    assert b"evil" not in body["body"]


def test_a_foreign_origin_is_forbidden_and_a_known_one_passed_on() -> None:
    assert 403 == asked(("host", "localhost"), ("origin", "https://evil.example"))[0]["status"]
    assert PASSED.encode() == asked(("host", "evidence.example"), ("origin", "https://evidence.example"))[1]["body"]


def test_a_web_socket_is_closed_before_it_opens() -> None:
    assert [{"type": "websocket.close", "code": 1008, "reason": "wrong_origin"}] == asked(
        ("host", "localhost"), ("origin", "https://evil.example"), kind="websocket"
    )


@given(st.text(st.characters(max_codepoint=255), max_size=40))
def test_whatever_a_header_holds_there_is_an_answer(text: str) -> None:
    assert "wrong_host" == code_for(("host", f"{text}.evil.example"))
    assert host_in(f"//{text}") == host_in(f"//{text}").lower()


# --- trusted reverse proxies ---


def signed_in(plane: Served, **headers: str) -> httpx2.Response:
    given = {"origin": plane.url, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return plane.nobody.post("/dashboard/sign-in", data={"key": plane.token(Role.READER)}, headers=given)


@pytest.mark.parametrize(("proxies", "proto", "is_secure"), [
    ('["127.0.0.0/8"]', "https", True),
    ('["127.0.0.1", "10.0.0.0/8"]', "HTTPS", True),
    ('["127.0.0.1"]', "http", False),
    ('["127.0.0.1"]', "", False),
    ('["127.0.0.1"]', "https, http", False),
    ('["10.0.0.0/8"]', "https", False),
    ("[]", "https", False),
])  # fmt: skip
def test_cookies_are_secure_behind_a_proxy_that_is_declared_trusted(tmp_path: Path, proxies: str, proto: str, *, is_secure: bool) -> None:
    create(tmp_path / "base")
    (tmp_path / "base" / SETTINGS_NAME).write_text(f"[server]\nproxies = {proxies}\n", encoding="utf-8")
    with serving(tmp_path / "base") as plane:
        reply = signed_in(plane, **({"x_forwarded_proto": proto} if proto else {}))
        plain = plane.nobody.get("/live", headers={"x-forwarded-proto": proto} if proto else {})

    cookie = reply.headers["set-cookie"]
    assert 303 == reply.status_code
    assert (is_secure, is_secure) == ("; Secure" in cookie, cookie.startswith("__Secure-"))
    assert {is_secure} == {"strict-transport-security" in each.headers for each in (reply, plain)}


def test_a_trusted_proxy_says_from_where_a_wrong_key_came(tmp_path: Path) -> None:
    create(tmp_path / "base")
    (tmp_path / "base" / SETTINGS_NAME).write_text('[server]\nproxies = ["127.0.0.1"]\n', encoding="utf-8")
    with serving(tmp_path / "base") as plane:

        def status(hops: str) -> int:
            headers = {"authorization": "Bearer evt_000000000000_x", "x-forwarded-for": hops}
            return plane.nobody.get("/v1/policies", headers=headers).status_code

        statuses = {status("198.51.100.1, 203.0.113.9") for _ in range(100)}
        elsewhere = status("203.0.113.9, 198.51.100.1, 127.0.0.1")

    assert {401, 429} == statuses
    assert 401 == elsewhere


def test_a_proxy_that_is_no_address_is_refused_at_the_start(tmp_path: Path) -> None:
    create(tmp_path / "base")
    (tmp_path / "base" / SETTINGS_NAME).write_text('[server]\nproxies = ["proxy.example"]\n', encoding="utf-8")

    with GovernanceRuntime(tmp_path / "base") as control, pytest.raises(InvalidFieldError, match=r"server\.proxies"):
        make_app(control)
