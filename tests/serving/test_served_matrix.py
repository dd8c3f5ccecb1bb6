"""Every role, operation, door and tenant, and every field that only the server sets: made from the list of operations.

What is allowed is answered; everything else is refused, and what belongs to somebody else reads like what is not there.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import grpc
import msgspec
import pytest
from mcp import MCPError

from evidentia.contracts.control import Role, TokenFacts
from evidentia.contracts.operations import OPERATIONS
from evidentia.contracts.runs import OWNED_FACTS
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.operations.document_endpoints import source_of
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel
from serving.dashboard_doors import serving_dashboard
from serving.grpc_doors import BY_NAME as RPC
from serving.grpc_doors import GrpcServed, fault_in, grpc_serving
from serving.mcp_doors import http_door, over_http, text_of
from serving.rest_planes import GOOD, SEED_BODY, Served, serving
from serving.served_bases import PLAIN, TENANTS, A, B, asked, made

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import httpx2

    from evidentia.serving.operations.endpoint import Endpoint

ROLES = (*Role, None)
"""None is nobody: no token."""
HOMES = ("default", *TENANTS)
BY_NAME = {each.name: each for each in ENDPOINTS}
UNLIMITED = f"{PLAIN}[server]\nrequests_per_minute = 0\n"
Outcome = tuple[int, str]
Body = dict[str, Any]

# --- how each operation is asked for something that is there ---

BODIES: dict[str, Body] = {
    "retrieve": {"query": "key", "latency_deadline_ms": 20_000},
    "retrieve_stream": {"query": "key", "latency_deadline_ms": 20_000},
    "verify": {"target": "{document}"},
    "ask_tables": {"question": "price of a nut"},
    "remember": {"text": "a note"},
    "forget": {"note_ids": ["x"]},
    "ingest": {"documents": [{"id": "one", "text": "text"}], "embed": False},
    "remove_documents": {"document_ids": ["{document}"]},
    "set_access": {"document_ids": ["{document}"]},
    "add_source": {"source_id": "notes", "connection": {"kind": "memory"}},
    "test_source": {"query": "key"},
    "create_policy": {**SEED_BODY, "name": "made by {role}"},
    "push_policies": {"policies": [{**SEED_BODY, "name": "pushed"}], "dry_run": True},
    "replace_policy": {**SEED_BODY, "name": "guard of {tenant}"},
    "change_policy": {"enabled": True},
    "start_run": {"facts": {"agent_name": "a", "run_id": ""}},
    "record_calls": {"calls": [{"seq": 1, "call": GOOD}]},
    "end_run": {},
    "try_policy": {"policy": {**SEED_BODY, "name": "tried"}},
    "put_secret": {"value": "x"},
    "issue_token": {"name": "new", "roles": ["reader"]},
    "collect": {},
    "flush_cache": {},
    "warm_cache": {"questions": []},
}
PATHS = {"replay": "receipt", "show_receipt": "receipt", "why": "receipt", "show_image": "image", "remove_source": "source",
    "test_source": "source", "source_changed": "source", "show_policy": "policy", "replace_policy": "policy", "change_policy": "policy",
    "remove_policy": "policy", "list_policy_versions": "policy", "show_run": "run", "record_calls": "run", "end_run": "run",
    "list_run_decisions": "run", "show_trace": "run", "show_secret": "secret", "put_secret": "secret", "remove_secret": "secret",
    "revoke_token": "token", "show_request": "request"}  # fmt: skip
QUERIES = {"chunk": "chunk", "table": "table", "document": "document", "rule": "rule", "older": "older", "newer": "newer"}
OWNED = {"run", "receipt", "log"}
"""Kinds of things that belong to one principal and not to a tenant as a whole."""
MISSING = {"policy": "00000000000000000000", "receipt": f"r-000000000000-{'0' * 32}", "token": "000000000000", "secret": "OF_NOBODY",
    "image": "0" * 64, "log": "no-such-log", "seq": "1", "chunk": "x:y.md#0@0000000000000000", "table": "x:y.csv#S1T1",
    "document": "x:y.md", "run": "no-such-run", "source": "nowhere", "request": "0" * 16, "rule": "min_relevance_score",
    "older": "0", "newer": "0"}  # fmt: skip
NO_FIRST_PERSON = {"verify_log", "calibrate_rule", "try_policy"}
ANYTHING = {"test_source", "source_changed", "remove_source", "show_request", "calibrate_rule", "forget"}
"""What answers 404 or 422 also to who may ask, since this base has nothing of the kind, or only one that a test may not take away."""


def things_of(plane: Served, agent: httpx2.Client) -> dict[str, str]:
    """Make one of everything in a tenant, as one agent, and return what it is called."""
    facts = TokenFacts(clearance=Classification.RESTRICTED)
    admin = plane.holding(plane.token(Role.ADMIN, name="founder", facts=facts))
    source = source_of("shelf", tenant=plane.tenant if plane.tenant != "default" else A)
    run = agent.post("/v1/runs", json={"facts": {"agent_name": "a"}}).json()["run_id"]
    assert 200 == agent.post(f"/v1/runs/{run}/calls", json={"calls": [{"seq": 1, "call": GOOD}]}).status_code
    policy = admin.post("/v1/policies", json={**SEED_BODY, "scope": {}, "name": f"guard of {plane.tenant}"}).json()["policy"]["policy_id"]
    answer = asked(agent, "key expire")
    decision = agent.get("/v1/decisions").json()["decisions"][0]
    assert 200 == admin.put(f"/v1/secrets/OF_{plane.tenant.upper()}", json={"value": "x"}).status_code
    document = f"{source}:drawing.md"
    made_here: dict[str, str] = {}
    if plane.tenant != "default":
        layout = agent.get("/v1/layout", params={"document": document}).json()["layout"]
        made_here = {
            "chunk": answer["fragments"][0]["chunk_id"],
            "table": agent.get("/v1/tables").json()["tables"][0]["table_id"],
            "image": layout["images"][0]["image_hash"],
            "document": document,
        }
    return {
        **{name: MISSING[name] for name in ("chunk", "table", "image", "document", "source", "request", "rule", "older", "newer")},
        **made_here,
        "policy": policy,
        "run": run,
        "receipt": answer["receipt_id"],
        "log": decision["log"],
        "seq": str(decision["seq"]),
        "secret": f"OF_{plane.tenant.upper()}",
        "token": admin.post("/v1/tokens", json={"name": "spare", "roles": ["reader"]}).json()["info"]["token_id"],
    }


def kinds_of(endpoint: Endpoint) -> set[str]:
    """Return the kinds of things that a request for an operation names."""
    found = {PATHS[endpoint.name]} if endpoint.name in PATHS else set()
    found |= {"log"} if "log" in endpoint.path_names else set()
    found |= {field.name for field in endpoint.query if field.name in {"chunk", "table", "document"}}
    return found | ({"document"} if "{document}" in json.dumps(BODIES.get(endpoint.name, {})) else set())


def flat(endpoint: Endpoint, of: Mapping[str, str], *, role: str = "") -> Body:
    """Return the parameters of a request by name, whatever the door."""
    named = {name: of["log"] if name == "log" else int(of["seq"]) if name == "seq" else of.get(PATHS.get(endpoint.name, ""), "retrieval")
        for name in endpoint.path_names}  # fmt: skip
    asked_for = {field.name: of[QUERIES[field.name]] for field in endpoint.query if field.name in QUERIES}
    text = json.dumps(BODIES.get(endpoint.name, {})).replace("{document}", of["document"]).replace("{role}", role)
    return {**named, **asked_for, **json.loads(text.replace("{tenant}", of.get("tenant", "")))}


# --- the doors ---


class Doors:
    """One base behind every door, with a token of every role and tenant; each role has a second one, that began nothing."""

    def __init__(self, rest: Served, over_grpc: GrpcServed) -> None:
        self.rest, self.over_grpc = rest, over_grpc
        self._tokens: dict[tuple[str, Role, str], str] = {}

    def token(self, tenant: str, role: Role | None, who: str = "own") -> str | None:
        if role is None:
            return None
        key = (tenant, role, who)
        if key not in self._tokens:
            facts = TokenFacts(clearance=Classification.RESTRICTED)
            self._tokens[key] = self.rest.within(tenant).token(role, name=f"{who} {role}", facts=facts)
        return self._tokens[key]

    def ask(self, door: str, token: str | None, endpoint: Endpoint, fields: Body) -> Outcome:
        """Return the status that HTTP has or would have, and the code of the refusal with its message."""
        return {"rest": self._rest, "jsonrpc": self._jsonrpc, "grpc": self._grpc}[door](token, endpoint, fields)

    def _client(self, token: str | None) -> httpx2.Client:
        self._clients: dict[str | None, httpx2.Client]
        kept: dict[str | None, Any] = self.__dict__.setdefault("_clients", {})
        if token not in kept:
            kept[token] = self.rest.nobody if token is None else self.rest.holding(token)
        return kept[token]  # type: ignore[no-any-return]  # clients by their tokens

    def _rest(self, token: str | None, endpoint: Endpoint, fields: Body) -> Outcome:
        left = dict(fields)
        path = endpoint.path.format_map({name: left.pop(name) for name in endpoint.path_names})
        query = {field.name: left.pop(field.name) for field in endpoint.query if field.name in left}
        body = left if endpoint.request is not None else None
        reply = self._client(token).request(endpoint.method, path, params=query, json=body)
        if reply.status_code < 300:
            return reply.status_code, ""
        fault = reply.json()["error"]
        return reply.status_code, f"{fault['code']}: {fault['message']}"

    def _jsonrpc(self, token: str | None, endpoint: Endpoint, fields: Body) -> Outcome:
        call = {"jsonrpc": "2.0", "id": 1, "method": endpoint.name, "params": fields}
        reply = self._client(token).post("/rpc", json=call)
        said = reply.json()
        if "error" not in said:
            return reply.status_code, ""
        told = said["error"]["data"]
        status = reply.status_code if reply.status_code != 200 else STATUS.get(told["code"], 422)
        return status, f"{told['code']}: {told['message']}"

    def _grpc(self, token: str | None, endpoint: Endpoint, fields: Body) -> Outcome:
        try:
            self.over_grpc.call(camel(endpoint.name), fields, token=token)
        except msgspec.ValidationError:
            if endpoint.reply is not None:
                raise
            return 200, ""  # an answer without a message of its own, such as a schema
        except grpc.RpcError as error:
            told = fault_in(error)
            return STATUS.get(told["code"], 422), f"{told['code']}: {told['message']}"
        return 200, ""


STATUS = {"missing_token": 401, "invalid_token": 401, "wrong_role": 403, "wrong_tenant": 403, "not_found": 404, "not_yours_to_give": 403}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("matrix"), settings=UNLIMITED)


@pytest.fixture(scope="module")
def doors(base: Path) -> Iterator[Doors]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("EVIDENTIA_SECRET_KEY", "a long text that nobody guesses")
        yield Doors(stack.enter_context(serving(base)), stack.enter_context(grpc_serving(base)))


@pytest.fixture(scope="module")
def things(doors: Doors) -> dict[str, dict[str, str]]:
    """Return what there is in each tenant; its runs and receipts are those of the tenant's own agent."""
    found = {}
    for tenant in HOMES:
        plane, token = doors.rest.within(tenant), doors.token(tenant, Role.AGENT)
        assert token is not None
        found[tenant] = {**things_of(plane, plane.holding(token)), "tenant": tenant}
    return found


