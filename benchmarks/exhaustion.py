"""What one client can take from a server: memory before, during and after each attack, and what other clients wait meanwhile.

    make bench-exhaustion

Every attack meets a fresh server (`evidentia serve`, one process, gRPC too) over the same base of 20,000 passages. Two clients of
another token ask three-word questions before the attack (`quiet`) and while it lasts (`beside`); memory is that of the server, read
50 times a second, and beside it that of the processes it started to read documents, which have a bound of their own
(`ingest.reader_memory_mb`) and end with their call. An attack is a function that is given the `Target` and returns what came of it;
`ATTACKS` lists them. `--only NAME` plays some of them.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import platform
import subprocess
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evidentia import connect
from serving import COMMAND, WORDS, corpus, free_port, questions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

RESULTS = Path(__file__).parent / "results" / "exhaustion.json"
MAX_GROWTH_MB, MAX_RATIO = 200, 3.0
BYSTANDERS, QUIET_S, LEAST_BESIDE_S, SETTLE_S, SAMPLE_S = 2, 4.0, 4.0, 2.0, 0.02
ROLES = {"owner": ["admin"], "reader": ["reader"], "agent": ["agent"], "attacker": ["reader"], "writer": ["admin"]}
"""A token for each of these; `reader` is that of the bystanders."""
MB = 1 << 20


class Target(NamedTuple):
    """A server that is attacked."""

    pid: int
    host: str
    port: int
    grpc_address: str
    tokens: Mapping[str, str]

    def resident_mb(self) -> float:
        """Return the memory that the server holds."""
        return _resident(self.pid) / MB

    def readers_mb(self) -> float:
        """Return the memory that the processes hold which it started."""
        return sum(map(_resident, _children(self.pid))) / MB

    def head(self, path: str, length: int, *, role: str) -> bytes:
        """Return the head of a POST."""
        lines = (
            f"POST {path} HTTP/1.1",
            f"host: {self.host}:{self.port}",
            f"authorization: Bearer {self.tokens.get(role, '')}",
            "content-type: application/json",
            "accept: application/json, text/event-stream",
            f"content-length: {length}",
            "",
            "",
        )
        return "\r\n".join(lines).encode()

    async def post(self, path: str, message: object, *, role: str = "attacker", leave_s: float | None = None) -> int:
        """Send one request over a connection of its own; return the status, or 0 where it left before the answer."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(self.head(path, len(body), role=role) + body)
            await writer.drain()
            line = await asyncio.wait_for(reader.readline(), leave_s)
            while await reader.read(1 << 16) if b"connection: close" in line else False:
                pass
            return int(line.split()[1]) if line.startswith(b"HTTP/1.1 ") else 0
        except (TimeoutError, ConnectionError):
            return 0
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                for child in map(int, (task / "children").read_text(encoding="ascii").split()):
                    found += [child, *_children(child)]
    return found


# --- attacks: each is given a server and returns what came of it ---


def long_question(chars: int = 32_000) -> str:
    """Return a question of words of the corpus and others."""
    words = [f"{word}{number or ''}" for number in range(200) for word in ("signing", "vault", "depot", "invoice", "ledger", "audit")]
    return " ".join(words)[:chars]


async def subqueries(target: Target, count: int) -> object:
    """Ask one question that is divided into many parts."""
    parts = [{"text": f"{WORDS[number % len(WORDS)]} {WORDS[number // len(WORDS) % len(WORDS)]}"} for number in range(count)]
    ask = {"query": {"text": "signing key rotation", "subqueries": parts}, "limit": 100, "latency_deadline_ms": 60_000}
    return await target.post("/v1/evidence", ask)


async def explained(target: Target) -> object:
    """Ask for 10,000 fragments, explained, with a question of 32,000 characters."""
    ask = {"query": long_question(), "limit": 10_000, "explain": True, "latency_deadline_ms": 60_000}
    return await target.post("/v1/evidence", ask)


async def explained_many(target: Target) -> object:
    """Ask the same eight times at once."""
    return dict(Counter(await asyncio.gather(*(explained(target) for _ in range(8)))))


async def dearest(target: Target) -> object:
    """Ask for as much as is allowed, twelve times at once."""
    parts = [{"text": f"{WORDS[number % len(WORDS)]} {WORDS[number // len(WORDS)]}"} for number in range(55)]
    many = {"query": {"text": "signing key rotation", "subqueries": parts}, "limit": 100, "latency_deadline_ms": 60_000}
    long = {"query": long_question(), "limit": 40, "explain": True, "latency_deadline_ms": 60_000}
    wide = {"query": "signing key rotation", "limit": 1_000, "latency_deadline_ms": 60_000}
    asks = [each for each in (many, long, wide) for _ in range(4)]
    return dict(Counter(await asyncio.gather(*(target.post("/v1/evidence", ask) for ask in asks))))


