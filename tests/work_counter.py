"""Counts the work that is done for a request, since seconds are too noisy to compare: lines, statements, steps and elements.

    lines       of our code that ran, on whichever thread, by function
    statements  that SQLite ran, and the steps of its machine
    elements    of arrays that numpy read or wrote, as far as they come from stored bytes

A binary search in an array counts what is looked for: how long the array is adds a comparison for each doubling. What depends on the
clock or on which thread is free is not counted: write-behind, pools of threads, latencies of sources, and what was kept of their words.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import evidentia

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    import pytest

OURS: Final = str(Path(evidentia.__file__).parent) + "/"
BY_THREAD: Final = ("foundation/offload.py", "federation/bulkhead.py", "federation/deadline.py", "engine/model_calls.py")
BY_CLOCK: Final = (
    "foundation/background_writer.py", "federation/source_health.py", "federation/cache_entries.py",
    "backends/embedded/records/responses.py",
)  # fmt: skip
"""Not counted with all that they call; of the files before, only themselves."""
PER_THREAD: Final = ("_zeros", "_values")
"""Functions that make room once for each thread that asks."""
FILES_BY_CLOCK: Final = ("responses.db", "runtime.db", "traces.db")
_ARRAYS_ONLY: Final = ("tobytes", "tolist", "astype", "copy", "sum", "any", "all", "max", "min", "argsort", "cumsum", "nonzero", "repeat")


@dataclass
class Work:
    """What was done for one request."""

    lines: Counter[str] = field(default_factory=Counter)
    statements: int = 0
    steps: int = 0
    elements: int = 0


class WorkCounter:
    """Counts while it is told to; one at a time. What is opened before it is installed is not counted."""

    def __init__(self) -> None:
        self._work: Work | None = None

    @contextmanager
    def installed(self, patch: pytest.MonkeyPatch) -> Iterator[WorkCounter]:
        """Watch every thread, connection and stored array that comes into being meanwhile."""
        connect, frombuffer = sqlite3.connect, np.frombuffer

        def watched(*given: Any, **named: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*given, **named)
            if any(name in str(given[0]) for name in FILES_BY_CLOCK):
                return connection
            connection.set_trace_callback(self._ran)
            connection.set_progress_handler(self._stepped, 1)
            return connection

        def counted(*given: Any, **named: Any) -> np.ndarray[Any, Any]:
            found: np.ndarray[Any, Any] = frombuffer(*given, **named).view(CountedArray)
            return found

        patch.setattr(sqlite3, "connect", watched)
        patch.setattr(np, "frombuffer", counted)
        former = sys.gettrace()
        threading.settrace(self._called)
        sys.settrace(self._called)
        _heard.append(self._touched)
        try:
            yield self
        finally:
            _heard.remove(self._touched)
            sys.settrace(former)
            threading.settrace(former)

    def count_here(self, ask: Callable[[], object]) -> Work:
        """Return the lines that a request ran on this thread; nothing has to be installed for that."""
        former = sys.gettrace()
        sys.settrace(self._called)
        try:
            return self.count(ask)[1]
        finally:
            sys.settrace(former)

    def count(self, ask: Callable[[], object]) -> tuple[object, Work]:
        """Return what a request answers, and the work it took."""
        self._work = work = Work()
        try:
            return ask(), work
        finally:
            self._work = None

    def _called(self, frame: FrameType, _event: str, _given: object) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        if self._work is None or not file.startswith(OURS) or file.endswith(BY_THREAD) or frame.f_code.co_name in PER_THREAD:
            return None
        return None if _is_by_clock(frame) else self._ran_line

    def _ran_line(self, frame: FrameType, event: str, _given: object) -> Callable[..., Any]:
        if event == "line" and self._work is not None:
            code = frame.f_code
            self._work.lines[f"{code.co_filename.removeprefix(OURS)}:{code.co_name}"] += 1
        return self._ran_line

    def _ran(self, _statement: str) -> None:
        if self._work is not None:
            self._work.statements += 1

    def _stepped(self) -> int:
        if self._work is not None:
            self._work.steps += 1
        return 0

    def _touched(self, elements: int) -> None:
        if self._work is not None:
            self._work.elements += elements


def _is_by_clock(frame: FrameType) -> bool:
    """Tell whether a frame was called, however far away, by what follows the clock."""
    above: FrameType | None = frame
    while above is not None:
        if above.f_code.co_filename.endswith(BY_CLOCK):
            return True
        above = above.f_back
    return False


# --- arrays ---

_heard: list[Callable[[int], None]] = []


class CountedArray(np.ndarray[Any, Any]):
    """An array that says how many elements each operation on it touches, and whose results do too."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **named: Any) -> Any:
        """Count an operation on elements."""
        plain = [_plain(each) for each in inputs]
        if out is not None:
            named["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*plain, **{name: _plain(each) for name, each in named.items()})
        _tell(*plain, result)
        return out[0] if out is not None and len(out) == 1 else _counted(result)

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> Any:
        """Count a function of arrays."""
        plain, options = _plain(given), _plain(named)
        result = function(*plain, **options)
        _tell(*(plain[1:] if function.__name__ == "searchsorted" else plain), result)
        return _counted(result)

    def __getitem__(self, key: Any) -> Any:
        """Count what is fetched one by one; a stretch is not read yet."""
        found = self.view(np.ndarray)[_plain(key)]
        if isinstance(key, np.ndarray):
            _tell(key, found)
        return _counted(found)

    def searchsorted(self, wanted: Any, *given: Any, **named: Any) -> Any:
        _tell(np.asarray(_plain(wanted)))
        return _counted(self.view(np.ndarray).searchsorted(_plain(wanted), *map(_plain, given), **_plain(named)))

    def take(self, places: Any, *given: Any, **named: Any) -> Any:
        _tell(np.asarray(_plain(places)))
        return _counted(self.view(np.ndarray).take(_plain(places), *given, **named))


def _method(name: str) -> Callable[..., Any]:
    def method(self: CountedArray, *given: Any, **named: Any) -> Any:
        result = getattr(self.view(np.ndarray), name)(*_plain(given), **_plain(named))
        _tell(self, result)
        return _counted(result)

    return method


for _name in _ARRAYS_ONLY:
    setattr(CountedArray, _name, _method(_name))


def _plain(value: Any) -> Any:
    """Return a value without counted arrays in it."""
    if isinstance(value, CountedArray):
        return value.view(np.ndarray)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, list):
        return list(map(_plain, value)) if any(isinstance(each, CountedArray) for each in value) else value
    return {name: _plain(each) for name, each in value.items()} if isinstance(value, dict) else value


def _counted(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_counted, result))
    return result.view(CountedArray) if isinstance(result, np.ndarray) else result


def _tell(*touched: Any) -> None:
    elements = sum(each.size for each in touched if isinstance(each, np.ndarray))
    for tell in _heard:
        tell(elements)