CHANGING = {"ingest", "remove_documents", "set_access", "remove_policy", "remove_secret", "revoke_token", "end_run", "collect", "embed",
    "add_source", "create_policy", "put_secret", "replace_policy", "change_policy"}  # fmt: skip
"""What changes what other cells of the matrix look at: tried by who may not, and by who may in `test_who_may_change_things_does`."""


@pytest.mark.parametrize("door", ["rest", "jsonrpc", "grpc"])
def test_every_role_is_answered_or_refused_at_every_operation_in_every_tenant(
    doors: Doors, things: dict[str, dict[str, str]], door: str, capsys: pytest.CaptureFixture[str]
) -> None:
    counted: Counter[str] = Counter()
    wrong: list[tuple[str, ...]] = []
    for endpoint in ENDPOINTS:
        for home in HOMES:
            for role in ROLES:
                token = doors.token(home, role)
                for other in HOMES:
                    outcome = (
                        doors.ask(door, token, endpoint, flat(endpoint, things[other], role=str(role)))
                        if _is_tried(endpoint, role, home, other, door)
                        else None
                    )
                    if outcome is None:
                        continue
                    wanted = expected(endpoint, role, home, other, door)
                    counted[f"{outcome[0]}"] += 1
                    if outcome[0] not in wanted:
                        wrong.append((endpoint.name, str(role), home, other, str(outcome), str(wanted)))
    with capsys.disabled():
        print(f"\n{door}: {sum(counted.values())} cells, {dict(sorted(counted.items()))}")  # noqa: T201 - the counts are to be shown

    assert [] == wrong
    assert 1_500 < sum(counted.values())


