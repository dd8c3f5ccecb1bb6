"""What the doors cost, and whether they hold: requests per CPU second of the server beside a bare starlette endpoint.

    make bench-serving

A server process (`evidentia serve`, one worker) and a bare starlette application under the same uvicorn settings are asked on
loopback by clients of this process, which speak HTTP by hand and gRPC by its own package. The bare endpoint reads the body and sends
back bytes as long as our answer, so that the difference is what admission, checks, the engine, custody, receipts and the doors cost.
CPU is the server's own, of all threads, from /proc. Then 16 clients ask for a minute (`--soak-s`), and memory is read meanwhile; then
one client drips its request, one opens a connection and says nothing, and one sends a body of 1 GB, while another goes on asking.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import msgspec
import numpy as np

from evidentia import connect
from evidentia.protobuf.methods import METHODS
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import flat_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

RESULTS = Path(__file__).parent / "results" / "serving.json"
ROUNDS, BATCH = 7, 150
CLIENTS = 16
PASSAGES = 20_000
GIGABYTE = 1 << 30
PIECE = b"x" * (1 << 20)
COMMAND = str(Path(sys.executable).with_name("evidentia"))
WORDS = (
    "signing key rotation quarter vault envelope depot release rollback incident severity channel gateway ledger invoice shipment pallet "
    "sensor threshold alarm budget forecast contract clause warranty supplier audit evidence custody chain receipt tenant policy"
).split()
BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
content = b"x" * int(sys.argv[1])
async def answer(request):
    await request.body()
    return Response(content, media_type="application/json")
app = Starlette(routes=[Route("/v1/evidence", answer, methods=["POST"])])
config = uvicorn.Config(app, port=int(sys.argv[2]), log_config=None, access_log=False, server_header=False)
uvicorn.Server(config).run()
"""


class Server(NamedTuple):
    """A process that is asked."""

    pid: int
    host: str
    port: int
    grpc_address: str = ""
    token: str = ""

    def cpu_s(self) -> float:
        """Return the CPU time it and its children have used, all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        """Return the memory that it holds."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


class Connection:
    """One connection that is kept; HTTP by hand, so that the client takes little of the machine."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, body: bytes) -> tuple[int, bytes]:
        """Return status and body."""
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._server.host, self._server.port)
        self._writer.write(head(self._server, len(body)) + body)
        await self._writer.drain()
        status, length = 0, 0
        while (line := await self._reader.readline()) not in (b"\r\n", b""):
            if line.startswith(b"HTTP/1.1 "):
                status = int(line.split()[1])
            elif line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return status, await self._reader.readexactly(length)

    async def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(ConnectionError):
                await self._writer.wait_closed()


def head(server: Server, length: int) -> bytes:
    """Return the head of a request."""
    lines = (
        "POST /v1/evidence HTTP/1.1",
        f"host: {server.host}:{server.port}",
        f"authorization: Bearer {server.token}",
        "content-type: application/json",
        f"content-length: {length}",
        "",
        "",
    )
    return "\r\n".join(lines).encode()


def corpus(folder: Path) -> Path:
    """Write passages of words that are drawn by their rank, and return the file."""
    generator = np.random.default_rng(7)
    shares = 1 / np.arange(1, len(WORDS) + 1)
    drawn = generator.choice(len(WORDS), size=(PASSAGES, 40), p=shares / shares.sum())
    file = folder / "passages.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for number, row in enumerate(drawn):
            lines.write(json.dumps({"_id": str(number), "text": " ".join(WORDS[place] for place in row)}) + "\n")
    return file


def questions(count: int) -> list[dict[str, Any]]:
    """Return questions of three words."""
    generator = np.random.default_rng(11)
    return [
        {"query": " ".join(generator.choice(WORDS, 3, replace=False)), "mode": "lexical", "limit": 10, "latency_deadline_ms": 5_000}
        for _ in range(count)
    ]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def evidentia_server(base: Path) -> Iterator[Server]:
    """Run the server over a base."""
    token = base.parent / "token"
    token.unlink(missing_ok=True)
    grpc_port = free_port()
    arguments = [COMMAND, "--base", str(base), "serve", "--port", "0", "--grpc-port", str(grpc_port), "--json", "--token-file", str(token)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        host, _, port = told["address"].rpartition("/")[2].rpartition(":")
        yield Server(process.pid, host, int(port), f"127.0.0.1:{grpc_port}", token.read_text(encoding="utf-8").strip())
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def bare_server(length: int) -> Iterator[Server]:
    """Run the bare endpoint."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", BARE, str(length), str(port)])
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        yield Server(process.pid, "127.0.0.1", port)
    finally:
        process.terminate()
        process.wait(30)


