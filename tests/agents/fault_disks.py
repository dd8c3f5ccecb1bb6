"""Worlds whose decision log cannot be written: the disk is full, or the folder is read-only; and later it can be again."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest
from fault_judges import Governed, put
from fault_planes import document
from fault_play import START, Step, World

from evidentia.agents import Context
from evidentia.backends.embedded.logs.decision_log_file import DECISIONS_NAME
from evidentia.contracts.errors import BaseStateError
from evidentia.contracts.policies import PolicyBody, Posture
from evidentia.wiring.governance_runtime import GovernanceRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evidentia.governance.log_scan import KeptLogs

RULE: Final = "decision_log"
FULL: Final = "disk full"
READ_ONLY: Final = "folder read-only"
FAULTS: Final = (FULL, READ_ONLY)
MODES: Final = ("durable", "buffered")
_SMALL: Final = "size=128k"
_LONGER_THAN_A_BLOCK: Final = 5_000
_PATIENCE_S: Final = 10
_TICK_S: Final = 0.005


@contextmanager
def log_world(directory: Path, fault: str, posture: Posture, *, mode: str) -> Iterator[World]:
    """Give an agent whose log cannot be written from the second document on, or from the start; after the third it can again."""
    with small_disk(directory / DECISIONS_NAME) as disk, GovernanceRuntime(directory, is_durable=mode == "durable") as control:
        put(control, guard(posture))
        faulty = _Disk(disk, fault)
        if fault == READ_ONLY:
            faulty.fail()

        def mend(ctx: Context) -> None:
            """Let the log be written again; a buffered one finds out when it tries."""
            faulty.mend()
            if mode == "buffered":
                ctx.flush()

        steps = [Step("first", document), Step("second", _long_document), Step("mend", mend), Step("third", document)]
        if fault == FULL:
            steps.insert(1, Step("fill", faulty.fill))
        if mode == "buffered":
            # A buffered log knows of its trouble once it has tried to write.
            steps[-3:-3] = [Step("tried", lambda ctx: _tried(ctx, control))]
        starts_badly = fault == READ_ONLY and mode == "durable"
        yield World(
            base=Governed(control),
            steps=steps,
            struck=START if starts_badly else "second",
            what=RULE,
            logs=lambda _: control.log,
            stops_with=BaseStateError,
            is_never_begun=starts_badly and posture is Posture.CLOSED,
        )


@contextmanager
def lost_world(directory: Path, fault: str, posture: Posture) -> Iterator[World]:
    """Give an agent whose log cannot be written until after its end, from its start or from its second document on."""
    with small_disk(directory / DECISIONS_NAME) as disk, GovernanceRuntime(directory, is_durable=True) as control:
        put(control, guard(posture))
        faulty, base = _Disk(disk, fault), Governed(control)
        if fault == READ_ONLY:
            faulty.fail()
        happens = (Step("fill", faulty.fill),) if fault == FULL else ()

        def logs(_: Context) -> KeptLogs:
            """Let the log be written again, have another run, and return what it tells of both."""
            faulty.mend()
            with Context("later", base=base) as later:
                document(later)
            return control.log

        steps = (Step("first", document), *happens, Step("second", _long_document))
        yield World(base=base, steps=steps, struck="second", what=RULE, logs=logs)


def guard(posture: Posture) -> PolicyBody:
    """Return a policy with a posture for a log that takes nothing."""
    rules = {"blocked_sources": ["bad"], "min_chunks": 0}
    return PolicyBody(name="Guard", category="retrieval", rules=rules, posture={RULE: posture, "decision_log_buffered": posture})


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Make a folder a file system of its own."""
    folder.mkdir(exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", _SMALL, "tmpfs", str(folder)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class _Disk:
    """A file system that can be full or read-only."""

    def __init__(self, folder: Path, fault: str) -> None:
        self._folder = folder
        self._fault = fault

    def fail(self) -> None:
        """Let nothing be written."""
        _remount(self._folder, "ro")

    def fill(self, ctx: Context) -> None:
        """Leave no room, after what was recorded so far is written."""
        ctx.flush()
        with (self._folder / "filler").open("wb", buffering=0) as filler:
            while _wrote(filler.write):
                pass

    def mend(self) -> None:
        """Let everything be written again."""
        if self._fault == FULL:
            (self._folder / "filler").unlink()
        else:
            _remount(self._folder, "rw")


def _wrote(write: Callable[[bytes], object]) -> bool:
    try:
        return bool(write(bytes(512)))
    except OSError:
        return False


def _remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


def _long_document(ctx: Context) -> None:
    """Record a document whose record is longer than what is left of any block."""
    document(ctx, "a" * _LONGER_THAN_A_BLOCK)


def _tried(ctx: Context, control: GovernanceRuntime) -> None:
    """Record a document, and wait until the log has found out that it cannot be written."""
    _long_document(ctx)
    until = time.monotonic() + _PATIENCE_S
    while control.log.problem is None:
        assert time.monotonic() < until
        time.sleep(_TICK_S)
