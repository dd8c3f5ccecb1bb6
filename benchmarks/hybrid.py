"""Hybrid retrieval over 100,000 passages, beside what a user would otherwise take, in one run and with one encoder for everybody.

    make bench-hybrid

Each system answers in a process of its own, so that its memory is its own, and all are asked the same questions one after
the other, in turns of a few questions, so that a busy moment of the machine meets all of them. Figures are milliseconds per
question from its text to ten texts, by the wall clock and in CPU time of all threads; the encoding of the question is part of
them. Settings are each system's own defaults, save where the table says otherwise. Evidentia's answers carry custody, proofs and
hashes, and its legs propose 100 passages each. The others are asked with 10 from each leg, the least they can do, and with 100.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import hybrid_peers as peers
import numpy as np
from hybrid_corpus import Handed, build_corpus, build_questions, encode
from hybrid_ours import Evidentia, build_evidentia
from hybrid_processes import Row, Served, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hybrid_corpus import Answer

SIZES = (100_000,)
QUESTIONS, WARM_UP, TURN = 1_000, 20, 20
LIMIT = 10
SECONDS_EACH = 60
"""A system that has taken this long is asked no more; how many questions it answered is reported."""
ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
RESULTS = Path(__file__).parent / "results" / "hybrid.json"
PACKAGES = ("bm25s", "faiss-cpu", "haystack-ai", "lancedb", "langchain-classic", "langchain-community", "numba", "numpy", "onnxruntime")
OURS = "evidentia"
FRAMEWORKS = ("langchain", "langchain, as installed", "lancedb", "haystack")
BY_HAND = ("by hand", "by hand, all threads")


class System(NamedTuple):
    """`build` runs in a process that ends, and leaves files in the folder `home`; `start` begins the process that answers."""

    home: str
    build: Callable[[Handed], None] | None
    start: Callable[[Handed], Answer]
    depths: tuple[int, ...]
    what: str
    environment: Mapping[str, str] = MappingProxyType({})


def start_encoder(_: Handed) -> Answer:
    def answer(question: str, *, limit: int, depth: int) -> list[str]:  # noqa: ARG001  # the others use them
        encode(question)
        return []

    return answer


ONE_THREAD = {"OMP_NUM_THREADS": "1"}
SYSTEMS = {
    OURS: System("evidentia", build_evidentia, partial(Evidentia, receipt=False), (100,), "Base.retrieve, defaults, no receipt"),
    "evidentia, receipts": System("evidentia", None, partial(Evidentia, receipt=True), (100,), "the same with receipts, synced to disk"),
    "langchain": System(
        "langchain",
        peers.build_langchain,
        partial(peers.start_langchain, backend="numba"),
        (10, 100),
        "EnsembleRetriever over bm25s with numba and FAISS IndexFlatIP on one thread, which is the least CPU time",
        ONE_THREAD,
    ),
    "langchain, as installed": System(
        "langchain", None, partial(peers.start_langchain, backend="numpy"), (10,), "the same with bm25s without numba, threads by default"
    ),
    "lancedb": System(
        "lancedb", peers.build_lancedb, peers.start_lancedb, (10, 100), "its hybrid query: flat vectors, its own full-text index"
    ),
    "haystack": System("haystack", None, peers.start_haystack, (10,), "InMemoryDocumentStore: BM25 and embedding retriever, ranks joined"),
    "by hand": System(
        "by_hand",
        peers.build_by_hand,
        partial(peers.start_by_hand, backend="numba"),
        (10, 100),
        "bm25s with numba and FAISS IndexFlatIP on one thread, fused in ten lines without a framework",
        ONE_THREAD,
    ),
    "by hand, all threads": System(
        "by_hand", None, partial(peers.start_by_hand, backend="numba"), (10,), "the same with FAISS on as many threads as it likes"
    ),
    "encoder alone": System("none", None, start_encoder, (10,), "only the encoding of the question, which is part of all other rows"),
}


def measure(size: int, *, cache: Path, work: Path) -> dict[str, Any]:
    """Build every system, ask them in turns, and put the figures together."""
    corpus = build_corpus(size, data=DATA, cache=cache)
    (work / "texts.json").write_text(json.dumps(corpus.texts), encoding="utf-8")
    np.save(work / "vectors.npy", corpus.vectors)
    questions = build_questions(corpus.texts, data=DATA, count=WARM_UP + QUESTIONS)
    (work / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    for name, system in SYSTEMS.items():
        (work / system.home).mkdir(exist_ok=True)
        if system.build is not None:
            subprocess.run(_command("--build", name, work), check=True)
    load_before = os.getloadavg()[0]
    served = {
        name: Served(_command("--serve", name, work), environment={**os.environ, **system.environment}) for name, system in SYSTEMS.items()
    }
    rows = _asked(served)
    told = {name: each.end() for name, each in served.items()}
    figures = _figures(rows)
    return {
        "passages": size,
        "real_passages_with_real_vectors": corpus.real,
        "synthetic_passages_with_synthetic_vectors": size - corpus.real,
        "load_average_before_and_after": [round(load_before, 2), round(os.getloadavg()[0], 2)],
        "rows": figures,
        "fastest_peer": _fastest(figures),
        "memory_mb": {name: each.memory_mb for name, each in told.items()},
        "stages": {name: _stages(each.stages[WARM_UP:]) for name, each in told.items() if each.stages},
        "answers_that_say_they_are_degraded": {
            name: sum(map(bool, each.degraded[WARM_UP:])) for name, each in told.items() if each.degraded
        },
    }


def _command(step: str, name: str, work: Path) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), step, name, "--work", str(work)]


def _asked(served: dict[str, Served]) -> dict[tuple[str, int], Row]:
    rows = {(name, depth): Row() for name in served for depth in SYSTEMS[name].depths}
    for name, depth in rows:
        served[name].take_turn(Row(), start=0, stop=WARM_UP, depth=depth, limit=LIMIT)
    for start in range(WARM_UP, WARM_UP + QUESTIONS, TURN):
        for (name, depth), row in rows.items():
            if sum(row.wall) < SECONDS_EACH * 1e9:
                served[name].take_turn(row, start=start, stop=start + TURN, depth=depth, limit=LIMIT)
    return rows


def _figures(rows: dict[tuple[str, int], Row]) -> list[dict[str, Any]]:
    ours = rows[OURS, SYSTEMS[OURS].depths[0]]
    made = []
    for (name, depth), row in rows.items():
        figures = row.figures()
        same = Row()  # ours over the same questions, where the other was stopped before the end
        same.wall, same.cpu = ours.wall[: len(row.wall)], ours.cpu[: len(row.cpu)]
        mine = same.figures()
        ratios = {each: round(figures[each] / mine[each], 2) for each in ("p50_ms", "p99_ms", "p50_cpu_ms", "p99_cpu_ms")}
        shared = [len(set(one) & set(other)) / max(len(one), 1) for one, other in zip(ours.found, row.found, strict=False)]
        made.append(
            {
                "system": name,
                "proposed_by_each_leg": depth,
                "is_exact": True,
                **figures,
                "times_evidentia": ratios,
                "answers_shared_with_evidentia": round(float(np.mean(shared)), 3),
            }
        )
    return made


def _fastest(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the fastest peer by each figure, with and without what is made by hand, and how many times Evidentia's time it takes."""
    found = {}
    for among, names in (("frameworks", FRAMEWORKS), ("all", (*FRAMEWORKS, *BY_HAND))):
        for figure in ("p50_ms", "p99_ms", "p50_cpu_ms", "p99_cpu_ms"):
            best = min((row for row in rows if row["system"] in names and row["is_exact"]), key=lambda row: float(row[figure]))
            found[f"{figure}, {among}"] = {"system": best["system"], "times_evidentia": best["times_evidentia"][figure]}
    return found


