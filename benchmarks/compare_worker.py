"""Do what the benchmarks measure, over and over on demand; benchmarks/compare.py calls it with the Python of each checkout.

    python benchmarks/compare_worker.py FOLDER

FOLDER holds `base`, a base with passages and vectors, and `questions.json`. Each line of the input is the name of a case and how many
times to do it; each line of the output is the CPU time in nanoseconds of all threads that it took, of the server's where the case asks one.
Only what the package promises to outsiders is used, so that checkouts of different age can be compared.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evidentia
from evidentia.agents import Context
from evidentia.contracts.retrieval import Candidate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

WORDS, LONG = 3, 8
PROPOSALS = 10
DEADLINE_MS = 10_000
"""Long, so that a machine in use makes answers late and not different."""


class InMemory:
    """A source that has its answer ready."""

    def __init__(self, place: int) -> None:
        self.proposals = [
            Candidate(
                content=f"Source {place} holds fragment {rank} about subject {place * rank}.",
                own_id=f"{place}-{rank}",
                score=1 / (rank + 1),
            )
            for rank in range(PROPOSALS)
        ]

    async def retrieve(self, _ask: object) -> AsyncIterator[Candidate]:
        """Yield the ten."""
        for proposed in self.proposals:
            yield proposed


class Cases:
    """Prepares cases: each method returns what does one once."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self._opened = opened
        self._work = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        self._questions = itertools.cycle(json.loads((folder / "questions.json").read_text(encoding="utf-8")))
        shutil.copytree(folder / "base", self._work / "base")
        self._base: evidentia.Base | None = None

    def asked(self, words: int, **fields: object) -> Callable[[], object]:
        """Ask the base; with `words`, so many of the question."""
        if self._base is None:
            self._base = self._opened.enter_context(evidentia.connect(self._work / "base"))
        base = self._base

        def one() -> object:
            question = next(self._questions)
            if words:
                question = " ".join(sorted(set(question.split()))[:words])
            return base.retrieve(question, receipt=False, latency_deadline_ms=DEADLINE_MS, **fields)

        return one

    def governed(self, count: int, *, base: bool, durable: bool = False) -> Callable[[], object]:
        """Record documents under policies, with a log in memory or in a base."""
        rules = {"max_chunks": 10_000_000, "allowed_collections": ["knowledge_base"], "blocked_sources": ["deprecated-kb"]}
        policies = [
            {"name": f"Policy {each}", "category": "retrieval", "rules": {**rules, "min_relevance_score": 0.5 + each / 1_000}}
            for each in range(count)
        ]
        path = self._work / f"governed-{count}-{base}-{durable}"
        if base:
            evidentia.connect(path, init=True).close()

        def one() -> None:
            with Context("rag-agent", policies=policies, base=path if base else None, durable=durable) as ctx:
                for _ in range(100 if durable else 5_000 // count):
                    ctx.record_retrieval_result(relevance_score=0.92, source="manual.pdf", collection="knowledge_base", age_days=14)
                ctx.flush()

        return one

    def federated(self, sources: int, *, is_kept: bool = False, **fields: object) -> Callable[[], object]:
        """Ask sources in memory, ten times."""
        loop = asyncio.new_event_loop()
        self._opened.callback(loop.close)
        base = loop.run_until_complete(evidentia.aconnect(self._work / f"sources-{sources}-{is_kept}-{len(fields)}", init=True))
        self._opened.callback(lambda: loop.run_until_complete(base.close()))
        for place in range(sources):
            described = {"source_id": f"memory-{place:02}", "source_type": "api", "latency_tier": "hot"}
            loop.run_until_complete(base.add_source(described, InMemory(place)))
        numbers = itertools.repeat(0) if is_kept else itertools.count()

        async def ten() -> None:
            for number in itertools.islice(numbers, 10):
                asked = f"what does subject {number} hold"
                await base.retrieve(asked, limit=PROPOSALS, receipt=False, latency_deadline_ms=DEADLINE_MS, **fields)

        return lambda: loop.run_until_complete(ten())

    def served(self) -> Callable[[], object]:
        """Ask a server over REST."""
        base, token = self._work / "served", self._work / "token"
        shutil.copytree(self._work / "base", base)
        (base / "evidentia.toml").write_text("[server]\nrequests_per_minute = 0\n", encoding="utf-8")
        command = [
            str(Path(sys.executable).with_name("evidentia")),
            "--base",
            str(base),
            "serve",
            "--port",
            "0",
            "--json",
            "--token-file",
            str(token),
        ]
        process = self._opened.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        self._opened.callback(process.terminate)
        assert process.stdout is not None
        host, _, port = json.loads(process.stdout.readline())["address"].rpartition("/")[2].rpartition(":")
        connection = self._opened.enter_context(socket.create_connection((host, int(port)), timeout=30))
        reader = self._opened.enter_context(connection.makefile("rb"))
        bearer = token.read_text(encoding="utf-8").strip()

        def one() -> None:
            asked = " ".join(sorted(set(next(self._questions).split()))[:WORDS])
            body = json.dumps({"query": asked, "mode": "lexical", "limit": 10, "latency_deadline_ms": DEADLINE_MS}).encode()
            head = f"POST /v1/evidence HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {bearer}\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            assert reader.readline().startswith(b"HTTP/1.1 200"), "the server refused"
            length = 0
            while (line := reader.readline()) not in {b"\r\n", b""}:
                if line.lower().startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            reader.read(length)

        one.pid = process.pid  # type: ignore[attr-defined]  # says whose time is measured
        return one


CASES: dict[str, Callable[[Cases], Callable[[], object]]] = {
    "lexical_3_words_top_10": lambda cases: cases.asked(WORDS, mode="lexical", limit=10),
    "lexical_8_words_top_100": lambda cases: cases.asked(LONG, mode="lexical", limit=100),
    "hybrid_top_10": lambda cases: cases.asked(0, limit=10),
    "hybrid_top_100": lambda cases: cases.asked(0, limit=100),
    "governance_1_policy_in_memory": lambda cases: cases.governed(1, base=False),
    "governance_1_policy_buffered": lambda cases: cases.governed(1, base=True),
    "governance_1_policy_durable": lambda cases: cases.governed(1, base=True, durable=True),
    "governance_100_policies_in_memory": lambda cases: cases.governed(100, base=False),
    "governance_100_policies_buffered": lambda cases: cases.governed(100, base=True),
    "federation_0_sources": lambda cases: cases.federated(0),
    "federation_1_source_uncached": lambda cases: cases.federated(1, max_staleness_ms=0),
    "federation_10_sources_uncached": lambda cases: cases.federated(10, max_staleness_ms=0),
    "federation_1_source_new_question": lambda cases: cases.federated(1),
    "federation_10_sources_new_question": lambda cases: cases.federated(10),
    "federation_10_sources_asked_before": lambda cases: cases.federated(10, is_kept=True),
    "serving_rest": Cases.served,
}


def cpu_ns(pid: int) -> int:
    """Return the CPU time of all threads of a process that live."""
    return sum(int((each / "schedstat").read_text(encoding="ascii").split()[0]) for each in Path(f"/proc/{pid}/task").iterdir())


def main() -> None:
    """Do what each line asks for."""
    with ExitStack() as opened:
        cases = Cases(Path(sys.argv[1]), opened)
        ready: dict[str, Any] = {}
        for line in sys.stdin:
            name, times = line.split()
            if name not in ready:
                ready[name] = CASES[name](cases)
            one = ready[name]
            pid = getattr(one, "pid", None)
            before = cpu_ns(pid) if pid else time.process_time_ns()
            for _ in range(int(times)):
                one()
            print((cpu_ns(pid) if pid else time.process_time_ns()) - before, flush=True)


if __name__ == "__main__":
    main()
