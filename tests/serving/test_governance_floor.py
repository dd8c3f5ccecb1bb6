"""An agent with an ordinary token tries every way around a floor of `enforce`: each door, each content operation, each field.

The ways are made from the list of operations, so that a new one is tried before it is known. Nothing that is withheld may come out, and
each attempt is in the decision log.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import httpx2
import msgspec
import pytest

import evidentia
from evidentia.backends.remote.remote_governor import RemoteGovernor
from evidentia.contracts.access import Principal
from evidentia.contracts.control import Role
from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.errors import BelowFloorError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.operations import HANDS_OUT_CONTENT, OPERATIONS
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import RunFacts, RunId
from evidentia.contracts.vocabulary import Classification, GovernanceMode
from evidentia.governance.decision_queries import decisions
from evidentia.governance.decision_replay import replay
from evidentia.governance.log_maintenance import verify
from evidentia.protobuf.methods import METHODS
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel, flat_of
from evidentia.wiring.settings_file import SETTINGS_NAME
from served_doors import served
from serving.dashboard_doors import Browser
from serving.mcp_doors import over_http
from serving.served_bases import picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from evidentia.contracts.decisions import PolicyDecision
    from served_doors import Served

SECRET = "quicksilver"  # noqa: S105 - a word in a document
"""Stands in what the policy withholds, and nowhere else."""
OPEN = "handbook"
HIDDEN = "vault"
AGENT = "clerk"
QUESTION = "signing keys rotate"
GUARD = {
    "name": "Guard",
    "category": "retrieval",
    "rules": {"min_relevance_score": 0.0, "max_source_age_days": 99_999, "allowed_collections": [OPEN]},
}
PLAIN = '[embedding]\nencoder = "none"\n'
PATIENT = {"latency_deadline_ms": 20_000}
_GRPC = {method.name: method for method in METHODS}
_BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}
CONTENT = [each.name for each in OPERATIONS if each.hands_out_content]


class World(NamedTuple):
    """A base with a floor that is served, what is withheld in it, and the token of an agent."""

    served: Served
    token: str
    things: dict[str, str]

    @property
    def log(self) -> Any:
        return self.served._control.log

    def said(self) -> int:
        """Return how often the log says so far that something was stopped or got around."""
        return self.bypassed() + sum(each.action is PolicyAction.BLOCK and each.is_enforced for each in self._decisions())

    def bypassed(self) -> int:
        """Return how often it says that somebody asked for less than the floor."""
        return sum(each.status is DecisionStatus.BYPASSED for each in self._decisions())

    def _decisions(self) -> Sequence[PolicyDecision]:
        self.log.flush()
        return decisions(self.log, limit=100_000).decisions


@contextmanager
def made(directory: Path, settings: str, **facts: Any) -> Iterator[World]:
    """Serve a base of which the agent was handed everything before there was a policy; then there are a policy and a floor."""
    base = directory / "base"
    with evidentia.connect(base, init=True):
        pass
    (base / SETTINGS_NAME).write_text(PLAIN, encoding="utf-8")
    for name, word in ((OPEN, "month"), (HIDDEN, SECRET)):
        folder = directory / name
        folder.mkdir(parents=True)
        (folder / "keys.md").write_text(
            f"# Keys of {word}\n\nSigning keys rotate every {word}.\n\n![plan of {word}](plan.png)\n", encoding="utf-8"
        )
        (folder / "plan.png").write_bytes(picture(len(name)))
        (folder / "prices.csv").write_text(f"item,price\n{word},4\n", encoding="utf-8")
    with evidentia.connect(base) as owner:
        for name in (OPEN, HIDDEN):
            owner.ingest([directory / name], source=name)
        owner.ingest([directory / OPEN], source=OPEN)
    who = Principal(principal_id=PrincipalId(AGENT), clearance=Classification.INTERNAL, roles=("agent",))
    with evidentia.connect(base, principal=who) as agent:
        answer = agent.retrieve(QUESTION, **PATIENT)
        document = f"{HIDDEN}:keys.md"
        layout = agent.layout(document)
        assert layout is not None
        things = {
            "receipt": str(answer.receipt_id),
            "document": document,
            "chunk": next(each.chunk_id for each in answer.fragments if each.source_id == HIDDEN),
            "table": next(each.table_id for each in agent.tables() if each.source_id == HIDDEN),
            "image": layout.images[0].image_hash,
        }
        agent.remember(f"the code is {SECRET}")
    with evidentia.connect(base) as owner:
        owner.add_policy(GUARD)
    (base / SETTINGS_NAME).write_text(PLAIN + settings, encoding="utf-8")
    with served(base) as doors:
        yield World(doors, doors.token(AGENT, Role.AGENT, tenant="default", facts=facts), things)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with made(tmp_path_factory.mktemp("floor"), '[governance]\nfloor = "enforce"\n') as found:
        yield found


# --- what each operation that hands out content is asked for ---


def asked_for(things: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the parameters by which each operation would hand out what is withheld."""
    question = {"query": {"text": QUESTION}, **PATIENT}
    return {
        "retrieve": question,
        "retrieve_stream": question,
        "verify": {"target": things["document"]},
        "export": {"chunk": things["chunk"]},
        "show_receipt": {"id": things["receipt"]},
        "replay": {"id": things["receipt"]},
        "why": {"id": things["receipt"], "chunk": things["chunk"]},
        "list_tables": {},
        "open_table": {"table": things["table"]},
        "ask_tables": {"question": f"price of {SECRET}"},
        "show_layout": {"document": things["document"]},
        "show_image": {"hash": things["image"]},
        "list_notes": {},
        "list_documents": {},
        "list_chunks": {"document": things["document"]},
        "show_diff": {"older": "1", "newer": "3"},
    }