async def ask_rest(server: Server, asked: list[dict[str, Any]]) -> None:
    """Ask one after the other over one connection."""
    connection = Connection(server)
    for question in asked:
        status, body = await connection.post(msgspec.json.encode(question))
        assert status == 200, body[:500]
    await connection.close()


async def ask_grpc(server: Server, asked: list[dict[str, Any]]) -> None:
    """Ask one after the other over one channel."""
    method = next(each for each in METHODS if each.name == "Retrieve")
    message = flat_of(next(each for each in ENDPOINTS if each.name == "retrieve")).message
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        ask = channel.unary_unary(
            method.path, request_serializer=method.request.SerializeToString, response_deserializer=method.response.FromString
        )
        for question in asked:
            request = method.request(**method.write_request(msgspec.convert(question, message)))
            reply = await ask(request, metadata=(("authorization", f"Bearer {server.token}"),), timeout=30)
            assert reply.ByteSize() > 0


def rate(server: Server, ask: Callable[[Server, list[dict[str, Any]]], Awaitable[None]], asked: list[dict[str, Any]]) -> float:
    """Return requests per CPU second of the server."""
    before = server.cpu_s()
    asyncio.run(ask(server, asked))  # type: ignore[arg-type]  # both are coroutine functions
    return len(asked) / max(server.cpu_s() - before, 1e-9)


async def soak(server: Server, seconds: float) -> dict[str, Any]:
    """Ask with many clients at once; return what came and how memory went."""
    asked = questions(500)
    until = time.monotonic() + seconds
    statuses: Counter[int] = Counter()
    memory: list[float] = []

    async def client(place: int) -> None:
        connection = Connection(server)
        turn = place
        while time.monotonic() < until:
            status, _ = await connection.post(msgspec.json.encode(asked[turn % len(asked)]))
            statuses[status] += 1
            turn += CLIENTS
        await connection.close()

    async def watch() -> None:
        while time.monotonic() < until:
            memory.append(server.rss_mb())
            await asyncio.sleep(seconds / 60)

    await asyncio.gather(watch(), *(client(place) for place in range(CLIENTS)))
    quarter = max(1, len(memory) // 4)
    return {
        "clients": CLIENTS,
        "seconds": seconds,
        "requests": sum(statuses.values()),
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        "rss_mb_second_quarter": round(float(np.median(memory[quarter : 2 * quarter])), 1),
        "rss_mb_last_quarter": round(float(np.median(memory[-quarter:])), 1),
    }


async def steady(server: Server, count: int) -> dict[str, float]:
    """Return how long one client waits, in milliseconds."""
    connection = Connection(server)
    waits: list[float] = []
    for question in questions(count):
        began = time.perf_counter()
        status, body = await connection.post(msgspec.json.encode(question))
        assert status == 200, body[:500]
        waits.append((time.perf_counter() - began) * 1_000)
    await connection.close()
    return {"p50_ms": round(float(np.percentile(waits, 50)), 2), "p99_ms": round(float(np.percentile(waits, 99)), 2)}


@contextlib.asynccontextmanager
async def dripping(server: Server) -> AsyncIterator[None]:
    """Send a request byte by byte."""
    reader, writer = await asyncio.open_connection(server.host, server.port)

    async def drip() -> None:
        for byte in head(server, 10_000):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.02)
        await reader.read(1)

    task = asyncio.create_task(drip())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await task
        writer.close()


