"""Compare the speed of two checkouts: CPU time of what the benchmarks measure, in pairs that alternate, with the bounds of the ratio.

    python benchmarks/compare.py BEFORE AFTER FOLDER [--case NAME ...] [--pairs N] [--starts N] [--json]

BEFORE and AFTER are checkouts with their own `.venv`; FOLDER is what benchmarks/compare_worker.py reads. Both run as processes that
stay, and take turns every few requests, so that a machine in use slows both alike. Processes are started anew several times, because where
memory happens to lie changes a process's speed by percents. The ratio is the median over all pairs; its bounds come from drawing the
starts and the pairs within them again (bootstrap, 95 %).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

WORKER = Path(__file__).with_name("compare_worker.py")
CASES = {
    "lexical_3_words_top_10": 20, "lexical_8_words_top_100": 5, "hybrid_top_10": 10, "hybrid_top_100": 5,
    "governance_1_policy_in_memory": 2, "governance_1_policy_buffered": 2, "governance_1_policy_durable": 1,
    "governance_100_policies_in_memory": 10, "governance_100_policies_buffered": 10,
    "federation_0_sources": 2, "federation_1_source_uncached": 2, "federation_10_sources_uncached": 1,
    "federation_1_source_new_question": 2, "federation_10_sources_new_question": 1, "federation_10_sources_asked_before": 2,
    "serving_rest": 20,
}  # fmt: skip
"""How often each is done in one turn."""
WARM_UP_TURNS = 6
DRAWS = 2_000


class Worker:
    """A process of one checkout."""

    def __init__(self, root: Path, folder: Path) -> None:
        python = root / ".venv" / "bin" / "python"
        self._process = subprocess.Popen(
            [str(python), str(WORKER), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
        )

    def spent_ns(self, case: str, times: int) -> int:
        """Do a case and return its CPU time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{case} {times}\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        if not told:
            sys.exit(f"{case}: the worker stopped with {self._process.wait()}")
        return int(told)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def compare(before: Path, after: Path, folder: Path, *, cases: list[str], pairs: int, starts: int) -> dict[str, Any]:
    """Return the figures of each case."""
    found: dict[str, list[list[tuple[int, int]]]] = {case: [] for case in cases}
    for start in range(starts):
        workers = [Worker(root, folder) for root in (before, after)]
        for case in cases:
            for worker in workers * WARM_UP_TURNS:
                worker.spent_ns(case, CASES[case])
            rows = []
            for pair in range(pairs):
                order = (0, 1) if (pair + start) % 2 else (1, 0)
                spent = {place: workers[place].spent_ns(case, CASES[case]) for place in order}
                rows.append((spent[0], spent[1]))
            found[case].append(rows)
            if sys.stderr.isatty():
                print(f"\r{start + 1}/{starts} {case:40}", end="", file=sys.stderr)
        for worker in workers:
            worker.close()
    return {case: {**_ratio(np.array(rows, dtype=np.float64)), **_medians(np.array(rows), CASES[case])} for case, rows in found.items()}


def _ratio(spent: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    ratios = spent[:, :, 1] / spent[:, :, 0]
    chance = np.random.default_rng(1)
    drawn = []
    for _ in range(DRAWS):
        starts = ratios[chance.integers(len(ratios), size=len(ratios))]
        picked = chance.integers(ratios.shape[1], size=ratios.shape)
        drawn.append(np.median(np.take_along_axis(starts, picked, axis=1)))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return {"ratio": round(float(np.median(ratios)), 3), "low": round(float(low), 3), "high": round(float(high), 3)}


def _medians(spent: np.ndarray[Any, Any], times: int) -> dict[str, float]:
    before, after = np.median(spent.reshape(-1, 2), axis=0) / times / 1e6
    return {"before_ms": round(float(before), 4), "after_ms": round(float(after), 4)}


def main() -> None:
    """Compare and show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--case", action="append", help="part of a case's name; all when left out")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    cases = [case for case in CASES if not given.case or any(part in case for part in given.case)]
    load = os.getloadavg()[0]
    rows = compare(
        given.before.resolve(), given.after.resolve(), given.folder.resolve(), cases=cases, pairs=given.pairs, starts=given.starts
    )
    if given.json:
        print(json.dumps({"load_before": round(load, 2), "pairs": given.pairs, "starts": given.starts, "cases": rows}, indent=1))
        return
    print(f"{'':38} {'before ms':>10} {'after ms':>10} {'ratio':>7} {'95 %':>15}")
    for case, row in rows.items():
        print(f"{case:38} {row['before_ms']:10.3f} {row['after_ms']:10.3f} {row['ratio']:7.3f} {row['low']:7.3f}-{row['high']:.3f}")


if __name__ == "__main__":
    main()
