"""Text of others is shown as text: titles, contents, tags, names of policies, agents and tokens, questions, ids in addresses."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from evidentia.contracts.control import Role
from serving.dashboard_doors import Browser, Door, filled, serving_dashboard

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = "<script>alert('x')</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
QUOTE = "' onmouseover='alert(1)' x='"
BREAK = "</textarea></title></svg><svg onload=alert(1)>"
TEMPLATE = "{{ 9999991 * 9999973 }}{% raw %}"
HTMX = '<div hx-get="/v1/health" hx-trigger="load" hx-on:click="alert(1)"></div>'
PAYLOADS = (SCRIPT, IMAGE, QUOTE, BREAK, TEMPLATE, HTMX)
RAW = ("<script>alert", "<img src=x", "' onmouseover='", "<svg onload", str(9999991 * 9999973), '<div hx-get="/v1', "</textarea></title>")
"""What must not stand in a page as it was written."""
ALL = " ".join(PAYLOADS)
DOCUMENTS: list[dict[str, Any]] = [
    {
        "id": f"bad {IMAGE}.md",
        "title": ALL,
        "text": f"# Harbour {SCRIPT}\n\nHarbour keys {ALL} end.",
        "metadata": {"tags": [SCRIPT, IMAGE], "author": QUOTE, "language": "en"},
    }
]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    base = filled(tmp_path_factory.mktemp("hostile") / "base", DOCUMENTS, source="sent")
    with serving_dashboard(base) as door:
        yield door


@pytest.fixture(scope="module")
def browser(door: Door) -> Browser:
    return door.signed_in(Role.ADMIN, name=f"admin {SCRIPT}{QUOTE}")


def _require_text(page: str, *, shows: str = "") -> None:
    for raw in RAW:
        assert raw not in page, raw
    assert shows in page


ESCAPED = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"


def test_names_of_tokens_are_text(browser: Browser) -> None:
    _require_text(browser.get("/dashboard").text, shows=f"admin {ESCAPED}")


def test_titles_contents_and_facets_are_text(browser: Browser) -> None:
    page = browser.get("/dashboard/search?q=harbour+keys&deadline_ms=20000&explain=on&mode=lexical").text

    assert "fragment-1" in page
    _require_text(page, shows=ESCAPED)
    assert f'value="tags:{ESCAPED}"' in page


@pytest.mark.parametrize("payload", PAYLOADS)
def test_questions_and_filters_are_text(browser: Browser, payload: str) -> None:
    path = f"/dashboard/search?q={quote(payload + ' harbour')}&filter={quote(payload)}&mode={quote(payload)}&limit={quote(payload)}"

    _require_text(browser.get(path).text)
    _require_text(browser.get(path, headers={"hx-request": "true"}).text)
    _require_text(browser.get(f"/dashboard/search?q=harbour&f={quote('tags:' + payload)}&deadline_ms=20000").text)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_ids_in_addresses_are_text(browser: Browser, payload: str) -> None:
    for path in (
        f"/dashboard/evidence/document?id={quote(payload)}",
        f"/dashboard/evidence/documents?cursor={quote(payload)}",
        f"/dashboard/evidence/versions?older={quote(payload)}&newer={quote(payload)}",
        f"/dashboard/verify?target={quote(payload)}",
        f"/dashboard/receipts/{quote(payload, safe='')}",
        f"/dashboard/{quote(payload, safe='')}",
        f"/dashboard/sign-in?note={quote(payload)}&next={quote('/dashboard/' + payload)}",
        f"/dashboard/enter?code={quote(payload)}",
    ):
        _require_text(browser.get(path).text)


def test_documents_and_their_chunks_are_text(browser: Browser, door: Door) -> None:
    listed = browser.get("/dashboard/evidence/documents").text
    document = door.api(door.token(Role.ADMIN)).get("/v1/documents").json()["documents"][0]["document_id"]
    page = browser.get(f"/dashboard/evidence/document?id={quote(document)}").text

    _require_text(listed)
    _require_text(page, shows=ESCAPED)


def test_receipts_and_reasons_are_text(browser: Browser, door: Door) -> None:
    api = door.api(door.token(Role.ADMIN))
    asked = {"query": {"text": f"harbour {ALL}"}, "agent_name": f"agent {ALL}", "latency_deadline_ms": 20_000}
    answer = api.post("/v1/evidence", json=asked).json()
    path = f"/dashboard/receipts/{answer['receipt_id']}"
    document = answer["fragments"][0]["document_id"]
    chunk = answer["fragments"][0]["chunk_id"]

    _require_text(browser.get(path).text, shows=ESCAPED)
    _require_text(browser.get(f"{path}?document={quote(document)}&chunk={quote(chunk)}").text, shows="in the answer")
    _require_text(browser.post(f"{path}/replay").text, shows="The same result")


def test_what_is_pasted_to_be_verified_is_text(browser: Browser, door: Door) -> None:
    answer = door.api(door.token(Role.ADMIN)).post("/v1/evidence", json={"query": {"text": "harbour"}, "latency_deadline_ms": 20_000})
    tampered = json.loads(answer.text)
    tampered["fragments"][0]["provenance_chain"][1]["record"]["step"] = SCRIPT
    tampered["fragments"][0]["document_id"] = IMAGE

    _require_text(browser.post("/dashboard/verify", {"text": ALL}).text)
    _require_text(browser.post("/dashboard/verify", {"text": "{" + ALL}).text)
    _require_text(browser.post("/dashboard/verify", {"text": json.dumps(tampered)}).text, shows="First broken link")


def test_policies_agents_and_reasons_are_text(browser: Browser, door: Door) -> None:
    api = door.api(door.token(Role.ADMIN))
    body = {
        "name": f"Guard {SCRIPT}",
        "category": "retrieval",
        "rules": {"blocked_sources": [IMAGE], "action_on_chunk_violation": "warn"},
        "scope": {"agents": ["*"]},
        "enabled": True,
    }
    made = api.post("/v1/policies", json=body)
    assert 201 == made.status_code, made.text
    run = api.post("/v1/runs", json={"facts": {"agent_name": f"agent {ALL}"}}).json()["run_id"]
    call = {"kind": "retrieval", "relevance_score": 0.9, "source": IMAGE, "collection": QUOTE, "age_days": 1}
    recorded = api.post(f"/v1/runs/{run}/calls", json={"calls": [{"seq": 1, "call": call}]})
    assert 200 == recorded.status_code, recorded.text
    api.post(f"/v1/runs/{run}/end", json={})

    page = browser.get("/dashboard").text
    for _ in range(200):  # what the log has in memory is looked at again every second
        if f"Guard {ESCAPED}" in page:
            break
        time.sleep(0.05)
        page = browser.get("/dashboard").text
    _require_text(page, shows=f"Guard {ESCAPED}")


def test_live_parts_are_text(browser: Browser) -> None:
    with browser.client.stream("GET", "/dashboard/live") as reply:
        first = next(part for part in reply.iter_text() if "data: " in part)

    _require_text(first)
