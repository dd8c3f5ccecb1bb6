"""Search in the browser: what two people see, facets, scores, custody, conflicts, and why something is not in the answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page
    from watching import Watched

QUESTION = "signing key"
GUARDED = "The code"


def ask(page: Page, question: str = QUESTION) -> Locator:
    """Ask by the form and return the answer."""
    page.get_by_label("Question or words").fill(question)
    page.get_by_role("search").get_by_role("button", name="Search").click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer.get_by_role("status").first).to_contain_text("matching fragment")
    return answer


def counts(page: Page, legend: str) -> dict[str, str]:
    """Return the values of a facet with what is counted of each."""
    group = page.get_by_role("group", name=legend)
    found = [label.inner_text().split("\n") for label in group.locator("label").all()]
    return {each[0].strip(): each[-1].strip() for each in found}


def titles(answer: Locator) -> list[str]:
    return answer.get_by_role("article").get_by_role("heading", level=3).all_inner_texts()


def test_two_people_see_different_answers_and_counts(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    ada, ben = window(), window()
    for seen, name in ((ada, "ada"), (ben, "ben")):
        seen.sign_in(keys[name], path="/dashboard/search")
    of_ada, of_ben = ask(ada.page), ask(ben.page)

    assert GUARDED in titles(of_ada)
    assert GUARDED not in titles(of_ben)
    assert len(titles(of_ada)) == len(titles(of_ben)) + 1
    assert {"handbook": "3", "security": "1", "wiki": "2"} == counts(ada.page, "Source id")
    assert {"handbook": "3", "wiki": "2"} == counts(ben.page, "Source id")
    assert {"confidential": "1", "internal": "5"} == counts(ada.page, "Classification")
    assert {"internal": "5"} == counts(ben.page, "Classification")
    assert "Plans" not in (*titles(of_ada), *titles(of_ben))
    ada.check()


def test_somebody_of_another_tenant_sees_that_tenant_alone(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    page = window().sign_in(keys["cleo"], path="/dashboard/search")

    assert ["Plans"] == titles(ask(page))
    assert {"internal": "1"} == counts(page, "Classification")


def test_a_facet_narrows_and_stays_in_the_address(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["ada"], path="/dashboard/search")
    answer = ask(page)
    page.get_by_role("checkbox", name=re.compile("security")).check()

    expect(answer.get_by_role("article")).to_have_count(1)
    assert [GUARDED] == titles(answer)
    page.reload()
    expect(page.get_by_role("checkbox", name=re.compile("security"))).to_be_checked()
    assert [GUARDED] == titles(page.get_by_role("region", name="Answer"))


def test_a_result_tells_its_score_its_words_and_its_custody(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["ben"], path="/dashboard/search")
    first = ask(page).get_by_role("article").first
    expect(first.get_by_role("img", name=re.compile(r"^Confidence [01]\.\d\d (very likely|likely|possible|unlikely)$"))).to_be_visible()
    first.get_by_text("Why it is here, and where it comes from").click()

    expect(first.get_by_role("img", name=re.compile(r"^Score 0\.\d\d: relevance gives"))).to_be_visible()
    expect(first.get_by_role("table", name="What the score is made of").get_by_role("rowheader", name="Relevance")).to_be_visible()
    expect(first.get_by_role("table", name="What each word gave").get_by_role("row")).to_have_count(3)
    expect(first.get_by_role("listitem").first).to_contain_text("Origin")
    seen.check()
    first.get_by_role("link", name="Verify it").click()
    expect(page.get_by_role("heading", name="Every link holds")).to_be_visible()
    seen.check()


def test_an_answer_of_unlikely_fragments_says_so_in_words(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["ben"], path="/dashboard/search")
    answer = ask(page, "best recipe for lasagna")

    expect(answer.get_by_text("Probably nothing here: the best match is unlikely to be relevant")).to_be_visible()
    expect(answer.get_by_role("article").first.get_by_role("img", name=re.compile(r"^Confidence 0\.\d\d unlikely$"))).to_be_visible()
    seen.check()


def test_a_conflict_names_what_holds(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    page = window().sign_in(keys["ben"], path="/dashboard/search")
    table = ask(page, "How often are signing keys rotated?").get_by_role("table", name="What the fragments disagree about")

    expect(table.get_by_role("row").nth(1)).to_contain_text("30 days")
    expect(table.get_by_role("row").nth(1)).to_contain_text("contradicted 90 days")
    expect(table.get_by_role("row").nth(1)).to_contain_text("authority")


def test_a_receipt_says_why_a_chunk_is_not_in_the_answer_and_is_replayed(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["ben"], path="/dashboard/search")
    ask(page, "crane").get_by_role("status").get_by_role("link").click()
    seen.check()
    page.get_by_label("Document").fill("handbook:tide.md")
    page.get_by_role("button", name="Show its chunks").click()
    page.get_by_role("button", name="Ask why").click()

    expect(page.get_by_role("status").filter(has_text="not in the answer")).to_be_visible()
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("The same result.")).to_be_visible()
    seen.check()


def test_a_filter_that_cannot_be_read_is_named_beside_its_field(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["ben"], path="/dashboard/search")
    page.get_by_label("Question or words").fill("gate")
    page.get_by_text("Filter and limits").click()
    page.get_by_label("Filter", exact=True).fill("authority_tier >>= 3")
    with seen.allowing(422):
        page.get_by_role("search").get_by_role("button", name="Search").click()
        expect(page.get_by_role("alert")).to_be_visible()
        seen.check()
