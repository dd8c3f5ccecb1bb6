"""JSON-RPC over a real socket: the same operations, the same rules, the same refusals as REST."""

from __future__ import annotations

import json
import os
import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role, TokenFacts, TokenLimits
from evidentia.serving.jsonrpc import dispatch
from evidentia.serving.jsonrpc.openrpc import openrpc_document
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.wiring.embedded import create
from serving.rest_planes import SEED_BODY, Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

pytest.importorskip("starlette", reason="the extra `server` is not installed")

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("jsonrpc_openrpc.json")
PAGE = ROOT / "docs" / "jsonrpc.md"
DATA = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data")) / "openrpc" / "openrpc-1.3.schema.json"
DOCUMENT = json.loads(json.dumps(openrpc_document(ENDPOINTS, version="golden")))
TENANTS = count(1)


def call(method: str, reply_to: int | None = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params} | ({} if reply_to is None else {"id": reply_to})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("plane") / "base"
    create(base)
    with serving(base) as served:
        yield served


@pytest.fixture
def plane(shared: Served) -> Served:
    """Return the plane as a tenant of its own sees it."""
    return shared.within(f"rpc{next(TENANTS)}")


def result(client: httpx2.Client, method: str, **params: Any) -> Any:
    reply = client.post("/rpc", json=call(method, **params))
    assert 200 == reply.status_code, reply.text
    return reply.json()["result"]


def error(client: httpx2.Client, method: str, **params: Any) -> dict[str, Any]:
    reply = client.post("/rpc", json=call(method, **params))
    assert (200, 1) == (reply.status_code, reply.json()["id"]), reply.text
    return dict(reply.json()["error"])


def test_evidence_is_the_same_as_over_rest(shared: Served) -> None:
    documents = [{"id": "rotation", "text": "Keys are rotated every ninety days by the security team."}]
    report = result(shared.admin, "ingest", documents=documents, source="handbook")
    asked = {"query": {"text": "how often are keys rotated?"}, "limit": 3, "as_of": "2031-01-01T00:00:00Z"}
    over_rpc = result(shared.admin, "retrieve", **asked)
    over_rest = shared.admin.post("/v1/evidence", json=asked).json()

    assert 1 == report["added"] + report["unchanged"]
    assert over_rest["result_hash"] == over_rpc["result_hash"]
    assert ["Keys are rotated every ninety days by the security team."] == [each["content"] for each in over_rpc["fragments"]]


def test_what_stands_in_paths_queries_and_headers_over_rest_is_a_parameter_here(plane: Served) -> None:
    created = result(plane.admin, "create_policy", **SEED_BODY)
    policy_id = created["policy"]["policy_id"]
    shown = result(plane.reader, "show_policy", id=policy_id)
    listed = result(plane.reader, "list_policies", limit=1)
    stale = error(plane.admin, "change_policy", id=policy_id, if_match='"7"', enabled=False)
    changed = result(plane.admin, "change_policy", id=policy_id, if_match='"1"', enabled=False)

    assert created == shown == listed["policies"][0]
    assert (dispatch.CHANGED, 2) == (stale["code"], changed["policy"]["version"])


def test_a_fault_says_what_rest_says(plane: Served) -> None:
    refused = error(plane.reader, "list_policies", limits=3)
    over_rest = plane.reader.get("/v1/policies?limits=3").json()["error"]

    assert (dispatch.INVALID_PARAMS, over_rest) == (refused["code"], refused["data"])
    assert over_rest["message"] == refused["message"]


@pytest.mark.parametrize(
    ("role", "sent", "expected"),
    [
        (Role.READER, call("create_policy", **SEED_BODY), (dispatch.FORBIDDEN, "wrong_role")),
        (Role.READER, call("show_run", id="nobody"), (dispatch.NOT_FOUND, "not_found")),
        (Role.ADMIN, call("doctor"), (dispatch.FORBIDDEN, "wrong_tenant")),
        (Role.ADMIN, call("create_policy", name="x", category="x"), (dispatch.INVALID_PARAMS, "policy_invalid")),
        (Role.READER, call("no_such_method"), (dispatch.METHOD_NOT_FOUND, "method_not_found")),
        (Role.READER, call("rpc.other"), (dispatch.METHOD_NOT_FOUND, "method_not_found")),
        (Role.READER, call("retrieve_stream", query={"text": "x"}), (dispatch.METHOD_NOT_FOUND, "not_over_json_rpc")),
        (Role.READER, call("retrieve", query={"text": "x" * (1 << 20)}), (dispatch.TOO_LARGE, "body_too_large")),
        (Role.READER, call("retrieve"), (dispatch.INVALID_PARAMS, "invalid_field")),
    ],
)
def test_every_refusal_has_its_number(plane: Served, role: Role, sent: dict[str, Any], expected: tuple[int, str]) -> None:
    refused = error(plane.client(role), sent["method"], **sent["params"])

    assert expected == (refused["code"], refused["data"]["code"])
    assert refused["data"]["hint"]


def test_a_stream_names_the_ways_that_have_it(plane: Served) -> None:
    hint = error(plane.reader, "retrieve_stream")["data"]["hint"]

    assert "POST /v1/evidence/stream" in hint
    assert "RetrieveStream" in hint


def test_each_role_may_call_its_methods_and_no_others(plane: Served) -> None:
    for role in Role:
        offered = [each for each in ENDPOINTS if not each.is_stream and each.name != "revoke_token"]
        calls = [call(each.name, place) for place, each in enumerate(offered)]
        answers = [
            answer
            for start in range(0, len(calls), 50)
            for answer in plane.client(role).post("/rpc", json=calls[start : start + 50]).json()
        ]
        for endpoint, answer in zip(offered, answers, strict=True):
            is_refused = answer.get("error", {}).get("data", {}).get("code") == "wrong_role"
            assert (role not in endpoint.roles) == is_refused, (role, endpoint.name, answer)


