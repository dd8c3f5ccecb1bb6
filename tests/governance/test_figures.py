"""Every figure about decisions and runs, on every page and through every door, against a naive recount of the log.

A log of random runs is made: enforced and not, in two tenants, with shadow policies, bypasses, approvals, runs that never ended and
records that were redacted. What the recount counts is every decision that the log expands to, one by one.
"""

from __future__ import annotations

import html
import json
import re
import socket
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import grpc
import msgspec
import pytest
from random_traces import world_of
from recorded_runs import RecordedRun, document, policy_set
from scenario_doors import recorded_call

from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.control import Role
from evidentia.contracts.decisions import DecisionCounts, DecisionStatus
from evidentia.contracts.decoding import convert
from evidentia.contracts.policies import PolicyAction, PolicyBody, Posture
from evidentia.contracts.runs import CheckBypassed, Phase, RunEnded, RunFacts, RunId, RunStatus
from evidentia.governance.decision_queries import DecisionFilter, count_decisions, decisions, expand, runs
from evidentia.governance.log_maintenance import redact, retire
from evidentia.governance.memory_log import MemoryLog
from evidentia.governance.run_summaries import newest_runs
from evidentia.protobuf.methods import METHODS
from evidentia.serving.cli import main
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import flat_of
from evidentia.testing.determinism import RepeatableEntropy
from evidentia.wiring.governance_runtime import open_control
from evidentia.wiring.system import SystemClock
from serving.dashboard_doors import Browser
from serving.hosting_planes import client_of, hosted_alone, issue, make_base

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from evidentia.contracts.decisions import PolicyDecision
    from evidentia.governance.governed_runs import LocalRun
    from evidentia.wiring.governance_runtime import GovernanceRuntime

WORLDS = 60
REDACTED = "run-8"
TENANTS = (DEFAULT_TENANT, "other")
ACTIONS = tuple(PolicyAction)
STATUSES = tuple(DecisionStatus)


def recount(found: Iterable[PolicyDecision]) -> DecisionCounts:
    """Count as somebody would who reads the decisions one after the other."""
    every = list(found)
    stopping = [each for each in every if each.action.value in {"block", "skip", "throttle"}]
    enforced = [each for each in stopping if each.is_enforced]
    warned = [each for each in every if each.action.value == "warn"]
    return DecisionCounts(
        decisions=len(every),
        allowed=len(every) - len(stopping) - len(warned),
        warned=len(warned),
        stopped=len(enforced),
        not_enforced=len(stopping) - len(enforced),
        bypassed=sum(each.status.value == "bypassed" for each in every),
    )


def play(control: GovernanceRuntime, seed: int) -> None:
    """Play a random run to its end, or to somewhere; whoever is stopped goes on now and then with an approval."""
    world = world_of(seed)
    bodies = tuple(convert(body, PolicyBody) for body in world.policies)
    facts = RunFacts(run_id=RunId(f"run-{seed}"), tenant=TENANTS[seed % 5 == 4], **world.facts)
    run: LocalRun = control.governor_of(facts.tenant).start(facts, policies=bodies, is_enforced=world.is_enforced)
    for place, said in enumerate(world.trace[:-1]):
        call: Any = recorded_call(said)
        verdicts = run.record(call)
        if any(each.stops for each in verdicts) and (seed + place) % 3 == 0:
            run.record(CheckBypassed(what="approval", problem="somebody said so", posture=Posture.DEGRADE))
        if (seed + place) % 11 == 0:
            run.record(CheckBypassed(what="control_plane", problem="down", posture=tuple(Posture)[place % 3]))
    if seed % 7:
        run.finish(RunEnded(status=RunStatus(world.trace[-1]["status"])))
    run.flush()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_base(tmp_path_factory.mktemp("figures"), "requests_per_minute = 0")
    with open_control(made) as control:
        for seed in range(WORLDS):
            play(control, seed)
    with open_control(made) as control:
        redact(control.log, by="test", why="a test", clock=control.clock, run_id=RunId(REDACTED))
    return made


@pytest.fixture(scope="module")
def every(base: Path) -> list[PolicyDecision]:
    """Return all decisions, as the log expands to them."""
    with open_control(base) as control:
        return list(expand(control.log.records()))


