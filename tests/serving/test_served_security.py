"""What every route has in common at the door: tests made from the list of routes, so that a new one is covered before it is known."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from evidentia.contracts.control import Role
from evidentia.contracts.operations import MAX_SENT_BYTES
from evidentia.serving.operations.document_endpoints import source_of
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.rest.http_exchange import HEADERS
from serving.rest_planes import GOOD, SEED_BODY, Served, recorded, serving, started
from serving.served_bases import TENANTS, A, B, asked, cleared, made

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.serving.operations.endpoint import Endpoint

Planes = dict[str, Served]
Things = dict[str, dict[str, str]]
WORD = "xyzzyplugh"
"""Stands in queries, texts and names that are sent, and may stand in no log."""
SAME_ID = {"x-request-id": "the-same"}
"""Given with each of two requests whose answers are compared; otherwise each has an id of its own."""
JSON = {"content-type": "application/json"}
BODIED = [each for each in ENDPOINTS if each.request is not None]
IN_PATHS = [(each, name) for each in ENDPOINTS for name in each.path_names]
EVERY = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
EVERY_BODY = pytest.mark.parametrize("endpoint", BODIED, ids=lambda each: each.name)


@pytest.fixture(scope="module")
def logged() -> Iterator[list[str]]:
    """Return every line that anything logs while this module runs, at any level."""
    lines: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.name} {record.getMessage()} {record.exc_text or ''} {record.exc_info or ''}")

    handler, root = Keeping(level=logging.DEBUG), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, logged: list[str]) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVIDENTIA_SECRET_KEY", "a long text that nobody guesses")
        with serving(made(tmp_path_factory.mktemp("served"))) as served:
            yield served
    assert logged is not None


@pytest.fixture(scope="module")
def planes(shared: Served) -> Planes:
    return {tenant: shared.within(tenant) for tenant in ("default", *TENANTS)}


@pytest.fixture(scope="module")
def things(planes: Planes) -> Things:
    """Return what there is in each tenant, by kind."""
    return {tenant: made_in(planes[tenant]) for tenant in TENANTS}


def made_in(plane: Served) -> dict[str, str]:
    reader = cleared(plane, "restricted")
    shelf = source_of("shelf", tenant=plane.tenant)
    policy = plane.admin.post("/v1/policies", json={**SEED_BODY, "name": f"guard of {plane.tenant}"}).json()["policy"]["policy_id"]
    run = started(plane)
    recorded(plane, run, 1, GOOD)
    decisions = plane.agent.get("/v1/decisions").json()["decisions"]
    assert 200 == plane.admin.put(f"/v1/secrets/OF_{plane.tenant.upper()}", json={"value": WORD}).status_code
    return {
        "policy": policy,
        "run": run,
        "log": decisions[0]["log"],
        "seq": str(decisions[0]["seq"]),
        "secret": f"OF_{plane.tenant.upper()}",
        "token": plane.admin.post("/v1/tokens", json={"name": "bob", "roles": ["reader"]}).json()["info"]["token_id"],
        "receipt": asked(reader, f"key {WORD}")["receipt_id"],
        "chunk": asked(reader, "key expire")["fragments"][0]["chunk_id"],
        "document": f"{shelf}:drawing.md",
        "table": reader.get("/v1/tables").json()["tables"][0]["table_id"],
        "image": reader.get("/v1/layout", params={"document": f"{shelf}:drawing.md"}).json()["layout"]["images"][0]["image_hash"],
    }


def filled(endpoint: Endpoint, **names: str) -> str:
    return endpoint.path.format_map({name: names.get(name, "1" if name == "seq" else "x") for name in endpoint.path_names})


def sent(client: httpx2.Client, endpoint: Endpoint, path: str = "", **options: Any) -> httpx2.Response:
    return client.request(endpoint.method, path or filled(endpoint), **options)


def code_of(reply: httpx2.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["code"]


# --- who ---


@pytest.fixture(scope="module")
def broken_tokens(shared: Served) -> dict[str, str | None]:
    good, revoked = shared.token(Role.ADMIN), shared.token(*Role, name="revoked")
    expired = shared.token(*Role, name="expired", expires_at=datetime.now(UTC) + timedelta(milliseconds=100))
    while shared.control.tokens.verify(expired) is not None:
        time.sleep(0.01)
    shared.control.tokens.revoke(revoked.split("_")[1], tenant=None, by="test")  # type: ignore[arg-type]  # a TokenId in a text
    return {
        "missing": None,
        "empty": "Bearer",
        "wrong": f"Bearer {good[:-6]}AAAAAA",
        "other scheme": f"Basic {good}",
        "bare": good,
        "malformed": "Bearer evt_%00_../..",
        "two": f"Bearer {good} {good}",
        "long": f"Bearer evt_{'a' * 6000}",
        "expired": f"Bearer {expired}",
        "revoked": f"Bearer {revoked}",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the machine has one address of its own elsewhere")
@EVERY
def test_no_token_that_does_not_hold_opens_a_route(shared: Served, broken_tokens: dict[str, str | None], endpoint: Endpoint) -> None:
    # Each route is tried from an address of its own, since one from which too much comes that does not hold is not heard any more.
    place = ENDPOINTS.index(endpoint)
    transport = httpx2.HTTPTransport(verify=False, local_address=f"127.9.{place // 200}.{place % 200 + 1}")
    with httpx2.Client(base_url=shared.url, transport=transport, timeout=30) as client:
        for case, value in broken_tokens.items():
            headers = {} if value is None else {"authorization": value}
            reply = sent(client, endpoint, headers=headers, json={} if endpoint.request else None)
            assert 401 == reply.status_code, (case, reply.text)
            assert reply.headers["www-authenticate"].startswith("Bearer"), case
            assert code_of(reply)[1] in {"missing_token", "invalid_token"}, case


@EVERY
def test_a_role_or_a_tenant_that_an_operation_is_not_for_is_refused(planes: Planes, endpoint: Endpoint) -> None:
    for role in Role:
        if role in endpoint.roles and not endpoint.is_base_wide:
            continue
        reply = sent(planes[A].client(role), endpoint, json={} if endpoint.request else None)
        assert (403, "wrong_tenant" if role in endpoint.roles else "wrong_role") == code_of(reply), role


# --- what belongs to somebody else ---

KINDS = {"/v1/policies/{id}": "policy", "/v1/runs/{id}": "run", "/v1/receipts/{id}": "receipt", "/v1/tokens/{id}": "token"}
BODIES: dict[str, dict[str, Any]] = {
    "replace_policy": {**SEED_BODY, "name": "mine"},
    "change_policy": {"enabled": False},
    "record_calls": {"calls": [{"seq": 2, "call": GOOD}]},
    "end_run": {},
    "put_secret": {"value": "mine"},
    "remove_documents": {"document_ids": ["{document}"]},
    "set_access": {"document_ids": ["{document}"]},
    "verify": {"target": "{document}"},
}
MISSING = {
    "policy": "00000000000000000000", "receipt": "r-000000000000-1", "token": "000000000000", "secret": "OF_NOBODY",
    "image": "0" * 64, "log": "no-such-log", "chunk": "x:y.md#0@0000000000000000", "table": "x:y.csv#S1T1", "document": "x:y.md",
}  # fmt: skip
NOT_NAMING = {"show_rules_schema"}
"""What stands in its path belongs to nobody."""
MADE_BY_NAMING = {"put_secret"}
"""To name it is to make it, so another tenant's is not touched, and that is looked at elsewhere."""