BASE_WIDE = {"test_source"}
"""For the operator's admins alone; `test_what_a_source_says_in_a_trial_passes_the_policies` looks at it."""
ASKABLE = [name for name in CONTENT if name not in BASE_WIDE]


# --- the doors ---


class Said(NamedTuple):
    """What came back: whether it was an answer, and every character of it."""

    is_answer: bool
    text: str


def over_rest(world: World, name: str, params: dict[str, Any]) -> Said:
    endpoint = _BY_NAME[name]
    given = dict(params)
    path = endpoint.path.format_map({each: given.pop(each) for each in endpoint.path_names})
    query = {each.name: given.pop(each.name) for each in endpoint.query if each.name in given}
    headers = {"authorization": f"Bearer {world.token}"}
    body = None if endpoint.request is None else given
    reply = httpx2.request(
        endpoint.method, f"{world.served.url}{path}", params=query, json=body, headers=headers, timeout=60, trust_env=False
    )
    assert reply.status_code < 500, reply.text
    return Said(reply.status_code < 400 and '"event":"error"' not in reply.text, reply.text)


def over_jsonrpc(world: World, name: str, params: dict[str, Any]) -> Said:
    body = {"jsonrpc": "2.0", "id": 1, "method": name, "params": params}
    headers = {"authorization": f"Bearer {world.token}"}
    reply = httpx2.post(f"{world.served.url}/rpc", json=body, headers=headers, timeout=60, trust_env=False)
    assert reply.status_code < 500, reply.text
    return Said('"error"' not in reply.text, reply.text)


