"""Answers while the base changes: clients ask one server over and over while another commits a document every second.

    python benchmarks/commits_under_load.py --documents 100000

A base of short texts with words alone is served by `evidentia serve` (one process), and asked on loopback by clients of this process.
Every question has matches, so an empty answer is a wrong one. An answer is late when the server says that it took longer than the
deadline and 20 ms. Equal questions on equal states (the same commit) have to have equal hashes. Also told: how long a commit took, how
long until an answer showed it, and what the doors say of lists meanwhile. Figures by the clock of a busy machine are those of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec
import numpy as np

from evidentia import connect
from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.control import Role
from evidentia.wiring.governance_runtime import open_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = Path(__file__).parent / "results" / "commits_under_load.json"
COMMAND = str(Path(sys.executable).with_name("evidentia"))
WORDS, COMMON = 20_000, 400
WORDS_PER_TEXT = 40
QUESTIONS = 64
GRACE_MS = 20
AS_OF = "2026-06-01T00:00:00Z"


class _Commit(msgspec.Struct):
    sequence: int


class _Coverage(msgspec.Struct):
    state: str


class _Answer(msgspec.Struct):
    """What is read of an answer; the rest is skipped."""

    fragments: list[msgspec.Raw]
    source_coverage: dict[str, _Coverage]
    commit: _Commit
    result_hash: str
    latency_ms: float
    degraded: list[str]


class Outcome(NamedTuple):
    """One answer as it was received."""

    question: int
    sequence: int
    result_hash: str
    fragments: int
    is_unfinished: bool
    server_ms: float
    client_ms: float
    at: float


class Server(NamedTuple):
    """A process that is asked."""

    pid: int
    host: str
    port: int
    token: str

    async def call(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return the status and the body of one exchange on a connection of its own."""
        async with Connection(self) as connection:
            return await connection.call(method, path, body)

    def memory_mb(self) -> int:
        """Return how much memory it holds, in megabytes."""
        return int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