def named(endpoint: Endpoint, of: dict[str, str]) -> tuple[str, dict[str, str], Any]:
    """Return how an endpoint names a thing: path, query and body."""
    kind = next((word for prefix, word in KINDS.items() if endpoint.path.startswith(prefix)), "")
    by_name = {"id": of.get(kind, ""), "name": of["secret"], "hash": of["image"], "log": of["log"], "seq": of["seq"]}
    path = endpoint.path.format_map(by_name) if endpoint.name not in NOT_NAMING else filled(endpoint)
    query = {field.name: of[field.name] for field in endpoint.query if field.name in {"chunk", "table", "document"}}
    body = json.loads(json.dumps(BODIES.get(endpoint.name)).replace("{document}", of["document"]))
    return path, query, body


def naming() -> list[Endpoint]:
    words = {"chunk", "table", "document"}
    found = [each for each in ENDPOINTS if each.path_names or words & {field.name for field in each.query} or each.name in BODIES]
    return [each for each in found if not each.is_base_wide and each.name not in NOT_NAMING | MADE_BY_NAMING]


@pytest.mark.parametrize("endpoint", naming(), ids=lambda each: each.name)
def test_a_thing_of_another_tenant_reads_like_none(planes: Planes, things: Things, endpoint: Endpoint) -> None:
    role = endpoint.roles[-1]
    for tenant, other in (TENANTS, TENANTS[::-1], ("default", A)):
        client = planes[tenant].client(role)
        replies = []
        for of in (things[other], {**MISSING, "run": f"{other}~no-such-run", "seq": things[other]["seq"]}):
            path, query, body = named(endpoint, of)
            reply = client.request(endpoint.method, path, params=query, json=body, headers=SAME_ID)
            text = reply.text
            for word in sorted({*of.values(), *query.values()}, key=len, reverse=True):
                text = text.replace(word, "…") if len(word) > 1 else text
            headers = sorted(each for each in reply.headers.items() if each[0] not in {"date", "content-length"})
            replies.append((reply.status_code, text, headers))
        assert 404 == replies[0][0], replies
        assert replies[0] == replies[1]


