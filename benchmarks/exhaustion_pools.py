"""What one client can take of what all clients share: connections, sessions, runs, threads, the bytes of messages, and sign-ins.

    python benchmarks/exhaustion_pools.py [--only NAME]

Measured as in `exhaustion.py`, whose `measure` plays the attacks of this list too: a fresh server each, two clients of another token
beside it, memory before, during and after. An attacker is a process of its own, so that what it costs itself is not what others wait.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from exhaustion import HEADER, MAX_GROWTH_MB, MAX_RATIO, MB, Target, measure

from evidentia.protobuf.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

RESULTS = Path(__file__).parent / "results" / "exhaustion_pools.json"
LASTS_S = 6.0
"""How long an attack goes on that could go on for ever."""
ELSEWHERE = "127.0.0.2"
"""Another address than that of the clients beside."""
CALLS = {method.name: method for method in METHODS}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


# --- attacks, played in a process of their own ---


async def messages(target: Target, *, role: str, count: int, megabytes: int) -> object:
    """Send so many messages of so many megabytes over gRPC at once, each over a connection of its own, again and again."""
    content, told = b"\x00" * (megabytes * MB), Counter[str]()
    metadata = (("authorization", f"Bearer {target.tokens[role]}"),) if role else ()
    ends = time.monotonic() + LASTS_S

    async def send(place: int) -> None:
        options = (("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1), ("attacker", place))
        async with grpc.aio.insecure_channel(target.grpc_address, options=options) as channel:
            while time.monotonic() < ends:
                try:
                    await channel.unary_unary(CALLS["Retrieve"].path)(content, metadata=metadata, timeout=30)  # type: ignore[arg-type]  # bytes as they are
                except grpc.aio.AioRpcError as error:
                    told[error.code().name] += 1

    await asyncio.gather(*map(send, range(count)))
    return dict(told)


async def watchers(target: Target) -> object:
    """Open 600 streams of health without a token."""
    told = Counter[str]()

    async def watch(channel: grpc.aio.Channel) -> None:
        call: Any = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=LASTS_S)  # type: ignore[arg-type]  # bytes as they are
        try:
            async for _ in call:
                told["open"] += 1
        except grpc.aio.AioRpcError as error:
            told[error.code().name] += 1

    async with grpc.aio.insecure_channel(target.grpc_address) as channel:
        await asyncio.gather(*(watch(channel) for _ in range(600)))
    return dict(told)


async def sessions(target: Target) -> object:
    """Open 1,500 sessions of MCP with one agent's token."""
    return await _many(target, ((("/mcp", INITIALIZE), "agent") for _ in range(1_500)))


async def runs(target: Target) -> object:
    """Begin 6,000 runs with each of two tokens, and end none."""
    begin = ("/v1/runs", {"facts": {"agent_name": "rag-agent"}})
    return await _many(target, ((begin, ("agent", "owner")[place % 2]) for place in range(12_000)), at_once=8)


async def silent(target: Target, *, address: str, count: int) -> object:
    """Open connections, say nothing, and open another for each that is closed."""
    ends, opened = time.monotonic() + LASTS_S, 0

    async def hold() -> None:
        nonlocal opened
        while time.monotonic() < ends:
            with contextlib.suppress(OSError, TimeoutError):
                reader, writer = await asyncio.open_connection(target.host, target.port, local_addr=(address, 0))
                opened += 1
                with contextlib.suppress(OSError, TimeoutError):
                    await asyncio.wait_for(reader.read(1), max(0.0, ends - time.monotonic()))
                writer.close()
            await asyncio.sleep(1)

    await asyncio.gather(*(hold() for _ in range(count)))
    return f"{opened} opened"


async def slow_bodies(target: Target) -> object:
    """Begin 600 requests of one token whose bodies never end."""
    told = Counter[str]()

    async def drip() -> None:
        with contextlib.suppress(OSError, TimeoutError):
            reader, writer = await asyncio.open_connection(target.host, target.port, local_addr=(ELSEWHERE, 0))
            writer.write(target.head("/v1/evidence", 1_000, role="attacker") + b"{")
            line = await asyncio.wait_for(reader.readline(), LASTS_S)
            told[line.decode().partition(" ")[2].strip()] += 1
            writer.close()
            return
        told["held"] += 1

    await asyncio.gather(*(drip() for _ in range(600)))
    return dict(told)


async def sign_ins(target: Target) -> object:
    """Sign in 3,000 times, half of them with a key that holds and half with one that has its form."""
    held = target.tokens["attacker"]
    guessed = held[:-4] + "AAAA"
    forms = ({"key": held if place % 2 else guessed} for place in range(3_000))
    return await _many(target, ((("/dashboard/sign-in", form), "") for form in forms), at_once=16)