def test_the_random_log_has_something_of_everything(every: list[PolicyDecision]) -> None:
    counts = recount(every)

    assert min(msgspec.structs.astuple(counts)) > 5
    assert {"evaluated", "provisional", "bypassed", "shadow"} == {each.status.value for each in every}
    assert set(TENANTS) == {each.tenant for each in every}
    assert any(each.is_redacted for each in every)


FILTERS: tuple[dict[str, Any], ...] = (
    {},
    *({"tenant": tenant} for tenant in TENANTS),
    *({"action": action} for action in ACTIONS),
    *({"status": status} for status in STATUSES),
    *({"phase": phase} for phase in Phase),
    *({"category": category} for category in ("retrieval", "grounding", "protocol")),
    *({"agent": agent, "action": PolicyAction.WARN} for agent in ("rag-agent", "rag-agent-2", "writer", "nobody")),
    *({"policy": policy} for policy in ("A0", "B1", "C2", "nobody")),
    *({"run_id": RunId(f"run-{seed}")} for seed in (0, 3, 7, 8, 11, 99)),
)


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_the_count_of_a_filter_is_what_its_pages_hold(base: Path, every: list[PolicyDecision], wanted: dict[str, Any]) -> None:
    with open_control(base) as control:
        log = control.log
        counted = count_decisions(log, DecisionFilter(**wanted))
        listed = {
            is_newest: decisions(log, DecisionFilter(**wanted), limit=10**6, is_newest_first=is_newest).decisions
            for is_newest in (False, True)
        }
        middle = every[len(every) // 2].at
        later = count_decisions(log, DecisionFilter(since=middle, **wanted))
        after = decisions(log, DecisionFilter(since=middle, **wanted), limit=10**6).decisions

    assert recount(listed[False]) == counted
    assert recount(listed[True]) == counted
    assert recount(after) == later
    if set(wanted) <= {"tenant", "action", "status", "phase", "category", "run_id"}:
        assert recount(each for each in every if all(getattr(each, name) == value for name, value in wanted.items())) == counted


def test_the_line_of_every_run_counts_its_decisions(base: Path, every: list[PolicyDecision]) -> None:
    by_run: dict[str, list[PolicyDecision]] = {}
    for each in every:
        by_run.setdefault(each.run_id, []).append(each)
    with open_control(base) as control:
        lines = runs(control.log)
        newest = newest_runs(control.log, limit=10**6).runs

    assert WORLDS == len(lines)
    assert {each.facts.run_id: each for each in lines} == {each.facts.run_id: each for each in newest}
    for line in lines:
        counts = recount(by_run.get(line.facts.run_id, ()))

        assert (counts.stopped, counts.not_enforced, counts.warned, counts.bypassed) == (
            line.blocks,
            line.not_enforced,
            line.warnings,
            line.bypasses,
        ), line.facts.run_id


def test_a_document_that_was_judged_before_is_not_counted_twice() -> None:
    policies = policy_set(PolicyBody(name="Documents", category="retrieval", rules={"min_relevance_score": 0.5}))
    (group,) = [each.digest for each in policies.policies]
    with closing(MemoryLog(entropy=RepeatableEntropy(1))) as log:
        run = RecordedRun(log, policies)
        run.record(document(), document(judged_by=group), document(judged_by="0" * 64), document())
        run.finish()
        counted, listed = count_decisions(log), decisions(log, limit=1_000).decisions

    assert recount(listed) == counted


def test_what_is_left_of_a_log_that_was_cut_is_counted_as_it_is_listed() -> None:
    policies = policy_set(PolicyBody(name="Documents", category="retrieval", rules={"blocked_sources": ["bad"], "min_chunks": 2}))
    with closing(MemoryLog(entropy=RepeatableEntropy(1))) as log:
        for number in range(6):
            run = RecordedRun(log, policies, run=f"r{number}", at_s=10 * number, is_enforced=number % 3 > 0)
            run.record(document(), document(source="bad"))
            run.finish()
        clock = SystemClock()
        for second in (0, 15, 22, 47):
            retire(log, before=datetime.fromtimestamp(second, UTC), by="test", why="a test", clock=clock)
            counted, listed = count_decisions(log), decisions(log, limit=1_000).decisions

            assert recount(listed) == counted
            assert listed


# --- every page and every door ---


class Figures:
    """A served base with its doors."""

    def __init__(self, base: Path, url: str, grpc_port: int) -> None:
        self.base = base
        self.url = url
        self.grpc_port = grpc_port
        self.tokens = {tenant: issue(base, Role.AUDITOR, tenant=tenant) for tenant in TENANTS}

    def rest(self, tenant: str, path: str, **query: Any) -> Any:
        with client_of(self.url, self.tokens[tenant]) as client:
            reply = client.get(path, params={name: value for name, value in query.items() if value is not None})
            assert reply.status_code == 200, reply.text
            return reply.json()

    def rpc(self, tenant: str, method: str, **params: object) -> Any:
        with client_of(self.url, self.tokens[tenant]) as client:
            return client.post("/rpc", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json()["result"]

    def grpc(self, tenant: str, operation: str, **params: object) -> Any:
        endpoint = next(each for each in ENDPOINTS if each.name == operation)
        method = next(each for each in METHODS if each.name == "".join(map(str.capitalize, operation.split("_"))))
        message = method.request(**method.write_request(msgspec.convert(params, flat_of(endpoint).message)))
        with grpc.insecure_channel(f"127.0.0.1:{self.grpc_port}") as channel:
            call = channel.unary_unary(
                method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString
            )
            reply = call(message, metadata=(("authorization", f"Bearer {self.tokens[tenant]}"),), timeout=60)
        kind: Any = endpoint.reply
        return msgspec.to_builtins(msgspec.convert(method.read_response(reply), kind))

    def page(self, tenant: str, path: str) -> str:
        """Return a page of the dashboard as text, its markup taken out."""
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "|", self.markup(tenant, path))))

    def markup(self, tenant: str, path: str) -> str:
        with client_of(self.url) as client:
            browser = Browser(client)
            browser.sign_in(self.tokens[tenant])
            reply = browser.get(path)
            assert reply.status_code == 200, reply.text
            return reply.text