def over_grpc(world: World, name: str, params: dict[str, Any]) -> Said:
    method = _GRPC[camel(name)]
    message = method.request(**method.write_request(msgspec.convert(params, flat_of(_BY_NAME[name]).message)))
    if "governance" not in params and "governance" in message.DESCRIPTOR.fields_by_name:
        message.ClearField("governance")  # a client that does not say it leaves it out
    with grpc.insecure_channel(world.served.grpc_address) as channel:
        make = channel.unary_stream if method.is_stream else channel.unary_unary
        ask = make(method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString)
        try:
            reply = ask(message, timeout=60, metadata=(("authorization", f"Bearer {world.token}"),))
            return Said(True, "".join(map(str, reply)) if method.is_stream else str(reply))
        except grpc.RpcError as error:
            trailing = {each.key: each.value for each in error.trailing_metadata() or ()}
            return Said(False, f"{error} {trailing}")


DOORS: dict[str, Callable[[World, str, dict[str, Any]], Said]] = {"rest": over_rest, "jsonrpc": over_jsonrpc, "grpc": over_grpc}


def check(world: World, attempt: Callable[[], Said]) -> Said:
    """Make an attempt: nothing withheld comes out, in an answer not even its name, and the log says more than before."""
    before = world.said()
    said = attempt()
    after = world.said()
    held = said.text if not said.is_answer else said.text.replace(f"price of {SECRET}", "")

    assert SECRET not in held, said.text[:2_000]
    assert not said.is_answer or f"{HIDDEN}:" not in held, said.text[:2_000]
    assert after > before, ("the log does not say it", said.text[:2_000])
    return said


# --- each door, each operation ---


def test_every_operation_is_declared_and_every_one_that_hands_out_content_is_tried(world: World) -> None:
    assert {each.name for each in OPERATIONS} == set(HANDS_OUT_CONTENT)
    assert set(ASKABLE) == set(asked_for(world.things))
    assert 30 <= len(DOORS) * (len(ASKABLE) + len(LESS) + len(STARTS)) + len(TOOLS) + len(RESOURCES) + len(PAGES)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ASKABLE)
def test_no_operation_hands_out_through_any_door_what_policies_withhold(world: World, name: str, door: str) -> None:
    if door == "jsonrpc" and _BY_NAME[name].is_stream:
        pytest.skip("JSON-RPC has no streams")
    check(world, lambda: DOORS[door](world, name, asked_for(world.things)[name]))


@pytest.fixture(scope="module")
def ungoverned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with made(tmp_path_factory.mktemp("free"), "") as found:
        yield found


@pytest.mark.parametrize("name", ASKABLE)
def test_without_a_floor_each_of_them_is_answered_as_before(ungoverned: World, name: str) -> None:
    """Otherwise the tests before would look for what never comes."""
    before = ungoverned.said()
    said = over_rest(ungoverned, name, {**asked_for(ungoverned.things)[name]})

    assert said.is_answer, said.text
    assert name == "show_image" or SECRET in said.text or f"{HIDDEN}:" in said.text
    assert before == ungoverned.said()


def test_what_no_policy_stops_is_handed_out_as_ever(world: World) -> None:
    table = over_rest(world, "ask_tables", {"question": "price of month"})
    listed = over_rest(world, "list_documents", {"limit": 1})

    assert "Signing keys rotate every month" in over_rest(world, "list_chunks", {"document": f"{OPEN}:keys.md"}).text
    assert over_rest(world, "show_layout", {"document": f"{OPEN}:keys.md"}).is_answer
    assert [f"{OPEN}:keys.md"] == [each["document_id"] for each in json.loads(listed.text)["documents"]]
    assert json.loads(listed.text)["next_cursor"]
    assert table.is_answer, table.text
    assert "4" in str(json.loads(table.text)["rows"])


# --- each field that asks for less ---

