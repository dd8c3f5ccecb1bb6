"""Systems in processes of their own: the parent deals out questions, a child answers them and says what they took."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hybrid_corpus import Answer

MARK = "hybrid: "
"""What the lines that go back begin with, because some libraries print of their own accord."""
_FIELDS = {"RssAnon:": "own", "RssFile:": "mapped_files", "VmRSS:": "resident", "VmHWM:": "peak"}


class Row:
    """What one system took, question by question, in nanoseconds, and what it found."""

    def __init__(self) -> None:
        self.wall: list[int] = []
        self.cpu: list[int] = []
        self.found: list[list[str]] = []

    def figures(self) -> dict[str, Any]:
        """Return milliseconds per question."""
        wall, cpu = (np.percentile(np.array(spent) / 1e6, [50, 99]).round(3).tolist() for spent in (self.wall, self.cpu))
        return {"questions": len(self.wall), "p50_ms": wall[0], "p99_ms": wall[1], "p50_cpu_ms": cpu[0], "p99_cpu_ms": cpu[1]}


class Told(NamedTuple):
    """What a process says of itself at its end."""

    memory_mb: dict[str, int]
    stages: list[dict[str, float]]
    degraded: list[list[str]]
    """Where a system says so: milliseconds by stage of each answer, and what was wrong with it."""


class Served:
    """A system in its process, as the parent sees it."""

    def __init__(self, command: list[str], *, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(command, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to: IO[str] = self._process.stdin
        self._from: IO[str] = self._process.stdout
        self._hear()

    def take_turn(self, row: Row, *, start: int, stop: int, depth: int, limit: int) -> None:
        """Ask some questions and add what they took to a row."""
        told = self._ask({"start": start, "stop": stop, "depth": depth, "limit": limit})
        row.wall += told["wall"]
        row.cpu += told["cpu"]
        row.found += told["found"]

    def end(self) -> Told:
        """End the process."""
        told = Told(**self._ask({"start": None}))
        self._process.communicate()
        return told

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:  # Any: numbers, and lists of them
        print(json.dumps(message), file=self._to, flush=True)
        return self._hear()

    def _hear(self) -> dict[str, Any]:  # Any: numbers, and lists of them
        for line in self._from:
            if line.startswith(MARK):
                return dict(json.loads(line.removeprefix(MARK)))
        raise RuntimeError("a system's process ended; its complaint is above")


def serve(answer: Answer, *, questions: list[str]) -> None:
    """Answer turns from standard input until told to end: one line says which questions, one goes back with what they took."""
    _reply({})
    for line in sys.stdin:
        turn = json.loads(line)
        if turn["start"] is None:
            _reply({"memory_mb": memory_mb(), "stages": getattr(answer, "stages", []), "degraded": getattr(answer, "degraded", [])})
            return
        _reply(_answered(answer, questions[turn["start"] : turn["stop"]], depth=turn["depth"], limit=turn["limit"]))


def memory_mb() -> dict[str, int]:
    """Return this process' resident memory, after what is free was given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    lines = [line.split() for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines()]
    return {_FIELDS[words[0]]: int(words[1]) // 1024 for words in lines if words[0] in _FIELDS}


def _answered(answer: Answer, questions: list[str], *, depth: int, limit: int) -> dict[str, Any]:  # Any: numbers, and lists of them
    wall, cpu, found = [], [], []
    for question in questions:
        wall_before, cpu_before = time.perf_counter_ns(), time.process_time_ns()
        texts = answer(question, limit=limit, depth=depth)
        cpu.append(time.process_time_ns() - cpu_before)
        wall.append(time.perf_counter_ns() - wall_before)
        found.append([hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts])
    return {"wall": wall, "cpu": cpu, "found": found}


def _reply(message: dict[str, Any]) -> None:
    print(MARK + json.dumps(message), flush=True)
