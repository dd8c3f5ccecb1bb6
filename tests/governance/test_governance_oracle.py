"""Random runs: every way to be governed decides what the table says, call by call and field by field.

A thousand runs are played each time, four thousand with EVIDENTIA_SOAK=full;
EVIDENTIA_TRACES=100000 plays as many as it says, through each of the ways.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import governance_oracle
import pytest
from random_traces import World, as_agents_see_it, world_of
from scenario_agents import play_async, play_sync
from scenario_cases import Call, Case
from scenario_doors import decided, fields_of, recorded_call

from evidentia.contracts.runs import RunFacts, RunId
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.rules import check_policy
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scenario_doors import Played

Fields = dict[str, Any]  # JSON: a verdict
Told = tuple[list[list[Fields]], list[bool]]
"""What is decided at the beginning and at each call, and which calls raise."""

ASKED = os.environ.get("EVIDENTIA_TRACES", "")
TRACES = int(ASKED) if ASKED else cases(1_000, of=4_000)
AGENT_TRACES = TRACES if ASKED else cases(160, of=400)
"""A context costs more than the evaluator alone."""
SHARDS = 8
DOORS = {"sync": play_sync, "async": play_async}
COMPARED = ("policy_name", "rule", "action", "reason", "metadata", "status", "phase", "category", "is_enforced", "abstention_response")
EVALUATED = ("policy_name", "rule", "action", "reason", "metadata", "status")


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_evaluator_decides_what_the_table_says(shard: int) -> None:
    for seed in range(shard, TRACES, SHARDS):
        world = world_of(seed)

        check_same(told_by_table(world), told_by_evaluator(world), where=f"seed {seed}")


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("door", list(DOORS))
def test_a_context_decides_what_the_table_says(door: str, shard: int) -> None:
    for seed in range(shard, AGENT_TRACES, SHARDS):
        world = as_agents_see_it(world_of(seed))

        check_same(told_by_table(world), told_by_agent(world, DOORS[door]), where=f"seed {seed}")


def check_same(expected: Told, found: Told, *, where: str) -> None:
    """Compare call by call, so that a difference is seen where it begins; 0 is the beginning of the run."""
    for place, (wanted, heard) in enumerate(zip(expected[0], found[0], strict=True)):
        assert wanted == heard, f"{where}, call {place}"
    assert expected[1] == found[1], f"{where}: other calls raise"


def told_by_agent(world: World, play: Callable[[Case], Played]) -> Told:
    """Return what an agent hears of the same, and which calls raise; it catches what is raised, and goes on."""
    *calls, end = world.trace
    case = Case(
        theme="random",
        name="",
        rows=(),
        policies=world.policies,
        calls=(*(Call(said=said, is_caught=True) for said in calls), Call(said={"kind": "result", "name": "an answer"})),
        end=Call(said=end),
        agent=world.facts["agent_name"],
        user=world.facts["user_id"],
        is_enforced=world.is_enforced,
        fails=end["status"] == "error",
    )
    played = play(case)
    heard = [*played.calls[:-1], played.end]
    return [compared(each) for each in [played.begin, *(each.decisions for each in heard)]], [each.raised is not None for each in heard]


def told_by_table(world: World) -> Told:
    """Return what the oracle says of the beginning and of each call, and which calls raise."""
    policies, facts = world.policies, world.facts
    begun = governance_oracle.begin(policies, facts, is_enforced=world.is_enforced)
    prefixes = [world.trace[: length + 1] for length in range(len(world.trace))]
    said = [governance_oracle.decide(policies, facts, prefix, is_enforced=world.is_enforced) for prefix in prefixes]
    stopped = [any(governance_oracle.stops(verdict) for verdict in verdicts) for verdicts in said]
    return [compared([_renamed(each) for each in verdicts]) for verdicts in [begun, *said]], stopped


def told_by_evaluator(world: World) -> Told:
    """Return what the evaluator says of the same, and what of it stops."""
    checked = [check_policy(body) for body in world.policies]
    ids = {policy.body.name: policy.policy_id for policy in checked}
    facts = RunFacts(run_id=RunId("r-1"), **world.facts)
    evaluator = RunEvaluator(PolicySet.of(checked).for_run(facts), is_enforced=world.is_enforced)
    begun = [fields_of(verdict) for verdict in evaluator.begin()]
    heard = [decided(evaluator, recorded_call(said), said.get("judgements", {}), ids)[0] for said in world.trace]
    return [compared(each) for each in [begun, *(each.decisions for each in heard)]], [each.raised is not None for each in heard]


def compared(decisions: Iterable[Mapping[str, Any]]) -> list[Fields]:
    """Return the fields that count, by category; the reason of a notice is free."""
    kept = [
        {name: each[name] for name in COMPARED}
        | {
            "evaluations": [
                {name: inner[name] for name in EVALUATED} for inner in each["evaluations"] if inner["rule"] != governance_oracle.NOTICE
            ]
        }
        for each in decisions
    ]
    return sorted(kept, key=lambda each: str(each["category"]))


def _renamed(verdict: Mapping[str, Any]) -> Fields:
    evaluations = [{"policy_name": each["policy"], **each} for each in verdict["evaluations"]]
    return {"policy_name": verdict["policy"], **verdict, "evaluations": evaluations}
