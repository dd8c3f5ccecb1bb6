"""Processes and sockets of a server: hosts on a loop of their own in this process, and `evidentia serve` with its workers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from evidentia.contracts.control import Role
from evidentia.contracts.policies import DEFAULT_TENANT
from evidentia.serving.cli.serve_loop import bound_socket
from evidentia.serving.hosting.host import Host
from evidentia.serving.hosting.process_role import ALONE, ProcessRole, Writers
from evidentia.serving.hosting.web_server import TIMEOUTS, ConnectionTimeouts
from evidentia.serving.hosting.worker_messages import Hosting
from evidentia.wiring.embedded import create
from evidentia.wiring.governance_runtime import GovernanceRuntime, open_tokens
from evidentia.wiring.settings_file import SETTINGS_NAME, read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = [sys.executable, "-c", "import sys; from evidentia.serving.cli import main; sys.exit(main())"]
UNLIMITED = "requests_per_minute = 0"
PATIENCE_S = 60


def make_base(directory: Path, *settings: str) -> Path:
    """Return a new base with lines in the section `[server]` of its settings."""
    base = directory / "base"
    create(base)
    (base / SETTINGS_NAME).write_text("\n".join(["[server]", *settings, ""]), encoding="utf-8")
    return base


def issue(base: Path, role: Role = Role.ADMIN, *, tenant: str = DEFAULT_TENANT) -> str:
    """Return a new token of a base."""
    with open_tokens(base) as (tokens, _):
        return tokens.issue(name=f"a {role}", roles=(role,), tenant=tenant, by="test").token


def client_of(url: str, token: str = "", **options: Any) -> httpx2.Client:
    """Return a client; every one has connections of its own."""
    headers = {**options.pop("headers", {}), **({"authorization": f"Bearer {token}"} if token else {})}
    return httpx2.Client(base_url=url, headers=headers, timeout=PATIENCE_S, trust_env=False, **options)


class Loop:
    """An event loop on a thread, for servers of this process."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def close(self) -> None:
        self.do(self._cancel_all())
        self.do(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()

    @staticmethod
    async def _cancel_all() -> None:
        """End what packages leave running, such as watchers that wait for the end of the process."""
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


class Hosted:
    """A host that answers at a URL."""

    def __init__(self, host: Host, url: str, loop: Loop) -> None:
        self.host = host
        self.url = url
        self.loop = loop

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def hosted(*places: tuple[Path, ProcessRole], timeouts: ConnectionTimeouts = TIMEOUTS, **options: Any) -> Iterator[list[Hosted]]:
    """Run hosts in this process, each over a base and with its place among others."""
    scheme = "https" if options.get("certificate") else "http"
    loop = Loop()
    found: list[Hosted] = []
    begun, ended = threading.Event(), asyncio.Event()

    async def live() -> None:
        try:
            async with AsyncExitStack() as stack:
                for base, role in places:
                    control = stack.enter_context(GovernanceRuntime(base))
                    hosting = Hosting(base=str(base), workers=role.workers, **options)
                    host = Host(control, hosting, settings=read_settings(base), role=role, timeouts=timeouts)
                    listening = bound_socket("127.0.0.1", 0)
                    await stack.enter_async_context(host.open([listening]))
                    found.append(Hosted(host, f"{scheme}://127.0.0.1:{listening.getsockname()[1]}", loop))
                begun.set()
                await ended.wait()
        finally:
            begun.set()

    living = asyncio.run_coroutine_threadsafe(live(), loop.loop)
    try:
        assert begun.wait(PATIENCE_S)
        if living.done():
            living.result()
        yield found
    finally:
        loop.loop.call_soon_threadsafe(ended.set)
        living.result(PATIENCE_S)
        loop.close()


@contextmanager
def hosted_alone(base: Path, **options: Any) -> Iterator[Hosted]:
    """Run one host that is alone."""
    with hosted((base, ALONE), **options) as (host,):
        yield host


@contextmanager
def writer_and_reader(base: Path, folder: Path) -> Iterator[tuple[Hosted, Hosted]]:
    """Run a host that writes and one that has it write."""
    own = folder / "writer.sock"
    with hosted((base, ProcessRole(2, Writers([own]), own)), (base, ProcessRole(2, Writers([own])))) as (writer, reader):
        yield writer, reader


class Server:
    """`evidentia serve` as a process."""

    def __init__(self, process: subprocess.Popen[str], url: str, errors: Path) -> None:
        self.process = process
        self.url = url
        self._errors = errors

    @property
    def said(self) -> str:
        return self._errors.read_text()

    @property
    def workers(self) -> list[int]:
        """Return the processes that were started, the oldest first."""
        return [int(pid) for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()]

    @property
    def writers(self) -> list[int]:
        """Return those of them that listen to the others."""
        inodes = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:] if "/writer-" in line}
        return [pid for pid in self.workers if inodes & {_socket_behind(link) for link in Path(f"/proc/{pid}/fd").iterdir()}]

    @property
    def readers(self) -> list[int]:
        writers = self.writers
        return [pid for pid in self.workers if pid not in writers]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def _socket_behind(link: Path) -> str:
    try:
        target = str(link.readlink())
    except OSError:
        return ""
    return target.removeprefix("socket:[").removesuffix("]") if target.startswith("socket:[") else ""


@contextmanager
def served(base: Path, *words: str, has_mcp: bool = False) -> Iterator[Server]:
    """Run `evidentia serve` over a base; whoever is still there in the end is killed.

    Its processes are those of an installation without the extra `mcp`, whose import is half of what a start costs, unless it is asked for.
    """
    start = base.parent / "start"
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text("" if has_mcp else "import sys\nsys.modules['mcp'] = None\n")
    errors = base.parent / f"stderr-{len(list(base.parent.iterdir()))}"
    arguments = [*COMMAND, "serve", "--port", "0", "--base", str(base), "--json", *words]
    path = os.pathsep.join([str(start), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
    with errors.open("w") as file, subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=file, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, errors.read_text()
            yield Server(process, str(json.loads(line)["address"]), errors)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(PATIENCE_S)
                finally:
                    process.kill()
