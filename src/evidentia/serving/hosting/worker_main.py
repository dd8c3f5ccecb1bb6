"""One of several processes of a server: told what it is by the one that started it, and gone soon after that one is."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evidentia.contracts.control import TokenId
from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.hosting.host import Host
from evidentia.serving.hosting.process_role import ProcessRole, Writers
from evidentia.serving.hosting.request_log import begin_logging
from evidentia.serving.hosting.worker_messages import Assignment, Command, Order, Report, line_of, next_message
from evidentia.wiring.governance_runtime import open_control
from evidentia.wiring.settings_file import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    """Serve as the process at the other end of the first inherited socket says."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells every process; this one is told by the one that started it
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        asyncio.run(_work(socket.socket(fileno=int(sys.argv[1]))))
    except (EvidentiaError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        if isinstance(error, EvidentiaError):
            sys.stderr.write(f"hint: {error.hint}\n")
        raise SystemExit(1) from None


async def _work(connected: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=connected)
    assignment = await next_message(reader, Assignment)
    if assignment is None:
        return
    hosting = assignment.hosting
    base = Path(hosting.base)
    writers = Writers(_paths(assignment.writers))
    role = ProcessRole(workers=hosting.workers, writers=writers, own=Path(assignment.own) if assignment.own else None)
    settings = read_settings(base)
    begin_logging(settings.telemetry)
    with open_control(base, is_durable=hosting.is_durable) as control:
        host = Host(control, hosting, settings=settings, role=role)
        if assignment.link_hash:
            host.app.state.links.expect(assignment.link_hash, token_id=TokenId(assignment.link_token))
        orders = _Orders(reader, know=lambda order: writers.replace(_paths(order.writers)))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, orders.stop)
        async with host.open([socket.socket(fileno=number) for number in assignment.listening]):
            writer.write(line_of(Report()))
            await _until_stopped(host, orders)
    if orders.is_orphan and assignment.writers:
        shutil.rmtree(Path(assignment.writers[0]).parent, ignore_errors=True)


async def _until_stopped(host: Host, orders: _Orders) -> None:
    """Return when this process is to end: at once, or when it has retired and its last run has ended."""
    stopped = asyncio.create_task(orders.is_stopped.wait())
    retired = asyncio.create_task(orders.is_retired.wait())
    await asyncio.wait((stopped, retired), return_when=asyncio.FIRST_COMPLETED)
    if not stopped.done():
        await host.drain()
        ended = asyncio.create_task(host.last_run_ended())
        await asyncio.wait((stopped, ended), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
    stopped.cancel()
    retired.cancel()


class _Orders:
    """What this process is told while it runs; when nobody is there to tell it anything, that is an order to stop."""

    def __init__(self, reader: asyncio.StreamReader, *, know: Callable[[Order], None]) -> None:
        self.is_stopped = asyncio.Event()
        self.is_retired = asyncio.Event()
        self.is_orphan = False
        self._know = know
        self._listening = asyncio.create_task(self._listen(reader))

    def stop(self) -> None:
        """End when what is under way is finished."""
        self.is_stopped.set()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while (order := await next_message(reader, Order)) is not None:
            if order.command is Command.KNOW:
                self._know(order)
            elif order.command is Command.RETIRE:
                self.is_retired.set()
            else:
                self.is_stopped.set()
        self.is_orphan = not self.is_stopped.is_set()
        self.is_stopped.set()


def _paths(names: tuple[str, ...]) -> list[Path]:
    return [Path(name) for name in names]


if __name__ == "__main__":
    os.umask(0o077)
    main()
