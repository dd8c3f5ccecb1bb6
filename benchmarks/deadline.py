"""Many sources, some of them broken, and a deadline: what becomes of the answer, beside the parallel retrievers of three frameworks.

    make bench-deadline

Six sources are asked in every request. A seeded script makes them hang, drip, raise, break off, reply with millions of characters
or lie about scores; it is the same for every system. Figures are by the wall clock, from the question to the answer, one question
after the other unless the row says otherwise. The frameworks know no deadline, so they are asked twice: as they are, and given up
at the deadline with `asyncio.wait_for`. "bare timer" asks nobody and sleeps until the deadline: what the machine adds to any deadline.
Evidentia runs as installed, with its receipts synced to disk before the answer, and without them. A fault is declared when the
answer's coverage names its source as anything but searched without faults; no peer's answer says anything of its sources. A sound
reply that is not used is one that came or would have come, and is lost because nobody asked, waited, or gave an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import deadline_systems as systems
import numpy as np
from deadline_sources import DRIP_S, FAULT_SHARE, FAULTS, HANG_S, OUTAGE, PROPOSALS, SOURCES, STRETCH, Fault, Source, question, write_script
from deadline_systems import Account, counted

if TYPE_CHECKING:
    from deadline_sources import Turn
    from deadline_systems import Ask, Open

DEADLINES_MS = (50, 200, 500)
GRACE_MS = 5
SEED = 11
WARM_UP = 5
OURS, PEERS, WITHIN, TIMER = 2_000, 600, 300, 200
"""How many requests: per deadline; without one; with `wait_for`, per deadline; and of the timer."""
RESULTS = Path(__file__).parent / "results" / "deadline.json"
PACKAGES = ("haystack-ai", "langchain-classic", "langchain-core", "llama-index-core")


class Row(NamedTuple):
    """One system; one that knows no deadline is asked once and judged by all of them."""

    open: Open
    requests: int
    what: str
    knows_deadline: bool = True
    callers: int = 1


ROWS = {
    "evidentia": Row(systems.open_evidentia, OURS, "AsyncBase.retrieve, defaults, receipts synced to disk"),
    "evidentia, no receipts": Row(partial(systems.open_evidentia, receipt=False), OURS, "the same without receipts"),
    "evidentia, 8 callers": Row(systems.open_evidentia, OURS, "with receipts, and eight questions out at any time", callers=8),
    "langchain": Row(systems.open_langchain, PEERS, "EnsembleRetriever.ainvoke of langchain_classic", knows_deadline=False),
    "haystack": Row(systems.open_haystack, PEERS, "MultiRetriever.run_async with a worker for every source", knows_deadline=False),
    "llamaindex": Row(systems.open_llamaindex, PEERS, "QueryFusionRetriever.aretrieve with num_queries=1, use_async", knows_deadline=False),
    "langchain, wait_for": Row(systems.within(systems.open_langchain), WITHIN, "the same inside asyncio.wait_for"),
    "haystack, wait_for": Row(systems.within(systems.open_haystack), WITHIN, "the same inside asyncio.wait_for"),
    "llamaindex, wait_for": Row(systems.within(systems.open_llamaindex), WITHIN, "the same inside asyncio.wait_for"),
    "bare timer": Row(systems.open_timer, TIMER, "asyncio.sleep until the deadline, asking nobody"),
}


class Outcome(NamedTuple):
    """What came of one request."""

    number: int
    took_ms: float
    account: Account | None
    raised: str
    asked: frozenset[int] = frozenset()
    """The sources that the request reached."""


async def run_row(row: Row, *, requests: int, deadline_ms: int, home: Path) -> list[Outcome]:
    """Ask every question of the script, and return what came of each; the first few are asked once before, and not counted."""
    script = write_script(requests + WARM_UP, seed=SEED)
    sources = [Source(place, script) for place in range(SOURCES)]
    async with row.open(sources, home) as ask:
        for number in range(requests, requests + WARM_UP):
            await _asked(ask, number, deadline_ms)
        numbers = iter(range(requests))  # shared: whoever is free asks the next one

        async def call() -> list[Outcome]:
            return [await _asked(ask, number, deadline_ms) for number in numbers]

        outcomes = chain.from_iterable(await asyncio.gather(*(call() for _ in range(row.callers))))
    return [each._replace(asked=frozenset(source.place for source in sources if each.number in source.asked)) for each in outcomes]


async def _asked(ask: Ask, number: int, deadline_ms: int) -> Outcome:
    started_ns = time.perf_counter_ns()
    account, raised = None, ""
    try:
        account = await ask(question(number), deadline_ms)
    except Exception as error:  # noqa: BLE001  # whatever a system raises is its outcome
        raised = type(error).__name__
    return Outcome(number, (time.perf_counter_ns() - started_ns) / 1e6, account, raised)


def judge(outcomes: list[Outcome], *, deadline_ms: int) -> dict[str, Any]:
    """Return the figures of one system for one deadline."""
    script = write_script(len(outcomes), seed=SEED)
    took = np.array([each.took_ms for each in outcomes])
    p50, p99 = np.percentile(took, [50, 99]).round(2).tolist()
    answered = [each for each in outcomes if each.account is not None and each.account.fragments]
    in_time = [each for each in answered if each.took_ms <= deadline_ms + GRACE_MS]
    return {
        "deadline_ms": deadline_ms,
        "requests": len(outcomes),
        "late_share": _share(int((took > deadline_ms + GRACE_MS).sum()), len(outcomes)),
        "raised_share": _share(sum(bool(each.raised) for each in outcomes), len(outcomes)),
        "answered_in_time_share": _share(len(in_time), len(outcomes)),
        "p50_ms": p50,
        "p99_ms": p99,
        "max_ms": round(float(took.max()), 2),
        "raised": counted([each.raised for each in outcomes if each.raised]),
        **_declared(outcomes, script),
    }


def _declared(outcomes: list[Outcome], script: list[list[Turn]]) -> dict[str, Any]:
    """Count the faults that an answer tells of, of those that were met, and the sources it could have used and did not."""
    met: dict[str, int] = dict.fromkeys(sorted(FAULTS), 0)
    told = dict.fromkeys(met, 0)
    sound, unused, spared = 0, [], 0
    for outcome in outcomes:
        declared = outcome.account.declared if outcome.account else {}
        for place, turn in enumerate(script[outcome.number]):
            if turn.fault is Fault.NONE:
                sound += 1
                unused += ["no answer"] if outcome.account is None else [declared[place]] if place in declared else []
            elif place in outcome.asked:
                met[turn.fault] += 1
                told[turn.fault] += place in declared
            else:
                spared += 1
    return {
        "faults_met": sum(met.values()),
        "faults_of_sources_not_asked": spared,
        "faults_declared_share": _share(sum(told.values()), sum(met.values())),
        "declared_share_by_fault": {fault: _share(told[fault], met[fault]) for fault in met},
        "sound_replies_not_used_share": _share(len(unused), sound),
        "sound_replies_not_used": counted(unused),
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 5) if whole else 0.0


def measure(name: str, *, scale: float) -> list[dict[str, Any]]:
    """Return the figures of one system, one set for each deadline."""
    row = ROWS[name]
    requests = max(20, int(row.requests * scale))
    deadlines = DEADLINES_MS if row.knows_deadline else DEADLINES_MS[-1:]
    outcomes = {}
    for deadline_ms in deadlines:
        with tempfile.TemporaryDirectory() as home:
            outcomes[deadline_ms] = asyncio.run(run_row(row, requests=requests, deadline_ms=deadline_ms, home=Path(home)))
    return [judge(outcomes.get(deadline_ms) or outcomes[deadlines[-1]], deadline_ms=deadline_ms) for deadline_ms in DEADLINES_MS]


def report_on(names: list[str], *, scale: float) -> dict[str, Any]:
    """Measure each system in a process of its own."""
    rows: dict[str, Any] = {}
    for name in names:
        command = [sys.executable, str(Path(__file__).resolve()), "--row", name, "--scale", str(scale)]
        load_before = os.getloadavg()[0]
        written = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        rows[name] = {
            "what": ROWS[name].what,
            "load_average_before_and_after": [round(load_before, 2), round(os.getloadavg()[0], 2)],
            "by_deadline": json.loads(written.splitlines()[-1]),
        }
        _print_row(name, rows[name]["by_deadline"])
    return {
        "command": "make bench-deadline",
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "processors": os.cpu_count(),
        "scale": scale,
        "script": {
            "seed": SEED,
            "sources": SOURCES,
            "proposals": PROPOSALS,
            "share_of_calls_with_a_fault": round(FAULT_SHARE, 4),
            "outages": f"one source broken for the first {OUTAGE} of every {STRETCH} requests",
            "hang_s": HANG_S,
            "drip_s": DRIP_S,
        },
        "late_means": f"later than the deadline and {GRACE_MS} ms",
        "rows": rows,
    }


def _print_row(name: str, figures: list[dict[str, Any]]) -> None:
    for each in figures:
        print(
            f"{name:24} {each['deadline_ms']:4} ms: late {each['late_share']:7.2%}, raised {each['raised_share']:7.2%}, "
            f"answered in time {each['answered_in_time_share']:7.2%}, p50 {each['p50_ms']:8.1f}, p99 {each['p99_ms']:8.1f}, "
            f"max {each['max_ms']:8.1f}, declared {each['faults_declared_share']:7.2%}, "
            f"sound but unused {each['sound_replies_not_used_share']:6.2%}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Deadlines over broken sources, beside others.")
    parser.add_argument("names", nargs="*", default=list(ROWS), help="which systems; the results are written when it is all of them")
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the requests, for a quick look")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results are written")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        print(json.dumps(measure(given.row, scale=given.scale)))
        return
    report = report_on(given.names, scale=given.scale)
    if given.names == list(ROWS):
        given.results.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
