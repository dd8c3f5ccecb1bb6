"""Evidence over HTTP: the same answer as in the process, in parts, checked, explained, and only to whoever may see it."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import httpx2
import msgspec
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

import evidentia
from evidentia.contracts.access import Principal
from evidentia.contracts.control import Role, TokenFacts
from evidentia.contracts.errors import BaseFullError
from evidentia.contracts.evidence import EvidenceResponse, StreamEvent
from evidentia.contracts.ids import PrincipalId, TenantId
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.operations.document_endpoints import source_of
from evidentia.serving.operations.endpoint import Endpoint
from evidentia.serving.rest.http_exchange import streamed
from serving.rest_planes import Served, serving
from serving.served_bases import LEVELS, A, B, asked, cleared, made, picture

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.operations.endpoint import OperationRequest
    from evidentia.serving.operations.server_context import ServerContext

SHELF = source_of("shelf", tenant=A)
NOW = "2099-01-01T00:00:00Z"
STREAM = "/v1/evidence/stream"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(made(tmp_path_factory.mktemp("served"))) as served:
        yield served


@pytest.fixture(scope="module")
def acme(shared: Served) -> Served:
    return shared.within(A)


@pytest.fixture(scope="module")
def reader(acme: Served) -> httpx2.Client:
    return cleared(acme, "confidential")


def problem(reply: httpx2.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["code"]


# --- asking ---


@pytest.mark.parametrize("level", LEVELS)
def test_the_answer_is_the_one_of_the_process(shared: Served, acme: Served, level: str) -> None:
    over_http = asked(cleared(acme, level, groups=("oncall",)), "when does the key expire", limit=20, as_of=NOW)
    principal = Principal(
        principal_id=PrincipalId("reader"),
        tenant=TenantId(A),
        clearance=Classification(level),
        roles=("reader",),
        groups=("oncall",),
    )
    with evidentia.connect(shared.control.directory, principal=principal) as base:
        inside = base.retrieve("when does the key expire", limit=20, latency_deadline_ms=20_000, as_of=datetime.fromisoformat(NOW))

    assert inside.result_hash == over_http["result_hash"]
    assert [each.chunk_id for each in inside.fragments] == [each["chunk_id"] for each in over_http["fragments"]]
    assert LEVELS.index(level) + 1 == sum(
        each["document_id"].rpartition(":")[2].removesuffix(".md") in LEVELS for each in over_http["fragments"]
    )


def test_nobody_is_answered_from_another_tenant(shared: Served) -> None:
    for tenant, other in ((A, "beacon"), (B, "anvil")):
        answer = asked(cleared(shared.within(tenant), "restricted", groups=("oncall",)), f"{other} key pager plan", limit=50, explain=True)
        assert other not in json.dumps([each["content"] for each in answer["fragments"]])
        assert {source_of("shelf", tenant=tenant)} == {each["source_id"] for each in answer["fragments"]}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "query"),
    ({"query": {"text": "key"}, "limit": 0}, "limit"),
    ({"query": {"text": "key"}, "limit": 10_001}, "limit"),
    ({"query": {"text": "key"}, "token_budget": "many"}, "token_budget"),
    ({"query": {"text": "key"}, "mode": "psychic"}, "mode"),
    ({"query": {"text": "key"}, "filter": "((("}, "filter"),
    ({"query": {"text": ""}}, "query"),
]


@pytest.mark.parametrize(("body", "field"), WRONG)
@pytest.mark.parametrize("path", ["/v1/evidence", STREAM])
def test_a_wrong_field_is_named_before_anything_is_sent(reader: httpx2.Client, path: str, body: dict[str, Any], field: str) -> None:
    reply = reader.post(path, json=body)

    assert 422 == reply.status_code, reply.text
    assert field in reply.json()["error"]["message"]
    assert "application/json" == reply.headers["content-type"]


# --- in parts ---


def parts_of(reply: httpx2.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in reply.text.splitlines()]


def test_the_stream_ends_in_the_answer_of_the_plain_request(reader: httpx2.Client) -> None:
    body = {"query": {"text": "when does the key expire"}, "latency_deadline_ms": 20_000, "as_of": NOW}
    whole = reader.post("/v1/evidence", json=body).json()
    reply = reader.post(STREAM, json=body)
    parts = parts_of(reply)
    events = [msgspec.json.decode(line, type=StreamEvent) for line in reply.content.splitlines()]

    assert (200, "application/x-ndjson") == (reply.status_code, reply.headers["content-type"])
    assert len(events) == len(parts) > 1
    assert whole["result_hash"] == parts[-1]["response"]["result_hash"]


def test_server_sent_events_carry_the_same_parts(reader: httpx2.Client) -> None:
    body = {"query": {"text": "pager"}, "latency_deadline_ms": 20_000, "as_of": NOW}
    lines = parts_of(reader.post(STREAM, json=body))
    reply = reader.post(STREAM, json=body, headers={"accept": "text/event-stream"})
    events = [json.loads(each.removeprefix("data: ")) for each in reply.text.split("\n\n") if each]

    assert reply.headers["content-type"].startswith("text/event-stream")
    assert [each["event"] for each in lines] == [each["event"] for each in events]
    assert lines[-1]["response"]["result_hash"] == events[-1]["response"]["result_hash"]


def test_a_refusal_before_the_first_part_is_a_refusal(reader: httpx2.Client) -> None:
    reply = reader.post(STREAM, json={"query": {"text": "key"}, "corpus_version": "0" * 64}, headers={"accept": "text/event-stream"})

    assert 404 == reply.status_code
    assert "application/json" == reply.headers["content-type"]


FAULTS = [(BaseFullError("/somewhere"), "base_full"), (RuntimeError("the secret word is xyzzy"), "internal")]


@pytest.mark.parametrize(("fault", "code"), FAULTS)
@pytest.mark.parametrize("accepted", ["application/x-ndjson", "text/event-stream"])
def test_a_fault_after_the_first_part_is_the_last_part(fault: Exception, code: str, accepted: str) -> None:
    async def answer(_: ServerContext, __: OperationRequest) -> AsyncGenerator[dict[str, int], None]:
        yield {"part": 1}
        raise fault

    endpoint = Endpoint("failing", "POST /", (Role.READER,), None, summary="Fail", description="Fail.", is_stream=True, answer=answer)

    async def door(request: Request) -> Response:
        return await streamed(None, endpoint, lambda: None, request)  # type: ignore[arg-type,return-value]  # no plane

    async def reply_of() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=Starlette(routes=[Route("/", door, methods=["POST"])]))
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.post("/", headers={"accept": accepted})

    reply = asyncio.run(reply_of())

    first, last = [json.loads(each.removeprefix("data: ")) for each in reply.text.splitlines() if each]
    assert (200, {"part": 1}, "error", code) == (reply.status_code, first, last["event"], last["error"]["code"])
    assert "xyzzy" not in reply.text


# --- checking ---


def test_an_answer_is_verified_and_the_first_broken_link_is_named(reader: httpx2.Client) -> None:
    answer = asked(reader, "when does the key expire")
    good = reader.post("/v1/verify", json={"response": answer})
    changed = json.loads(json.dumps(answer))
    changed["fragments"][1]["content"] += " Or never."
    bad = reader.post("/v1/verify", json={"response": changed}).json()

    assert (200, True, []) == (good.status_code, good.json()["ok"], good.json()["broken"])
    assert not bad["ok"]
    assert answer["fragments"][1]["chunk_id"] in bad["broken"][0]["where"]


def test_every_change_of_a_custody_record_is_found(reader: httpx2.Client) -> None:
    answer = asked(reader, "when does the key expire")
    for link in range(3):
        changed = json.loads(json.dumps(answer))
        chain = changed["fragments"][0]["provenance_chain"]
        chain[link]["hash"] = "0" * 64
        report = reader.post("/v1/verify", json={"response": changed}).json()
        assert not report["ok"]
        assert report["broken"]


@pytest.mark.parametrize("body", [{}, {"target": "x", "export": None, "response": None, "more": 1}, {"target": ""}])
def test_exactly_one_thing_is_verified(reader: httpx2.Client, body: dict[str, Any]) -> None:
    assert 422 == reader.post("/v1/verify", json=body).status_code


def test_a_document_or_chunk_is_verified_by_who_may_see_it(shared: Served, reader: httpx2.Client) -> None:
    other = cleared(shared.within(B), "restricted")
    name = f"{SHELF}:public.md"
    mine = reader.post("/v1/verify", json={"target": name})
    theirs, nothing = other.post("/v1/verify", json={"target": name}), other.post("/v1/verify", json={"target": "x"})

    assert (200, True) == (mine.status_code, mine.json()["ok"])
    assert (404, 404) == (theirs.status_code, nothing.status_code)


def test_a_fragment_is_exported_and_verified_elsewhere(shared: Served, reader: httpx2.Client) -> None:
    chunk = asked(reader, "when does the key expire")["fragments"][0]["chunk_id"]
    export = reader.get("/v1/export", params={"chunk": chunk})
    other = cleared(shared.within(B), "public")
    changed = json.loads(export.text)
    changed["content"] = "Keys last for ever."

    assert 200 == export.status_code
    assert other.post("/v1/verify", json={"export": export.json()}).json()["ok"]
    assert not other.post("/v1/verify", json={"export": changed}).json()["ok"]
    assert 404 == other.get("/v1/export", params={"chunk": chunk}).status_code


# --- receipts ---


def test_a_receipt_is_read_replayed_and_asked_by_whose_it_is(reader: httpx2.Client) -> None:
    answer = asked(reader, "when does the key expire")
    path = f"/v1/receipts/{answer['receipt_id']}"
    view = reader.get(path).json()
    replayed = reader.post(f"{path}/replay").json()
    inside = reader.get(f"{path}/why", params={"chunk": answer["fragments"][0]["chunk_id"]}).json()

    assert (answer["result_hash"], "when does the key expire", "reader") == (view["result_hash"], view["query"], view["principal_id"])
    assert [each["chunk_id"] for each in answer["fragments"]] == view["fragments"]
    assert replayed["is_same"]
    assert inside["chunk_id"] == answer["fragments"][0]["chunk_id"]
    assert 422 == reader.get(f"{path}/why").status_code


def test_receipts_of_others_are_for_auditors_and_admins_of_the_tenant(shared: Served, acme: Served, reader: httpx2.Client) -> None:
    receipt = asked(reader, "when does the key expire")["receipt_id"]
    same_tenant = cleared(acme, "restricted", name="somebody else")
    chunk = asked(reader, "when does the key expire")["fragments"][0]["chunk_id"]
    may, may_not = [acme.client(Role.AUDITOR), acme.admin], [same_tenant, acme.agent, *(shared.within(B).client(role) for role in Role)]

    def told(client: httpx2.Client) -> list[int]:
        path = f"/v1/receipts/{receipt}"
        why = client.get(f"{path}/why", params={"chunk": chunk})
        return [client.get(path).status_code, why.status_code, client.post(f"{path}/replay").status_code]

    assert [[200] * 3] * 2 == [told(client) for client in may]
    assert [[404] * 3] * 6 == [told(client) for client in may_not]


def test_a_receipt_that_is_not_there_and_somebody_elses_read_alike(shared: Served, reader: httpx2.Client) -> None:
    receipt = asked(reader, "when does the key expire")["receipt_id"]
    other = shared.within(B).client(Role.AUDITOR)
    missing = receipt[:-1] + ("0" if receipt[-1] != "0" else "1") + "9999"
    for method, rest in (("GET", ""), ("GET", "/why?chunk=x"), ("POST", "/replay")):
        theirs, nothing = other.request(method, f"/v1/receipts/{receipt}{rest}"), other.request(method, f"/v1/receipts/{missing}{rest}")
        assert theirs.content.replace(receipt.encode(), b"ID") == nothing.content.replace(missing.encode(), b"ID")


def test_an_auditors_questions_about_receipts_stay_within_the_tenant(shared: Served, acme: Served, reader: httpx2.Client) -> None:
    receipt = asked(reader, "when does the key expire")["receipt_id"]
    theirs = asked(cleared(shared.within(B), "restricted"), "when does the key expire")["fragments"][0]["chunk_id"]
    missing = theirs[:-4] + ("0000" if not theirs.endswith("0000") else "1111")
    auditor = acme.client(Role.AUDITOR)
    of_others = auditor.get(f"/v1/receipts/{receipt}/why", params={"chunk": theirs})
    of_nobody = auditor.get(f"/v1/receipts/{receipt}/why", params={"chunk": missing})

    assert (404, 404) == (of_others.status_code, of_nobody.status_code)
    assert of_others.text.replace(theirs, "") == of_nobody.text.replace(missing, "")


# --- in the name of others ---


def spoken(client: httpx2.Client, **principal: Any) -> httpx2.Response:
    claimed = {"principal_id": "alice", "tenant": A, "clearance": "internal", **principal}
    return client.post("/v1/evidence", json={"query": {"text": "key expire pager"}, "principal": claimed, "limit": 50})


def test_a_principal_in_the_body_is_for_delegates_alone(acme: Served) -> None:
    plain, delegate = cleared(acme, "confidential"), cleared(acme, "confidential", is_delegate=True, name="gateway")

    assert (403, "not_your_principal") == problem(spoken(plain))
    assert (403, "not_your_principal") == problem(spoken(acme.admin))
    for claim in ({"tenant": B}, {"tenant": "default"}, {"clearance": "restricted"}, {"is_owner": True}):
        assert (403, "not_your_principal") == problem(spoken(delegate, **claim)), claim


def test_a_delegate_is_answered_as_whom_it_speaks_for(acme: Served) -> None:
    delegate = cleared(acme, "confidential", is_delegate=True, name="gateway")
    low, high, oncall = (
        spoken(delegate, clearance="public"),
        spoken(delegate, clearance="confidential"),
        spoken(delegate, groups=["oncall"]),
    )

    def documents(reply: httpx2.Response) -> set[str]:
        return {each["document_id"].rpartition(":")[2] for each in reply.json()["fragments"]}

    assert {"public.md"} == documents(low)
    assert {"public.md", "internal.md", "confidential.md"} <= documents(high)
    assert "oncall.md" in documents(oncall) - documents(high)
    assert 404 == delegate.get(f"/v1/receipts/{low.json()['receipt_id']}").status_code


def test_the_own_principal_may_be_said(acme: Served) -> None:
    own = {"principal_id": "reader", "clearance": "public", "roles": ["reader"]}

    assert 200 == spoken(cleared(acme, "public"), **own).status_code


SPOOFS = {
    "x-forwarded-user": "root",
    "x-user": "root",
    "x-tenant": B,
    "x-forwarded-for": "127.0.0.1",
    "x-real-ip": "127.0.0.1",
    "x-remote-user": "local-owner",
    "remote-user": "local-owner",
    "x-evidentia-principal": '{"is_owner": true}',
    "x-evidentia-tenant": B,
    "x-original-url": "/v1/base/gc",
    "x-http-method-override": "DELETE",
    "cookie": "session=root; evidentia_session=root",
    "forwarded": "for=127.0.0.1;proto=https",
}


@pytest.mark.parametrize("name", sorted(SPOOFS))
def test_no_header_says_who_asks(acme: Served, name: str) -> None:
    client = cleared(acme, "public")
    body = {"query": {"text": "key expire pager"}, "limit": 50, "latency_deadline_ms": 20_000, "as_of": NOW}

    plain = client.post("/v1/evidence", json=body).json()
    told = client.post("/v1/evidence", json=body, headers={name: SPOOFS[name]}).json()

    assert plain["result_hash"] == told["result_hash"]
    assert 401 == acme.nobody.post("/v1/evidence", json=body, headers={name: SPOOFS[name]}).status_code


# --- tables, images, layouts ---


def test_tables_are_listed_opened_and_asked_within_the_tenant(shared: Served, reader: httpx2.Client) -> None:
    [card] = reader.get("/v1/tables").json()["tables"]
    opened = reader.get("/v1/tables/cells", params={"table": card["table_id"]})
    answer = reader.post("/v1/tables/ask", json={"question": "what is the price of the anvil?"})
    other = cleared(shared.within(B), "restricted")

    assert (200, "anvil" in opened.text) == (opened.status_code, True)
    assert 200 == answer.status_code
    assert 404 == other.get("/v1/tables/cells", params={"table": card["table_id"]}).status_code
    elsewhere = other.post("/v1/tables/ask", json={"question": "what is the price of the anvil?"}).json()
    assert [] == elsewhere["rows"]
    assert "anvil" not in json.dumps(elsewhere["tables"])


def test_an_image_is_shown_to_who_may_see_its_document(shared: Served, reader: httpx2.Client) -> None:
    layout = reader.get("/v1/layout", params={"document": f"{SHELF}:drawing.md"}).json()["layout"]
    name = layout["images"][0]["image_hash"]
    shown = reader.get(f"/v1/images/{name}")
    other = cleared(shared.within(B), "restricted")
    missing = "0" * 64

    assert ("image/png", picture(len(A))) == (shown.json()["media_type"], base64.b64decode(shown.json()["content"]))
    theirs, nothing = other.get(f"/v1/images/{name}"), other.get(f"/v1/images/{missing}")
    assert (404, 404) == (theirs.status_code, nothing.status_code)
    assert theirs.text.replace(name, "") == nothing.text.replace(missing, "")
    assert 404 == cleared(shared.within(A), "public").get(f"/v1/images/{name}").status_code
    assert 404 == other.get("/v1/layout", params={"document": f"{SHELF}:drawing.md"}).status_code


# --- notes ---


def test_notes_are_their_writers_alone(shared: Served, acme: Served) -> None:
    writer = acme.holding(acme.token(Role.AGENT, name="writer"))
    others = [acme.agent, acme.admin, shared.within(B).holding(shared.within(B).token(Role.AGENT, name="writer"))]
    note = writer.post("/v1/notes", json={"text": "the anvil is in the cellar", "session": "s"})
    note_id = note.json()["note_id"]

    assert 201 == note.status_code
    assert [note_id] == [each["note_id"] for each in writer.get("/v1/notes", params={"session": "s"}).json()["notes"]]
    assert [] == writer.get("/v1/notes", params={"session": "t"}).json()["notes"]
    for client in others:
        assert "cellar" not in client.get("/v1/notes").text
        assert 0 == client.post("/v1/notes/forget", json={"note_ids": [note_id]}).json()["count"]
    assert 1 == writer.post("/v1/notes/forget", json={"note_ids": [note_id, note_id]}).json()["count"]
    assert [] == writer.get("/v1/notes").json()["notes"]


@pytest.mark.parametrize(
    "body", [{"text": ""}, {"text": "x", "ttl_s": 0}, {"text": "x", "authority": "divine"}, {"text": "x", "principal": "y"}]
)
def test_a_note_that_cannot_be_right_is_refused(acme: Served, body: dict[str, Any]) -> None:
    assert 422 == acme.agent.post("/v1/notes", json=body).status_code


def test_an_answer_fits_its_contract(reader: httpx2.Client) -> None:
    reply = reader.post("/v1/evidence", json={"query": {"text": "key"}, "explain": True, "facets": ["content_type"]})

    assert msgspec.json.decode(reply.content, type=EvidenceResponse).fragments


def test_facts_of_a_token_decide(acme: Served) -> None:
    facts = TokenFacts(clearance=Classification.PUBLIC)
    client = acme.holding(acme.token(Role.ADMIN, name="low admin", facts=facts))

    assert {f"{SHELF}:public.md"} == {each["document_id"] for each in asked(client, "key expire", limit=50)["fragments"]}
