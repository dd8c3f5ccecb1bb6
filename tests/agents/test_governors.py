"""From a path, a URL or an open base to who governs; and importing the room costs next to nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.agents import Context, get_current_context
from evidentia.agents.governors import BASE_VARIABLE, resolve_governor
from evidentia.contracts.errors import BaseMissingError
from evidentia.governance.governor import LocalGovernor
from evidentia.governance.memory_log import MemoryLog
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock

if TYPE_CHECKING:
    from pathlib import Path

GUARD: dict[str, Any] = {"name": "Guard", "category": "retrieval", "rules": {"min_chunks": 0}}


class OpenBase:
    """As much of an open base as a run needs."""

    def __init__(self) -> None:
        self.log = MemoryLog(entropy=RepeatableEntropy())
        self.asked: list[bool] = []

    def governor(self, *, durable: bool = False) -> LocalGovernor:
        """Return who governs."""
        self.asked.append(durable)
        return LocalGovernor(None, self.log, clock=SteppingClock(), entropy=RepeatableEntropy())


def test_without_a_base_a_run_has_a_log_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BASE_VARIABLE, raising=False)
    with Context("a", policies=[GUARD]) as first:
        pass
    with Context("b", policies=[GUARD]) as second:
        pass

    assert [1, 2] == [len({each.run_id for each in ctx.decisions}) + place for place, ctx in enumerate((first, second))]
    assert resolve_governor(None, durable=False).is_quick


def test_an_open_base_governs_and_is_told_whether_decisions_must_be_on_disk() -> None:
    base = OpenBase()
    with Context("a", base=base, policies=[GUARD]):
        pass
    with Context("a", base=base, durable=True, policies=[GUARD]):
        pass

    assert [False, True] == base.asked
    assert 2 == len({record.entry.run_id for record in base.log.records()})


@pytest.mark.parametrize("is_named", [True, False])
def test_a_base_that_is_not_there_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_named: bool) -> None:  # noqa: FBT001 - a case
    missing = tmp_path / "none"
    monkeypatch.setenv(BASE_VARIABLE, str(missing))

    with pytest.raises(BaseMissingError), Context("a", base=missing if is_named else None):
        pass
    assert get_current_context() is None


def test_importing_the_room_imports_nothing_else() -> None:
    program = "import sys, evidentia.agents; print([name for name in sys.modules if name.startswith(('evidentia.', 'msgspec', 'asyncio'))])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert "['evidentia.agents']\n" == shown


def test_every_public_name_can_be_imported() -> None:
    import evidentia.agents as room

    assert sorted(room.__all__) == dir(room)
    assert all(getattr(room, name) is not None for name in room.__all__)
    assert room.errors.PolicyViolationError is room.PolicyViolationError
    with pytest.raises(AttributeError):
        _ = room.nothing
