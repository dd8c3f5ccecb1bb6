"""What callers share: one token takes no more than its share of any pool, is told when to come back, and nobody else notices."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.contracts.control import Role
from evidentia.contracts.operations import OPERATIONS
from evidentia.serving.identity.admission import SIGN_IN, WRONG
from evidentia.serving.identity.pools import MAX_WORKED_ON, MAX_WORKED_ON_BESIDE, Pools
from evidentia.serving.operations.api_errors import ApiError
from evidentia.wiring.embedded import create
from evidentia.wiring.settings_file import SETTINGS_NAME
from serving.dashboard_doors import serving_dashboard
from serving.hosting_planes import hosted_alone, make_base
from serving.identity_samples import code_of
from serving.mcp_doors import INITIALIZE
from serving.rest_planes import serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import httpx2

    from evidentia.serving.identity.pools import SharedPool
    from serving.rest_planes import Served

FEW = "requests_per_minute = 0"
MCP_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
ASK = {"query": "keys", "latency_deadline_ms": 30_000}


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Served]:
    create(tmp_path / "base")
    (tmp_path / "base" / SETTINGS_NAME).write_text(f"[server]\n{FEW}\n", encoding="utf-8")
    with serving(tmp_path / "base") as served:
        yield served


def holder_of(plane: Served, name: str) -> str:
    return next(each.token_id for each in plane.control.tokens.tokens() if each.name == name)


def refusal(reply: httpx2.Response) -> tuple[int, str]:
    return reply.status_code, str(reply.json()["error"]["code"])


DOORS: Sequence[tuple[str, str, str, dict[str, Any]]] = (
    ("requests", "POST", "/v1/evidence", ASK),
    ("requests", "GET", "/v1/policies", {}),
    ("bytes", "POST", "/v1/evidence", ASK),
    ("bytes", "POST", "/rpc", {"jsonrpc": "2.0", "id": 1, "method": "retrieve", "params": ASK}),
    ("bytes", "POST", "/mcp", INITIALIZE),
    ("requests", "POST", "/rpc", {"jsonrpc": "2.0", "id": 1, "method": "retrieve", "params": ASK}),
    ("requests", "POST", "/mcp", INITIALIZE),
    ("mcp_sessions", "POST", "/mcp", INITIALIZE),
    ("streams", "GET", "/mcp", {}),
    ("streams", "POST", "/v1/evidence/stream", ASK),
)


@pytest.mark.parametrize(("pool", "method", "path", "body"), DOORS, ids=lambda each: str(each)[:20])
def test_a_token_with_its_share_is_told_to_come_back_at_every_door_and_others_go_on(
    plane: Served, pool: str, method: str, path: str, body: dict[str, Any]
) -> None:
    one, other = (plane.holding(plane.token(Role.ADMIN, name=name)) for name in ("one", "other"))
    shared: SharedPool = getattr(plane.pools, pool)
    with shared.holding(holder_of(plane, "one"), shared.shares.of_one):
        refused, goes_on = (client.request(method, path, json=body or None, headers=MCP_HEADERS) for client in (one, other))
    afterwards = one.request(method, path, json=body or None, headers=MCP_HEADERS)

    assert 429 == refused.status_code
    assert int(refused.headers["retry-after"]) >= 1
    assert 429 != goes_on.status_code
    assert 429 != afterwards.status_code


def test_what_requests_held_is_given_back_whatever_became_of_them(tmp_path: Path) -> None:
    create(tmp_path / "base")
    asked = (("/v1/evidence", ASK), ("/v1/evidence", {"query": 1}), ("/v1/documents", {"documents": "x"}), ("/rpc", {"x": 1}))
    with serving(tmp_path / "base") as plane:
        client = plane.admin
        for path, body in asked:
            client.post(path, json=body)
        client.post("/v1/evidence", content=b"x" * (2 << 20), headers={"content-type": "application/json"})
        with client.stream("POST", "/v1/evidence/stream", json=ASK) as stream:
            assert 200 == stream.status_code
            list(stream.iter_lines())

    assert [0, 0, 0] == [pool.shares.taken for pool in (plane.pools.requests, plane.pools.bytes, plane.pools.streams)]


def test_one_token_opens_its_share_of_runs_and_another_opens_its_own(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base", max_open=8) as plane:
        one, other = (plane.holding(plane.token(Role.AGENT, name=name)) for name in ("one", "other"))
        facts = {"facts": {"agent_name": "rag-agent"}}
        begun = [one.post("/v1/runs", json=facts) for _ in range(3)]
        others = [other.post("/v1/runs", json=facts) for _ in range(2)]
        ended = one.post(f"/v1/runs/{begun[0].json()['run_id']}/end", json={"status": "success"})
        again = one.post("/v1/runs", json=facts)

    assert [201, 201, 429] == [each.status_code for each in begun]
    assert (429, "too_many_runs") == refusal(begun[2])
    assert begun[2].headers["retry-after"].isdecimal()
    assert [201, 201] == [each.status_code for each in others]
    assert (200, 201) == (ended.status_code, again.status_code)


def test_one_agent_opens_its_share_of_mcp_sessions_and_ending_one_makes_room(plane: Served) -> None:
    one, other = (plane.holding(plane.token(Role.AGENT, name=name)) for name in ("one", "other"))
    shares = plane.pools.mcp_sessions.shares
    with plane.pools.mcp_sessions.holding(holder_of(plane, "one"), shares.of_one - 2):
        opened = [one.post("/mcp", json=INITIALIZE, headers=MCP_HEADERS) for _ in range(3)]
        goes_on = other.post("/mcp", json=INITIALIZE, headers=MCP_HEADERS)
        ended = one.delete("/mcp", headers={**MCP_HEADERS, "mcp-session-id": opened[0].headers["mcp-session-id"]})
        again = one.post("/mcp", json=INITIALIZE, headers=MCP_HEADERS)

    assert [200, 200, 429] == [each.status_code for each in opened]
    assert (429, "too_many_sessions") == refusal(opened[2])
    assert [200, 200, 200] == [each.status_code for each in (goes_on, ended, again)]


def test_a_request_that_begins_no_session_keeps_no_place(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving(tmp_path / "base") as plane:
        for body in ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"x": 1}):
            assert plane.agent.post("/mcp", json=body, headers=MCP_HEADERS).status_code >= 400

    assert 0 == plane.pools.mcp_sessions.shares.taken


def worked_on_at_once(*asked: str) -> dict[str, int]:
    """Return how many requests of each token are worked on when so many come and none ends; in the end all of them were."""
    pools, worked_on, gate = Pools(share_percent=25), Counter[str](), asyncio.Event()

    async def request(holder: str) -> None:
        async with pools.entered(holder):
            worked_on[holder] += 1
            await gate.wait()

    async def play() -> dict[str, int]:
        tasks = [asyncio.ensure_future(request(holder)) for holder in asked]
        for _ in range(3):
            await asyncio.sleep(0)
        found = dict(worked_on)
        tasks[-1].cancel()
        gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        return found

    found = asyncio.run(play())
    assert 0 == pools.requests.shares.taken
    assert len(asked) - 1 <= worked_on.total() <= len(asked)
    return found


def test_a_token_that_is_alone_has_every_thread_and_beside_others_its_share() -> None:
    share = MAX_WORKED_ON_BESIDE // 4

    assert {"a": MAX_WORKED_ON} == worked_on_at_once(*"a" * 60)
    assert {"b": 2, "a": share} == worked_on_at_once(*"bb", *"a" * 60)
    assert {"a": share, "b": share} == worked_on_at_once(*"ab" * 30)


@pytest.mark.parametrize("percent", [1, 25, 100])
def test_the_largest_body_fits_into_any_share(percent: int) -> None:
    pools = Pools(share_percent=percent)
    with pools.bytes.holding("one") as body:
        body.grow(max(operation.max_bytes for operation in OPERATIONS))


def test_a_share_that_is_refused_takes_nothing() -> None:
    pools = Pools()
    with pools.bytes.holding("one") as body:
        body.grow(1)
        with pytest.raises(ApiError) as caught:
            body.grow(pools.bytes.shares.of_one)
        assert (429, "too_many_bytes") == code_of(caught.value)
        assert 1 == pools.bytes.shares.taken

    assert 0 == pools.bytes.shares.taken


# --- signing in ---


def test_a_token_begins_so_many_sessions_and_is_then_told_to_wait(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving_dashboard(tmp_path / "base") as door:
        token, browser = door.token(Role.READER), door.browser()
        codes = [
            browser.client.post("/dashboard/sign-in", data={"key": token}, headers=browser.own_origin) for _ in range(SIGN_IN.burst + 2)
        ]
        other = door.browser().sign_in(door.token(Role.READER, name="other"))

    assert [303] * SIGN_IN.burst + [429] * 2 == [each.status_code for each in codes]
    assert codes[-1].headers["retry-after"].isdecimal()
    assert 303 == other.status_code


def test_wrong_keys_and_wrong_links_count_against_the_address_that_signs_in(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving_dashboard(tmp_path / "base") as door:
        browser, ways = door.browser(), (("/dashboard/sign-in", "key"), ("/dashboard/enter", "code"))
        tried = [ways[place % 2] for place in range(WRONG.burst + 2)]
        codes = [browser.client.post(path, data={field: "evt_x_y"}, headers=browser.own_origin).status_code for path, field in tried]

    assert [401, 303] * (WRONG.burst // 2) + [429, 429] == codes


def test_links_count_like_keys(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving_dashboard(tmp_path / "base") as door:
        door.token(Role.READER, name="linked")
        token_id = next(each.token_id for each in door.control.tokens.tokens() if each.name == "linked")
        browser, codes = door.browser(), []
        for _ in range(SIGN_IN.burst + 1):
            form = {"code": door.links.make(token_id)}
            codes.append(browser.client.post("/dashboard/enter", data=form, headers=browser.own_origin).status_code)

    assert [303] * SIGN_IN.burst + [429] == codes


# --- settings ---


def test_the_settings_set_the_shares(tmp_path: Path) -> None:
    with hosted_alone(make_base(tmp_path, "share_percent = 10")) as host:
        pools: Pools = host.host.app.state.context.admission.pools

    assert [40, 40, 100] == [pool.shares.of_one for pool in (pools.requests, pools.streams, pools.mcp_sessions)]