@contextlib.asynccontextmanager
async def half_open(server: Server) -> AsyncIterator[None]:
    """Open a connection and say nothing."""
    _, writer = await asyncio.open_connection(server.host, server.port)
    try:
        yield
    finally:
        writer.close()


async def gigabyte(server: Server) -> int:
    """Send a body of 1 GB, as long as it is taken; return the status."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(head(server, GIGABYTE))
    with contextlib.suppress(ConnectionError):
        for _ in range(GIGABYTE // len(PIECE)):
            writer.write(PIECE)
            await writer.drain()
    line = b""
    with contextlib.suppress(ConnectionError):
        line = await reader.readline()
    writer.close()
    return int(line.split()[1]) if line.startswith(b"HTTP/1.1 ") else 0


async def disturbed(server: Server) -> dict[str, Any]:
    """Return how one client fares alone, and beside three that behave badly."""
    alone = await steady(server, 200)
    memory = server.rss_mb()
    async with dripping(server), half_open(server):
        sending = asyncio.create_task(gigabyte(server))
        beside = await steady(server, 200)
        status = await sending
    return {
        "alone": alone,
        "beside": beside,
        "status_of_1_gb": status,
        "rss_mb_before": round(memory, 1),
        "rss_mb_after": round(server.rss_mb(), 1),
    }


def in_process(base: Path, asked: list[dict[str, Any]]) -> float:
    """Return requests per CPU second of the engine in this process."""
    with connect(base) as opened:
        for question in asked[:20]:
            opened.retrieve(question["query"], **{name: value for name, value in question.items() if name != "query"})
        before = time.process_time()
        for question in asked:
            opened.retrieve(question["query"], **{name: value for name, value in question.items() if name != "query"})
        return len(asked) / (time.process_time() - before)


def measure(folder: Path, *, soak_s: float) -> dict[str, Any]:
    """Return all figures."""
    base = folder / "base"
    with connect(base, init=True) as opened:
        opened.ingest([corpus(folder)], source="passages", embed=False)
    (base / "evidentia.toml").write_text("[server]\nrequests_per_minute = 0\n", encoding="utf-8")
    asked = questions(BATCH)
    rates: dict[str, list[float]] = {"rest": [], "grpc": [], "bare": [], "engine": []}
    with evidentia_server(base) as server:
        asyncio.run(ask_rest(server, asked))
        _, body = asyncio.run(_once(server, asked[0]))
        with bare_server(len(body)) as bare:
            asyncio.run(ask_rest(bare, asked))
            for _ in range(ROUNDS):
                rates["rest"].append(rate(server, ask_rest, asked))
                rates["grpc"].append(rate(server, ask_grpc, asked))
                rates["bare"].append(rate(bare, ask_rest, asked * 10))
                rates["engine"].append(in_process(base, asked))
        soaked = asyncio.run(soak(server, soak_s))
        upset = asyncio.run(disturbed(server))
    medians = {name: float(np.median(each)) for name, each in rates.items()}
    return {
        "answer_bytes": len(body),
        "requests_per_cpu_s": {name: round(each, 1) for name, each in medians.items()},
        "cpu_ms_per_request": {name: round(1_000 / each, 3) for name, each in medians.items()},
        "soak": soaked,
        "disturbed": upset,
    }


async def _once(server: Server, question: dict[str, Any]) -> tuple[int, bytes]:
    connection = Connection(server)
    reply = await connection.post(msgspec.json.encode(question))
    await connection.close()
    return reply


def main() -> None:
    """Measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--soak-s", type=float, default=60)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), soak_s=options.soak_s)
    found = {"command": "make bench-serving", "python": platform.python_version(), "passages": PASSAGES, **found}
    print(json.dumps(found, indent=1))
    options.results.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    assert {"200"} == set(found["soak"]["statuses"]), found["soak"]


if __name__ == "__main__":
    main()
