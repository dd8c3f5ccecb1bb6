"""From what a caller calls a base to who governs its runs: nothing, a directory, an open base, or a control plane."""

from __future__ import annotations

import atexit
import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.failover import FailoverGovernor
from evidentia.governance.governor import CompiledPolicies, LocalGovernor
from evidentia.governance.memory_log import MemoryLog
from evidentia.wiring.system import SystemClock, SystemEntropy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evidentia.contracts.policies import PolicyBody
    from evidentia.contracts.ports import Governor

BASE_VARIABLE: Final = "EVIDENTIA_BASE"
TOKEN_VARIABLE: Final = "EVIDENTIA_TOKEN"  # noqa: S105 - the name of a variable, not a token
_WEB: Final = ("http://", "https://")


@runtime_checkable
class HasGovernor(Protocol):
    """An open base, which governs runs by its own policies and writes its own log."""

    def governor(self, *, durable: bool = False) -> Governor:
        """Return who governs runs; `durable` has every decision on disk before the call goes on."""
        ...


AnyBase = str | Path | HasGovernor


class Found(NamedTuple):
    """Who governs, and whether beginning and ending a run waits for nothing outside of this process."""

    governor: Callable[[], Governor]
    is_quick: bool = False


def find_governor(base: AnyBase | None, *, durable: bool) -> Found:
    """Return who governs the runs under a base; without one, EVIDENTIA_BASE counts, and without that memory alone."""
    named = os.environ.get(BASE_VARIABLE, "") or None if base is None else base
    if named is None:
        return Found(_in_memory, is_quick=True)
    if isinstance(named, HasGovernor):
        return Found(lambda: named.governor(durable=durable))
    if isinstance(named, str) and named.lower().startswith(_WEB):
        return Found(lambda: _control_plane(named))
    if isinstance(named, str | Path):
        return Found(lambda: _directory(Path(named), durable=durable))
    raise InvalidRecordError("base", f"expected a path, a URL or an open base, not {type(named).__name__}")


def checked_bodies(policies: Iterable[PolicyBody | Mapping[str, Any]], *, tenant: str) -> Sequence[PolicyBody]:
    """Return policies given with a run as bodies that can be put in force, or raise PolicyInvalidError with every problem.

    Any: bodies as an author writes them.
    """
    _, _, compiled = _parts(os.getpid())
    return [policy.body for policy in compiled.checked(tuple(policies), tenant=tenant)]


def _in_memory() -> Governor:
    """Return a governor for one run, whose log ends with it; what it compiles is kept for the next."""
    clock, entropy, compiled = _parts(os.getpid())
    return LocalGovernor(None, MemoryLog(entropy=entropy), clock=clock, entropy=entropy, compiled=compiled)


@lru_cache(maxsize=1)
def _parts(process: int) -> tuple[SystemClock, SystemEntropy, CompiledPolicies]:
    del process
    return SystemClock(), SystemEntropy(), CompiledPolicies()


_directories: dict[tuple[int, str, int, bool], Governor] = {}
_planes: dict[tuple[int, str, str], FailoverGovernor] = {}
_lock = threading.Lock()


def _directory(path: Path, *, durable: bool) -> Governor:
    """Return who governs by the base in a directory, opened once per process; a directory that was made anew is another."""
    from evidentia.wiring.governance_runtime import open_control

    resolved = path.resolve()
    number = resolved.stat().st_ino if resolved.exists() else 0
    with _lock:
        key = (os.getpid(), str(resolved), number, durable)
        if key not in _directories:
            opened = open_control(resolved, is_durable=durable)
            atexit.register(opened.close)
            _directories[key] = opened
        return _directories[key]


def _control_plane(url: str) -> Governor:
    """Return the control plane at a URL, with what decides while it is out of reach."""
    from evidentia.wiring.governance_runtime import remote_governor

    token = os.environ.get(TOKEN_VARIABLE, "")
    with _lock:
        key = (os.getpid(), url, token)
        if key not in _planes:
            clock, entropy, compiled = _parts(os.getpid())
            remote = remote_governor(url, token=token)
            atexit.register(remote.close)
            _planes[key] = FailoverGovernor(remote, clock=clock, entropy=entropy, compiled=compiled)
        return _planes[key]
