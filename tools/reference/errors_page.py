"""docs/reference/errors.md: every error under its code, with its cause, its message and its remedy."""

from __future__ import annotations

import inspect

from evidentia.contracts import errors
from evidentia.contracts.errors import EvidentiaError
from reference.markdown import page, prose
from reference.sources import message_template

INTRODUCTION = """\
Codes are stable: programs may rely on them, on the exit codes, and on nothing in the messages.
The command line prints the message and the hint, and ends with the exit code."""


def errors_page() -> str:
    """Return the page."""
    drawing = f"```text\n{error_drawing()}\n```"
    return page("Errors", INTRODUCTION, f"## The tree\n\n{drawing}", *map(_section, error_classes()))


def error_classes() -> list[type[EvidentiaError]]:
    """Return the tree of errors, each before those below it, in the order they were declared."""

    def below(cls: type[EvidentiaError]) -> list[type[EvidentiaError]]:
        return [cls, *(deeper for child in cls.__subclasses__() for deeper in below(child))]

    return [each for each in below(EvidentiaError) if each.__module__ == errors.__name__]


def error_drawing() -> str:
    """Return the tree as it is drawn in the docstring of the module."""
    lines = (inspect.getdoc(errors) or "").splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines if line.startswith("    "))


def _section(cls: type[EvidentiaError]) -> str:
    template = message_template(cls)
    facts = [
        f"- Class: `{cls.__name__}`",
        f"- Says: `{template}`" if template else "",
        f"- What to do: {cls.hint}",
        f"- Exit code: {cls.exit_code}",
    ]
    return "\n\n".join([f"## `{cls.code}`", prose(inspect.getdoc(cls)), "\n".join(filter(None, facts))])
