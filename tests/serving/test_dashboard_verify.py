"""Verifying by page: what holds is drawn link by link, what does not is named, and nothing but a proof is taken for one."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role
from evidentia.contracts.provenance import BrokenLink, FragmentExport, VerifyReport
from evidentia.serving.dashboard.pages.verify import chains_of
from serving.dashboard_doors import Browser, Door, filled, serving_dashboard

if TYPE_CHECKING:
    from collections.abc import Iterator

import msgspec

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "keys.md", "title": "Keys", "text": "Signing keys are rotated every 30 days."},
    {"id": "vault.md", "title": "Vault", "text": "Signing keys are kept in the vault."},
]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with serving_dashboard(filled(tmp_path_factory.mktemp("verifying") / "base", DOCUMENTS, source="open")) as door:
        yield door


@pytest.fixture(scope="module")
def browser(door: Door) -> Browser:
    return door.signed_in(Role.READER)


@pytest.fixture(scope="module")
def answer(door: Door) -> dict[str, Any]:
    asked = {"query": {"text": "signing keys"}, "latency_deadline_ms": 20_000, "mode": "lexical"}
    return dict(door.api(door.token(Role.READER)).post("/v1/evidence", json=asked).json())


@pytest.fixture(scope="module")
def export(door: Door, answer: dict[str, Any]) -> dict[str, Any]:
    chunk = answer["fragments"][0]["chunk_id"]
    return dict(door.api(door.token(Role.READER)).get("/v1/export", params={"chunk": chunk}).json())


def _changed(message: dict[str, Any], change: Any) -> str:
    copied = json.loads(json.dumps(message))
    change(copied)
    return json.dumps(copied)


def test_an_answer_holds_link_by_link(browser: Browser, answer: dict[str, Any]) -> None:
    reply = browser.post("/dashboard/verify", {"text": json.dumps(answer)})

    assert 200 == reply.status_code
    assert "Every link holds" in reply.text
    assert 2 == len(re.findall(r'<ol class="links">', reply.text))
    assert 'class="sign bad"' not in reply.text


def test_an_exported_fragment_is_taken_as_a_file(browser: Browser, export: dict[str, Any]) -> None:
    files = {"file": ("fragment.json", json.dumps(export).encode(), "application/json")}
    reply = browser.post("/dashboard/verify", files=files)

    assert "Every link holds" in reply.text
    assert ["Identity", "Origin", "Extract", "Chunk", "Log entry", "In the log", "Version"] == re.findall(
        r"<div><strong>([^<]+)</strong>", reply.text
    )


@pytest.mark.parametrize(
    ("change", "link", "problem"),
    [
        (lambda made: made.update(content=made["content"] + "!"), "Identity", "the chunk id is not that of"),
        (
            lambda made: made["provenance_chain"][1]["record"].update(tool_version="9.9.9"),
            "Extract",
            "the hash does not match the record and the link before it",
        ),
        (lambda made: made["provenance_chain"][0]["record"].update(media_type="text/html"), "Origin", "the hash does not match the origin"),
        (lambda made: made["event"].update(custody_head="0" * 64), "Log entry", "the event records another fragment or chain"),
        (lambda made: made["inclusion"].update(root="0" * 64), "In the log", "the event is not in the log with this root"),
        (lambda made: made["commit"].update(sequence=99), "Version", "the record does not have its hash"),
    ],
)
def test_the_first_broken_link_is_named_in_words(browser: Browser, export: dict[str, Any], change: Any, link: str, problem: str) -> None:
    page = browser.post("/dashboard/verify", {"text": _changed(export, change)}).text
    first = re.search(r'<li class="bad">.*?<strong>([^<]+)</strong>.*?First broken link: ([^<]*)', page, re.DOTALL)

    assert "Broken" in page
    assert first is not None
    assert link == first[1]
    assert problem in first[2]


def test_one_changed_fragment_of_an_answer_is_the_one_that_is_drawn_as_broken(browser: Browser, answer: dict[str, Any]) -> None:
    page = browser.post("/dashboard/verify", {"text": _changed(answer, lambda made: made["fragments"][1].update(content="Made up."))}).text
    verdicts = re.findall(r'<h3>[^<]* <span class="state (good|bad)">', page)

    assert ["good", "bad"] == verdicts


@pytest.mark.parametrize("text", ["{}", '{"fragments": []}', "{not json", '{"format": "evidentia-fragment/1"}', "[1]"])
def test_what_is_no_proof_is_refused_beside_the_field(browser: Browser, text: str) -> None:
    reply = browser.post("/dashboard/verify", {"text": text})

    assert 400 <= reply.status_code < 500
    assert 'role="alert"' in reply.text
    assert "Every link holds" not in reply.text


def test_what_no_hash_speaks_of_is_not_taken_for_proved(browser: Browser, export: dict[str, Any]) -> None:
    added = browser.post("/dashboard/verify", {"text": _changed(export, lambda made: made.update(approved_by="everybody"))})
    repeated = browser.post("/dashboard/verify", {"text": json.dumps(export).replace('{"format"', '{"content": "Other.", "format"', 1)})

    assert (422, 422) == (added.status_code, repeated.status_code)
    assert "there is something else at" in added.text
    assert "is there twice" in repeated.text


def test_nothing_and_two_things_at_once_are_refused(browser: Browser, export: dict[str, Any]) -> None:
    files = {"file": ("fragment.json", json.dumps(export).encode(), "application/json")}

    assert 422 == browser.post("/dashboard/verify").status_code
    assert 422 == browser.post("/dashboard/verify", {"text": json.dumps(export)}, files=files).status_code


def test_a_chunk_and_a_document_of_the_base_are_checked_by_their_ids(browser: Browser, export: dict[str, Any]) -> None:
    chunk = browser.client.get("/dashboard/verify", params={"target": export["chunk_id"]}).text
    document = browser.client.get("/dashboard/verify", params={"target": export["document_id"]}).text

    assert "Every link holds" in chunk
    assert '<ol class="links">' in chunk
    assert "Every link holds" in document
    assert '<ol class="links">' not in document


def test_a_chain_without_an_origin_says_so(export: dict[str, Any]) -> None:
    bare = msgspec.convert({**export, "provenance_chain": []}, FragmentExport)
    fault = BrokenLink(check="chain", where="link 0", problem="the chain does not begin with an origin")
    chain = chains_of(bare, VerifyReport(ok=False, target="it", broken=(fault,)))[0]

    assert ("Origin", ("the chain does not begin with an origin",)) == (chain.links[1].name, chain.links[1].faults)
    assert 1 == chain.first_broken