class Connection:
    """A connection to a server that stays open for one exchange after the other."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def __aenter__(self) -> Self:
        """Open it."""
        self._reader, self._writer = await asyncio.open_connection(self._server.host, self._server.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def call(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return the status and the body of one exchange."""
        head = f"{method} {path} HTTP/1.1\r\nhost: {self._server.host}\r\nauthorization: Bearer {self._server.token}\r\n"
        self._writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        await self._writer.drain()
        told = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(told.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        return int(told.split(" ", 2)[1]), await self._reader.readexactly(length)


@contextlib.contextmanager
def served(base: Path) -> Iterator[Server]:
    """Run a server over a base, and wait until it is ready."""
    with open_tokens(base) as (tokens, _):
        token = tokens.issue(name="load", roles=(Role.ADMIN,), tenant=DEFAULT_TENANT, by="benchmark").token
    arguments = [COMMAND, "--base", str(base), "serve", "--port", "0", "--json"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        host, _, port = told["address"].rpartition("/")[2].rpartition(":")
        server = Server(process.pid, host, int(port), token)
        while asyncio.run(server.call("GET", "/ready"))[0] != 200:
            time.sleep(0.2)
        yield server
    finally:
        process.terminate()
        process.wait()


def text_of(chance: random.Random) -> str:
    """Return a text of words of which some are common."""
    return " ".join(f"w{min(int(chance.paretovariate(0.6)) - 1, WORDS - 1):05d}" for _ in range(WORDS_PER_TEXT))


def make_base(folder: Path, documents: int) -> Path:
    """Return a base of synthetic texts without vectors."""
    chance = random.Random(7)
    corpus = folder / "corpus.jsonl"
    with corpus.open("w", encoding="utf-8") as lines:
        for number in range(documents):
            lines.write(json.dumps({"_id": f"d{number:07d}", "title": f"Text {number}", "text": text_of(chance)}) + "\n")
    with connect(folder / "base", init=True) as base:
        base.ingest([corpus], embed=False)
    return folder / "base"


async def ask(server: Server, outcomes: list[Outcome], *, number: int, until: float, deadline_ms: int, pause_s: float) -> int:
    """Ask one question after the other, and return how many were refused."""
    chance, refused = random.Random(number), 0
    async with Connection(server) as connection:
        while time.perf_counter() < until:
            question = chance.randrange(QUESTIONS)
            words = f"w{question % COMMON:05d} w{7 * question % COMMON:05d}"
            request = {"query": words, "mode": "lexical", "as_of": AS_OF, "latency_deadline_ms": deadline_ms, "receipt": False}
            began = time.perf_counter()
            status, body = await connection.call("POST", "/v1/evidence", json.dumps(request).encode())
            done = time.perf_counter()
            if status == 200:
                outcomes.append(_outcome(question, msgspec.json.decode(body, type=_Answer), began=began, done=done))
            refused += status != 200
            await asyncio.sleep(pause_s)
    return refused


def _outcome(question: int, found: _Answer, *, began: float, done: float) -> Outcome:
    return Outcome(
        question=question,
        sequence=found.commit.sequence,
        result_hash=found.result_hash,
        fragments=len(found.fragments),
        is_unfinished=any(each.state == "timed_out" for each in found.source_coverage.values()),
        server_ms=found.latency_ms,
        client_ms=(done - began) * 1000,
        at=done,
    )


async def commit(server: Server, commits: dict[int, tuple[float, float]], *, until: float) -> None:
    """Commit one document every second; each commit is told by its version with when it was done and how long it took."""
    chance = random.Random(11)
    for number in itertools.count():
        began = time.perf_counter()
        if began >= until:
            return
        document = {"id": f"new{number:05d}", "title": f"New {number}", "text": text_of(chance)}
        body = json.dumps({"documents": [document], "source": "added", "embed": False}).encode()
        status, told = await server.call("POST", "/v1/documents", body)
        assert status == 200, told
        done = time.perf_counter()
        _, head = await server.call("GET", "/v1/base/head")
        commits[json.loads(head)["sequence"]] = (done, (done - began) * 1000)
        await asyncio.sleep(max(0.0, began + 1 - time.perf_counter()))


async def look(server: Server, lists_ms: list[float], *, until: float) -> None:
    """Ask for a page of the list of documents now and then."""
    while time.perf_counter() < until:
        began = time.perf_counter()
        status, _ = await server.call("GET", "/v1/documents?limit=50")
        assert status == 200
        lists_ms.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(1)


async def load(server: Server, *, clients: int, seconds: float, deadline_ms: int, pause_s: float) -> dict[str, Any]:
    """Ask and commit for a while, and return what came of it."""
    outcomes: list[Outcome] = []
    commits: dict[int, tuple[float, float]] = {}
    lists_ms: list[float] = []
    until = time.perf_counter() + seconds
    asking = [ask(server, outcomes, number=each, until=until, deadline_ms=deadline_ms, pause_s=pause_s) for each in range(clients)]
    refused, *_ = await asyncio.gather(asyncio.gather(*asking), commit(server, commits, until=until), look(server, lists_ms, until=until))
    hashes: dict[tuple[int, int], set[str]] = {}
    for each in outcomes:
        hashes.setdefault((each.question, each.sequence), set()).add(each.result_hash)
    seen = [_shown_after_ms(outcomes, sequence, done) for sequence, (done, _) in commits.items()]
    visible = [each for each in seen if each is not None]
    empty = [each for each in outcomes if not each.fragments]
    return {
        "answers": len(outcomes),
        "refused": sum(refused),
        "empty": len(empty),
        "empty and said to be unfinished": sum(each.is_unfinished for each in empty),
        "unfinished": sum(each.is_unfinished for each in outcomes),
        "late": sum(each.server_ms > deadline_ms + GRACE_MS for each in outcomes),
        "answer ms": _spread([each.server_ms for each in outcomes]),
        "answer ms, as the client saw it": _spread([each.client_ms for each in outcomes]),
        "commits": len(commits),
        "commit ms": _spread([took for _, took in commits.values()]),
        "shown after ms": _spread(visible),
        "states": len({each.sequence for each in outcomes}),
        "equal questions on equal states": sum(1 for _ in hashes),
        "of them with unequal hashes": sum(len(each) > 1 for each in hashes.values()),
        "list of 50 documents ms": _spread(lists_ms),
        "memory MB": server.memory_mb(),
    }


def _shown_after_ms(outcomes: list[Outcome], sequence: int, done: float) -> float | None:
    """Return how long after a commit an answer first showed it."""
    shown = [each.at for each in outcomes if each.sequence >= sequence]
    return max(0.0, (min(shown) - done) * 1000) if shown else None


def _spread(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    p50, p99 = np.percentile(values, [50, 99])
    return {"p50": round(float(p50), 1), "p99": round(float(p99), 1), "most": round(max(values), 1)}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--base", type=Path, help="a base without vectors of such texts; it is changed")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--deadline-ms", type=int, default=500)
    parser.add_argument("--pause-ms", type=float, default=0, help="how long a client waits between two questions")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = given.base or make_base(Path(folder), given.documents)
        (base / "evidentia.toml").write_text("[server]\nrequests_per_minute = 0\n", encoding="utf-8")
        with served(base) as server:
            asking = load(
                server, clients=given.clients, seconds=given.seconds, deadline_ms=given.deadline_ms, pause_s=given.pause_ms / 1000
            )
            found = asyncio.run(asking)
    settings = {name: value for name, value in vars(given).items() if name != "base"}
    told = {"machine": f"{platform.machine()}, {os.cpu_count()} CPUs", "load": os.getloadavg()[0], **settings, **found}
    for name, value in told.items():
        print(f"{name:34} {value}")
    RESULTS.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
