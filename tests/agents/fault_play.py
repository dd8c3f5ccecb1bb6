"""One run of an agent under a fault, step by step, in a sync or an async context; and what its log has to tell afterwards."""

from __future__ import annotations

import asyncio
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from evidentia.agents import Context, PolicyViolationError
from evidentia.contracts.decisions import DecisionStatus, Evaluation
from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import RunId
from evidentia.governance.decision_queries import DecisionFilter, decisions, runs
from evidentia.governance.decision_replay import replay
from evidentia.governance.log_maintenance import verify
from evidentia.policy.posture import action_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evidentia.agents.governors import AnyBase
    from evidentia.contracts.decisions import PolicyDecision
    from evidentia.contracts.policies import Posture
    from evidentia.governance.log_scan import KeptLogs

START = "start"
END = "end"
ALL = 10_000
WAYS = ("sync", "async")


class Step(NamedTuple):
    """Something the agent does, or something that happens to it."""

    name: str
    act: Callable[[Context], object]


class World(NamedTuple):
    """Where a run takes place, and the fault that it meets."""

    base: AnyBase
    steps: Sequence[Step]
    struck: str
    """The step that meets the fault."""
    what: str
    """The rule, or what else the bypass names."""
    logs: Callable[[Context], KeptLogs]
    """Return the logs that tell of the run afterwards."""
    stops_with: type[EvidentiaError] = PolicyViolationError
    """What a closed posture raises."""
    at_most: PolicyAction = PolicyAction.BLOCK
    """What the bypass comes to in the worst case; where that is a warning, it is one under every posture."""
    fields: Mapping[str, Any] = MappingProxyType({})  # what the context is made with besides
    is_never_begun: bool = False
    """Whether a closed posture leaves nothing to tell of: where nothing can be written, no run begins."""
    prefix: str = ""
    """What stands before the run's id in the logs."""

    def action(self, posture: Posture) -> PolicyAction:
        """Return what the bypass comes to."""
        return action_of(posture) if self.at_most is PolicyAction.BLOCK else self.at_most


class Played(msgspec.Struct, kw_only=True):
    """What came of a run: by step, what it raised and which warnings it offered."""

    ctx: Context
    errors: dict[str, EvidentiaError] = msgspec.field(default_factory=dict)
    warnings: dict[str, list[Evaluation]] = msgspec.field(default_factory=dict)

    def take(self, step: Step) -> None:
        """Do a step; the agent catches what it raises and goes on."""
        try:
            step.act(self.ctx)
        except EvidentiaError as error:
            self.errors[step.name] = error
        self.listen(step.name)

    def listen(self, name: str) -> None:
        """Take the warnings that came with a step."""
        self.warnings[name] = self.ctx.take_feedback()


def play(world: World, *, way: str) -> Played:
    """Return what comes of the steps in a world."""
    ctx = Context("agent", base=world.base, **world.fields)
    played = Played(ctx=ctx)
    run = _play_sync if way == "sync" else _play_async
    try:
        run(played, world.steps)
    except EvidentiaError as error:
        played.errors[END if ctx.is_over else START] = error
    played.listen(END)
    return played


def _play_sync(played: Played, steps: Sequence[Step]) -> None:
    with played.ctx:
        played.listen(START)
        for step in steps:
            played.take(step)


def _play_async(played: Played, steps: Sequence[Step]) -> None:
    async def run() -> None:
        async with played.ctx:
            played.listen(START)
            for step in steps:
                played.take(step)
                await asyncio.sleep(0)

    asyncio.run(run())


def told(world: World, played: Played) -> Sequence[PolicyDecision]:
    """Return what the logs of a world tell of a run."""
    logs, name = world.logs(played.ctx), played.ctx.run_id
    if world.prefix:  # a plane puts tenant and namespace before the name
        name = next(each.facts.run_id for each in runs(logs) if re.fullmatch(rf"{world.prefix}[0-9a-f]{{16}}~{name}", each.facts.run_id))
    return told_of(logs, name)


def told_of(logs: KeptLogs, run_id: str) -> Sequence[PolicyDecision]:
    """Return what logs tell of a run; that they tell something is checked here."""
    made = decisions(logs, DecisionFilter(run_id=RunId(run_id)), limit=ALL).decisions

    assert made
    return made


def bypasses(made: Sequence[PolicyDecision], what: str) -> list[Evaluation]:
    """Return the evaluations that say that a check of this name was not made."""
    return [each for decision in made for each in decision.evaluations if each.status is DecisionStatus.BYPASSED and what == each.rule]


def is_silent(made: Sequence[PolicyDecision]) -> bool:
    """Tell whether a run looks as if everything had been checked and found good."""
    return all(each.action is PolicyAction.ALLOW and each.status is DecisionStatus.EVALUATED for each in made)


def check_logs(logs: KeptLogs) -> None:
    """Check that every chain holds, and that every decision comes out again as it was written down."""
    report = verify(logs)
    again = replay(logs)

    assert (True, ()) == (report.ok, report.faults)
    assert ((), 0, 0) == (again.mismatches, again.mismatch_count, again.not_replayable)


def check_cell(world: World, posture: Posture, played: Played) -> None:
    """Check one cell of the matrix, from the log alone: the bypass, what it came to, and that nothing passes in silence."""
    if world.is_never_begun:
        _check_never_begun(world, played)
        return
    made = told(world, played)
    found = bypasses(made, world.what)
    action = world.action(posture)

    assert found, [(each.rule, each.status.value, each.reason) for each in made]
    assert {action} == {each.action for each in found}
    assert not is_silent(made)
    if action is PolicyAction.BLOCK:
        _check_stopped(world, played, made)
    else:
        assert {} == played.errors
        assert "success" == played.ctx.status
    offered = [each for each in _heard(world, played) if each.rule == world.what]
    assert (action is PolicyAction.WARN) == bool(offered), played.warnings
    check_logs(world.logs(played.ctx))


def _check_never_begun(world: World, played: Played) -> None:
    logs = world.logs(played.ctx)
    assert [world.struck] == list(played.errors), played.errors
    assert isinstance(played.errors[world.struck], world.stops_with)
    assert not list(logs.records(run_id=played.ctx.facts.run_id))
    check_logs(logs)


def _heard(world: World, played: Played) -> list[Evaluation]:
    """Return the warnings that came with the step that met the fault; those about the start may come with the first step."""
    late = played.warnings[world.steps[0].name] if world.struck == START and world.steps[0].name in played.warnings else []
    return [*played.warnings.get(world.struck, []), *late]


def _check_stopped(world: World, played: Played, made: Sequence[PolicyDecision]) -> None:
    assert [world.struck] == list(played.errors), played.errors
    error = played.errors[world.struck]
    assert isinstance(error, world.stops_with), repr(error)
    if isinstance(error, PolicyViolationError):
        # What was decided beside a plane stands in its log under another place.
        assert (_words(error.decision) in map(_words, made)) if world.prefix else (error.decision in made)
        assert (world.what, DecisionStatus.BYPASSED) == (error.decision.rule, error.decision.status)
        assert "blocked" == played.ctx.status


def _words(decision: PolicyDecision) -> tuple[object, ...]:
    return decision.kind, decision.rule, decision.action, decision.status, decision.reason
