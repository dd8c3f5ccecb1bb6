"""What deciding about one document costs: recorded through a context, evaluated, and taken by the log.

    python benchmarks/governance.py [--peer PYTHON]

Times are microseconds of one `record_retrieval_result`, from document 1 to 10,000 of one run: wall time of each call, and CPU time of
the whole process per call, the thread that writes the log included. The loop of 100,000 dict updates says how fast the machine
is; targets are for one on which it takes 5 ms, and are scaled by it. `--peer` names an interpreter in which the published client of
the field is installed; it is measured against a control plane on this machine that allows everything at once.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidentia import connect
from evidentia.agents import Context

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DOCUMENTS, DURABLE_DOCUMENTS, PEER_DOCUMENTS, WARM_UP = 10_000, 1_000, 300, 500
CALIBRATION_MS = 5.0
TARGETS_US = {1: 8.0, 100: 40.0}
HERE = Path(__file__).parent
RESULTS = HERE / "results" / "governance.json"


def calibrate() -> float:
    """Return the milliseconds that 100,000 updates of a dict take, the best of many."""
    best = float("inf")
    for _ in range(30):
        counts: dict[int, int] = {}
        began = time.process_time_ns()
        for number in range(100_000):
            counts[number & 1023] = number
        best = min(best, (time.process_time_ns() - began) / 1e6)
    return best


def policies(count: int) -> list[dict[str, Any]]:
    """Return policies that a good document passes, each with limits of its own."""
    rules = {"max_chunks": 10_000_000, "allowed_collections": ["knowledge_base"], "blocked_sources": ["deprecated-kb"]}
    return [
        {"name": f"Policy {number}", "category": "retrieval", "rules": {**rules, "min_relevance_score": 0.5 + number / 1_000}}
        for number in range(count)
    ]


def record(ctx: Context, documents: int) -> tuple[list[int], int]:
    """Return the wall time of each call, and the CPU time of all."""
    take, clock = ctx.record_retrieval_result, time.perf_counter_ns
    wall = [0] * documents
    cpu = time.process_time_ns()
    for number in range(documents):
        began = clock()
        take(relevance_score=0.92, source="manual.pdf", collection="knowledge_base", age_days=14)
        wall[number] = clock() - began
    ctx.flush()
    return wall, time.process_time_ns() - cpu


def summary(wall: Sequence[int], cpu: int) -> dict[str, Any]:
    """Return the figures of one row."""
    ordered = sorted(wall)
    tenth = len(wall) // 10
    first, last = statistics.median(wall[:tenth]), statistics.median(wall[-tenth:])
    return {
        "documents": len(wall),
        "wall_us": {
            "p50": _us(statistics.median(ordered)),
            "p99": _us(ordered[int(len(ordered) * 0.99)]),
            "max": _us(ordered[-1]),
            "mean": _us(statistics.fmean(ordered)),
            "p50_of_first_tenth": _us(first),
            "p50_of_last_tenth": _us(last),
        },
        "cpu_us_per_call": _us(cpu / len(wall)),
        "last_tenth_over_first": round(last / first, 2),
    }


def measure(count: int, *, base: Path | None, is_durable: bool) -> dict[str, Any]:
    """Return the figures of a run under some policies with one kind of log."""
    documents = DURABLE_DOCUMENTS if is_durable else DOCUMENTS
    given = policies(count)
    with Context("warm-up", policies=given, base=base, durable=is_durable) as ctx:
        record(ctx, WARM_UP if not is_durable else 20)
    gc.collect()
    with Context("rag-agent", policies=given, base=base, durable=is_durable) as ctx:
        wall, cpu = record(ctx, documents)
    return summary(wall, cpu)


@contextlib.contextmanager
def plane() -> Iterator[str]:
    """Serve a plane that allows everything, in a process of its own."""
    command = [sys.executable, str(HERE / "governance_mock.py"), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def measure_peer(python: str) -> dict[str, Any]:
    """Return the figures of the published client."""
    with plane() as url:
        command = [python, str(HERE / "governance_peer.py"), url, str(PEER_DOCUMENTS)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    told = json.loads(shown.strip().splitlines()[-1])
    return {"client": told["client"], "plane": "allows everything, on this machine", **summary(told["wall_ns"], told["cpu_ns"])}


def main() -> None:
    """Measure every row and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter that has the published client")
    options = parser.parse_args()
    load, calibration = os.getloadavg()[0], calibrate()
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        connect(base, init=True).close()
        for count in TARGETS_US:
            rows[f"{count} policies, log in memory"] = measure(count, base=None, is_durable=False)
            rows[f"{count} policies, buffered log"] = measure(count, base=base, is_durable=False)
            rows[f"{count} policies, durable log"] = measure(count, base=base, is_durable=True)
    if options.peer:
        rows["published client"] = measure_peer(options.peer)
    scale = calibration / CALIBRATION_MS
    told = {
        "command": "python benchmarks/governance.py --peer PYTHON",
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load_average_before": round(load, 2),
        "calibration_ms": round(calibration, 3),
        "targets_us_on_this_machine": {f"{count} policies": round(target * scale, 2) for count, target in TARGETS_US.items()},
        "is_met": {
            f"{count} policies": rows[f"{count} policies, buffered log"]["wall_us"]["p50"] <= target * scale
            for count, target in TARGETS_US.items()
        },
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    for name, row in rows.items():
        wall = row["wall_us"]
        print(
            f"{name:28} p50 {wall['p50']:9.2f}  p99 {wall['p99']:9.2f}  cpu {row['cpu_us_per_call']:8.2f}  x{row['last_tenth_over_first']}"
        )
    print(f"targets {told['targets_us_on_this_machine']} met {told['is_met']}")


def _us(nanoseconds: float) -> float:
    return round(nanoseconds / 1_000, 3)


if __name__ == "__main__":
    main()