async def leavers(target: Target) -> object:
    """Send 200 costly questions and leave after 50 ms each."""
    ask = {"query": long_question(2_000), "limit": 100, "latency_deadline_ms": 60_000}
    return dict(Counter(await asyncio.gather(*(target.post("/v1/evidence", ask, leave_s=0.05) for _ in range(200)))))


async def nested(target: Target) -> object:
    """Send bodies of just under 1 MiB that decode into half a million objects, or are nested 400,000 deep."""
    flat = b'{"query":"key","turns":[' + b"{}," * 340_000 + b"{}]}"
    numbers = b'{"query":"key","facets":[' + b"1," * 500_000 + b"1]}"
    deep = b'{"query":"key","filter":' + b"[" * 400_000 + b"]" * 400_000 + b"}"
    bodies = [body for body in (flat, numbers, deep) for _ in range(8)]
    return dict(Counter(await asyncio.gather(*(target.post("/v1/evidence", body) for body in bodies))))


async def turns(target: Target) -> object:
    """Ask with a conversation of 900 kB."""
    said = [{"role": "user", "text": long_question(9_000)} for _ in range(100)]
    ask = {"query": "and what about its key?", "turns": said, "limit": 100, "latency_deadline_ms": 60_000}
    return dict(Counter(await asyncio.gather(*(target.post("/v1/evidence", ask) for _ in range(8)))))


async def filters(target: Target) -> object:
    """Ask with a filter of 5,000 alternatives, and one that nests 500 deep."""
    wide = " or ".join(f'tags contains "t{number}"' for number in range(5_000))
    deep = "(" * 500 + 'tags contains "t"' + ")" * 500
    asks = [{"query": "key", "filter": each, "latency_deadline_ms": 60_000} for each in (wide, deep) for _ in range(4)]
    return dict(Counter(await asyncio.gather(*(target.post("/v1/evidence", ask) for ask in asks))))


async def slow_pdfs(target: Target) -> object:
    """Send four small PDFs that take minutes to read, while another tenant's admin adds a document."""
    files = [{"path": f"slow{place}.pdf", "content": base64.b64encode(slow_pdf(place)).decode()} for place in range(4)]
    sent = asyncio.ensure_future(target.post("/v1/documents", {"files": files, "source": "slow", "embed": False}, role="writer"))
    await asyncio.sleep(1)
    began = time.monotonic()
    document = {"documents": [{"id": "one", "text": "a note on keys"}], "source": "quick", "embed": False}
    status = await target.post("/v1/documents", document, role="owner")
    waited = time.monotonic() - began
    return {"slow": await sent, "other": status, "other_waited_s": round(waited, 1), "took_s": round(time.monotonic() - began + 1, 1)}


def slow_pdf(place: int, pages: int = 40) -> bytes:
    """Return a PDF of a few kilobytes whose pages take six seconds each to read."""
    content = zlib.compress(b"BT /F1 9 Tf (%d) Tj ET\n" % place * 180_000, 9)
    kids = b" ".join(b"%d 0 R" % (5 + page) for page in range(pages))
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 3 0 R/Resources<</Font<</F1 4 0 R>>>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, pages),
        b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *[page] * pages,
    ]
    body, table = b"%PDF-1.4\n", b"0000000000 65535 f \n"
    for number, each in enumerate(objects, start=1):
        table += b"%010d 00000 n \n" % len(body)
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    end = b"xref\n0 %d\n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
    return body + end % (len(objects) + 1, table, len(objects) + 1, len(body))


async def nothing(target: Target) -> object:
    """Do nothing: what a server does to itself while it is asked for the first time."""
    del target
    return "none"


ATTACKS: dict[str, Callable[[Target], Awaitable[object]]] = {
    "no attack": nothing,
    "1,000 subqueries": lambda target: subqueries(target, 1_000),
    "5,000 subqueries": lambda target: subqueries(target, 5_000),
    "limit 10,000, explained, 32k question": explained,
    "the same, eight at once": explained_many,
    "12 of the dearest that are allowed": dearest,
    "200 clients that leave after 50 ms": leavers,
    "bodies of half a million objects": nested,
    "conversation of 900 kB, eight at once": turns,
    "filters of 5,000 alternatives": filters,
    "four PDFs that are slow to read": slow_pdfs,
}


# --- measuring ---


async def bystanders(target: Target, until: Callable[[], bool]) -> list[float]:
    """Ask as clients who did nothing wrong; return how long each answer took, in milliseconds."""
    asked = [json.dumps(each).encode() for each in questions(500)]
    waits: list[float] = []

    async def client(place: int) -> None:
        while not until():
            began = time.perf_counter()
            status = await target.post("/v1/evidence", asked[place % len(asked)], role="reader")
            assert status == 200, status
            waits.append((time.perf_counter() - began) * 1_000)
            place += BYSTANDERS

    await asyncio.gather(*(client(place) for place in range(BYSTANDERS)))
    return waits


