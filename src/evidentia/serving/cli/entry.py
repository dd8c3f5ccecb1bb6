"""From arguments to an exit code: the one place where exceptions end."""

from __future__ import annotations

import os
import sys
import threading
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from typer.main import get_command

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.cli.app import app
from evidentia.serving.cli.cli_errors import complain, complaint_of

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130  # 128 + SIGINT, as shells count
PIPE_CLOSED = 141  # 128 + SIGPIPE
GRACE_S = 0.2  # an idle worker ends within microseconds
WORKER_PREFIX = "asyncio"  # what asyncio calls the threads of `to_thread`

_command = cache(partial(get_command, app))  # building the parser takes 30 ms, which a process pays once


def run(arguments: Sequence[str]) -> int:
    """Run one command; every error a user can cause becomes two lines on stderr."""
    _prepare_streams()
    try:
        exit_code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        return PIPE_CLOSED
    except OSError as error:  # what was buffered cannot be written; stdout is no place to say so
        _forget_output()
        complaint = complaint_of(error)
        complain(complaint, is_json=False)
        return complaint.exit_code
    except KeyboardInterrupt:
        return _leave_interrupted()
    return exit_code


def _run(arguments: Sequence[str]) -> int:
    try:
        # Not app(): that would catch interrupts and closed pipes first, and has its own idea of their exit codes.
        command = _command()
        with command.make_context("evidentia", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as leaving:
        return leaving.exit_code
    except BrokenPipeError:
        raise
    except (EvidentiaError, typer.TyperException, OSError) as error:
        complaint = complaint_of(error)
        complain(complaint, is_json=_wants_json(arguments))
        return complaint.exit_code
    return 0


def _wants_json(arguments: Sequence[str]) -> bool:
    """Read the flag from the arguments themselves, since an error may come before they were parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _prepare_streams() -> None:
    """Make sure that there are streams, which a shell can close, and that no character fails to be written."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open for as long as the process
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _forget_output() -> None:
    """Point stdout at nothing, or the interpreter would complain about the closed pipe when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _leave_interrupted() -> int:
    """Leave without waiting for work under way: a commit is whole or absent, whenever the process ends.

    Work runs on threads of an event loop's executor, which the interpreter would otherwise wait for.
    """
    workers = [thread for thread in threading.enumerate() if thread.name.startswith(WORKER_PREFIX)]
    for worker in workers:
        worker.join(timeout=GRACE_S / len(workers))
    if any(worker.is_alive() for worker in workers):
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    return INTERRUPTED
