"""What was acknowledged outlives the process that said so: a server in its default mode is killed under load, and every run is counted."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from evidentia.contracts.control import Role
from evidentia.contracts.runs import RetrievedDocument, RunEnded
from evidentia.governance.log_maintenance import verify
from evidentia.wiring.governance_runtime import GovernanceRuntime
from serving.hosting_planes import UNLIMITED, client_of, issue, make_base, served
from serving.rest_planes import GOOD
from soak import IS_SOAKED

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 10 if IS_SOAKED else 2
CLIENTS = 6
LEAST = 40
"""How many calls are acknowledged before each kill, at least."""
PATIENCE_S = 120


class Acknowledged:
    """What clients were told was done: the id of each run, how many calls of it, and whether it ended."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self.calls: dict[str, int] = {}
        self.ended: set[str] = set()
        self.count = 0

    def note(self, run_id: str, *, calls: int = 0, is_end: bool = False) -> None:
        with self._change:
            self.calls[run_id] = calls
            self.ended |= {run_id} if is_end else set()
            self.count += 1
            self._change.notify_all()

    def wait_for(self, more: int) -> None:
        with self._change:
            goal = self.count + more
            assert self._change.wait_for(lambda: self.count >= goal, PATIENCE_S)


def run_until_it_is_gone(url: str, token: str, told: Acknowledged) -> None:
    """Have one run after the other, noting each answer, until the server does not answer any more."""
    with client_of(url, token) as client:
        try:
            while True:
                run_id = _asked(client, "/v1/runs", {"facts": {"agent_name": "rag-agent"}})["run_id"]
                told.note(run_id)
                for seq in (1, 2, 3):
                    _asked(client, f"/v1/runs/{run_id}/calls", {"calls": [{"seq": seq, "call": GOOD}]})
                    told.note(run_id, calls=seq)
                _asked(client, f"/v1/runs/{run_id}/end", {"status": "success"})
                told.note(run_id, calls=3, is_end=True)
        except httpx2.TransportError:
            return


def _asked(client: httpx2.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    reply = client.post(path, json=body)
    assert reply.is_success, reply.text
    return dict(reply.json())


@pytest.mark.parametrize("words", [(), ("--durable",)], ids=["default", "durable"])
def test_no_acknowledged_run_is_lost_when_the_server_is_killed(tmp_path: Path, words: tuple[str, ...]) -> None:
    base = make_base(tmp_path, UNLIMITED)
    token, told = issue(base, Role.AGENT), Acknowledged()
    for _ in range(KILLS):
        with served(base, *words) as server:
            clients = [threading.Thread(target=run_until_it_is_gone, args=(server.url, token, told)) for _ in range(CLIENTS)]
            for each in clients:
                each.start()
            told.wait_for(LEAST)
            server.process.send_signal(signal.SIGKILL)
            for each in clients:
                each.join(PATIENCE_S)

    found: dict[str, int] = {}
    ended: set[str] = set()
    with GovernanceRuntime(base) as control:
        for record in control.log.records():
            run_id = str(record.entry.run_id)
            found[run_id] = found.get(run_id, 0) + isinstance(record.entry.call, RetrievedDocument)
            ended |= {run_id} if isinstance(record.entry.call, RunEnded) else set()
        report = verify(control.log)

    assert set() == told.calls.keys() - found.keys()
    assert [] == [run_id for run_id, calls in told.calls.items() if found[run_id] < calls]
    assert set() == told.ended - ended
    assert report.ok, report.faults
    assert told.count >= KILLS * LEAST
