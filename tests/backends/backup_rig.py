"""What works on a base while it is copied, each in a process of its own, until a file says that it is enough; run by test_backup.py.

Usage: python backup_rig.py ROLE BASE STOP, or python backup_rig.py killed BASE NAME CALLS
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from evidentia import connect
from evidentia.contracts.errors import BaseBusyError, EvidentiaError, VersionCollectedError
from evidentia.contracts.runs import RetrievedDocument, RunFacts, RunId

if TYPE_CHECKING:
    from evidentia.contracts.backups import BackupProgress

DOCUMENTS = 12
KEEP = {"gc": 10_000, "gc-hard": 3}


def main(role: str, directory: Path, stop: Path) -> None:
    rounds = 0
    while not stop.exists():
        ROLES[role](directory, rounds)
        rounds += 1
        directory.with_name(f"{role}.rounds").write_text(str(rounds))
    print(rounds)  # noqa: T201


def ingest(directory: Path, rounds: int) -> None:
    folder = directory.with_name("corpus")
    folder.mkdir(exist_ok=True)
    for number in range(rounds % DOCUMENTS, DOCUMENTS, 3):
        text = f"# Page {number}\n\nKeys of edition {rounds} expire after {number} days. " + f"word{rounds} " * 40
        (folder / f"{number}.md").write_text(text)
    try:
        with connect(directory) as base:
            base.ingest([folder], source="moving", embed=False)
    except BaseBusyError:
        time.sleep(0.01)


def retrieve(directory: Path, rounds: int) -> None:
    with connect(directory) as base:
        for number in range(20):
            with suppress(VersionCollectedError):
                base.retrieve(f"keys page {number}", mode="lexical")
            base.remember(f"note {rounds}.{number}")


def decide(directory: Path, rounds: int) -> None:
    with connect(directory) as base:
        run = base.governor(durable=rounds % 2 == 0).start(RunFacts(run_id=RunId(f"run-{rounds}"), agent_name="rig"))
        for number in range(20):
            run.record(RetrievedDocument(source=f"{number}.md", relevance_score=0.9))


def gc(directory: Path, rounds: int) -> None:
    collect(directory, "gc")
    time.sleep(0.01 * (rounds % 3))


def gc_hard(directory: Path, rounds: int) -> None:
    collect(directory, "gc-hard")
    time.sleep(0.01 * (rounds % 3))


def collect(directory: Path, role: str) -> None:
    try:
        with connect(directory) as base:
            base.gc(keep_versions=KEEP[role])
    except BaseBusyError:
        time.sleep(0.01)


def backup_killed(directory: Path, name: str, *, calls: int) -> None:
    """Take a backup and die at a call of the watcher, counted from 1."""
    left = calls

    def watch(_: BackupProgress) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with connect(directory) as base:
        print("ready", flush=True)  # noqa: T201
        base.backup(directory.with_name(name), on_progress=watch)


ROLES = {"ingest": ingest, "retrieve": retrieve, "decide": decide, "gc": gc, "gc-hard": gc_hard}

if __name__ == "__main__":
    try:
        if sys.argv[1] == "killed":
            backup_killed(Path(sys.argv[2]), sys.argv[3], calls=int(sys.argv[4]))
        else:
            main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    except EvidentiaError as error:
        sys.exit(f"{sys.argv[1]}: {error.code}: {error}")