async def flood(target: Target) -> object:
    """Ask 200 questions at once with one token, again and again."""
    ask = {"query": "signing key rotation of the vault", "limit": 50, "latency_deadline_ms": 30_000}
    ends, told = time.monotonic() + LASTS_S, Counter[int]()

    async def client() -> None:
        while time.monotonic() < ends:
            told[await target.post("/v1/evidence", ask)] += 1

    await asyncio.gather(*(client() for _ in range(200)))
    return dict(told)


async def large_bodies(target: Target) -> object:
    """Send eight bodies of 60 MiB at once with one token, which may send documents of that size."""
    document = json.dumps({"documents": [{"id": "large", "text": "x" * (60 * MB)}], "source": 1}).encode()
    return dict(Counter(await asyncio.gather(*(target.post("/v1/documents", document, role="writer") for _ in range(8)))))


async def _many(target: Target, asked: Iterable[tuple[tuple[str, object], str]], *, at_once: int = 32) -> object:
    """Send requests over connections that stay open, so many at once, and count what is answered."""
    left, told = iter(asked), Counter[int]()

    async def client() -> None:
        reader, writer = await asyncio.open_connection(target.host, target.port, local_addr=(ELSEWHERE, 0))
        for (path, message), role in left:
            is_form = path.startswith("/dashboard")
            body = "&".join(f"{name}={value}" for name, value in message.items()).encode() if is_form else json.dumps(message).encode()  # type: ignore[attr-defined] # a form is a map
            head = target.head(path, len(body), role=role)
            if is_form:
                own = f"origin: http://{target.host}:{target.port}\r\ncontent-type: application/x-www-form-urlencoded".encode()
                head = head.replace(b"content-type: application/json", own)
            writer.write(head + body)
            try:
                status, is_last = await _answer(reader)
            except (OSError, asyncio.IncompleteReadError):
                status, is_last = 0, True
            told[status] += 1
            if is_last:
                writer.close()
                reader, writer = await asyncio.open_connection(target.host, target.port, local_addr=(ELSEWHERE, 0))
        writer.close()

    await asyncio.gather(*(client() for _ in range(at_once)))
    return dict(told)


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """Read one answer; return its status, and whether the connection ends with it."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status, is_last = int(head.split()[1]), b"connection: close" in head
    if b"content-length:" in head:
        await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
    elif b"chunked" in head:
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    return status, is_last


async def nothing(_: Target) -> object:
    """Start a process and do nothing: what the machine itself adds to what others wait."""
    await asyncio.sleep(LASTS_S)
    return "nothing"


PLAYED: dict[str, Callable[[Target], Awaitable[object]]] = {
    "nothing, to compare with": nothing,
    "12 gRPC messages of 60 MiB, no token": partial(messages, role="", count=12, megabytes=60),
    "12 gRPC messages of 60 MiB, a token": partial(messages, role="attacker", count=12, megabytes=60),
    "60 gRPC messages of 2 MiB, a token": partial(messages, role="attacker", count=60, megabytes=2),
    "600 streams of health, no token": watchers,
    "1,500 MCP sessions of one agent": sessions,
    "12,000 runs of two tokens": runs,
    "1,005 silent connections": partial(silent, address=ELSEWHERE, count=1_005),
    "1,005 silent connections, same address": partial(silent, address="127.0.0.1", count=1_005),
    "600 bodies that never end": slow_bodies,
    "8 bodies of 60 MiB": large_bodies,
    "3,000 sign-ins": sign_ins,
    "200 questions at once of one token": flood,
}


async def _apart(name: str, target: Target) -> object:
    """Play an attack in another process."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--play", name, "--target", json.dumps(target), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await started.communicate()
    return json.loads(said)


ATTACKS: dict[str, Callable[[Target], Awaitable[object]]] = {name: partial(_apart, name) for name in PLAYED}


def main() -> None:
    """Play, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], help="part of an attack's name")
    parser.add_argument("--play", help=argparse.SUPPRESS)
    parser.add_argument("--target", help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.play:
        print(json.dumps(asyncio.run(PLAYED[options.play](Target(*json.loads(options.target))))))  # type: ignore[arg-type] # a coroutine
        return
    chosen = {name: each for name, each in ATTACKS.items() if not options.only or any(part in name for part in options.only)}
    print(HEADER)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), chosen)
    command = "python benchmarks/exhaustion_pools.py"
    kept = {"command": command, "python": platform.python_version(), "processors": os.cpu_count(), "attacks": found}
    options.results.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    over = [name for name, each in found.items() if each["growth_mb"] > MAX_GROWTH_MB or each["p99_ratio"] > MAX_RATIO]
    print("over the limits:", ", ".join(over) or "none")


if __name__ == "__main__":
    main()
