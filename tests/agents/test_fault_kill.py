"""An agent that is killed in the middle of a run: whatever a durable call came back from is in the log, and the log is whole."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fault_judges import KEY, RULE, judged_body, put
from fault_play import WAYS, bypasses, is_silent, told_of

import evidentia
from evidentia.contracts.policies import PolicyBody, Posture
from evidentia.contracts.runs import GroundingEntry, RetrievedDocument, RunId
from evidentia.governance.decision_queries import runs
from evidentia.governance.decision_replay import replay
from evidentia.governance.log_maintenance import verify
from evidentia.policy.posture import action_of
from evidentia.wiring.governance_runtime import GovernanceRuntime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.decisions import LogRecord

AGENT = Path(__file__).with_name("fault_agent.py")
LOOPS = 12


@pytest.fixture(scope="module")
def made_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("made") / "base"
    evidentia.connect(directory, init=True).close()
    return directory


@pytest.fixture
def directory(made_base: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made_base, tmp_path / "base")


def govern(directory: Path, posture: Posture) -> None:
    """Put policies in force under which every document passes, and no answer can be judged, since there is no key."""
    with GovernanceRuntime(directory) as control:
        put(control, PolicyBody(name="Guard", category="retrieval", rules={"max_chunks": 1_000_000}, posture={"*": posture}))
        put(control, judged_body(posture, phase="mid_execution", max_unsupported_claims=None))


def said_before_it_died(directory: Path, way: str, *, calls: int) -> Sequence[str]:
    """Start an agent, kill it after so many calls, and return every word that came through."""
    environment = {name: value for name, value in os.environ.items() if name != KEY}
    agent = subprocess.Popen([sys.executable, str(AGENT), str(directory), way], stdout=subprocess.PIPE, env=environment, text=True)
    assert agent.stdout is not None
    said = [agent.stdout.readline() for _ in range(calls)]
    agent.send_signal(signal.SIGKILL)
    said += agent.stdout.readlines()
    agent.stdout.close()
    assert -signal.SIGKILL == agent.wait()
    return [each.removesuffix("\n") for each in said if each.endswith("\n")]


def known_by(record: LogRecord) -> str:
    call = record.entry.call
    if isinstance(call, RetrievedDocument):
        return call.source
    return call.citations[0] if isinstance(call, GroundingEntry) else ""


def check_after(directory: Path, said: Sequence[str]) -> None:
    """Check that the log holds every acknowledged call, in order, that it is whole, and that others write beside it."""
    run_id, *acknowledged = said
    with GovernanceRuntime(directory, is_durable=True) as control:
        log = control.log
        logged = [name for record in log.records(run_id=RunId(run_id)) if (name := known_by(record))]
        report, again = verify(log), replay(log)

        assert acknowledged == logged[: len(acknowledged)]
        assert len(logged) <= len(acknowledged) + 1
        assert report.ok, report.faults
        assert (0, 0) == (again.mismatch_count, again.not_replayable)
        assert ["running"] == [run.status for run in runs(log) if run.facts.run_id == run_id]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("posture", list(Posture))
def test_what_a_durable_call_came_back_from_outlives_the_process(directory: Path, posture: Posture, way: str) -> None:
    govern(directory, posture)
    said = said_before_it_died(directory, way, calls=8)

    check_after(directory, said)
    with GovernanceRuntime(directory) as control:
        made = told_of(control.log, said[0])
        assert {action_of(posture)} == {each.action for each in bypasses(made, RULE)}
        assert not is_silent(made)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_logs_of_many_killed_agents_stand_beside_each_other(directory: Path, way: str) -> None:
    govern(directory, Posture.DEGRADE)
    for calls in range(1, LOOPS + 1):
        check_after(directory, said_before_it_died(directory, way, calls=calls))

    with GovernanceRuntime(directory) as control:
        assert LOOPS == len(runs(control.log)) == verify(control.log).logs
