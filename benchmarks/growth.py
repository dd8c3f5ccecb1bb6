"""How a base grows: 10,000, 100,000 and 1,000,000 documents, each asked after a restart and while files are added one by one.

    make bench-growth

Every size is measured in processes of their own: one that opens the base for the first time after ingest, one that opens it again,
adds five files and asks after each, and a server. Documents have words, metadata and a synthetic vector. CPU is that of the whole
process, of all threads, so what is prepared in the background counts; the clock is given beside it. `growth` is the exponent of the
power law between the smallest and the largest size: 0 is constant, 1 is linear. Then 32 clients ask a base for a minute while a
file is added every second; an answer that is empty, late or unequal to another on the same state is counted. `--sizes`, `--keep`,
`--soak-s` and `--soak-size` choose less.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import defaultdict
from http.cookiejar import CookieJar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import numpy as np
from passages import passages, vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.base.sync_base import Base
    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.vectors import VectorIdentity

SIZES = (10_000, 100_000, 1_000_000)
RESULTS = Path(__file__).parent / "results" / "growth.json"
COMMITS = 5
CLIENTS = 32
DIMENSION = 32
PATIENCE_S = 30
BATCH = 10_000
QUESTION = "bano cabin"
WAYS: dict[str, dict[str, Any]] = {  # the fields of a request
    "unknown": {"query": "banqzo cabin"},
    "filter": {"filter": 'tags contains "tag3"'},
    "facet": {"facets": ["tags"]},
}
AS_OF = "2026-01-01T00:00:00Z"
COMMAND = str(Path(sys.executable).with_name("evidentia"))
Result = TypeVar("Result")
Figures = dict[str, Any]  # a number or a list of numbers for each name


def cpu_ms() -> float:
    """Return the CPU time of this process, all threads."""
    return time.process_time() * 1_000


def resident_mb(process: str = "self") -> int:
    """Return the memory that a process holds."""
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def timed(figures: Figures, name: str, work: Callable[..., Result], *given: object, **fields: object) -> Result:
    """Do something; note its CPU and its time under a name."""
    cpu, clock = cpu_ms(), time.perf_counter()
    result = work(*given, **fields)
    figures.setdefault(f"{name}_cpu_ms", []).append(round(cpu_ms() - cpu, 1))
    figures.setdefault(f"{name}_ms", []).append(round((time.perf_counter() - clock) * 1_000, 1))
    return result


# --- the bases ---


def build(work: Path, size: int) -> Figures:
    """Make a base of so many documents, unless it is there."""
    from evidentia import connect

    base = work / f"base-{size}"
    if base.exists():
        return {}
    corpus = work / f"corpus-{size}.jsonl"
    with corpus.open("w", encoding="utf-8") as lines:
        for number, text in enumerate(passages(size)):
            metadata = {
                "tags": [f"tag{number % 37}"],
                "updated_at": f"20{10 + number % 15}-0{1 + number % 9}-11",
                "team": f"team{number % 11}",
            }
            lines.write(json.dumps({"_id": f"p{number}", "title": f"Passage {number}", "text": text, "metadata": metadata}) + "\n")
    figures: Figures = {}
    with connect(base, init=True) as opened:
        timed(figures, "ingest", lambda: opened.ingest([corpus], source="bench", embed=False))
    corpus.unlink()
    timed(figures, "vectors", lambda: give_vectors(base))
    return figures


def space() -> VectorIdentity:
    """Return the space of the synthetic vectors."""
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.vectors import VectorIdentity

    return VectorIdentity(model=Sha256("0" * 64), dimension=DIMENSION, normalisation="unit", name="synthetic")


def give_vectors(base: Path) -> None:
    """Give every chunk a vector of length one."""
    from evidentia.backends.embedded.vectors.vector_store import EmbeddedVectors
    from evidentia.wiring import embedded
    from evidentia.wiring.system import SystemClock, SystemEntropy

    chance = np.random.default_rng(3)
    store = EmbeddedVectors(base, clock=SystemClock(), entropy=SystemEntropy(), wait_ms=1_000)
    parts = embedded.open_parts(base)
    while pending := store.pending(space(), limit=BATCH):
        drawn = chance.standard_normal((len(pending), DIMENSION))
        rows = np.rint(drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * (1 << 22)).astype(np.int32)
        store.add(space(), {chunk.key: row for chunk, row in zip(pending, rows, strict=True)})
        parts.collector().compact()
    store.close()
    parts.close()


# --- one process ---


def ask(base: Base, query: str = QUESTION, **fields: object) -> EvidenceResponse:
    """Ask for ten fragments, by words."""
    return base.retrieve(query, mode="lexical", as_of=AS_OF, **fields)


def open_base(work: Path, size: int) -> Figures:
    """Open a base and ask it once."""
    from evidentia import connect

    figures: Figures = {"import_cpu_ms": round(cpu_ms(), 1)}
    base = timed(figures, "open", lambda: asked(connect(work / f"base-{size}")))
    base.close()
    return figures


def asked(base: Base) -> Base:
    """Ask a base once; it is open then."""
    assert len(ask(base).fragments) == 10
    return base


def use_base(work: Path, size: int) -> Figures:
    """Open a base again, ask it in several ways, and add files."""
    from evidentia import connect
    from evidentia.contracts.access import local_owner
    from evidentia.contracts.search import DenseQuery
    from evidentia.policy.access import access_scope
    from evidentia.wiring import embedded

    figures: Figures = {}
    base = timed(figures, "restart", lambda: asked(connect(work / f"base-{size}")))
    for name, fields in WAYS.items():
        assert timed(figures, name, ask, base, **fields).fragments
    empty = 0
    for number in range(COMMITS):
        file = work / f"file-{os.getpid()}-{number}.md"
        file.write_text(f"# News {number}\n\nzyzzyva{os.getpid()}x{number} {QUESTION}", encoding="utf-8")
        timed(figures, "commit", base.ingest, [file], source="files", embed=False)
        found = timed(figures, "after_commit", ask, base, f"zyzzyva{os.getpid()}x{number}")
        empty += not found.fragments
        for name, fields in WAYS.items():
            empty += not timed(figures, f"{name}_after_commit", ask, base, **fields).fragments
        file.unlink()
    figures |= {"empty": empty, "resident_mb": resident_mb()}
    base.close()
    parts = embedded.open_parts(work / f"base-{size}")
    snapshot = parts.index.at(search=parts.settings.search)
    vector = np.full(DIMENSION, 1 << 19, dtype="<i4").tobytes()
    scope = access_scope(local_owner(), acl_scope=None, rules=())
    query = DenseQuery(identity=space(), vector=vector)
    for _ in range(3):
        timed(figures, "nearest", snapshot.nearest, query, scope=scope, narrowing=None, phrases=(), limit=10)
    figures["resident_with_vectors_mb"] = resident_mb()
    parts.close()
    return figures


def serve_base(work: Path, size: int) -> Figures:
    """List documents and show the dashboard through a server."""
    token = work / f"token-{size}"  # written by the first server of a base, which keeps it
    arguments = [COMMAND, "--base", str(work / f"base-{size}"), "serve", "--port", "0", "--json", "--token-file", str(token)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    figures: Figures = {}
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        secret = token.read_text(encoding="utf-8").strip()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        form = urlencode({"key": secret}).encode()
        signing_in = urllib.request.Request(f"{address}/dashboard/sign-in", data=form, headers={"Sec-Fetch-Site": "same-origin"})  # noqa: S310 - our own server
        fetch(figures, "signed_in", browser, signing_in)
        listing = urllib.request.Request(f"{address}/v1/documents?limit=50", headers={"Authorization": f"Bearer {secret}"})  # noqa: S310 - likewise
        for _ in range(3):
            fetch(figures, "listing", browser, listing)
            fetch(figures, "home", browser, f"{address}/dashboard")
        figures["server_resident_mb"] = resident_mb(str(process.pid))
    finally:
        process.terminate()
        process.wait(60)
    return figures


def fetch(figures: Figures, name: str, browser: urllib.request.OpenerDirector, page: urllib.request.Request | str) -> None:
    """Note how long a page takes; one that takes too long counts as long as it was waited for."""
    began = time.perf_counter()
    with contextlib.suppress(TimeoutError), browser.open(page, timeout=PATIENCE_S) as opened:
        opened.read()
    figures.setdefault(f"{name}_ms", []).append(round((time.perf_counter() - began) * 1_000, 1))


# --- many clients and a writer ---


def soak(work: Path, size: int, seconds: float) -> Figures:
    """Have many clients ask while another process adds a file every second."""
    from evidentia import connect

    base = asked(connect(work / f"base-{size}"))
    words = vocabulary(400)[40:]
    until = time.monotonic() + seconds
    counts: dict[str, int] = defaultdict(int)
    hashes: dict[tuple[str, str], set[str]] = defaultdict(set)
    slowest, lock = [0.0], threading.Lock()

    def client(number: int) -> None:
        chance = np.random.default_rng(number)
        while time.monotonic() < until:
            query = " ".join(chance.choice(words[:60], 2))
            began = time.perf_counter()
            answer = ask(base, query, latency_deadline_ms=5_000, receipt=False)
            taken = time.perf_counter() - began
            with lock:
                counts["answers"] += 1
                counts["empty"] += not answer.fragments
                counts["late"] += taken > 5
                counts["degraded"] += bool(answer.degraded)
                hashes[query, answer.evidence_state].add(answer.result_hash)
                slowest[0] = max(slowest[0], taken)

    writer = subprocess.Popen(
        [sys.executable, __file__, "--part", "write", "--keep", str(work), "--sizes", str(size), "--soak-s", str(seconds)]
    )
    clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    writer.wait(60)
    states = {state for _, state in hashes}
    unequal = sum(1 for found in hashes.values() if len(found) > 1)
    base.close()
    figures = {"clients": CLIENTS, "seconds": seconds, "size": size, "states": len(states), "unequal": unequal}
    return {**figures, **counts, "slowest_ms": round(slowest[0] * 1_000), "resident_mb": resident_mb()}


def write_base(work: Path, size: int, seconds: float) -> Figures:
    """Add a file every second."""
    from evidentia import connect

    until = time.monotonic() + seconds
    with connect(work / f"base-{size}") as base:
        number = 0
        while time.monotonic() < until:
            file = work / f"soak-{number}.md"
            file.write_text(f"# Soak {number}\n\nsoaked{os.getpid()}x{number} {QUESTION}", encoding="utf-8")
            base.ingest([file], source="soak", embed=False)
            file.unlink()
            number += 1
            time.sleep(1)
    return {"commits": number}


# --- the table ---


def growth(figures: dict[int, Figures], name: str) -> float | None:
    """Return the exponent with which a figure grows with the number of documents."""
    sizes = sorted(figures)
    first, last = (median(figures[size].get(name)) for size in (sizes[0], sizes[-1]))
    if not first or not last or len(sizes) < 2:
        return None
    return round(math.log(last / first) / math.log(sizes[-1] / sizes[0]), 2)


def median(figure: float | list[float] | None) -> float:
    """Return a number, or the median of several."""
    return float(np.median(figure)) if figure is not None else 0.0


ROWS = {
    "first open after ingest, CPU ms": "open_cpu_ms",
    "open after a restart and the first search, CPU ms": "restart_cpu_ms",
    "a commit of one file, CPU ms": "commit_cpu_ms",
    "first search after the commit, CPU ms": "after_commit_cpu_ms",
    "first filter after the commit, CPU ms": "filter_after_commit_cpu_ms",
    "first facet after the commit, CPU ms": "facet_after_commit_cpu_ms",
    "an unknown word after the commit, CPU ms": "unknown_after_commit_cpu_ms",
    "the nearest ten vectors, CPU ms": "nearest_cpu_ms",
    "a page of 50 documents over REST, ms": "listing_ms",
    "the dashboard's home, ms": "home_ms",
    "memory after five commits, MB": "resident_mb",
    "memory with vectors scanned, MB": "resident_with_vectors_mb",
    "memory of the server, MB": "server_resident_mb",
    "empty answers": "empty",
}


def table(figures: dict[int, Figures]) -> str:
    """Return the figures as Markdown."""
    sizes = sorted(figures)
    lines = [f"| | {' | '.join(f'{size:,}' for size in sizes)} | growth |", "|---|" + "---|" * (len(sizes) + 1)]
    for label, name in ROWS.items():
        cells = [f"{median(figures[size].get(name)):,.0f}" for size in sizes]
        lines.append(f"| {label} | {' | '.join(cells)} | {growth(figures, name) or ''} |")
    return "\n".join(lines)


PARTS: dict[str, Callable[[Path, int], Figures]] = {"build": build, "open": open_base, "use": use_base, "serve": serve_base}


def in_process(part: str, work: Path, size: int) -> Figures:
    """Run one part of the measurement in a process of its own."""
    arguments = [sys.executable, __file__, "--part", part, "--keep", str(work), "--sizes", str(size)]
    done = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--keep", type=Path, help="make the bases here, and keep them")
    parser.add_argument("--soak-s", type=float, default=60)
    parser.add_argument("--soak-size", type=int, default=100_000)
    parser.add_argument("--part", choices=[*PARTS, "write"])
    asked_for = parser.parse_args()
    if asked_for.part == "write":
        write_base(asked_for.keep, asked_for.sizes[0], asked_for.soak_s)
        return
    if asked_for.part:
        print(json.dumps(PARTS[asked_for.part](asked_for.keep, asked_for.sizes[0])))
        return
    with tempfile.TemporaryDirectory() as folder:
        work = asked_for.keep or Path(folder)
        work.mkdir(exist_ok=True)
        figures: dict[int, Figures] = {}
        for size in asked_for.sizes:
            figures[size] = {}
            for part in PARTS:
                figures[size] |= in_process(part, work, size)
            print(table(figures), flush=True)
        many = soak(work, asked_for.soak_size, asked_for.soak_s) if asked_for.soak_s and asked_for.soak_size in figures else {}
    report = {"command": "make bench-growth", "python": platform.python_version(), "cores": os.cpu_count(), "sizes": figures, "soak": many}
    RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(many))


if __name__ == "__main__":
    main()
