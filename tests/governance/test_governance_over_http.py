"""The same cases, refusals and random runs through the control plane: what it decides over HTTP is what the table says.

Eighty random runs are played each time, two hundred with EVIDENTIA_SOAK=full; EVIDENTIA_TRACES=100000 plays two thousand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import scenario_cases
from random_traces import as_agents_see_it, world_of
from scenario_checks import check_played, check_problems, label_of
from scenario_plane import served_plane
from test_governance_oracle import TRACES, check_same, told_by_agent, told_by_table
from translating import ByGrpc, ByJsonRpc, translated

from soak import IS_SOAKED, cases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scenario_cases import Case
    from scenario_plane import ServedPlane

pytestmark = pytest.mark.slow

CASES = [case for case in scenario_cases.load() if "rest" in case.doors]
RUNS = [case for case in CASES if case.is_run]
BODIES = [case for case in CASES if case.body is not None]
KEPT = {"runs", "order", "examples"}
"""Cases whose policies the plane keeps; the policies of the others come with the run."""
RANDOM_RUNS = max(cases(80, of=200), TRACES // 50)
TOGETHER = 40
"""How many runs share a plane: reading the decisions of a run costs more the longer the log is."""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ServedPlane]:
    """Return a new plane."""
    with served_plane(tmp_path / "base") as served:
        yield served


@pytest.fixture(scope="module")
def keeping_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPlane]:
    """Return a plane for all policies of this file."""
    with served_plane(tmp_path_factory.mktemp("plane") / "base") as served:
        yield served


@pytest.mark.parametrize("start", range(0, len(RUNS), TOGETHER))
def test_cases_over_http(start: int, plane: ServedPlane) -> None:
    for case in RUNS[start : start + TOGETHER]:
        plane.remove_all()
        try:
            check_played(case, plane.play(case) if case.theme in KEPT else plane.play_with_given(case))
        except AssertionError as error:
            error.add_note(case.label)
            raise


@pytest.mark.parametrize("door", ["jsonrpc", "grpc"])
@pytest.mark.parametrize("start", range(0, len(RUNS), 4 * TOGETHER))
def test_cases_through_other_doors(start: int, door: str, plane: ServedPlane) -> None:
    """Every sixth case, and all of them with EVIDENTIA_SOAK=full."""
    with translated(ByJsonRpc(plane.url) if door == "jsonrpc" else ByGrpc(plane.grpc_address)) as url:
        for case in RUNS[start : start + 4 * TOGETHER : 1 if IS_SOAKED else 6]:
            plane.remove_all()
            try:
                check_played(case, plane.play(case, url=url) if case.theme in KEPT else plane.play_with_given(case, url=url))
            except AssertionError as error:
                error.add_note(f"{case.label}, {door}")
                raise


@pytest.mark.parametrize("case", [case for case in BODIES if "problems" in case.then], ids=label_of)
def test_a_bad_policy_is_refused_over_http(case: Case, keeping_plane: ServedPlane) -> None:
    reply = keeping_plane.admin.post("/v1/policies", json=case.body)

    assert 422 == reply.status_code
    check_problems(case, [(each["path"], each.get("suggestion", "")) for each in reply.json()["error"]["problems"]])
    called = keeping_plane.admin.post("/rpc", json={"jsonrpc": "2.0", "id": 1, "method": "create_policy", "params": case.body})
    assert reply.json()["error"] == called.json()["error"]["data"]


@pytest.mark.parametrize("case", [case for case in BODIES if "complete" in case.then], ids=label_of)
def test_a_policy_is_created_over_http(case: Case, keeping_plane: ServedPlane) -> None:
    assert case.body is not None
    keeping_plane.remove_all()
    reply = keeping_plane.admin.post("/v1/policies", json=case.body)
    wanted = case.then["complete"] or case.body["rules"]

    assert 201 == reply.status_code
    rules = reply.json()["policy"]["body"]["rules"]
    assert wanted == (rules if case.then["complete"] else {name: rules[name] for name in wanted})


@pytest.mark.parametrize("start", range(0, RANDOM_RUNS, TOGETHER))
def test_random_runs_over_http(start: int, plane: ServedPlane) -> None:
    for seed in range(start, start + TOGETHER):
        world = as_agents_see_it(world_of(seed))
        play = plane.play_async_with_given if seed % 2 else plane.play_with_given

        check_same(told_by_table(world), told_by_agent(world, play), where=f"seed {seed}")
