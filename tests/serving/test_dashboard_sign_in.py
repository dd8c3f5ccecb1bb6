"""The way in and out: keys, links that work once, cookies, forms of others, sessions that end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia.contracts.control import Role
from evidentia.serving.dashboard.dashboard_app import own_path
from evidentia.serving.identity.sessions import IDLE_S
from evidentia.wiring.embedded import create
from serving.dashboard_doors import Door, ShiftedClock, serving_dashboard

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME = "/dashboard"
SIGN_IN = "/dashboard/sign-in"
CLOCK = ShiftedClock()


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    directory = tmp_path_factory.mktemp("entering") / "base"
    create(directory)
    with serving_dashboard(directory, clock=CLOCK) as door:
        yield door


def test_a_key_that_holds_lets_in(door: Door) -> None:
    browser = door.browser()
    reply = browser.sign_in(door.token(Role.READER, name="Rosa Reader"))

    assert (303, HOME) == (reply.status_code, reply.headers["location"])
    assert "Rosa Reader" in browser.get(HOME).text


def test_the_cookie_of_a_session_is_out_of_reach_for_scripts_and_other_sites(door: Door) -> None:
    parts = {part.strip().lower() for part in door.browser().sign_in(door.token(Role.READER)).headers["set-cookie"].split(";")}

    assert {"httponly", "samesite=strict", "path=/dashboard"} <= parts
    assert "secure" not in parts


def test_the_cookie_is_for_encrypted_connections_where_the_connection_is_one(door: Door) -> None:
    browser = door.browser()
    headers = {**browser.own_origin, "x-forwarded-proto": "https"}
    reply = browser.client.post(SIGN_IN, data={"key": door.token(Role.READER)}, headers=headers)

    cookie = reply.headers["set-cookie"]
    sent = {"cookie": cookie.partition(";")[0]}

    assert "; secure" in cookie.lower()
    assert cookie.startswith("__Secure-evidentia_session=")
    assert 200 == door.browser().client.get(HOME, headers={**sent, "x-forwarded-proto": "https"}).status_code
    assert 303 == door.browser().client.get(HOME, headers=sent).status_code


@pytest.mark.parametrize("key", ["", "nonsense", "ev_" + "a" * 40, "x" * 20_000])
def test_a_key_that_does_not_hold_is_said_beside_the_field(door: Door, key: str) -> None:
    browser = door.browser()
    reply = browser.sign_in(key)

    assert 401 == reply.status_code
    assert 'id="key-problem"' in reply.text
    assert 'aria-invalid="true"' in reply.text
    assert "set-cookie" not in reply.headers
    assert not key or key not in reply.text


def test_pages_lead_to_the_way_in_and_back(door: Door) -> None:
    browser = door.browser()
    sent = browser.client.get("/dashboard/search?q=keys")
    shown = browser.client.get(sent.headers["location"])
    reply = browser.sign_in(door.token(Role.READER), back="/dashboard/search?q=keys")

    assert 303 == sent.status_code
    assert 'name="next" value="/dashboard/search?q=keys"' in shown.text
    assert "/dashboard/search?q=keys" == reply.headers["location"]


def test_whoever_comes_by_a_link_of_another_site_can_go_on_in_their_session(door: Door) -> None:
    browser = door.signed_in(Role.READER)
    path = f"{SIGN_IN}?note=needed&next=%2Fdashboard%2Fevidence"
    elsewhere = browser.client.get(path, headers={"sec-fetch-site": "cross-site"}).text

    assert '<a href="/dashboard/evidence">Go on' in elsewhere
    assert "Go on" not in browser.client.get(path, headers={"sec-fetch-site": "same-origin"}).text
    assert 200 == browser.get("/dashboard/evidence").status_code


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/",
        "//evil.example/dashboard",
        "/dashboard//evil.example",
        "/dashboard/..\\evil",
        "/v1/health",
        "/dashboardish",
        "javascript:alert(1)",
        "/dashboard/sign-in?next=x",
        "",
    ],
)
def test_nobody_is_led_elsewhere(address: str) -> None:
    assert HOME == own_path(address)


@pytest.mark.parametrize("address", ["/dashboard", "/dashboard?x=1", "/dashboard/search?q=a%2F%2Fb&f=a:b", "/dashboard/receipts/r-1-2"])
def test_own_addresses_are_kept(address: str) -> None:
    assert address == own_path(address)
    assert address == own_path(f"http://127.0.0.1:80{address}")


def test_a_link_lets_in_once_and_looking_at_it_does_not_use_it_up(door: Door) -> None:
    issued = door.control.tokens.issue(name="Lena Link", roles=[Role.READER], tenant="default", by="test")
    code = door.links.make(issued.info.token_id)
    browser, late = door.browser(), door.browser()

    for _ in range(3):
        looked = browser.client.get(f"/dashboard/enter?code={code}")
        assert 200 == looked.status_code
        assert "set-cookie" not in looked.headers
    used = browser.client.post("/dashboard/enter", data={"code": code}, headers=browser.own_origin)
    again = late.client.post("/dashboard/enter", data={"code": code}, headers=late.own_origin)

    assert (303, HOME) == (used.status_code, used.headers["location"])
    assert "Lena Link" in browser.get(HOME).text
    assert f"{SIGN_IN}?note=used" == again.headers["location"]
    assert 303 == late.client.get(HOME).status_code


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin", "origin": "https://evil.example"},
    ],
)
def test_a_form_of_another_site_signs_nobody_in(door: Door, headers: dict[str, str]) -> None:
    reply = door.browser().client.post(SIGN_IN, data={"key": door.token(Role.READER)}, headers=headers)

    assert 403 == reply.status_code
    assert "set-cookie" not in reply.headers


def test_a_form_needs_the_token_of_its_own_session(door: Door) -> None:
    browser, other = door.signed_in(Role.AUDITOR), door.signed_in(Role.AUDITOR)
    target = "/dashboard/verify/base"

    assert 403 == browser.post(target, csrf="").status_code
    assert 403 == browser.post(target, csrf="0" * 43).status_code
    assert 403 == browser.post(target, csrf=other.csrf).status_code
    assert 403 == browser.post(target, headers={"x-csrf-token": other.csrf}).status_code
    assert 403 == browser.client.post(target, data={"csrf": browser.csrf}, headers={"origin": "https://evil.example"}).status_code
    assert 200 == browser.post(target).status_code
    assert 200 == browser.post(target, csrf="", headers={"x-csrf-token": browser.csrf}).status_code


def test_signing_out_ends_the_session_everywhere(door: Door) -> None:
    browser = door.signed_in(Role.READER)
    cookies = dict(browser.client.cookies)
    stolen = door.browser()
    stolen.client.cookies.update(cookies)

    assert 403 == browser.post("/dashboard/sign-out", csrf="wrong").status_code
    assert 200 == stolen.get(HOME).status_code
    assert f"{SIGN_IN}?note=out" == browser.post("/dashboard/sign-out").headers["location"]
    assert 303 == browser.client.get(HOME).status_code
    assert 303 == stolen.client.get(HOME).status_code


def test_a_session_of_which_nothing_is_heard_ends_with_a_note(door: Door) -> None:
    browser = door.signed_in(Role.READER)
    CLOCK.shift_s += IDLE_S + 1
    reply = browser.client.get("/dashboard/evidence")

    assert 303 == reply.status_code
    assert f"{SIGN_IN}?note=expired&next=%2Fdashboard%2Fevidence" == reply.headers["location"]
    assert "Your session has ended" in browser.client.get(reply.headers["location"]).text


def test_a_part_of_a_page_leads_the_whole_page_to_the_way_in(door: Door) -> None:
    browser = door.browser()
    headers = {"hx-request": "true", "hx-request-type": "partial", "hx-current-url": f"{door.url}/dashboard/search?q=a"}
    reply = browser.client.get("/dashboard/search?q=a", headers=headers)

    assert 401 == reply.status_code
    assert f"{SIGN_IN}?note=needed&next=%2Fdashboard%2Fsearch%3Fq%3Da" == reply.headers["hx-redirect"]


def test_a_revoked_token_ends_its_sessions(door: Door) -> None:
    issued = door.control.tokens.issue(name="soon gone", roles=[Role.READER], tenant="default", by="test")
    browser = door.browser()
    browser.sign_in(issued.token)
    assert 200 == browser.get(HOME).status_code

    door.control.tokens.revoke(issued.info.token_id, tenant="default", by="test")
    CLOCK.shift_s += 3

    assert 303 == browser.client.get(HOME).status_code


def test_a_key_is_never_shown_again(door: Door) -> None:
    browser = door.browser()
    token = door.token(Role.ADMIN)
    browser.sign_in(token)

    for path in (HOME, "/dashboard/search", "/dashboard/evidence", "/dashboard/verify"):
        assert token not in browser.get(path).text


def test_what_is_left_to_say_cannot_be_made_up(door: Door) -> None:
    browser = door.signed_in(Role.READER)
    browser.client.cookies.set("evidentia_flash", "WyJkb25lIiwiYWxsIGlzIGxvc3QiXQ==.0000", path="/dashboard")

    assert "all is lost" not in browser.get(HOME).text