RUN = {"run_id": "", "agent_name": AGENT}
LESS: list[dict[str, Any]] = [
    *({"governance": each.value} for each in GovernanceMode if each is not GovernanceMode.ENFORCE),
    {"governance": "off", "as_of": "2000-01-01T00:00:00Z"},
    {"governance": "off", "facets": ["title"]},
    {"governance": "off", "explain": True, "limit": 100},
    {"governance": "off", "receipt": False, "mode": "lexical"},
    {"governance": "off", "agent_name": AGENT},
    {"agent_name": "somebody-else"},
    {"governance": "off", "agent_name": "somebody-else"},
    {"governance": "filter", "token_budget": 4_000},
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("fields", LESS, ids=lambda each: "-".join(f"{name}" for name in each))
def test_no_field_of_a_question_gets_below_the_floor(world: World, fields: dict[str, Any], door: str) -> None:
    before = world.bypassed()
    check(world, lambda: DOORS[door](world, "retrieve", {**asked_for(world.things)["retrieve"], **fields}))

    assert before < world.bypassed()


STARTS: list[dict[str, Any]] = [
    {"facts": RUN, "is_enforced": False},
    {"facts": RUN, "policies": [{**GUARD, "name": "mine", "enforcement": "shadow"}]},
    {"facts": RUN, "policies": [{**GUARD, "name": "Guard", "enabled": False}]},
    {"facts": {**RUN, "agent_name": "somebody-else"}},
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("body", STARTS, ids=["is_enforced", "policies", "same_name", "agent_name"])
def test_no_run_is_begun_below_the_floor(world: World, body: dict[str, Any], door: str) -> None:
    said = check(world, lambda: DOORS[door](world, "start_run", body))

    assert not said.is_answer
    assert "below_floor" in said.text


def test_a_run_does_not_approve_for_itself(world: World) -> None:
    run = json.loads(over_rest(world, "start_run", {"facts": RUN}).text)["run_id"]
    document = {"kind": "retrieval", "relevance_score": 1.0, "source": f"{HIDDEN}:keys.md", "collection": HIDDEN, "age_days": 1}
    stopped = json.loads(over_rest(world, "record_calls", {"id": run, "calls": [{"seq": 1, "call": document}]}).text)
    approval = {"kind": "bypass", "what": "approval", "problem": "approved by 'me'", "posture": "open"}
    said = check(world, lambda: over_rest(world, "record_calls", {"id": run, "calls": [{"seq": 2, "call": approval}]}))
    ended = json.loads(over_rest(world, "end_run", {"id": run}).text)

    assert 1 == stopped["stopped_at"]
    assert not said.is_answer
    assert "call.what" in said.text
    assert "blocked" == ended["status"]


# --- MCP ---

TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("rag_retrieve", {"query": QUESTION, "top_k": 50}),
    ("table_rag_retrieve", {"query": f"price of {SECRET}"}),
    ("retrieve", {"query": QUESTION, **PATIENT}),
    *(("retrieve", {"query": QUESTION, **PATIENT, **fields}) for fields in LESS),
    ("verify", {"receipt_id": "{receipt}"}),
]
RESOURCES = ["evidentia://fragment/{chunk}", "evidentia://receipt/{receipt}", "evidentia://image/{image}"]


def over_mcp(world: World, ask: Callable[[Any], Any]) -> Said:
    async def asked() -> Said:
        async with over_http(f"{world.served.url}/mcp", token=world.token) as client:
            try:
                result = await ask(client)
            except Exception as error:  # noqa: BLE001 - whatever a refusal is to the client
                return Said(False, f"{error} {getattr(error, 'error', '')}")
            return Said(not getattr(result, "is_error", False), result.model_dump_json())

    return asyncio.run(asked())


@pytest.mark.parametrize(("tool", "arguments"), TOOLS, ids=lambda each: each if isinstance(each, str) else "-".join(each))
def test_no_tool_of_mcp_gets_below_the_floor(world: World, tool: str, arguments: dict[str, Any]) -> None:
    given = {name: value.format_map(world.things) if isinstance(value, str) else value for name, value in arguments.items()}
    check(world, lambda: over_mcp(world, lambda client: client.call_tool(tool, given)))


@pytest.mark.parametrize("uri", RESOURCES, ids=["fragment", "receipt", "image"])
def test_no_resource_of_mcp_gets_below_the_floor(world: World, uri: str) -> None:
    quoted = {name: httpx2.URL("http://x/", params={"q": value}).query.decode().partition("=")[2] for name, value in world.things.items()}
    said = check(world, lambda: over_mcp(world, lambda client: client.read_resource(uri.format_map(quoted))))

    assert not said.is_answer


# --- the dashboard ---

PAGES = [
    ("GET", "/dashboard/search?q=signing+keys+rotate&deadline_ms=20000"),
    ("GET", "/dashboard/search?q=signing+keys+rotate&deadline_ms=20000&governance=off"),
    ("GET", "/dashboard/search?q=signing+keys+rotate&deadline_ms=20000&governance=off&as_of=2000-01-01"),
    ("GET", "/dashboard/search/export?chunk={chunk}"),
    ("GET", "/dashboard/receipts/{receipt}?document={document}&chunk={chunk}"),
    ("POST", "/dashboard/receipts/{receipt}/replay"),
    ("GET", "/dashboard/evidence/documents"),
    ("GET", "/dashboard/evidence/document?id={document}"),
    ("GET", "/dashboard/evidence/versions?older=1&newer=3"),
    ("GET", "/dashboard/verify?target={chunk}"),
]


@pytest.mark.parametrize(("method", "path"), PAGES, ids=lambda each: each)
def test_no_page_of_the_dashboard_gets_below_the_floor(world: World, method: str, path: str) -> None:
    quoted = {name: httpx2.URL("http://x/", params={"q": value}).query.decode().partition("=")[2] for name, value in world.things.items()}
    with ExitStack() as stack:
        browser = Browser(stack.enter_context(httpx2.Client(base_url=world.served.url, timeout=60, trust_env=False)))
        assert 303 == browser.sign_in(world.token).status_code
        ask = browser.get if method == "GET" else browser.post

        def attempt() -> Said:
            reply = ask(path.format_map(quoted))
            assert reply.status_code not in {404, 500}, reply.text
            asks_by_name = "document" in path or "chunk" in path  # the page shows what was asked for
            return Said(reply.status_code < 400 and not asks_by_name, reply.text)

        check(world, attempt)


def test_the_log_of_attempts_verifies_and_can_be_decided_again(world: World) -> None:
    for name in ASKABLE:
        over_rest(world, name, asked_for(world.things)[name])
    for body in STARTS:
        over_rest(world, "start_run", body)
    world.log.flush()
    report = replay(world.log)

    assert verify(world.log).ok
    assert report.ok, report.mismatches


# --- whose floor, and which agents ---


def with_token(world: World, *roles: Role, name: str = AGENT, **facts: Any) -> World:
    return world._replace(token=world.served.token(name, *(roles or (Role.AGENT,)), tenant="default", facts=facts))


def test_a_token_has_a_floor_of_its_own(ungoverned: World) -> None:
    bound = with_token(ungoverned, floor="filter")
    answer = json.loads(over_rest(bound, "retrieve", {**asked_for(bound.things)["retrieve"], "governance": "off"}).text)

    assert {OPEN} == {each["source_id"] for each in answer["fragments"]}
    assert [f"{HIDDEN}:keys.md"] == [each["chunk_id"].partition("#")[0] for each in answer["withheld"]]
    assert "governance: 'off' was asked for, and the floor here is 'filter'" in answer["degraded"]
    assert AGENT == json.loads(over_rest(bound, "show_receipt", {"id": answer["receipt_id"]}).text)["agent_name"]


@pytest.mark.parametrize("door", [*DOORS, "client", "mcp", "grpc client"])
def test_who_does_not_say_how_to_be_governed_asks_for_nothing_less(ungoverned: World, door: str) -> None:
    bound = with_token(ungoverned, floor="filter")
    before = bound.bypassed()
    if "client" in door:
        address = f"grpc://{bound.served.grpc_address}" if "grpc" in door else bound.served.url
        with evidentia.connect(address, token=bound.token) as base:
            assert 1 == len(base.retrieve(QUESTION, **PATIENT).fragments)
    elif door == "mcp":
        assert over_mcp(bound, lambda client: client.call_tool("retrieve", {"query": QUESTION, **PATIENT})).is_answer
    else:
        assert DOORS[door](bound, "retrieve", asked_for(bound.things)["retrieve"]).is_answer

    assert before == bound.bypassed()


@pytest.mark.parametrize(("floor", "told"), [("off", None), ("annotate", "flagged=2"), ("filter", "withheld=2")])
def test_a_reply_says_how_much_policies_withheld_or_flagged(ungoverned: World, floor: str, told: str | None) -> None:
    bound = with_token(ungoverned, floor=floor)
    headers = {"authorization": f"Bearer {bound.token}"}
    reply = httpx2.get(f"{bound.served.url}/v1/documents", headers=headers, timeout=60, trust_env=False)

    assert told == reply.headers.get("evidentia-policies")
    assert ("filter" == floor) == (f"{HIDDEN}:" not in reply.text)


def test_a_token_runs_as_its_agents_and_as_the_first_of_them_where_it_names_none(ungoverned: World) -> None:
    bound = with_token(ungoverned, agents=("rag", "web"))
    runs = [over_rest(bound, "start_run", {"facts": {"agent_name": name} if name else {}}) for name in ("", "web", "clerk")]
    before = ungoverned.said()
    answered = [
        over_rest(bound, "retrieve", {**asked_for(bound.things)["retrieve"], **fields})
        for fields in ({}, {"agent_name": "web"}, {"agent_name": "clerk"})
    ]
    noted = json.loads(over_rest(bound, "remember", {"text": "a note"}).text)

    assert [True, True, False] == [each.is_answer for each in runs]
    assert "field 'facts.agent_name': 'clerk' is not an agent of this token, which asks as rag, web" in runs[2].text
    assert [True, True, False] == [each.is_answer for each in answered]
    assert "below_floor" in answered[2].text
    assert before < ungoverned.said()
    assert "rag" == noted["agent_name"]


def test_a_client_of_mcp_asks_as_an_agent_of_its_token_whatever_it_is_called(ungoverned: World) -> None:
    bound = with_token(ungoverned, agents=("rag", "web"))
    said = over_mcp(bound, lambda client: client.call_tool("retrieve", {"query": QUESTION, **PATIENT}))
    receipt = json.loads(said.text)["structured_content"]["receipt_id"] if said.is_answer else ""

    assert said.is_answer, said.text
    assert "rag" == json.loads(over_rest(bound, "show_receipt", {"id": receipt}).text)["agent_name"]


def test_an_admin_under_a_floor_makes_no_token_below_it(ungoverned: World) -> None:
    admin = with_token(ungoverned, Role.ADMIN, name="root", floor="filter")
    made_by = [
        over_rest(admin, "issue_token", {"name": "t", "roles": ["agent"], "facts": {"floor": word, "agents": ["rag"]}})
        for word in ("annotate", "filter", "enforce")
    ]

    assert [False, True, True] == [each.is_answer for each in made_by]
    assert "facts.floor" in made_by[0].text
    assert {"floor": "enforce", "agents": ["rag"]} == {
        name: json.loads(made_by[2].text)["info"]["facts"][name] for name in ("floor", "agents")
    }


def test_a_client_of_ours_hears_what_the_floor_refuses(world: World) -> None:
    with evidentia.connect(world.served.url, token=world.token) as base, pytest.raises(BelowFloorError, match="agent_name"):
        base.retrieve(QUESTION, agent_name="somebody-else")
    with closing(RemoteGovernor(world.served.url, token=world.token)) as governor, pytest.raises(BelowFloorError, match="is_enforced"):
        governor.start(RunFacts(run_id=RunId(""), agent_name=AGENT), is_enforced=False)