def test_who_holds_no_token_is_refused_before_anything_is_read(shared: Served) -> None:
    for headers in ({}, {"authorization": "Bearer evt_x_y"}):
        reply = shared.nobody.post("/rpc", content=b"[not even json", headers=headers)

        assert (401, dispatch.UNAUTHORIZED, None) == (reply.status_code, reply.json()["error"]["code"], reply.json()["id"])
        assert reply.headers["www-authenticate"].startswith("Bearer")


def test_other_media_and_methods_are_refused(shared: Served) -> None:
    text = shared.reader.post("/rpc", content=b"{}", headers={"content-type": "text/plain"})

    assert (415, dispatch.WRONG_TYPE) == (text.status_code, text.json()["error"]["code"])
    assert 405 == shared.reader.get("/rpc").status_code


def test_notifications_are_done_and_not_answered(plane: Served) -> None:
    reply = plane.admin.post("/rpc", json=[call("create_policy", None, **SEED_BODY), call("create_policy", None)])

    assert (204, b"") == (reply.status_code, reply.content)
    assert ["RAG Quality Guard"] == [each["policy"]["body"]["name"] for each in result(plane.reader, "list_policies")["policies"]]


def test_a_batch_sees_what_it_wrote_before(plane: Served) -> None:
    calls = [call("list_policies", 0), call("create_policy", 1, **SEED_BODY), call("list_policies", 2), {"foo": "boo"}]
    answers = plane.admin.post("/rpc", json=calls).json()

    assert [0, 1] == [len(answers[place]["result"]["policies"]) for place in (0, 2)]
    assert [0, 1, 2, None] == [each["id"] for each in answers]


def test_every_call_of_a_batch_counts_against_the_limits_of_its_token(shared: Served) -> None:
    facts = TokenFacts(limits=TokenLimits(requests_per_minute=2))
    token = shared.control.tokens.issue(name="slow", roles=(Role.READER,), tenant="default", by="test", facts=facts).token
    calls = [call("show_head", place) for place in range(3)]
    answers = shared.nobody.post("/rpc", json=calls, headers={"authorization": f"Bearer {token}"}).json()
    refused = answers[2]["error"]

    assert [True, True, False] == ["result" in each for each in answers]
    assert (dispatch.TOO_MANY, "rate_limited") == (refused["code"], refused["data"]["code"])
    assert refused["data"]["retry_after_s"] >= 1


def test_what_does_not_parse_is_answered_in_the_protocol(shared: Served) -> None:
    reply = shared.reader.post("/rpc", content=b'{"jsonrpc":', headers={"content-type": "application/json"})

    assert (200, dispatch.PARSE_ERROR) == (reply.status_code, reply.json()["error"]["code"])


# --- the description ---


def test_the_description_is_the_golden_one() -> None:
    """When this fails and the change is meant, write `jsonrpc_openrpc.json` anew from `openrpc_document`."""
    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == DOCUMENT


def test_whoever_has_a_token_may_read_the_description(shared: Served) -> None:
    for role in Role:
        found = result(shared.client(role), "rpc.discover")
        assert DOCUMENT == {**found, "info": {**found["info"], "version": "golden"}}


def test_every_operation_but_streams_is_described_with_parameters_by_name() -> None:
    methods = {each["name"]: each for each in DOCUMENT["methods"]}

    assert {each.name for each in ENDPOINTS if not each.is_stream} == set(methods)
    assert {"by-name"} == {each["paramStructure"] for each in methods.values()}
    assert all("Roles: " in each["description"] for each in methods.values())
    assert ["id"] == [each["name"] for each in methods["show_policy"]["params"] if each["required"]]


def test_every_reference_leads_somewhere_and_every_schema_is_referred_to() -> None:
    text = json.dumps(DOCUMENT)
    named = set(re.findall(r'"#/components/(schemas|errors)/([^"]+)"', text))
    known = {(kind, name) for kind, parts in DOCUMENT["components"].items() for name in parts}

    assert named <= known
    assert {name for kind, name in known - named if kind == "schemas"} == set()
    assert "$defs" not in text


def test_every_error_number_is_described_and_stands_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert {str(code) for code in dispatch.MEANINGS} == set(DOCUMENT["components"]["errors"])
    assert [] == [code for code in dispatch.MEANINGS if f"| `{code}` |" not in page]
    assert set(dispatch.CODE_OF.values()) <= set(dispatch.MEANINGS)


@pytest.mark.skipif(not DATA.exists(), reason="OpenRPC's meta schema is not at hand; set EVIDENTIA_DATA")
def test_the_description_is_openrpc_by_its_meta_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    # The meta schema leaves JSON schemas to another site; these are checked by themselves below.
    elsewhere = {"definitions": {"JSONSchemaObject": {"properties": {"$ref": {"type": "string"}}}}}
    kind = referencing.Resource.from_contents(elsewhere, default_specification=referencing.jsonschema.DRAFT7)
    registry = referencing.Registry().with_resources([("https://meta.json-schema.tools/", kind), ("https://meta.json-schema.tools", kind)])
    meta = json.loads(DATA.read_text(encoding="utf-8"))
    checker = jsonschema.Draft7Validator({**meta, "$schema": "http://json-schema.org/draft-07/schema#"}, registry=registry)

    assert [] == [problem.message for problem in checker.iter_errors(DOCUMENT)]
    assert [] != list(checker.iter_errors({**DOCUMENT, "methods": [{"name": 1}]}))
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
