"""Every page for every role: it renders, says nothing it may not, carries its headers, and shows errors instead of throwing them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role
from evidentia.serving.dashboard.dashboard_app import DashboardApp, PageRoute
from evidentia.serving.dashboard.http_headers import CSP
from evidentia.serving.dashboard.pages import evidence_page
from serving.dashboard_doors import Browser, Door, filled, serving_dashboard
from serving.rest_planes import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "keys.md", "title": "Signing keys", "text": "# Keys\n\nSigning keys are rotated every 30 days."},
    {"id": "shifts.md", "title": "Shifts", "text": "# Shifts\n\nA shift lasts seven days."},
]
PAGES = (
    "/dashboard",
    "/dashboard/search",
    "/dashboard/search?q=signing+keys&deadline_ms=20000",
    "/dashboard/evidence",
    "/dashboard/evidence/documents",
    "/dashboard/evidence/document?id=sent:keys.md",
    "/dashboard/evidence/versions",
    "/dashboard/evidence/versions?older=0&newer=1",
    "/dashboard/verify",
    "/dashboard/verify?target=sent:keys.md",
)
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": CSP,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("pages") / "base", DOCUMENTS, source="sent")


@pytest.fixture(scope="module")
def door(base: Path) -> Iterator[Door]:
    with serving_dashboard(base) as door:
        yield door


@pytest.fixture(scope="module")
def browsers(door: Door) -> dict[Role, Browser]:
    return {role: door.signed_in(role) for role in Role}


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("path", PAGES)
def test_every_page_renders_for_every_role(browsers: dict[Role, Browser], role: Role, path: str) -> None:
    reply = browsers[role].get(path)

    assert 200 == reply.status_code, reply.text
    assert reply.text.startswith("<!doctype html>")
    assert 1 == len(re.findall("<h1[ >]", reply.text))
    assert 1 == reply.text.count('<main id="main"')
    assert HEADERS.items() <= dict(reply.headers).items()


@pytest.mark.parametrize(
    "path", ["/dashboard/sign-in", "/dashboard/enter?code=x", "/dashboard", "/dashboard/nowhere", "/dashboard/assets/x/y.js"]
)
def test_every_reply_has_its_headers_also_for_strangers(door: Door, path: str) -> None:
    reply = door.browser().client.get(path)

    assert HEADERS.items() <= dict(reply.headers).items()


def test_the_policy_for_content_allows_nothing_inline_and_nothing_from_elsewhere() -> None:
    assert (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ) == CSP


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_anything_inline_or_from_elsewhere(browsers: dict[Role, Browser], path: str) -> None:
    text = browsers[Role.ADMIN].get(path).text

    assert not re.search(r"<script(?![^>]*\ssrc=\"/dashboard/assets/)", text)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text, re.IGNORECASE)
    assert not re.search(r"(src|href|action)=\"(https?:)?//", text)


def test_the_page_that_is_shown_is_marked_in_the_navigation(browsers: dict[Role, Browser]) -> None:
    text = browsers[Role.READER].get("/dashboard/evidence/documents").text

    assert '<a href="/dashboard/evidence" aria-current="page">' in text
    assert '<a href="/dashboard" aria-current' not in text


def test_only_those_who_may_verify_the_whole_base_are_offered_it(browsers: dict[Role, Browser], door: Door) -> None:
    offered = {role: "Verify the whole base" in browsers[role].get("/dashboard/verify").text for role in Role}
    elsewhere = door.signed_in(Role.ADMIN, tenant="acme")

    assert {Role.READER: False, Role.AGENT: False, Role.AUDITOR: True, Role.ADMIN: True} == offered
    assert "Verify the whole base" not in elsewhere.get("/dashboard/verify").text


def test_whoever_may_not_is_refused_however_they_ask(browsers: dict[Role, Browser], door: Door) -> None:
    reader = browsers[Role.READER]
    reader.get("/dashboard/verify")
    elsewhere = door.signed_in(Role.ADMIN, tenant="acme")
    refused = reader.post("/dashboard/verify/base")

    assert 403 == refused.status_code
    assert "this needs the role" in refused.text.lower()
    assert 403 == elsewhere.post("/dashboard/verify/base").status_code
    assert 200 == browsers[Role.AUDITOR].post("/dashboard/verify/base", csrf=browsers[Role.AUDITOR].csrf).status_code


def test_only_auditors_and_admins_of_the_operator_see_requests(browsers: dict[Role, Browser], door: Door) -> None:
    sees = {role: "Requests, last hour" in browsers[role].get("/dashboard").text for role in Role}

    assert {Role.READER: False, Role.AGENT: False, Role.AUDITOR: True, Role.ADMIN: True} == sees
    assert "Requests, last hour" not in door.signed_in(Role.ADMIN, tenant="acme").get("/dashboard").text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/dashboard/nowhere", 404, "There is no such page"),
        ("/dashboard/evidence/document?id=sent:none.md", 404, "What to do"),
        ("/dashboard/evidence/document", 422, "What to do"),
        ("/dashboard/evidence/documents?cursor=nonsense", 422, "it is not one that a page before gave"),
        ("/dashboard/receipts/r-0-0", 404, "What to do"),
        ("/dashboard/verify?target=sent:none.md", 404, "What to do"),
        ("/dashboard/evidence/versions?older=0&newer=99", 404, "What to do"),
        ("/dashboard/search/export?chunk=nothing", 404, "What to do"),
    ],
)
def test_errors_are_shown_with_what_to_do(browsers: dict[Role, Browser], path: str, status: int, said: str) -> None:
    reply = browsers[Role.ADMIN].get(path)

    assert status == reply.status_code
    assert said in reply.text
    assert "Traceback" not in reply.text
    assert '<main id="main"' in reply.text


def test_an_error_within_a_page_is_a_part_of_a_page(browsers: dict[Role, Browser]) -> None:
    reply = browsers[Role.ADMIN].get("/dashboard/evidence/document?id=sent:none.md", headers={"hx-request": "true"})

    assert 404 == reply.status_code
    assert "<html" not in reply.text
    assert 'role="alert"' in reply.text


def test_a_fault_of_our_own_is_told_without_its_trace(
    base: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing(_: DashboardApp, __: object) -> Any:
        raise ZeroDivisionError("with a secret in it")

    monkeypatch.setattr(evidence_page, "routes", lambda _: [PageRoute("/dashboard/evidence", failing)])
    with serving_dashboard(base) as door:
        reply = door.signed_in(Role.READER).get("/dashboard/evidence")

    assert 500 == reply.status_code
    assert "something went wrong" in reply.text.lower()
    assert "secret" not in reply.text
    assert any("page failed" in record.message for record in caplog.records)


def test_too_large_a_form_is_refused_before_it_is_read(browsers: dict[Role, Browser]) -> None:
    browser = browsers[Role.AUDITOR]
    reply = browser.post("/dashboard/verify/base", {"more": "x" * (300 << 10)})

    assert 413 == reply.status_code
    assert "Too large" in reply.text


def test_what_cannot_be_read_as_a_form_is_refused(browsers: dict[Role, Browser]) -> None:
    browser = browsers[Role.AUDITOR]
    headers = {**browser.own_origin, "content-type": "multipart/form-data; boundary=x"}
    reply = browser.client.post("/dashboard/verify", content=b"--x\r\nnonsense", headers=headers)

    assert reply.status_code in {400, 403}
    assert '<main id="main"' in reply.text


def test_limits_hold_for_pages_too(base: Path) -> None:
    with serving_dashboard(base, requests_per_minute=6) as door:
        browser = door.signed_in(Role.READER)
        statuses = [browser.get("/dashboard/evidence/documents").status_code for _ in range(12)]

    assert 200 == statuses[0]
    assert 429 == statuses[-1]


def test_documents_are_shown_page_by_page(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_page, "PAGE", 1)
    browser = door.signed_in(Role.READER)
    first = browser.get("/dashboard/evidence/documents").text
    following = re.search(r'href="([^"]+)" rel="next"', first)
    assert following is not None
    second = browser.get(following[1].replace("&amp;", "&")).text

    assert ("sent:keys.md" in first, "sent:shifts.md" in first) == (True, False)
    assert ("sent:keys.md" in second, "sent:shifts.md" in second) == (False, True)
    assert 'rel="next"' not in second


def test_versions_and_their_difference_are_shown(browsers: dict[Role, Browser]) -> None:
    text = browsers[Role.READER].get("/dashboard/evidence/versions?older=0&newer=1").text

    assert "From version 0 to version 1" in text
    assert "sent:keys.md" in text


def test_the_dashboard_stands_in_the_application_that_is_served(base: Path) -> None:
    with serving(base) as plane:
        browser = Browser(plane.nobody)
        reply = browser.sign_in(plane.token(Role.READER), back="/dashboard/evidence")
        page = browser.get("/dashboard/evidence/")

    assert (303, "/dashboard/evidence") == (reply.status_code, reply.headers["location"])
    assert 200 == page.status_code
    assert CSP == page.headers["content-security-policy"]