@pytest.fixture(scope="module")
def figures(base: Path) -> Iterator[Figures]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with hosted_alone(base, grpc_port=port) as host:
        yield Figures(base, host.url, port)


def own(every: list[PolicyDecision], tenant: str) -> list[PolicyDecision]:
    return [each for each in every if each.tenant == tenant]


def in_words(counts: DecisionCounts) -> str:
    not_enforced = f"{counts.not_enforced:,} not enforced, " if counts.not_enforced else ""
    bypassed = f"; {counts.bypassed:,} bypassed" if counts.bypassed else ""
    return f"{counts.stopped:,} stopped, {not_enforced}{counts.warned:,} warned{bypassed}"


@pytest.mark.parametrize("tenant", TENANTS)
def test_every_door_counts_the_same(figures: Figures, every: list[PolicyDecision], tenant: str) -> None:
    expected = msgspec.to_builtins(recount(own(every, tenant)))
    warned = msgspec.to_builtins(recount(each for each in own(every, tenant) if each.action is PolicyAction.WARN))

    assert expected == figures.rest(tenant, "/v1/decisions/counts")
    assert expected == figures.rest(tenant, "/v1/decisions/counts", minutes=600)
    assert warned == figures.rest(tenant, "/v1/decisions/counts", action="warn")
    assert expected == figures.rpc(tenant, "count_decisions")


def test_grpc_counts_the_same(figures: Figures, every: list[PolicyDecision]) -> None:
    assert msgspec.to_builtins(recount(own(every, DEFAULT_TENANT))) == figures.grpc(DEFAULT_TENANT, "count_decisions")
    assert figures.rest(DEFAULT_TENANT, "/v1/runs", limit=500)["runs"] == list(figures.grpc(DEFAULT_TENANT, "list_runs", limit=500)["runs"])