@pytest.mark.parametrize("endpoint", naming(), ids=lambda each: each.name)
def test_the_same_thing_is_there_for_its_own_tenant(planes: Planes, things: Things, endpoint: Endpoint) -> None:
    """Otherwise the test before would compare nothing with nothing."""
    if endpoint.method in {"DELETE", "PUT", "PATCH"} or endpoint.is_writing:
        pytest.skip("it would change what other tests look at; its reading twin is tried")
    path, query, body = named(endpoint, things[A])
    reply = planes[A].client(Role.ADMIN).request(endpoint.method, path, params=query, json=body)

    assert 200 == reply.status_code, reply.text


def test_another_tenants_things_are_as_they_were(planes: Planes, things: Things) -> None:
    for tenant in TENANTS:
        of, admin = things[tenant], planes[tenant].admin
        assert [1] == [each["policy"]["version"] for each in admin.get(f"/v1/policies/{of['policy']}/versions").json()["versions"]]
        assert "running" == admin.get(f"/v1/runs/{of['run']}").json()["status"]
        assert WORD == planes[tenant].control.secrets.secret(of["secret"], tenant)
        assert of["token"] in [each["token_id"] for each in admin.get("/v1/tokens").json()["tokens"] if each["revoked_at"] is None]


@EVERY
def test_what_is_listed_is_the_tenants_own(planes: Planes, things: Things, endpoint: Endpoint) -> None:
    if endpoint.method != "GET" or endpoint.path_names or endpoint.is_base_wide:
        pytest.skip("it lists nothing")
    reply = sent(planes[A].client(endpoint.roles[-1]), endpoint)
    strange = {value for kind, value in things[B].items() if kind not in {"log", "seq"}} | {B, "beacon"}

    assert [] == [word for word in strange if word in reply.text]


# --- what stands in a path ---

CRAFTED = [
    "..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2f", "%2e%2e", "%00", "x%00y",
    "%0a", "%ff", "a" * 5000, "%F0%9F%92%A9", "'%3B--", "{x}", "*", "%25", "~", "-1",
]  # fmt: skip


