"""A process that serves, as the one that started it sees it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from evidentia.serving.hosting.measures import TOGETHER
from evidentia.serving.hosting.orders import Command, Order, Report, line_of, next_message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evidentia.serving.hosting.orders import Assignment

MODULE: Final = "evidentia.serving.hosting.worker"


class WorkerProcess:
    """One process, from its start to its end."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls, assignment: Assignment, *, counting: Path) -> WorkerProcess:
        """Start a fresh interpreter with the sockets it needs and nothing else; `counting` is where it counts together with others."""
        ours, theirs = socket.socketpair()
        with theirs:
            started = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                MODULE,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *assignment.listening),
                env={**os.environ, TOGETHER: str(counting)},
            )
        worker = cls(started, *await asyncio.open_connection(sock=ours))
        worker._say(line_of(assignment))
        return worker

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        return self._process.pid

    async def is_ready(self) -> bool:
        """Return True once it answers; False when it ended before."""
        return await next_message(self._reader, Report) is not None

    def tell(self, command: Command, *, writers: Sequence[Path] = ()) -> None:
        """Say what to do next; one that has ended does not hear it."""
        self._say(line_of(Order(command=command, writers=tuple(str(path) for path in writers))))

    async def ended(self) -> int:
        """Return its exit code once it has ended."""
        code = await self._process.wait()
        self._writer.close()
        return code

    def kill(self) -> None:
        """End it, whatever it is doing."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def _say(self, line: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(line)