def _is_tried(endpoint: Endpoint, role: Role | None, home: str, other: str, door: str) -> bool:
    """Tell whether a cell is asked here: one that would change something is, unless it would."""
    if role is None:
        return home == other == "default"  # from nobody, one is like the other, and too many would be told to wait
    may = role in endpoint.roles and (home == "default" or not endpoint.is_base_wide)
    if endpoint.name in CHANGING and may:
        return home != other and "secret" not in kinds_of(endpoint) and bool(kinds_of(endpoint))
    return not (door == "jsonrpc" and endpoint.is_stream) and (home == other or bool(kinds_of(endpoint)))


def expected(endpoint: Endpoint, role: Role | None, home: str, other: str, door: str) -> set[int]:
    """Return the statuses that a cell of the matrix may have."""
    if role is None:
        return {401}
    if role not in endpoint.roles or (endpoint.is_base_wide and home != "default"):
        return {403}
    kinds = kinds_of(endpoint)
    is_owners = role is Role.AGENT or (role in (Role.AUDITOR, Role.ADMIN) and endpoint.name not in {"record_calls", "end_run"})
    is_there = home == other and (is_owners or not kinds & OWNED)
    has_none = other == "default" and kinds & {"chunk", "table", "image", "document"}
    if endpoint.name in ANYTHING:
        return {200, 404, 422}
    if endpoint.name == "why":
        return {404} if home != other or not is_owners or has_none else {200}
    if door == "grpc" and endpoint.name == "record_calls":
        return {404}  # runs are open in the process that they were begun in, which is another one here
    return {404} if kinds and (not is_there or has_none) else {200, 201}


