"""`evidentia demo`: a base made of the sample corpus, and a short tour through it."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.invocation import Invocation, command, flag, opt

commands = typer.Typer()

MARKER = ".evidentia-demo"
OWN_PARTS = ("base", "corpus", "tampered", "fragment.json", "fragment-tampered.json")


@command(commands, "demo", has_base=False)
def demo(
    call: Invocation,
    *,
    fresh: Annotated[bool, flag("--fresh", "Start over: remove the files of an earlier demo in DIR.")] = False,
    directory: Annotated[Path, opt("--dir", "DIR", "Directory of the demo base and its documents.")] = Path(".demo"),
) -> None:
    """Run the guided demo on sample documents.

    The tour goes through ingest, two questions and one of a table, access, verification, export, policies and tampering.
    Nothing outside DIR is touched. Run it again to see that what is unchanged is skipped.
    """
    from evidentia.serving.cli.demo_tour import walk_through

    _claim(directory)
    if fresh:
        _remove_own_parts(directory)
    walk_through(directory, is_quiet=call.is_quiet)


def _claim(directory: Path) -> None:
    """Mark a directory as the demo's; one with other people's files in it is refused."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"'{directory}' is not a directory", hint="pass --dir with a directory, which may be new")
    if directory.is_dir() and not (directory / MARKER).exists() and any(directory.iterdir()):
        raise UsageError(f"'{directory}' is not empty and was not made by the demo", hint="pass --dir with a new directory")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / MARKER).write_text("Made by `evidentia demo`, which may remove what is in here.\n", encoding="utf-8")


def _remove_own_parts(directory: Path) -> None:
    for name in OWN_PARTS:
        part = directory / name
        if part.is_dir() and not part.is_symlink():
            shutil.rmtree(part)
        else:
            part.unlink(missing_ok=True)