@pytest.mark.parametrize("tenant", TENANTS)
def test_home_and_events_show_what_the_log_holds(figures: Figures, every: list[PolicyDecision], tenant: str) -> None:
    counts = recount(own(every, tenant))
    home, events = figures.page(tenant, "/dashboard"), figures.page(tenant, "/dashboard/governance/events?minutes=527040")
    blocked = recount(each for each in own(every, tenant) if each.action is PolicyAction.BLOCK)
    only_blocks = figures.page(tenant, "/dashboard/governance/events?minutes=527040&action=block")

    assert re.search(rf"Decisions, last hour[| ]+{counts.decisions:,}[| ]+{re.escape(in_words(counts))}", home), home
    assert f"{counts.decisions:,} decisions in all: {in_words(counts)}" in events
    assert f"{blocked.decisions:,} decisions in all: {in_words(blocked)}" in only_blocks


def test_the_events_that_are_listed_are_as_many_as_are_counted(figures: Figures, every: list[PolicyDecision]) -> None:
    listed: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = figures.rest(DEFAULT_TENANT, "/v1/governance/events", minutes=600, limit=500, cursor=cursor)
        listed += page["events"]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert Counter(each["action"] for each in listed) == Counter(each.action.value for each in own(every, DEFAULT_TENANT))


def test_the_pages_of_runs_show_what_their_decisions_are(figures: Figures, every: list[PolicyDecision]) -> None:
    table = figures.page(DEFAULT_TENANT, "/dashboard/traces")
    lines = figures.rest(DEFAULT_TENANT, "/v1/runs", limit=500)["runs"]
    by_rpc = figures.rpc(DEFAULT_TENANT, "list_runs", limit=500)["runs"]

    assert lines == by_rpc
    assert {each.run_id for each in own(every, DEFAULT_TENANT)} <= {each["facts"]["run_id"] for each in lines}
    for line in lines:
        run_id = line["facts"]["run_id"]
        counts = recount(each for each in every if each.run_id == run_id)
        told = (counts.stopped, counts.not_enforced, counts.warned, counts.bypassed)

        assert told == (line["blocks"], line["not_enforced"], line["warnings"], line["bypasses"]), run_id
        if f"|{run_id}|" in table:
            row = table[table.index(f"|{run_id}|") :].partition("run-")[2].partition("run-")[0]

            assert "".join(f"|{number}|" for number in told) in row.replace(" ", ""), run_id
    for seed in (0, 1, 2, 3, 10, 13):
        run_id = f"run-{seed}"
        path = f"/dashboard/traces/run?id={run_id}"
        page, markup = figures.page(DEFAULT_TENANT, path), figures.markup(DEFAULT_TENANT, path)
        counts = recount(each for each in every if each.run_id == run_id)

        assert re.search(rf"Decisions[| ]+{counts.decisions:,}[| ]+{re.escape(in_words(counts))}", page), run_id
        assert counts.warned == markup.count('<div class="decision warn"')
        assert counts.stopped + counts.not_enforced == markup.count('<div class="decision bad"')


def test_a_trial_counts_the_runs_of_its_tenant(figures: Figures) -> None:
    body = {"name": "Nothing", "category": "retrieval", "rules": {}}
    with client_of(figures.url, figures.tokens[DEFAULT_TENANT]) as client:
        report = client.post("/v1/trials/shadow", json={"policy": body, "minutes": 600}).json()
    lines = figures.rest(DEFAULT_TENANT, "/v1/runs", limit=500)["runs"]

    assert len(lines) - 1 == report["runs"]  # what was redacted cannot be tried again
    assert sum(line.get("ended_at") is None for line in lines) == report["unfinished_runs"]


def test_the_commands_tell_what_the_log_holds(base: Path, every: list[PolicyDecision], capsys: pytest.CaptureFixture[str]) -> None:
    def run_command(*words: str) -> str:
        assert main([*words, "--base", str(base)]) == 0
        return capsys.readouterr().out

    exported = [json.loads(line) for line in run_command("policy", "log", "export").splitlines()]
    replayed = json.loads(run_command("policy", "replay", "--json"))
    verified = json.loads(run_command("policy", "log", "verify", "--json"))
    with open_control(base) as control:
        records = list(control.log.records())

    assert Counter((each["action"], each["status"], each["is_enforced"]) for each in exported) == Counter(
        (each.action.value, each.status.value, each.is_enforced) for each in every
    )
    assert WORLDS - 1 == replayed["runs"]  # what was redacted cannot be decided again
    assert len(records) == sum(head["size"] for head in verified["heads"])
