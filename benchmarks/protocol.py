"""What checking a whole trace against the agent protocol costs, and how right it is, over generated traces of both profiles.

    python benchmarks/protocol.py [--traces 6000] [--seed 3]

CPU microseconds of one `lint_trace`: the trace is there as an object, the question, every result and the reply are read, and every
rule of its profile is decided. Half of the traces are correct, half break one rule; they come from `tests/protocol/trace_generator.py`,
which is written from the specification. The loop of 100,000 dict updates says how fast the machine is.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidentia.protocol import lint_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "protocol.json"
TARGET_US = 1_000
WARM_UP = 300
sys.path.insert(0, str(HERE.parent / "tests" / "protocol"))


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


def summary(spent: Sequence[int]) -> dict[str, float]:
    """Return the figures of one group of traces, in microseconds."""
    ordered = sorted(spent)
    return {
        "traces": len(ordered),
        "p50": round(statistics.median(ordered) / 1_000, 1),
        "p95": round(ordered[int(len(ordered) * 0.95)] / 1_000, 1),
        "max": round(ordered[-1] / 1_000, 1),
        "mean": round(statistics.fmean(ordered) / 1_000, 1),
    }


def measure(count: int, seed: int) -> dict[str, Any]:
    """Lint generated traces one by one; return what it cost and how they were judged."""
    from trace_generator import cases

    made = cases(count, seed=seed)
    for case in made[:WARM_UP]:
        lint_trace(case.trace)
    gc.collect()
    gc.freeze()
    spent: dict[str, list[int]] = defaultdict(list)
    rules: dict[str, dict[str, int]] = defaultdict(lambda: {"made": 0, "found": 0})
    accused = {"correct": 0, "broken": 0}
    clock = time.process_time_ns
    for case in made:
        began = clock()
        findings = lint_trace(case.trace)
        spent[case.trace.profile].append(clock() - began)
        found = {finding.rule for finding in findings}
        accused["broken" if case.expected else "correct"] += bool(found - case.expected - case.also)
        if case.expected:
            profile, rule, _ = case.way.split("/", 2)
            told = rules[f"{profile}/{rule}"]
            told["made"] += 1
            told["found"] += bool(found & case.expected)
    return {
        "cpu_us": {
            "all": summary([one for each in spent.values() for one in each]),
            **{name: summary(each) for name, each in spent.items()},
        },
        "correct": {"made": sum(not case.expected for case in made), "accused": accused["correct"]},
        "breaks": {
            "made": sum(told["made"] for told in rules.values()),
            "found": sum(told["found"] for told in rules.values()),
            "missed": sum(told["made"] - told["found"] for told in rules.values()),
            "accused_of_more": accused["broken"],
        },
        "rules": dict(sorted(rules.items())),
    }


def main() -> None:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    load, calibration = os.getloadavg()[0], calibrate()
    figures = measure(options.traces, options.seed)
    told = {
        "command": f"python benchmarks/protocol.py --traces {options.traces} --seed {options.seed}",
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load_average_before": round(load, 2),
        "calibration_ms": round(calibration, 3),
        "target_us": TARGET_US,
        "is_met": figures["cpu_us"]["all"]["mean"] <= TARGET_US,
        **figures,
    }
    RESULTS.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    for name, row in told["cpu_us"].items():
        print(f"{name:12} {row['traces']:6} traces  p50 {row['p50']:8.1f}  p95 {row['p95']:8.1f}  mean {row['mean']:8.1f} us")
    print(f"correct {told['correct']}  breaks {told['breaks']}")


if __name__ == "__main__":
    main()