@pytest.mark.parametrize(("endpoint", "name"), IN_PATHS, ids=lambda each: each if isinstance(each, str) else each.name)
def test_a_crafted_path_finds_nothing_and_breaks_nothing(shared: Served, endpoint: Endpoint, name: str) -> None:
    client, body = shared.client(Role.ADMIN), BODIES.get(endpoint.name, {"query": "x"} if endpoint.name == "test_source" else {})
    for text in CRAFTED:
        if endpoint.name == "put_secret" and text == "-1":
            continue
        reply = sent(client, endpoint, filled(endpoint, **{name: text}), json=body if endpoint.request else None)
        assert reply.status_code in {400, 401, 404, 405, 421, 422, 429}, (text, reply.status_code, reply.text[:300])
        assert "passwd" not in reply.text or "root:" not in reply.text


# --- bodies ---

NESTED = b'{"a":' * 5_000 + b"1" + b"}" * 5_000
UNREADABLE: list[tuple[str, bytes, dict[str, str], int, str]] = [
    ("not json", b"key=value", JSON, 400, "malformed_json"),
    ("cut off", b'{"a": ', JSON, 400, "malformed_json"),
    ("two values", b"{} {}", JSON, 400, "malformed_json"),
    ("not utf-8", b'{"a": "\xff\xfe"}', JSON, 400, "malformed_json"),
    ("lone surrogate", b'{"text": "\\ud800"}', JSON, 400, "malformed_json"),
    ("nothing", b"", JSON, 400, "malformed_json"),
    ("other type", b"{}", {"content-type": "text/plain"}, 415, "unsupported_media_type"),
    ("a form", b"a=b", {"content-type": "application/x-www-form-urlencoded"}, 415, "unsupported_media_type"),
    ("no type", b"{}", {}, 415, "unsupported_media_type"),
    ("compressed", b"\x1f\x8b\x08\x00", {**JSON, "content-encoding": "gzip"}, 415, "unsupported_media_type"),
    ("a list", b"[]", JSON, 422, "invalid_field"),
    ("a number", b"7", JSON, 422, "invalid_field"),
    ("a text", b'"x"', JSON, 422, "invalid_field"),
    ("null", b"null", JSON, 422, "invalid_field"),
]


@EVERY_BODY
def test_a_body_that_cannot_be_read_is_a_clear_refusal(shared: Served, endpoint: Endpoint) -> None:
    client = shared.client(Role.ADMIN)
    for case, body, headers, status, code in UNREADABLE:
        told = code_of(sent(client, endpoint, content=body, headers=headers))
        # A field that is wrong may be met before the place where the JSON is.
        assert told in {(status, code), (422, "invalid_field")} if status == 400 and body else (status, code) == told, case


@EVERY_BODY
def test_a_body_too_deep_too_large_or_of_wrong_types_is_refused(shared: Served, endpoint: Endpoint) -> None:
    client = shared.client(Role.ADMIN)
    deep = sent(client, endpoint, content=NESTED, headers=JSON)
    deep_list = sent(client, endpoint, content=b"[" * 100_000, headers=JSON)
    constants = sent(client, endpoint, content=b'{"text": NaN, "x": Infinity}', headers=JSON)

    assert {deep.status_code, deep_list.status_code, constants.status_code} <= {400, 413, 422}
    if endpoint.max_bytes < MAX_SENT_BYTES:
        large = sent(client, endpoint, content=b'{"x": "' + b"a" * endpoint.max_bytes + b'"}', headers=JSON)
        assert (413, "body_too_large") == code_of(large)


def names_of(endpoint: Endpoint) -> list[str]:
    """Return the fields of a body by the description."""
    import msgspec

    [schema], components = msgspec.json.schema_components([endpoint.request])
    found = components.get(schema.get("$ref", "").rpartition("/")[2], schema)
    return sorted(found.get("properties", {}))