@pytest.mark.parametrize("door", ["rest", "jsonrpc", "grpc"])
def test_what_is_somebody_elses_reads_like_what_is_not_there(doors: Doors, things: dict[str, dict[str, str]], door: str) -> None:
    """Of another tenant, and of another principal of the same tenant: the same status, the same words."""
    compared = 0
    for endpoint in ENDPOINTS:
        kinds = kinds_of(endpoint) - {"source", "request"}
        if not kinds or endpoint.name == "put_secret":
            continue
        for role in endpoint.roles:
            cases = [(A, B), (B, A)] if not endpoint.is_base_wide else []
            if kinds & OWNED and role in (Role.READER, Role.AGENT):
                cases.append((A, A))
            for home, other in cases:
                token = doors.token(home, role, "second")
                outcomes = [told(doors, door, token, endpoint, of) for of in (things[other], {**MISSING, "seq": things[other]["seq"]})]
                assert outcomes[0] == outcomes[1], (endpoint.name, role, home, other)
                assert 404 == outcomes[0][0], (endpoint.name, role, outcomes)
                compared += 1
    assert 100 < compared


def told(doors: Doors, door: str, token: str | None, endpoint: Endpoint, of: Mapping[str, str]) -> Outcome:
    status, text = doors.ask(door, token, endpoint, flat(endpoint, of))
    for word in sorted({value for name, value in of.items() if name != "tenant"}, key=len, reverse=True):
        text = text.replace(word, "…") if len(word) > 1 else text
    return status, text


# --- doors with a list of their own ---


