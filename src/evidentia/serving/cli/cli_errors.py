"""Errors as a user sees them: one line that says what happened, one that says what to do, and never a stack trace."""

from __future__ import annotations

import sys
from typing import NamedTuple

import typer

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.cli.output import printable, put_json

WRONG_USAGE = 2
MAX_MESSAGE_LENGTH = 600
"""Characters of a message that are shown; some repeat what was typed, which may be anything."""


class UsageError(typer.TyperException):
    """What was typed cannot be done; the door's own kind of error, like the parser's."""

    exit_code = WRONG_USAGE

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class CliError(NamedTuple):
    """An error in the terms of the command line."""

    code: str
    message: str
    hint: str
    exit_code: int


def complaint_of(error: EvidentiaError | typer.TyperException | OSError) -> CliError:
    """Return what to tell the user about an error."""
    if isinstance(error, EvidentiaError):
        return CliError(code=error.code, message=_shortened(str(error)), hint=error.hint, exit_code=error.exit_code)
    if isinstance(error, OSError):
        return CliError(code="operating_system", message=_os_message(error), hint="check the path and its permissions", exit_code=2)
    message = _shortened(_sentence(error.format_message()))
    return CliError(code="usage", message=message, hint=_usage_hint(error), exit_code=WRONG_USAGE)


def complain(complaint: CliError, *, is_json: bool) -> None:
    """Print a complaint on stderr and, when JSON was asked for, as JSON on stdout too."""
    print(f"evidentia: {printable(complaint.message)}", file=sys.stderr)  # noqa: T201 - a command line prints
    print(f"hint: {printable(complaint.hint)}", file=sys.stderr)  # noqa: T201
    if is_json:
        put_json({"error": {"code": complaint.code, "message": complaint.message, "hint": complaint.hint}})


def os_problem(error: OSError) -> str:
    """Return what the operating system says, in lower case."""
    said = error.strerror or str(error) or type(error).__name__
    return said[:1].lower() + said[1:]


def _os_message(error: OSError) -> str:
    return f"'{error.filename}': {os_problem(error)}" if error.filename else os_problem(error)


def _shortened(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE_LENGTH else f"{message[: MAX_MESSAGE_LENGTH - 1]}…"


def _usage_hint(error: typer.TyperException) -> str:
    if isinstance(error, UsageError):
        return error.hint
    context: object = getattr(error, "ctx", None)
    return f"see `{getattr(context, 'command_path', 'evidentia')} --help`"


def _sentence(message: str) -> str:
    """Return a parser's sentence in the form of ours: lower case, no full stop."""
    trimmed = message.strip().removesuffix(".")
    return trimmed[:1].lower() + trimmed[1:]