@EVERY_BODY
def test_a_field_of_a_wrong_type_is_named(shared: Served, endpoint: Endpoint) -> None:
    client = shared.client(Role.ADMIN)
    for name in names_of(endpoint):
        body = b'{"' + name.encode() + b'": [{"\\u0000": -1e99}]}'
        reply = sent(client, endpoint, content=body, headers=JSON)
        assert reply.status_code in {404, 409, 422}, (name, reply.status_code, reply.text[:300])
        if reply.status_code == 422:
            assert reply.json()["error"]["problems"], reply.text


@EVERY_BODY
def test_a_key_given_twice_decides_nothing_twice(shared: Served, endpoint: Endpoint) -> None:
    first = names_of(endpoint)[0]
    reply = sent(shared.client(Role.ADMIN), endpoint, content=f'{{"{first}": null, "{first}": {{}}, "{first}": 3}}'.encode(), headers=JSON)

    assert reply.status_code in {400, 404, 409, 422}, reply.text


@EVERY
def test_a_parameter_that_is_not_known_is_refused(shared: Served, endpoint: Endpoint) -> None:
    if endpoint.name == "revoke_token":
        pytest.skip("the token would be gone")
    reply = sent(shared.client(Role.ADMIN), endpoint, params={WORD: "1"}, json={} if endpoint.request else None)

    assert (422, "invalid_field") == code_of(reply)
    assert WORD in reply.json()["error"]["problems"][0]["path"]


# --- what goes back ---


@EVERY
def test_every_answer_has_the_headers_that_keep_it_to_whoever_asked(shared: Served, endpoint: Endpoint) -> None:
    replies = [sent(shared.nobody, endpoint), sent(shared.client(Role.ADMIN), endpoint, params={WORD: "1"})]
    if endpoint.method == "GET":
        replies.append(sent(shared.client(Role.ADMIN), endpoint))
        replies.append(shared.client(Role.ADMIN).head(filled(endpoint)))
    for reply in replies:
        assert HEADERS.items() <= dict(reply.headers).items()
        assert "server" not in reply.headers or "uvicorn" in reply.headers["server"]
        assert "set-cookie" not in reply.headers
        assert "access-control-allow-origin" not in reply.headers


@EVERY
def test_other_methods_are_not_taken(shared: Served, endpoint: Endpoint) -> None:
    taken = {each.method for each in ENDPOINTS if filled(each) == filled(endpoint) or each.path == endpoint.path}
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT"} - taken - {"CONNECT"}:
        reply = shared.client(Role.ADMIN).request(method, filled(endpoint))
        assert reply.status_code in {403, 404, 405, 409, 415, 422}, (method, reply.status_code)


def test_a_browser_of_another_site_gets_no_answer_it_may_read(shared: Served) -> None:
    origin = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    preflight = shared.nobody.request("OPTIONS", "/v1/evidence", headers=origin)

    assert preflight.status_code in {403, 405}
    assert "access-control-allow-origin" not in preflight.headers


# --- what is logged ---


def test_zz_nothing_of_a_query_text_or_token_was_logged(planes: Planes, logged: list[str]) -> None:
    """Runs last in the module: everything above was sent with the word, or with tokens."""
    plane = planes[A]
    token = plane.token(Role.ADMIN, name="named")
    client = plane.holding(token)
    asked(client, WORD)
    client.post("/v1/evidence/stream", json={"query": {"text": WORD}})
    client.post("/v1/documents", json={"documents": [{"id": WORD, "text": WORD}], "files": [{"path": f"{WORD}.md", "content": ""}]})
    client.post("/v1/notes", json={"text": WORD})
    client.post("/v1/tables/ask", json={"question": WORD})
    client.get("/v1/receipts/" + WORD)
    client.post("/v1/evidence", content=WORD.encode(), headers=JSON)
    own = [line for line in logged if line.startswith(("evidentia", "uvicorn", "starlette", "asyncio"))]

    assert [] == [line for line in own if WORD in line]
    assert [] == [line for line in own if token in line or token.rpartition("_")[2] in line or "evt_" in line]
    assert [] == [line for line in own if "endpoint failed" in line]
