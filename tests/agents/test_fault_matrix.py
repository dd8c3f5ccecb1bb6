"""Every fault under every posture, in sync and async contexts: what was not checked is written down, and stops where it should."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from fault_clocks import JUMPS, clock_world, reopened, unaged_world
from fault_disks import FAULTS as LOG_FAULTS
from fault_disks import MODES, log_world, lost_world
from fault_judges import FAULTS as JUDGE_FAULTS
from fault_judges import KEY, NEVER_ASKED, NO_KEY, PHASES, TEXT, judge_world
from fault_planes import FAULTS as PLANE_FAULTS
from fault_planes import ServerContext, check_acknowledged, judged_plane_world, plane_world
from fault_play import WAYS, bypasses, check_cell, check_logs, is_silent, play, told, told_of

import evidentia
from evidentia.agents.errors import InvalidRecordError
from evidentia.contracts.policies import Posture
from evidentia.governance.decision_queries import runs
from evidentia.policy.posture import action_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

postures = pytest.mark.parametrize("posture", list(Posture))
ways = pytest.mark.parametrize("way", WAYS)


@pytest.fixture(scope="module")
def made_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "docs").mkdir()
    (folder / "docs" / "keys.md").write_text(f"# Keys\n\n{TEXT}\n", encoding="utf-8")
    with evidentia.connect(folder / "base", init=True) as base:
        base.ingest([folder / "docs"], source="handbook", embed=False)
    return folder / "base"


@pytest.fixture
def directory(made_base: Path, tmp_path: Path) -> Path:
    """Return a base with one document and nothing in its log."""
    return shutil.copytree(made_base, tmp_path / "base")


@pytest.fixture(autouse=True)
def key(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a key for the judge, unless that is the fault."""
    fields = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if fields.get("fault") == NO_KEY:
        monkeypatch.delenv(KEY, raising=False)
    else:
        monkeypatch.setenv(KEY, "key")


@ways
@pytest.mark.parametrize("phase", PHASES)
def test_a_judge_without_a_fault_lets_the_run_pass(directory: Path, phase: str, way: str) -> None:
    with judge_world(directory, "", Posture.CLOSED, phase=phase) as world:
        played = play(world, way=way)
        made = told(world, played)

        assert ({}, "success") == (played.errors, played.ctx.status)
        assert is_silent(made)
        check_logs(world.logs(played.ctx))


@ways
@postures
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("fault", JUDGE_FAULTS)
def test_a_judge_that_fails(directory: Path, fault: str, phase: str, posture: Posture, way: str) -> None:
    with judge_world(directory, fault, posture, phase=phase) as world:
        check_cell(world, posture, play(world, way=way))


@ways
@postures
def test_a_judge_that_is_never_asked(directory: Path, posture: Posture, way: str) -> None:
    """An agent that says nothing about what its answer rests on does not get around a judge of such entries."""
    with judge_world(directory, NEVER_ASKED, posture, phase="mid_execution") as world:
        check_cell(world, posture, play(world, way=way))


@pytest.fixture(scope="module")
def plane(made_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerContext]:
    with ServerContext(shutil.copytree(made_base, tmp_path_factory.mktemp("plane") / "base")) as running:
        yield running


@ways
def test_a_plane_without_a_fault_decides(plane: ServerContext, way: str) -> None:
    with plane_world(plane, "", Posture.CLOSED) as world:
        played = play(world, way=way)
        made = told(world, played)

        assert ({}, "success") == (played.errors, played.ctx.status)
        assert is_silent(made)
        check_logs(world.logs(played.ctx))


@ways
@postures
@pytest.mark.parametrize("fault", PLANE_FAULTS)
def test_a_plane_out_of_reach(plane: ServerContext, fault: str, posture: Posture, way: str) -> None:
    with plane_world(plane, fault, posture) as world:
        played = play(world, way=way)
        check_cell(world, posture, played)
        check_acknowledged(world, played)


@ways
@postures
def test_a_plane_that_takes_its_judge_along(plane: ServerContext, posture: Posture, way: str) -> None:
    with judged_plane_world(plane, posture) as world:
        check_cell(world, posture, play(world, way=way))


@ways
@postures
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", LOG_FAULTS)
def test_a_log_that_cannot_be_written(directory: Path, fault: str, mode: str, posture: Posture, way: str) -> None:
    with log_world(directory, fault, posture, mode=mode) as world:
        check_cell(world, posture, play(world, way=way))


@ways
@pytest.mark.parametrize("posture", [Posture.OPEN, Posture.DEGRADE])
@pytest.mark.parametrize("fault", LOG_FAULTS)
def test_a_log_that_comes_back_after_the_run(directory: Path, fault: str, posture: Posture, way: str) -> None:
    """What a run was let go on with is written when the next one can write, and that one is whole as well."""
    with lost_world(directory, fault, posture) as world:
        played = play(world, way=way)
        logs = world.logs(played.ctx)
        made = told_of(logs, played.ctx.run_id)

        assert {} == played.errors
        assert ["run", "retrieval", "retrieval", "end"] == [each.kind for each in made if each.rule != world.what]
        assert {action_of(posture)} == {each.action for each in bypasses(made, world.what)}
        assert ["later", "agent"] == [run.facts.agent_name for run in runs(logs)]
        check_logs(logs)


@ways
@postures
def test_a_document_whose_age_is_not_known(directory: Path, posture: Posture, way: str) -> None:
    with unaged_world(directory, posture) as world:
        played = play(world, way=way)
        if posture is not Posture.OPEN:
            check_cell(world, posture, played)
            return
        # Where it changes nothing the record stays compact, and what it stands for says that the age is not known.
        (said,) = (each for decision in told(world, played) for each in decision.evaluations if "age_days" in each.metadata)
        assert ("allow", None, True) == (said.action, said.metadata["age_days"], said.metadata["unknown_age"])
        assert {} == played.errors
        check_logs(world.logs(played.ctx))


@ways
@postures
@pytest.mark.parametrize("jump", JUMPS)
def test_a_clock_that_jumps(directory: Path, jump: str, posture: Posture, way: str) -> None:
    """Decisions and their order are those of a steady clock; a date that now lies ahead is refused, whatever the posture."""
    with clock_world(directory, JUMPS[jump], posture) as world:
        played = play(world, way=way)
        made = told(world, played)

        ages = [(each.inputs["age_days"], each.action.value) for each in made if each.kind == "retrieval"]
        seen = {"hours back": [(10, "allow")], "hours on": [(10, "allow")], "days back": [], "days on": [(410, "warn")]}[jump]
        assert [(10, "allow"), (10, "allow"), (91, "warn"), *seen] == ages
        assert (["dated"] if jump == "days back" else []) == list(played.errors)
        assert all(isinstance(error, InvalidRecordError) for error in played.errors.values())
        assert sorted(each.at for each in made) == [each.at for each in made]
        check_logs(world.logs(played.ctx))


@ways
def test_a_log_that_is_begun_after_the_clock_went_back_reads_as_whole(directory: Path, way: str) -> None:
    """Two processes write one after the other, and the second believes it is a year earlier."""
    with clock_world(directory, timedelta(), Posture.CLOSED) as world:
        first = play(world, way=way)
    with reopened(directory, timedelta(days=-400)) as world:
        second = play(world, way=way)
        assert {first.ctx.run_id, second.ctx.run_id} == {run.facts.run_id for run in runs(world.logs(second.ctx))}
        assert told(world, first)
        assert told(world, second)
        check_logs(world.logs(second.ctx))
