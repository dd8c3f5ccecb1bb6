"""Twelve ways of being slow or broken, four deadlines: does the answer come in time, and do the words still answer?

    make bench-faults

A base of its own documents, with vectors, is asked one question after the other, every second one by a caller with an event loop.
In each row one thing is wrong with a model, a source, the disk or the database, for every request: the breakers are set not to open,
so that none is spared. An answer is late when it comes more than 20 ms after its deadline, beyond what the scheduler took from a
sentinel: a thread of the same process that does nothing but sleep for a millisecond, and knows how much longer it slept. What it took
is the longest such sleep during the request, or all of them since the deadline where that is more. Answers without a fragment are
counted, and apart from them those where the sentinel did not run for half of the deadline. The table goes into docs/deadlines.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

import evidentia
from evidentia.backends.llm import endpoint_encoder
from evidentia.backends.llm.model_endpoint import EndpointSettings
from evidentia.contracts.access import local_owner
from evidentia.contracts.ids import SourceId
from evidentia.contracts.sources import SourceAccessPolicy, SourceConnection, SourceDescriptor
from evidentia.contracts.vocabulary import ConnectionKind, LatencyTier, SourceType
from evidentia.engine.request_checks import request_from
from evidentia.foundation.loop_thread import LoopThread
from evidentia.testing.fake_models import FakeModels, FakeReply
from evidentia.testing.faulty_models import DIMENSION, FaultyEncoder, FaultyReranker, FaultyRewriter, ModelFault, SlowReceipts
from evidentia.testing.faulty_sources import FaultySource, SourceFault
from evidentia.wiring import embedded as wiring
from evidentia.wiring.isolated_models import IsolatedEncoder
from evidentia.wiring.model_registry import AttachedModels
from evidentia.wiring.settings_file import SETTINGS_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evidentia.contracts.ports import Encoder
    from evidentia.wiring.embedded import EmbeddedComponents

DEADLINES_MS = {50: 200, 200: 100, 500: 50, 2_000: 20}
"""How many requests, by deadline."""
GRACE_MS = 20
DOCUMENTS = 1_000
SLOW_S, RERANK_S, DISK_S = 0.8, 0.7, 1.0
RESULTS = Path(__file__).parent / "results" / "deadline_faults.json"
PAGE = Path(__file__).parents[1] / "docs" / "deadlines.md"
BEGIN, END = "<!-- begin: benchmarks/deadline_faults.py -->", "<!-- end -->"
SETTINGS = "[fanout]\nbreaker_failures = 1000000\n"
WORDS = "harbour pilot crane tide signal ledger permit anchor berth cargo inspector schedule".split()
_NS_PER_MS = 1_000_000


class Fault(NamedTuple):
    """One row: what is attached to the base, and what is done to it when it is open."""

    what: str
    attached: Callable[[ExitStack], AttachedModels] = lambda _: AttachedModels(encoder=FaultyEncoder())
    prepare: Callable[[EmbeddedComponents, ExitStack], None] = lambda _parts, _stack: None


def _encoder(fault: ModelFault) -> Callable[[ExitStack], AttachedModels]:
    return lambda _: AttachedModels(encoder=FaultyEncoder(fault, pause_s=SLOW_S))


def _isolated(stack: ExitStack) -> AttachedModels:
    encoder = IsolatedEncoder(partial(FaultyEncoder, ModelFault.HOLDS_LOCK, pause_s=SLOW_S))
    stack.callback(encoder.close)
    return AttachedModels(encoder=encoder)


def _reranker(fault: ModelFault) -> Callable[[ExitStack], AttachedModels]:
    return lambda _: AttachedModels(encoder=FaultyEncoder(), reranker=FaultyReranker(fault, pause_s=RERANK_S))


def _rewriter(_: ExitStack) -> AttachedModels:
    return AttachedModels(encoder=FaultyEncoder(), rewriter=FaultyRewriter(ModelFault.HANG))


def _endpoint(stack: ExitStack) -> AttachedModels:
    models = stack.enter_context(FakeModels(FakeReply(status=503, body=b"")))
    settings = endpoint_encoder.EmbeddingSettings(endpoint=EndpointSettings(url=models.url, model="m"), dimension=DIMENSION)
    encoder = endpoint_encoder.EndpointEncoder(settings)
    stack.callback(encoder.close)
    return AttachedModels(encoder=encoder)


def _source(fault: SourceFault, *, pause_ms: int = 0) -> Callable[[EmbeddedComponents, ExitStack], None]:
    def prepare(parts: EmbeddedComponents, _: ExitStack) -> None:
        connection = SourceConnection(kind=ConnectionKind.PYTHON)
        parts.registry.register(
            SourceDescriptor(
                source_id=SourceId("outside"),
                source_type=SourceType.API,
                latency_tier=LatencyTier.HOT,
                connection=connection,
                access_policy=SourceAccessPolicy(),
            )
        )
        parts.sources.attach(SourceId("outside"), FaultySource(fault, pause_ms=pause_ms))

    return prepare


def _slow_disk(parts: EmbeddedComponents, _: ExitStack) -> None:
    parts.receipts = SlowReceipts(parts.receipts, pause_s=DISK_S)  # type: ignore[assignment]  # a fault in the place of the log


def _locked(parts: EmbeddedComponents, stack: ExitStack) -> None:
    """Have another process hold every database of the base for itself."""
    _source(SourceFault.NONE)(parts, stack)
    _ask(parts, LoopThread("before"), 0, 20_000)  # the files that appear with the first request
    held = subprocess.Popen([sys.executable, __file__, "--hold", str(parts.directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stack.callback(held.wait)
    stack.callback(held.kill)
    if held.stdout is None or not held.stdout.readline():
        raise RuntimeError("the databases could not be locked")


FAULTS = {
    "encoder slow": Fault(f"it takes {SLOW_S} s", _encoder(ModelFault.SLOW)),
    "encoder hangs": Fault("it never answers", _encoder(ModelFault.HANG)),
    "encoder raises": Fault("RuntimeError", _encoder(ModelFault.ERROR)),
    "encoder holds the interpreter's lock": Fault(f"for {SLOW_S} s, in a process of its own", _isolated),
    "reranker slow": Fault(f"it takes {RERANK_S} s", _reranker(ModelFault.SLOW)),
    "reranker raises": Fault("RuntimeError", _reranker(ModelFault.ERROR)),
    "rewriter hangs": Fault("it never answers", _rewriter),
    "encoder's endpoint fails": Fault("HTTP 503", _endpoint),
    "source slow": Fault("it never answers", prepare=_source(SourceFault.HANG)),
    "source lies": Fault("scores without bounds, against its own order", prepare=_source(SourceFault.LYING_SCORES)),
    "disk slow": Fault(f"a receipt takes {DISK_S} s", prepare=_slow_disk),
    "database locked": Fault("BEGIN EXCLUSIVE on every file, by another process", prepare=_locked),
}


class Sentinel:
    """A thread that only sleeps, and takes note of when it slept too long."""

    def __init__(self) -> None:
        self._is_over = False
        self._gaps: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def taken_ms(self, since_s: float) -> list[float]:
        """Return what the scheduler took from it since a moment, sleep by sleep; one that it was in at that moment counts from then."""
        return [min(gap, (ended - since_s) * 1_000) for ended, gap in self._gaps if ended >= since_s]

    def close(self) -> None:
        """Let it end."""
        self._is_over = True
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over:
            began = time.perf_counter()
            time.sleep(0.001)
            ended = time.perf_counter()
            gap_ms = (ended - began) * 1_000 - 1
            if gap_ms > 0.5:  # what every sleep takes
                self._gaps.append((ended, gap_ms))


class Outcome(NamedTuple):
    """What came of one request."""

    took_ms: float
    scheduler_ms: float
    asleep_ms: float
    fragments: int
    degraded: tuple[str, ...]
    raised: str


def make_base(home: Path, encoder: Encoder) -> Path:
    """Make a base whose chunks have vectors."""
    folder = home / "documents"
    folder.mkdir()
    for number in range(DOCUMENTS):
        chosen = [WORDS[(number * step + step) % len(WORDS)] for step in (1, 3, 5, 7)]
        (folder / f"{number}.md").write_text(f"# Page {number}\n\nThe {' and the '.join(chosen)} of day {number}.\n", encoding="utf-8")
    with evidentia.connect(home / "base", init=True) as base:
        base.ingest([folder], embed=False)
    (home / "base" / SETTINGS_NAME).write_text(SETTINGS, encoding="utf-8")
    parts = wiring.open_parts(home / "base")
    with parts.components().vectors() as store:
        pending = list(store.pending(encoder.identity, limit=10 * DOCUMENTS))
        store.add(encoder.identity, {chunk.key: FaultyEncoder().encode_document(chunk.text) for chunk in pending})
    parts.close()
    return home / "base"


def _ask(parts: EmbeddedComponents, portal: LoopThread, number: int, deadline_ms: int) -> Any:  # noqa: ANN401 (an answer)
    text = f"the {WORDS[number % len(WORDS)]} of day {number + deadline_ms}"  # no two alike, so that no cache answers for a source
    request = request_from(text, {"latency_deadline_ms": deadline_ms})
    if number % 2:
        return portal.run(parts.retrieve(request, principal=local_owner()))
    return parts.retrieve_blocking(request, principal=local_owner(), on_loop=portal.run)


def run_fault(name: str, *, scale: float) -> NoReturn:
    """Ask every question with one thing wrong, print the figures, one set for each deadline, and end the process."""
    fault = FAULTS[name]
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        attached = fault.attached(stack)
        folder = make_base(Path(home), attached.encoder or FaultyEncoder())
        parts = wiring.open_parts(folder, attached=attached)
        portal, sentinel = LoopThread("bench"), Sentinel()
        fault.prepare(parts, stack)
        for number in range(2):  # the first request opens the base, and has no deadline
            _ask(parts, portal, number, 2_000)
        figures = []
        for deadline_ms, requests in DEADLINES_MS.items():
            outcomes = [_outcome(parts, portal, sentinel, number, deadline_ms) for number in range(max(4, int(requests * scale)))]
            figures.append(judge(outcomes, deadline_ms=deadline_ms))
        sentinel.close()
        print(json.dumps(figures), flush=True)
        os._exit(0)  # threads that hang in a model are not waited for


def _outcome(parts: EmbeddedComponents, portal: LoopThread, sentinel: Sentinel, number: int, deadline_ms: int) -> Outcome:
    began = time.perf_counter()
    response, raised = None, ""
    try:
        response = _ask(parts, portal, number, deadline_ms)
    except Exception as error:  # noqa: BLE001  # whatever it raises is the outcome
        raised = type(error).__name__
    took_ms = (time.perf_counter() - began) * 1_000
    time.sleep(0.003)  # the sentinel may still be asleep since the request ended
    degraded = () if response is None else response.degraded
    taken = sentinel.taken_ms(began)
    scheduler_ms = max(*taken, sum(sentinel.taken_ms(began + deadline_ms / 1_000)), 0, 0)
    return Outcome(took_ms, scheduler_ms, sum(taken), 0 if response is None else len(response.fragments), degraded, raised)


def judge(outcomes: list[Outcome], *, deadline_ms: int) -> dict[str, Any]:
    """Return the figures of one row and one deadline."""
    took = np.array([each.took_ms for each in outcomes])
    beyond = [each.took_ms - deadline_ms - each.scheduler_ms for each in outcomes]
    told: dict[str, int] = {}
    for each in outcomes:
        for reason in {reason.partition(":")[0] for reason in each.degraded}:
            told[reason] = told.get(reason, 0) + 1
    return {
        "deadline_ms": deadline_ms,
        "requests": len(outcomes),
        "late": sum(each > GRACE_MS for each in beyond),
        "past_deadline": int((took > deadline_ms).sum()),
        "raised": sum(bool(each.raised) for each in outcomes),
        "raised_kinds": sorted({each.raised for each in outcomes if each.raised}),
        "without_fragments": sum(not each.fragments for each in outcomes),
        "without_fragments_though_awake": sum(not each.fragments and each.asleep_ms < deadline_ms / 2 for each in outcomes),
        "p50_ms": round(float(np.percentile(took, 50)), 1),
        "max_ms": round(float(took.max()), 1),
        "most_beyond_ms": round(max(beyond), 1),
        "scheduler_max_ms": round(max(each.scheduler_ms for each in outcomes), 1),
        "degraded": dict(sorted(told.items())),
        "example": max((each.degraded for each in outcomes), key=len, default=()),
    }


def hold(directory: Path) -> None:
    """Lock every database of a base until this process is ended."""
    held = []
    for path in sorted([*directory.glob("*.sqlite"), *directory.glob("*.db")]):
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("BEGIN EXCLUSIVE")
        held.append(database)
    print(f"{len(held)} databases", flush=True)
    sys.stdin.read()


@contextmanager
def _quiet_load() -> Iterator[list[float]]:
    loads = [round(os.getloadavg()[0], 2)]
    yield loads
    loads.append(round(os.getloadavg()[0], 2))


def report_on(names: list[str], *, scale: float) -> dict[str, Any]:
    """Measure each fault in a process of its own."""
    rows: dict[str, Any] = {}
    for name in names:
        command = [sys.executable, str(Path(__file__).resolve()), "--fault", name, "--scale", str(scale)]
        with _quiet_load() as loads:
            written = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        rows[name] = {"what": FAULTS[name].what, "load_average": loads, "by_deadline": json.loads(written.splitlines()[-1])}
        for each in rows[name]["by_deadline"]:
            print(
                f"{name:38} {each['deadline_ms']:5} ms: late {each['late']}, raised {each['raised']}, "
                f"empty {each['without_fragments']} ({each['without_fragments_though_awake']} though awake), "
                f"p50 {each['p50_ms']}, max {each['max_ms']}, beyond {each['most_beyond_ms']}, scheduler {each['scheduler_max_ms']}",
                flush=True,
            )
    return {
        "command": "make bench-faults",
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "scale": scale,
        "late_means": f"more than {GRACE_MS} ms after the deadline, beyond what the scheduler took from a sentinel",
        "rows": rows,
    }


def table(report: dict[str, Any]) -> str:
    """Return the figures as they stand on the page."""
    heads = [f"{deadline_ms:,} ms" for deadline_ms in DEADLINES_MS]
    lines = [
        f"| what is wrong | {' | '.join(heads)} | late | raised | no words | of these, though the sentinel ran |",
        f"|---|{'---|' * len(heads)}---|---|---|---|",
    ]
    for name, row in report["rows"].items():
        each = row["by_deadline"]
        cells = [f"{figures['p50_ms']:.0f} / {figures['max_ms']:.0f}" for figures in each]
        counted = ("late", "raised", "without_fragments", "without_fragments_though_awake")
        sums = [sum(figures[key] for figures in each) for key in counted]
        lines.append(f"| {name}: {row['what']} | {' | '.join(cells)} | {' | '.join(map(str, sums))} |")
    worst = max(figures["scheduler_max_ms"] for row in report["rows"].values() for figures in row["by_deadline"])
    counts = ", ".join(f"{requests} at {deadline_ms:,} ms" for deadline_ms, requests in DEADLINES_MS.items())
    lines += [
        "",
        f"Median and maximum in milliseconds, by deadline; {counts} in each row.",
        f"Python {report['python']}, {report['processors']} processors, `{report['command']}`.",
        f"The sentinel slept at most {worst:.0f} ms too long.",
    ]
    return "\n".join(lines)


def write_page(report: dict[str, Any]) -> None:
    """Put the table into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(report)}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Deadlines while something is slow or broken.")
    parser.add_argument("names", nargs="*", default=list(FAULTS), help="which faults; the results are written when it is all of them")
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the requests, for a quick look")
    parser.add_argument("--fault", help=argparse.SUPPRESS)
    parser.add_argument("--hold", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.hold:
        hold(given.hold)
    elif given.fault:
        run_fault(given.fault, scale=given.scale)
    else:
        report = report_on(given.names, scale=given.scale)
        if given.names == list(FAULTS):
            RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
            write_page(report)


if __name__ == "__main__":
    main()