async def played(target: Target, attack: Callable[[Target], Awaitable[object]]) -> dict[str, Any]:
    """Return what an attack does to memory and to other clients."""
    ends = time.monotonic() + QUIET_S
    quiet = await bystanders(target, lambda: time.monotonic() > ends)
    before = peak = target.resident_mb()
    began = time.monotonic()
    attacking = asyncio.ensure_future(attack(target))

    readers = 0.0

    async def watch() -> None:
        nonlocal peak, readers
        while True:
            peak, readers = max(peak, target.resident_mb()), max(readers, target.readers_mb())
            await asyncio.sleep(SAMPLE_S)

    watching = asyncio.ensure_future(watch())
    beside = await bystanders(target, lambda: attacking.done() and time.monotonic() - began > LEAST_BESIDE_S)
    outcome = await attacking
    lasted = time.monotonic() - began
    await asyncio.sleep(SETTLE_S)
    watching.cancel()
    quiet_ms, beside_ms = float(np.percentile(quiet, 99)), float(np.percentile(beside, 99))
    return {
        "outcome": outcome,
        "lasted_s": round(lasted, 1),
        "rss_mb_before": round(before),
        "rss_mb_peak": round(peak),
        "rss_mb_after": round(target.resident_mb()),
        "growth_mb": round(peak - before),
        "readers_mb": round(readers),
        "p99_ms_quiet": round(quiet_ms, 1),
        "p99_ms_beside": round(beside_ms, 1),
        "p99_ratio": round(beside_ms / quiet_ms, 2),
        "answers_beside": len(beside),
    }


@contextlib.contextmanager
def served(base: Path) -> Iterator[Target]:
    """Run a server over a base."""
    tokens = _tokens(base)
    port = free_port()
    arguments = [COMMAND, "--base", str(base), "serve", "--port", "0", "--grpc-port", str(port), "--json"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        host, _, http = told["address"].rpartition("/")[2].rpartition(":")
        yield Target(process.pid, host, int(http), f"127.0.0.1:{port}", tokens)
    finally:
        process.terminate()
        process.wait(60)


def _tokens(base: Path) -> dict[str, str]:
    kept = base.parent / "tokens.json"
    if not kept.exists():
        made = {}
        for name, roles in ROLES.items():
            tenant = ["--tenant", "acme"] if name == "writer" else []
            given = [each for role in roles for each in ("--role", role)]
            command = [COMMAND, "--base", str(base), "tokens", "add", "--name", name, *given, *tenant, "--json"]
            made[name] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["token"]
        kept.write_text(json.dumps(made), encoding="utf-8")
    found: dict[str, str] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def measure(folder: Path, attacks: Mapping[str, Callable[[Target], Awaitable[object]]]) -> dict[str, Any]:
    """Return what each attack does, each against a server of its own."""
    base = folder / "base"
    with connect(base, init=True) as opened:
        opened.ingest([corpus(folder)], source="passages", embed=False)
    (base / "evidentia.toml").write_text("[server]\nrequests_per_minute = 0\n", encoding="utf-8")
    found: dict[str, Any] = {}
    for name, attack in attacks.items():
        with served(base) as target:
            asyncio.run(bystanders(target, iter([False] * 20 + [True] * BYSTANDERS).__next__))
            found[name] = asyncio.run(played(target, attack))
        print(row(name, found[name]), flush=True)
    return found


COLUMNS = {
    "rss_mb_before": "before",
    "rss_mb_peak": "peak",
    "rss_mb_after": "after",
    "growth_mb": "growth",
    "readers_mb": "readers",
    "p99_ms_quiet": "quiet p99",
    "p99_ms_beside": "beside",
    "p99_ratio": "ratio",
}
HEADER = f"{'attack':40} {' '.join(f'{word:>9}' for word in COLUMNS.values())}  outcome"


def row(name: str, figures: Mapping[str, Any]) -> str:
    """Return one line of the table."""
    return f"{name:40} {' '.join(f'{figures[column]:>9}' for column in COLUMNS)}  {figures['outcome']} in {figures['lasted_s']} s"


def main() -> None:
    """Play, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], help="part of an attack's name")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    chosen = {name: each for name, each in ATTACKS.items() if not options.only or any(part in name for part in options.only)}
    print(HEADER)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), chosen)
    kept = {"command": "make bench-exhaustion", "python": platform.python_version(), "processors": os.cpu_count(), "attacks": found}
    options.results.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    over = [name for name, each in found.items() if each["growth_mb"] > MAX_GROWTH_MB or each["p99_ratio"] > MAX_RATIO]
    if over:
        print("over the limits:", ", ".join(over))


if __name__ == "__main__":
    main()