@pytest.mark.parametrize("role", ROLES, ids=str)
def test_pages_of_the_dashboard_are_for_the_roles_of_what_they_show(
    base: Path, role: Role | None, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = {"/dashboard/traces": "list_runs", "/dashboard/traces/requests": "list_traces", "/dashboard/governance": "list_policies",
        "/dashboard/evidence": "list_documents", "/dashboard/search": "retrieve", "/dashboard/governance/events": "list_events",
        "/dashboard/traces/run?id=no-such-run": "show_trace", "/dashboard/traces/request?id=none": "show_request"}  # fmt: skip
    counted: Counter[int] = Counter()
    with serving_dashboard(base) as door:
        for tenant in HOMES:
            browser = door.browser() if role is None else door.signed_in(role, tenant=tenant, name=f"{role} at the dashboard")
            for page, operation in pages.items():
                endpoint, status = BY_NAME[operation], browser.get(page, follow_redirects=False).status_code
                is_for = role in endpoint.roles and (tenant == "default" or not endpoint.is_base_wide)
                wanted = {303} if role is None else {403} if not is_for else {404} if "id=" in page else {200}
                assert status in wanted, (page, tenant, status)
                counted[status] += 1
    with capsys.disabled():
        print(f"\ndashboard as {role}: {dict(sorted(counted.items()))}")  # noqa: T201 - as above


def test_the_door_for_agents_is_for_agents_and_admins(base: Path) -> None:
    with http_door(base) as door:
        for tenant in HOMES:
            for role in Role:
                token = door.token(f"{role} over mcp", role, tenant=tenant)
                reply = door.post(authorization=f"Bearer {token}")
                wanted = 200 if role in (Role.AGENT, Role.ADMIN) else 403
                assert wanted == reply.status_code, (tenant, role, reply.text)
        assert 401 == door.post(authorization="Bearer evt_000000000000_x").status_code


def test_what_is_somebody_elses_reads_like_nothing_at_the_dashboard_and_over_mcp(base: Path, things: dict[str, dict[str, str]]) -> None:
    of, compared = things[A], 0
    with serving_dashboard(base) as door:
        for role, tenant in ((Role.AGENT, A), (Role.READER, A), (Role.AUDITOR, B), (Role.ADMIN, B)):
            browser = door.signed_in(role, tenant=tenant, name=f"{role} who began nothing")
            for page, kind in (("/dashboard/traces/run?id=", "run"), ("/dashboard/receipts/", "receipt")):
                seen = [browser.get(f"{page}{each[kind]}") for each in (of, MISSING)]
                texts = [each.text.replace(of[kind], "…").replace(MISSING[kind], "…") for each in seen]
                texts = [re.sub(r'name="csrf" value="[^"]+"|<time[^>]*>[^<]*</time>', "", text) for text in texts]
                assert {404} == {each.status_code for each in seen}, (page, role, tenant)
                assert texts[0] == texts[1], (page, role, tenant)
                compared += 1

    async def over_mcp(token: str, url: str) -> None:
        async with over_http(url, token=token) as client:
            told = []
            for each in (of, MISSING):
                verified = text_of(await client.call_tool("verify", {"receipt_id": each["receipt"]}))
                told.append(verified.replace(each["receipt"], "…"))
                for kind in ("receipt", "fragment", "image"):
                    name = each["chunk" if kind == "fragment" else kind]
                    with pytest.raises(MCPError) as raised:
                        await client.read_resource(f"evidentia://{kind}/{quote(name, safe='')}")
                    told[-1] += str(raised.value).replace(quote(name, safe=""), "…").replace(name, "…")
            assert told[0] == told[1]

    with http_door(base) as door_for_agents:
        for role in (Role.AGENT, Role.ADMIN):
            asyncio.run(over_mcp(door_for_agents.token(f"{role} who began nothing", role, tenant=B), door_for_agents.url))
            compared += 4
    assert 16 == compared


# --- fields that only the server sets ---

EXTRA = {"tenant", "principal", "is_owner", "created_by", "judged_by", "judgements", "token_id", "updated_by", "policy_id", "version",
    "digest", "hash", "previous", "seq", "at", "by", "is_redacted", "roles", "clearance", "is_delegate", "owner", "status", "receipt_id",
    "is_enforced", "is_approved", "approved_by", "__class__", "kind"}  # fmt: skip
NEST: dict[str, tuple[str, ...]] = {
    "retrieve": ("query", "principal", "source_policy", "ranking_weights", "time_window"),
    "ingest": ("documents.0",),
    "add_source": ("connection", "access_policy"),
    "create_policy": ("scope",),
    "replace_policy": ("scope",),
    "push_policies": ("policies.0", "policies.0.scope"),
    "try_policy": ("policy", "policy.scope"),
    "start_run": ("facts",),
    "record_calls": ("calls.0", "calls.0.call"),
    "issue_token": ("facts", "facts.limits"),
}
MADE_HERE = {"judged_by", "judgements"}
"""Fields that a request has, since the server fills them in."""
SHAPES: dict[str, Body] = {"query": {"text": "key"}, "principal": {"principal_id": "x"}, "facts.limits": {}}


def reply_only() -> list[str]:
    """Return the fields of replies that no request has, and those that are known to be the server's."""

    def names(kinds: list[Any]) -> set[str]:
        _, components = msgspec.json.schema_components(kinds)
        return {name for schema in components.values() for name in schema.get("properties", {})}

    replies = names([each.reply for each in OPERATIONS if each.reply is not None])
    return sorted((replies - names([each.request for each in OPERATIONS if each.request is not None])) | EXTRA | set(OWNED_FACTS))


def places(endpoint: Endpoint) -> Iterator[tuple[str, Body, Body]]:
    """Yield every object in the body of an operation: where it is, the whole body, and the object in it."""
    for place in ("", *NEST.get("retrieve" if endpoint.name == "retrieve_stream" else endpoint.name, ())):
        body = json.loads(json.dumps(BODIES[endpoint.name]))
        found: Any = body
        walked = ""
        for step in place.split(".") if place else ():
            walked = f"{walked}.{step}".lstrip(".")
            if isinstance(found, list):
                found = found[int(step)]
                continue
            if not isinstance(found.get(step), dict | list):
                found[step] = dict(SHAPES.get(walked, {}))
            found = found[step]
        yield place, body, found


def allowed_at(endpoint: Endpoint, place: str) -> set[str]:
    """Return the fields that the object at a place has, by the schema of the request, its union members together."""
    (schema,), components = msgspec.json.schema_components([endpoint.request], ref_template="{name}")
    kinds = [schema]
    for step in (None, *(place.split(".") if place else ())):
        found = []
        for each in kinds:
            seen = components.get(each.get("$ref", ""), each)
            if step is None:
                found.append(seen)
            elif step.isdigit():
                found += [seen.get("items", {})]
            else:
                found += [seen.get("properties", {}).get(step, {})]
        kinds = [inner for each in found for inner in (each.get("anyOf") or each.get("oneOf") or [each])]
    names = set()
    for each in kinds:
        seen = components.get(each.get("$ref", ""), each)
        for one in seen.get("anyOf") or [seen]:
            names |= set(components.get(one.get("$ref", ""), one).get("properties", {}))
    return names


def cases() -> list[tuple[Endpoint, str, Body, str]]:
    """Return every operation with a body, every object in it, and the body with one field more."""
    found = []
    for endpoint in ENDPOINTS:
        if endpoint.request is None:
            continue
        for place, body, inner in places(endpoint):
            taken = allowed_at(endpoint, place) - MADE_HERE - (set(OWNED_FACTS) if place == "facts" else set())
            taken |= set(OWNED_FACTS) & {"clearance"} if endpoint.name == "issue_token" else set()
            taken |= {"name"} if endpoint.name == "put_secret" else set()
            for name in reply_only():
                if name in taken or (name == "kind" and place.endswith("call")):
                    continue
                inner[name] = {"x": {}} if name == "judgements" else "0"
                found.append((endpoint, place, json.loads(json.dumps(body)), name))
                del inner[name]
    return found


def test_every_operation_with_a_body_is_in_the_table() -> None:
    assert {each.name for each in ENDPOINTS if each.request is not None} == BODIES.keys()


@pytest.mark.parametrize("role", list(Role), ids=str)
def test_a_field_that_the_server_sets_is_refused_from_every_role(
    doors: Doors, things: dict[str, dict[str, str]], role: Role, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over JSON-RPC in batches, which takes the same way as REST from the body on; a sample of them over REST itself."""
    # Where the role is not enough, no field is looked at: one of them is as good as all.
    every = [case for case in cases() if role in case[0].roles or case[3] == "tenant"]
    wrong: list[tuple[object, ...]] = []
    counted: Counter[str] = Counter()
    for home in ("default", A):
        token = doors.token(home, role)
        assert token is not None
        client, own = doors.rest.holding(token), [case for case in every if case[0].is_base_wide == (home == "default")]
        calls = [case for case in own if not case[0].is_stream]
        for begin in range(0, len(calls), 100):
            batch = [
                {"jsonrpc": "2.0", "id": number, "method": endpoint.name, "params": {**path_of(endpoint, things[home]), **body}}
                for number, (endpoint, _, body, _) in enumerate(calls[begin : begin + 100])
            ]
            for said in client.post("/rpc", json=batch).json():
                endpoint, place, _, name = calls[begin + said["id"]]
                fault = said.get("error", {}).get("data", {})
                counted[fault.get("code", "answered")] += 1
                if not is_refused(endpoint, role, fault, name):
                    wrong.append((endpoint.name, place, name, said))
        for endpoint, place, body, name in own[:: max(1, len(own) // 300)]:
            reply = client.request(endpoint.method, endpoint.path.format_map(path_of(endpoint, things[home])), json=body)
            fault = {} if reply.status_code < 300 else reply.json()["error"]
            counted[f"rest {fault.get('code', 'answered')}"] += 1
            if not is_refused(endpoint, role, fault, name):
                wrong.append((endpoint.name, place, name, reply.status_code, fault))
    with capsys.disabled():
        print(f"\nserver-owned fields as {role}: {sum(counted.values())} requests, {dict(sorted(counted.items()))}")  # noqa: T201 - as above

    assert [] == wrong[:20]


def path_of(endpoint: Endpoint, of: Mapping[str, str]) -> dict[str, str]:
    return {name: of.get(PATHS.get(endpoint.name, ""), "x") for name in endpoint.path_names}


def is_refused(endpoint: Endpoint, role: Role, fault: Mapping[str, Any], name: str) -> bool:
    """Tell whether a request was refused for what it should be: the role, else the field, which is named."""
    code = str(fault.get("code", ""))
    if role not in endpoint.roles:
        return code == "wrong_role"
    if name == "principal" and code == "not_your_principal":
        return True
    named = [each["path"] for each in fault.get("problems", ())]
    return code in {"invalid_field", "policy_invalid"} and any(path.rpartition(".")[2].partition("[")[0] == name for path in named)


def test_what_grpc_can_say_of_fields_that_the_server_sets_is_refused(doors: Doors, things: dict[str, dict[str, str]]) -> None:
    agent, run = doors.token(A, Role.AGENT), things[A]["run"]
    facts = {"run_id": "", "agent_name": "a"}
    expressible = RPC["StartRun"].request.DESCRIPTOR.fields_by_name["facts"].message_type.fields_by_name
    asking: list[tuple[str, Body, str]] = [
        ("record_calls", {"id": run, "calls": [{"seq": 2, "call": {**GOOD, "judged_by": "0" * 64}}]}, "judged_by"),
        ("retrieve", {"query": "key", "principal": {"principal_id": "own agent", "tenant": B}}, "principal"),
        ("start_run", {"facts": {**facts, "tenant": B}}, "tenant"),
        *(("start_run", {"facts": {**facts, name: "x"}}, name) for name in OWNED_FACTS if name in expressible),
    ]
    for operation, fields, field in asking:
        status, text = doors.ask("grpc", agent, BY_NAME[operation], fields)
        assert status in {403, 422}, (operation, status, text)
        assert field in text


def test_a_token_in_base64_or_in_the_address_is_none(doors: Doors) -> None:
    token = doors.token(A, Role.ADMIN)
    assert token is not None
    nobody = doors.rest.nobody
    encoded = base64.b64encode(f"{token}:".encode()).decode()

    assert 401 == nobody.get("/v1/policies", headers={"authorization": f"Basic {encoded}"}).status_code
    assert 401 == nobody.get("/v1/policies", params={"token": token}).status_code
    assert 401 == nobody.get("/v1/policies", headers={"cookie": f"token={token}"}).status_code


# --- what changes things ---


def test_who_may_change_things_does(doors: Doors, things: dict[str, dict[str, str]]) -> None:
    """Runs last in the module: each operation that changes something, by an admin of its tenant, at REST."""
    token = doors.token(A, Role.ADMIN)
    agent = doors.token(A, Role.AGENT)
    for name in ("put_secret", "create_policy", "change_policy", "replace_policy", "set_access", "ingest", "end_run", "remove_documents",
        "remove_policy", "remove_secret", "revoke_token"):  # fmt: skip
        endpoint = BY_NAME[name]
        outcome = doors.ask("rest", agent if name == "end_run" else token, endpoint, flat(endpoint, things[A], role="admin"))
        assert outcome[0] in {200, 201}, (name, outcome)
    for name in ("embed", "collect", "add_source"):
        assert 403 == doors.ask("rest", token, BY_NAME[name], flat(BY_NAME[name], things[A]))[0]
