"""Verify in the browser: an answer that the command line saved holds, and a changed one is broken where it was changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from harbour import run_cli
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harbour import Harbour
    from playwright.sync_api import Page
    from watching import Watched


@pytest.fixture(scope="module")
def answer(harbour: Harbour) -> dict[str, Any]:
    """Return an answer as the command line saves it."""
    return dict(json.loads(run_cli("search", "harbour gate", "--json", "--deadline-ms", "20000", base=harbour.base)))


def upload(page: Page, path: Path) -> None:
    page.get_by_label("Or choose a file").set_input_files(path)
    page.get_by_role("button", name="Verify", exact=True).first.click()


def test_an_answer_that_was_saved_holds_link_by_link(
    window: Callable[..., Watched], keys: dict[str, str], answer: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    seen = window()
    page = seen.sign_in(keys["ben"], path="/dashboard/verify")
    seen.check()
    upload(page, tmp_path / "answer.json")

    expect(page.get_by_role("heading", name="Every link holds")).to_be_visible()
    first = page.get_by_role("region", name="Chain 1")
    links = first.get_by_role("listitem")
    assert links.count() > 1
    assert all("holds" in said for said in links.all_text_contents())
    seen.check()


def test_of_a_changed_answer_the_first_broken_link_is_named(
    window: Callable[..., Watched], keys: dict[str, str], answer: dict[str, Any], tmp_path: Path
) -> None:
    changed = json.loads(json.dumps(answer))
    changed["fragments"][0]["content"] += " Not."
    (tmp_path / "answer.json").write_text(json.dumps(changed), encoding="utf-8")
    seen = window()
    page = seen.sign_in(keys["ben"], path="/dashboard/verify")
    upload(page, tmp_path / "answer.json")

    expect(page.get_by_role("heading", name="Broken", exact=True)).to_be_visible()
    expect(page.get_by_text("First broken link:").first).to_be_visible()
    expect(page.get_by_role("region", name="Chain 1").get_by_text("First broken link")).to_have_count(1)
    seen.check()


def test_what_is_no_answer_is_refused_beside_its_field(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["ben"], path="/dashboard/verify")
    page.get_by_label("Paste it").fill('{"fragments": 3}')
    with seen.allowing(422):
        page.get_by_role("button", name="Verify", exact=True).first.click()
        expect(page.get_by_label("Paste it")).to_have_attribute("aria-invalid", "true")
        seen.check()
