"""Governance in the browser: policies by form and by template, what is wrong beside its field, and blocks that arrive live."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from harbour import chunk_of, record_run
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from harbour import Harbour
    from playwright.sync_api import Page
    from watching import Watched

UNPROCESSABLE = 422
REASON = "Source age (400 days) exceeds max (30 days)"
NUMBERS = count(1)


def fill_policy(page: Page, *, name: str, agent: str, days: str = "30") -> None:
    """Fill in the form of a policy that blocks stale sources of an agent."""
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Maximum age of a source in days").fill(days)
    page.get_by_label("When a source is stale").select_option("block")
    page.get_by_label("Agents", exact=True).fill(agent)


def create_policy(seen: Watched, *, agent: str) -> str:
    """Make a policy by the form and return its name."""
    name = f"Only fresh sources {next(NUMBERS)}"
    page = seen.page
    page.goto("/dashboard/governance/policies/new?category=retrieval")
    fill_policy(page, name=name, agent=agent)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=2, name=name)).to_be_visible()
    return name


def test_a_policy_is_made_by_its_form(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["olga"])
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Governance").click()
    seen.check()
    page.get_by_role("button", name="New Policy").click()
    seen.check()
    page.get_by_role("link", name="Retrieval", exact=True).click()
    expect(page.get_by_label("Maximum age of a source in days")).to_have_accessible_description(re.compile("An older document violates"))
    seen.check()
    fill_policy(page, name="Stale sources stop", agent="form-agent")
    expect(page.get_by_role("switch", name="Enable")).to_be_checked()
    page.get_by_role("button", name="Create").click()

    expect(page.get_by_role("heading", level=2)).to_contain_text("Stale sources stop enabled")
    expect(page.get_by_role("status")).to_contain_text("Done")
    row = page.get_by_role("row").filter(has_text="max_source_age_days")
    expect(row.get_by_role("cell").first).to_have_text("30")
    seen.check()
    page.get_by_role("navigation", name="Governance").get_by_role("link", name="Policies").click()
    page.get_by_role("button", name="Disable Stale sources stop").click()
    expect(page.get_by_role("button", name="Enable Stale sources stop")).to_be_visible()
    seen.check()


def test_a_template_opens_the_form_filled_in(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["olga"], path="/dashboard/governance/policies/new")
    link = page.get_by_role("region", name="Templates").get_by_role("link").first
    template = link.inner_text()
    link.click()
    expect(page.get_by_text("Nothing is in force until you save it.")).to_contain_text(template)
    page.get_by_label("Name", exact=True).fill("From a template")
    page.get_by_label("Agents", exact=True).fill("template-agent")
    seen.check()
    page.get_by_role("button", name="Create").click()

    expect(page.get_by_role("heading", level=2)).to_contain_text("From a template enabled")


def test_a_wrong_value_has_its_problem_beside_the_field_and_saves_nothing(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["olga"], path="/dashboard/governance/policies/new?category=retrieval")
    fill_policy(page, name="Wrong", agent="nobody", days="-5")
    with seen.allowing(UNPROCESSABLE):
        page.get_by_role("button", name="Create").click()
        field = page.get_by_label("Maximum age of a source in days")
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_have_accessible_description(re.compile("Problem: "))
        expect(field).to_have_value("-5")
        expect(page.get_by_role("alert")).to_contain_text("Nothing was saved.")
        seen.check()
    page.goto("/dashboard/governance")
    expect(page.get_by_role("region", name="Policies").get_by_role("link", name="Wrong")).to_have_count(0)


def test_a_version_of_a_policy_is_compared_with_the_one_before(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["olga"])
    create_policy(seen, agent="compared-agent")
    page.get_by_role("button", name="Edit").click()
    seen.check()
    page.get_by_label("Maximum age of a source in days").fill("45")
    page.get_by_role("button", name="Save as a new version").click()
    page.get_by_role("button", name="Show the difference").click()

    row = page.get_by_role("region", name="Difference").get_by_role("row").nth(1)
    expect(row).to_contain_text(re.compile("max_source_age_days.*30.*45", re.DOTALL))
    seen.check()
    page.get_by_role("link", name="Remove").click()
    seen.check()
    page.get_by_role("checkbox", name="Yes, remove version 2").check()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_role("status")).to_contain_text("Done")


def test_a_block_arrives_live_and_leads_to_the_verified_chain_of_its_fragment(
    window: Callable[..., Watched], keys: dict[str, str], harbour: Harbour
) -> None:
    seen = window()
    page = seen.sign_in(keys["olga"])
    policy = create_policy(seen, agent="live-agent")
    page.get_by_role("navigation", name="Governance").get_by_role("link", name="Events").click()
    expect(page.get_by_text("live-agent")).to_have_count(0)
    page.evaluate("window.loaded = 'once'")
    chunk = chunk_of(harbour, "handbook:gate.md")
    fresh = {"kind": "retrieval", "relevance_score": 0.9, "source": "handbook", "collection": "harbour", "age_days": 4, "chunk_id": chunk}
    record_run(harbour.holding(keys["agent"]), agent="live-agent", calls=[fresh, {**fresh, "age_days": 400}])

    row = page.get_by_role("region", name="Events").get_by_role("row").filter(has_text="live-agent").filter(has_text=REASON)
    expect(row.first).to_contain_text(REASON)
    expect(row.first).to_contain_text(policy)
    assert "once" == page.evaluate("window.loaded")
    seen.check()
    row.first.get_by_role("link", name=re.compile("^Trace")).click()
    expect(page.get_by_role("heading", level=2)).to_contain_text("live-agent blocked")
    expect(page.get_by_text(REASON).last).to_be_in_viewport()
    seen.check()
    under = page.get_by_role("row").filter(has_text=chunk).filter(has_text=REASON)
    under.get_by_role("link", name="Verify its chain").click()
    expect(page.get_by_role("heading", name="Every link holds")).to_be_visible()
    links = page.get_by_role("region", name="Chain 1").get_by_role("listitem")
    assert links.count() > 1
    assert all("holds" in said for said in links.all_text_contents())
    seen.check()


def test_runs_requests_and_trials_are_shown(window: Callable[..., Watched], keys: dict[str, str], harbour: Harbour) -> None:
    call = {"kind": "retrieval", "relevance_score": 0.2, "source": "wiki", "collection": "harbour", "age_days": 400}
    record_run(harbour.holding(keys["agent"]), agent="shown-agent", calls=[call])
    assert harbour.admin.post("/v1/evidence", json={"query": "harbour gate"}).is_success
    seen = window()
    page = seen.sign_in(keys["olga"], path="/dashboard/traces")
    expect(page.get_by_role("region", name="Runs").get_by_role("row").filter(has_text="shown-agent")).to_be_visible()
    seen.check()
    page.get_by_role("navigation", name="Traces").get_by_role("link", name="Requests").click()
    seen.check()
    page.get_by_role("region", name="Requests").get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("answered")
    seen.check()
    seen.open("/dashboard/governance/shadow")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_role("heading", level=2)).to_contain_text("would have changed")
    seen.check()
    seen.open("/dashboard/governance/calibrate")
