"""The way in and out of the dashboard: a link that works once, keys, and sessions that end."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from harbour import served
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harbour import Harbour
    from watching import Watched

UNAUTHORIZED = 401
REFUSED = re.compile("Problem: This key is unknown, has expired, or was revoked.")


def test_the_link_of_the_first_start_opens_the_dashboard_once(window: Callable[..., Watched], tmp_path: Path) -> None:
    with served(tmp_path) as fresh:
        first, second = window(fresh.url), window(fresh.url)
        first.open(fresh.link)
        first.page.get_by_role("button", name="Sign in to this dashboard").click()
        expect(first.page.get_by_role("heading", level=1)).to_have_text("At a glance")
        expect(first.page.get_by_text("first admin")).to_be_visible()
        first.check()

        second.open(fresh.link)
        second.page.get_by_role("button", name="Sign in to this dashboard").click()

        expect(second.page.get_by_text("This link was used before, or it is too old.")).to_be_visible()
        expect(second.page.get_by_role("navigation", name="Pages")).to_have_count(0)
        for each in (first, second):
            each.page.goto("about:blank")


def test_a_wrong_key_is_refused_beside_its_field(window: Callable[..., Watched]) -> None:
    seen = window()
    page = seen.open("/dashboard/sign-in")
    with seen.allowing(UNAUTHORIZED):
        page.get_by_label("Key", exact=True).fill("evt_made_up")
        page.get_by_role("button", name="Sign in").click()

        expect(page.get_by_label("Key", exact=True)).to_have_accessible_description(REFUSED)
        seen.check()


def test_signing_out_ends_the_session(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["ben"])
    page.locator("summary", has_text="ben").click()
    seen.check()
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_text("You are signed out.")).to_be_visible()
    page.goto("/dashboard/search")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(page.get_by_text("Sign in to see this page.")).to_be_visible()


def test_a_revoked_key_ends_its_sessions_and_opens_none(window: Callable[..., Watched], harbour: Harbour) -> None:
    issued = harbour.issue("carl", "reader")
    seen = window()
    page = seen.sign_in(issued["token"])
    assert harbour.admin.delete(f"/v1/tokens/{issued['info']['token_id']}").is_success

    expect(page.get_by_text("Your session has ended.")).to_be_visible()
    with seen.allowing(UNAUTHORIZED):
        page.get_by_label("Key", exact=True).fill(issued["token"])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_label("Key", exact=True)).to_have_attribute("aria-invalid", "true")


def test_a_page_that_is_open_leaves_when_its_session_expires(window: Callable[..., Watched], harbour: Harbour) -> None:
    expires_at = datetime.now(UTC) + timedelta(seconds=3)
    issued = harbour.issue("dora", "reader", expires_at=expires_at.isoformat())
    seen = window()
    page = seen.sign_in(issued["token"])
    expect(page.get_by_role("heading", level=1)).to_have_text("At a glance")

    expect(page.get_by_text("Your session has ended.")).to_be_visible()
