"""Every command under its name, the options that stand before it, and the one place where exceptions end."""

import os
import sys
import threading
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.cli import (
    cache_commands,
    custody_commands,
    demo_command,
    eval_commands,
    ingest_commands,
    maintenance_commands,
    memory_commands,
    policy_commands,
    search_commands,
    serve_commands,
    source_commands,
    table_commands,
    token_commands,
    trace_commands,
)
from evidentia.serving.cli.cli_errors import complain, complaint_of
from evidentia.serving.cli.invocation import DEFAULT_BASE, ENVIRONMENT_BASE, Invocation, JsonOption, QuietOption, opt
from evidentia.serving.cli.output import put

INTERRUPTED = 130  # 128 + SIGINT, as shells count
PIPE_CLOSED = 141  # 128 + SIGPIPE
GRACE_S = 0.2  # an idle worker ends within microseconds
WORKER_PREFIX = "asyncio"  # what asyncio calls the threads of `to_thread`

app = typer.Typer(
    name="evidentia",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (ingest_commands, search_commands, custody_commands, maintenance_commands, serve_commands, demo_command):
    app.registered_commands += module.commands.registered_commands
GROUPS = {
    "trace": trace_commands,
    "sources": source_commands,
    "tables": table_commands,
    "memory": memory_commands,
    "cache": cache_commands,
    "policy": policy_commands,
    "eval": eval_commands,
    "tokens": token_commands,
}
for name, module in GROUPS.items():
    app.add_typer(module.group, name=name)


@app.callback(invoke_without_command=True)
def _globals(
    context: typer.Context,
    *,
    base: Annotated[str, opt("--base", "DIR", "The directory of the base.", variable=ENVIRONMENT_BASE)] = DEFAULT_BASE,
    quiet: QuietOption = False,
    json: JsonOption = False,
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    """Evidence retrieval for AI agents, with access control, chain of custody and policy governance.

    Data goes to stdout; notes and progress go to stderr.
    Exit codes: 0 done, 1 a check failed, 2 wrong usage or bad input, 3 the base is missing or damaged.
    """
    if version:
        put(f"evidentia {_installed_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
    context.obj = Invocation.from_globals(base=base, quiet=quiet, json=json)


def _installed_version() -> str:
    from importlib.metadata import version

    return version("evidentia")


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
