"""How the dashboard behaves towards people: without a mouse, light and dark, and with text that wants to be a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harbour import SCRIPT, record_run, sent
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from harbour import Harbour
    from playwright.sync_api import Locator, Page
    from watching import Watched

MAX_STEPS = 60
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LOOK = """(element) => {
  const style = getComputedStyle(element);
  return [style.outlineStyle, style.outlineWidth, style.outlineColor, style.boxShadow, style.borderColor].join(" ");
}"""


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until something has the focus, and see that it shows."""
    for _ in range(MAX_STEPS):
        page.keyboard.press("Tab")
        if wanted.evaluate("(element) => element === document.activeElement"):
            break
    expect(wanted).to_be_focused()
    while_focused = wanted.evaluate(LOOK)
    wanted.evaluate("(element) => element.blur()")
    without = wanted.evaluate(LOOK)
    wanted.evaluate("(element) => element.focus()")
    assert without != while_focused, "nothing shows where the focus is"


def test_the_keyboard_alone_signs_in_asks_and_opens_a_result(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.page
    page.goto("/dashboard/search")
    tab_to(page, page.get_by_label("Key", exact=True))
    page.keyboard.type(keys["ben"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Search")
    page.goto("/dashboard")
    tab_to(page, page.get_by_role("link", name="Skip to the content"))
    expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Ask for evidence").last).to_be_focused()
    page.keyboard.type("signing key")
    page.keyboard.press("Enter")
    first = page.get_by_role("region", name="Answer").get_by_role("article").first
    tab_to(page, first.locator("summary"))
    page.keyboard.press("Enter")
    expect(first.get_by_role("table", name="What the score is made of")).to_be_visible()
    tab_to(page, first.get_by_role("link", name="Verify it"))
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Every link holds")).to_be_visible()


def test_the_menu_of_who_is_signed_in_opens_and_closes_by_keyboard(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    page = window().sign_in(keys["ben"])
    summary = page.locator("summary", has_text="ben")
    tab_to(page, summary)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.keyboard.press("Escape")

    expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
    expect(summary).to_be_focused()


def test_the_scheme_follows_the_system_until_one_is_chosen_and_stays_chosen(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    light, dark = window(scheme="light"), window(scheme="dark")
    of_light, of_dark = (seen.sign_in(keys["ben"]) for seen in (light, dark))
    assert of_light.evaluate(BACKGROUND) != of_dark.evaluate(BACKGROUND)
    button = of_light.get_by_role("button", name="Dark")
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()

    expect(button).to_have_attribute("aria-pressed", "true")
    assert of_dark.evaluate(BACKGROUND) == of_light.evaluate(BACKGROUND)
    of_light.goto("/dashboard/search")
    assert of_dark.evaluate(BACKGROUND) == of_light.evaluate(BACKGROUND)
    light.check()


def test_text_that_wants_to_be_a_script_is_shown_as_text(window: Callable[..., Watched], keys: dict[str, str], harbour: Harbour) -> None:
    rules = {"max_source_age_days": 1, "action_on_stale_source": "block"}
    body = {"name": f"Hostile {SCRIPT}"[:200], "category": "retrieval", "rules": rules, "scope": {"agents": [f"agent {SCRIPT}"]}}
    sent(harbour.admin, "/v1/policies", {**body, "description": SCRIPT})
    call = {"kind": "retrieval", "relevance_score": 0.9, "source": SCRIPT, "collection": SCRIPT, "age_days": 40}
    record_run(harbour.holding(keys["agent"]), agent=f"agent {SCRIPT}", calls=[call])
    seen = window()
    page = seen.sign_in(harbour.issue(f"who {SCRIPT}", "admin", "auditor")["token"], path="/dashboard/search")
    for path, place in (
        ("/dashboard", "banner"),
        ("/dashboard/search?q=signing+key+note+" + SCRIPT.replace("=", "%3D"), "main"),
        ("/dashboard/evidence/document?id=wiki%3Ahostile.md", "main"),
        ("/dashboard/governance", "main"),
        ("/dashboard/governance/events", "main"),
        ("/dashboard/traces", "main"),
    ):
        page.goto(path)
        expect(page.get_by_role(place)).to_contain_text(SCRIPT[:40])  # type: ignore[arg-type]  # a role by its name
        assert page.evaluate("window.canary === undefined")
        seen.check()
    page.get_by_role("region", name="Runs").get_by_role("row").filter(has_text=SCRIPT[:20]).get_by_role("link").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text(SCRIPT[:40])
    seen.check()


def test_a_narrow_window_scrolls_tables_and_not_the_page(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    page = window().sign_in(keys["olga"])
    page.set_viewport_size({"width": 400, "height": 800})
    for path in (
        "",
        "/search?q=signing+key",
        "/evidence",
        "/evidence/versions",
        "/verify",
        "/governance",
        "/governance/events",
        "/traces/requests",
    ):
        page.goto(f"/dashboard{path}")

        assert 400 >= page.evaluate("document.documentElement.scrollWidth"), page.url
