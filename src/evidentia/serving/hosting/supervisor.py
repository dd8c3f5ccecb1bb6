"""Several processes over one base: one that writes and others that read, started again when they die and replaced when told to.

This process holds the sockets and serves nothing itself, so there is nothing in it that a request could break.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.errors import BaseStateError
from evidentia.serving.hosting.door_metrics import MULTIPROCESS_VARIABLE
from evidentia.serving.hosting.web_server import GRACE_S
from evidentia.serving.hosting.worker_messages import Assignment, Command, Hosting, Order, Report, line_of, next_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence


PATIENCE_S: Final = GRACE_S + 10
"""How long processes may take to end before they are killed, beside the time in which they are still listening."""
MAX_BEHIND: Final = 3
"""How many retired writers may wait for their runs; the oldest is stopped when there is one more."""
FIRST_WAIT_S: Final = 0.1
MAX_WAIT_S: Final = 10.0
STEADY_S: Final = 30.0
"""A process that lived for so long is started again without delay."""


class WorkerSlot(NamedTuple):
    """What one process is to be: the number within its generation; the first one writes."""

    generation: int
    number: int

    @property
    def is_writing(self) -> bool:
        """Tell whether it is the one that writes."""
        return self.number == 0


class FirstLink(NamedTuple):
    """The hash of the code with which the first admin may come in, and their token."""

    hashed: str = ""
    token_id: str = ""


NO_LINK: Final = FirstLink()


class Supervisor:
    """Starts processes, and keeps them as many as they should be. Belongs to its event loop."""

    def __init__(self, hosting: Hosting, listening: socket.socket, *, link: FirstLink = NO_LINK) -> None:
        self._hosting = hosting
        self._listening = listening
        self._link = link
        self._newest = 0
        self._wanted: set[int] = set()
        """The generations whose processes are started again when they die."""
        self._members: dict[WorkerSlot, WorkerProcess] = {}
        self._waits_s: dict[WorkerSlot, float] = {}
        self._watching: set[asyncio.Task[None]] = set()
        self._is_stopping = asyncio.Event()
        self._renewing = asyncio.Lock()
        self._folder = Path()

    async def run(self, *, announce: Callable[[], None]) -> None:
        """Serve until SIGTERM or SIGINT; SIGHUP has every process replaced. `announce` is called once all of them answer."""
        async with self._private_folder():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._is_stopping.set)
            loop.add_signal_handler(signal.SIGHUP, lambda: self._watch(self._renew()))
            try:
                if not await self._start_generation():
                    raise BaseStateError("a process that was to serve ended before it was ready; its message stands above")
                if not self._is_stopping.is_set():
                    announce()
                await self._is_stopping.wait()
            finally:
                await self._stop()

    @asynccontextmanager
    async def _private_folder(self) -> AsyncIterator[None]:
        """Have a folder for this user alone, under a name that nobody guesses, for the sockets between the processes."""
        self._folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="evidentia-"))
        self._counting.mkdir()
        try:
            yield
        finally:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    @property
    def _counting(self) -> Path:
        return self._folder / "metrics"

    def _socket_of(self, generation: int) -> Path:
        return self._folder / f"writer-{generation}.sock"

    def _writers(self, newest: int) -> list[Path]:
        """Return where the writing processes are: that of a generation, then those before it which still run."""
        behind = sorted({slot.generation for slot in self._members if slot.is_writing and slot.generation < newest}, reverse=True)
        return [self._socket_of(generation) for generation in (newest, *behind)]

    async def _start_generation(self) -> bool:
        """Start the process that writes, then the others, and return whether all of them answer; if not, none of them stays."""
        self._newest += 1
        self._wanted.add(self._newest)
        slots = [WorkerSlot(self._newest, number) for number in range(self._hosting.workers)]
        if await self._start(slots[0]) and all(await asyncio.gather(*(self._start(slot) for slot in slots[1:]))):
            return True
        self._wanted.discard(self._newest)
        for slot in slots:
            if slot in self._members:
                self._members[slot].kill()
        return False

    async def _start(self, slot: WorkerSlot) -> bool:
        """Start one process and return whether it answers; from then on it is started again whenever it dies."""
        assignment = Assignment(
            hosting=self._hosting,
            listening=(self._listening.fileno(),),
            writers=tuple(str(path) for path in self._writers(slot.generation)),
            own=str(self._socket_of(slot.generation)) if slot.is_writing else "",
        )
        if slot.is_writing and self._link.hashed:
            assignment = msgspec.structs.replace(assignment, link_hash=self._link.hashed, link_token=self._link.token_id)
            self._link = NO_LINK  # a process that is started again must not make a used link good
        process = await WorkerProcess.start(assignment, counting=self._counting)
        self._members[slot] = process
        if await self._is_ready(process):
            self._watch(self._keep(slot, process))
            return True
        process.kill()
        await self._bury(slot, process)
        return False

    async def _is_ready(self, process: WorkerProcess) -> bool:
        """Return whether a process answers, unless all of them are told to stop meanwhile."""
        ready = asyncio.create_task(process.is_ready())
        stopping = asyncio.create_task(self._is_stopping.wait())
        await asyncio.wait((ready, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ready.done():
            ready.cancel()
            return False
        return ready.result()

    async def _keep(self, slot: WorkerSlot, process: WorkerProcess) -> None:
        """Wait until a process dies, and start another in its place unless it was to end; each time after a longer while."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._bury(slot, process)
        if loop.time() - began >= STEADY_S:
            self._waits_s.pop(slot, None)
        while self._is_wanted(slot):
            wait_s = self._waits_s.get(slot, FIRST_WAIT_S)
            self._waits_s[slot] = min(2 * wait_s, MAX_WAIT_S)
            _say(f"process {process.pid} has ended, and another takes its place in {wait_s:g} s")
            await self._pause(wait_s)
            if not self._is_wanted(slot) or await self._start(slot):
                return

    def _is_wanted(self, slot: WorkerSlot) -> bool:
        return slot.generation in self._wanted and not self._is_stopping.is_set()

    async def _pause(self, wait_s: float) -> None:
        stopping = asyncio.create_task(self._is_stopping.wait())
        await asyncio.wait((stopping,), timeout=wait_s)
        stopping.cancel()

    async def _bury(self, slot: WorkerSlot, process: WorkerProcess) -> None:
        """Wait until a process has ended, and forget it with what it counted of the moment."""
        await process.ended()
        if self._members.get(slot) is process:
            del self._members[slot]
        for file in self._counting.glob(f"gauge_live*_{process.pid}.db"):
            file.unlink(missing_ok=True)
        if slot.is_writing and slot.generation not in self._wanted:
            self._tell_writers()

    def _tell_writers(self) -> None:
        """Tell every process where the writing ones are."""
        for process in self._members.values():
            process.tell(Command.KNOW, writers=self._writers(max(self._wanted, default=self._newest)))

    async def _renew(self) -> None:
        """Start processes with the settings and certificates of now; once all of them answer, those before them retire."""
        async with self._renewing:
            if not await self._start_generation():
                if not self._is_stopping.is_set():
                    _say("the new processes did not start, so the old ones go on")
                return
            self._wanted = {self._newest}
            self._tell_writers()
            behind = sorted((slot for slot in self._members if slot.generation < self._newest), reverse=True)
            for slot in behind:
                self._members[slot].tell(Command.RETIRE if slot.is_writing else Command.STOP)
            for slot in [slot for slot in behind if slot.is_writing][MAX_BEHIND:]:
                self._members[slot].tell(Command.STOP)

    async def _stop(self) -> None:
        """End the processes that read, then those that write for them; whoever takes too long is killed."""
        self._is_stopping.set()
        self._listening.close()
        for slot, process in self._members.items():
            process.tell(Command.RETIRE if slot.is_writing else Command.STOP)
        await self._ended([process for slot, process in self._members.items() if not slot.is_writing])
        for process in self._members.values():
            process.tell(Command.STOP)
        await self._ended(list(self._members.values()))
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)

    async def _ended(self, members: list[WorkerProcess]) -> None:
        if not members:
            return
        waiting = [asyncio.create_task(process.ended()) for process in members]
        await asyncio.wait(waiting, timeout=PATIENCE_S + self._hosting.drain_s)
        for process in members:
            process.kill()
        await asyncio.gather(*waiting)

    def _watch(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)


def _say(line: str) -> None:
    # Without a log of its own, a process has its warnings on stderr as they are.
    logging.getLogger("evidentia.server").warning("%s", line)


# --- a worker, as the process that started it sees it ---

MODULE: Final = "evidentia.serving.hosting.worker_main"


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
                env={**os.environ, MULTIPROCESS_VARIABLE: str(counting)},
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
