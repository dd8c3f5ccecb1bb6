"""Searching by page: two people see different things, facets narrow, mistakes stand beside their fields, receipts answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role, TokenFacts
from evidentia.contracts.vocabulary import Classification
from serving.dashboard_doors import Browser, Door, filled, serving_dashboard

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "rotation.md", "title": "Rotation", "text": "Signing keys are rotated every 30 days.", "metadata": {"tags": ["keys", "new"]}},
    {"id": "basics.md", "title": "Basics", "text": "Signing keys are kept in the vault.", "metadata": {"tags": ["keys"]}},
    {"id": "depots.md", "title": "Depots", "text": "Depot signing keys belong to depots.", "metadata": {"tags": ["depots"]}},
]
SECRET = {
    "id": "custody.md",
    "title": "Custody of Kittiwake",
    "text": "Signing keys: Tomasz holds the root.",
    "metadata": {"tags": ["hidden"]},
}
ASK = "/dashboard/search?q=signing+keys&deadline_ms=20000&mode=lexical"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    base = filled(tmp_path_factory.mktemp("searching") / "base", DOCUMENTS, source="open")
    with serving_dashboard(base) as door:
        sent = {"documents": [SECRET], "source": "closed", "classification": "restricted", "embed": False}
        assert 200 == door.api(door.token(Role.ADMIN)).post("/v1/documents", json=sent).status_code
        yield door


@pytest.fixture(scope="module")
def reader(door: Door) -> Browser:
    return door.signed_in(Role.READER)


def _places(page: str) -> list[str]:
    return re.findall(r'<article class="card fragment".*?<h3><a [^>]*>([^<]*)</a>', page, re.DOTALL)


def _facets(page: str) -> dict[str, int]:
    found = re.findall(r'name="f" value="([^"]*)"[^>]*>.*?<span class="n">(\d+)</span>', page)
    return {name: int(count) for name, count in found}


def test_two_people_see_what_each_may_see(door: Door, reader: Browser) -> None:
    insider = door.signed_in(Role.READER, name="insider", facts=TokenFacts(clearance=Classification.RESTRICTED))
    outside, inside = reader.get(ASK).text, insider.get(ASK).text

    assert {"Rotation", "Basics", "Depots"} == set(_places(outside))
    assert {"Rotation", "Basics", "Depots", "Custody of Kittiwake"} == set(_places(inside))
    assert "tags:hidden" in _facets(inside)
    assert not re.search("Kittiwake|tags:hidden|closed", outside)
    assert "Kittiwake" not in reader.get("/dashboard/evidence/documents").text
    assert 404 == reader.get("/dashboard/evidence/document?id=closed:custody.md").status_code
    assert "closed:custody.md" in insider.get("/dashboard/evidence/documents").text


def test_people_of_another_tenant_see_nothing_of_it(door: Door) -> None:
    elsewhere = door.signed_in(Role.ADMIN, tenant="acme", facts=TokenFacts(clearance=Classification.RESTRICTED))

    assert "Nothing that you may see matches" in elsewhere.get(ASK).text
    assert {} == _facets(elsewhere.get(ASK).text)


def test_facets_narrow_and_keep_their_alternatives(reader: Browser) -> None:
    whole, narrowed = reader.get(ASK).text, reader.get(f"{ASK}&f=tags:new").text
    wider = reader.get(f"{ASK}&f=tags:new&f=tags:depots").text

    assert (2, 1, 1) == tuple(_facets(whole)[f"tags:{tag}"] for tag in ("keys", "new", "depots"))
    assert ["Rotation"] == _places(narrowed)
    assert (2, 1, 1) == tuple(_facets(narrowed)[f"tags:{tag}"] for tag in ("keys", "new", "depots"))
    assert 1 == _facets(narrowed)["source_id:open"]
    assert {"Rotation", "Depots"} == set(_places(wider))
    assert re.search(r'value="tags:new" checked', wider)
    assert not re.search(r'value="tags:keys" checked', wider)


def test_a_filter_and_facets_hold_together(reader: Browser) -> None:
    page = reader.get(f'{ASK}&filter=title+=+"Basics"&f=tags:keys').text

    assert ["Basics"] == _places(page)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("filter", "titel = 3"),
        ("filter", "((("),
        ("limit", "many"),
        ("limit", "99999999"),
        ("token_budget", "-1"),
        ("deadline_ms", "0.5"),
        ("as_of", "yesterday"),
    ],
)
def test_a_mistake_is_said_where_it_is(reader: Browser, field: str, value: str) -> None:
    reply = reader.client.get("/dashboard/search", params={"q": "keys", field: value})

    assert 400 <= reply.status_code < 500
    assert 'role="alert"' in reply.text
    assert f'id="{field}-problem"' in reply.text
    assert "Traceback" not in reply.text


def test_a_field_that_is_wrong_is_marked_and_described(reader: Browser) -> None:
    page = reader.client.get("/dashboard/search", params={"q": "keys", "limit": "many"}).text

    assert re.search(r'<input id="limit"[^>]*aria-invalid="true"[^>]*aria-describedby="[^"]*limit-problem', page)
    assert 'id="limit-problem"' in page
    assert 'value="many"' in page


def test_words_that_were_found_are_marked(reader: Browser) -> None:
    assert "<mark>keys</mark>" in reader.get(ASK).text


def test_a_score_is_shown_as_what_it_is_made_of(reader: Browser) -> None:
    page = reader.get(f"{ASK}&explain=on").text
    gives = [
        float(each) for each in re.findall(r'<td class="n">[\d.]+</td><td class="n">[\d.]+</td><td class="n">([\d.]+)</td></tr>', page)[:4]
    ]
    score = re.search(r'<tr class="sum">.*?<td class="n">([\d.]+)</td></tr>', page)

    assert 4 == len(gives)
    assert score is not None
    assert abs(sum(gives) - float(score[1])) < 0.005
    assert '<svg class="bar-chart"' in page
    assert "What each word gave" in page


def test_an_answer_alone_is_sent_to_a_page_that_is_there_already(reader: Browser) -> None:
    part = reader.get(ASK, headers={"hx-request": "true", "hx-request-type": "partial"}).text

    assert "<html" not in part
    assert _places(part)


def test_a_receipt_is_answered_again_and_says_why_not(reader: Browser) -> None:
    page = reader.get(f"{ASK}&limit=1").text
    receipt = re.search(r'href="(/dashboard/receipts/[^"]+)"', page)
    assert receipt is not None
    shown = reader.get(receipt[1]).text
    other = next(f"open:{each['id']}" for each in DOCUMENTS if each["title"] not in _places(page))
    chunk = re.search(rf'<option value="({re.escape(other)}#[^"]+)"', reader.get(f"{receipt[1]}?document={other}").text)
    assert chunk is not None
    why = reader.client.get(receipt[1], params={"document": other, "chunk": chunk[1]}).text
    replayed = reader.post(f"{receipt[1]}/replay")

    assert "signing keys" in shown
    assert "not in the answer" in why
    assert "limit=" in why
    assert "The same result." in replayed.text


def test_a_receipt_of_somebody_else_is_not_there(door: Door, reader: Browser) -> None:
    receipt = re.search(r'href="(/dashboard/receipts/[^"]+)"', reader.get(ASK).text)
    assert receipt is not None

    assert 404 == door.signed_in(Role.READER, name="another").get(receipt[1]).status_code
    assert 200 == door.signed_in(Role.AUDITOR).get(receipt[1]).status_code
    assert 404 == door.signed_in(Role.AUDITOR, tenant="acme").get(receipt[1]).status_code


def test_a_fragment_is_exported_as_a_file(reader: Browser) -> None:
    link = re.search(r'href="(/dashboard/search/export[^"]+)"', reader.get(ASK).text)
    assert link is not None
    reply = reader.get(link[1].replace("&amp;", "&"))

    assert 'attachment; filename="fragment.json"' == reply.headers["content-disposition"]
    assert "evidentia-fragment/2" == reply.json()["format"]