def _stages(answers: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    spent = {stage: np.percentile([each[stage] for each in answers], [50, 99]).round(3).tolist() for stage in answers[0]}
    return {stage: {"p50_ms": p50, "p99_ms": p99} for stage, (p50, p99) in spent.items()}


def report_on(sizes: Iterable[int], *, cache: Path) -> None:
    """Measure each size and write the results when the sizes are the usual ones."""
    measured = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as work:
            measured.append(measure(size, cache=cache, work=Path(work)))
        print(json.dumps(measured[-1], indent=1), flush=True)
    if tuple(sizes) == SIZES:
        write_results(measured)


def write_results(measured: list[dict[str, Any]]) -> None:
    """Write what was measured, with what it was measured on."""
    report = {
        "command": "make bench-hybrid",
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "processors": os.cpu_count(),
        "limit": LIMIT,
        "systems": {name: system.what for name, system in SYSTEMS.items()},
        "sizes": measured,
    }
    RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Hybrid retrieval beside others.")
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, help="how many passages")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "evidentia-hybrid", help="where vectors are kept")
    parser.add_argument("--build", help=argparse.SUPPRESS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    name = given.build or given.serve
    if name is None:
        report_on(tuple(given.sizes), cache=given.cache)
        return
    system = SYSTEMS[name]
    handed = Handed(given.work, given.work / system.home)
    if given.build and system.build is not None:
        system.build(handed)
    if given.serve:
        serve(system.start(handed), questions=json.loads((given.work / "questions.json").read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
