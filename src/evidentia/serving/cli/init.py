"""`evidentia init`: make a base. Refuses to touch one that is there."""

from pathlib import Path
from typing import Annotated

import typer

from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation
from evidentia.serving.cli.output import note, put, put_json

DirectoryArgument = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="Directory of the new base; default: --base.", show_default=False)
]


def init(
    context: typer.Context,
    *,
    directory: DirectoryArgument = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Create an empty base with a commented evidentia.toml."""
    from evidentia.base.sync_base import connect

    call = invocation(context, base=directory or base, quiet=quiet, json=json)
    _refuse_existing(call.base)
    with connect(call.base, init=True) as made:
        head = made.head()
    if call.is_json:
        put_json({"base": str(call.base), "corpus_version": head.corpus_version, "sequence": head.sequence})
        return
    put(f"made a base at '{call.base}'")
    note(call, f"settings are in '{call.base / 'evidentia.toml'}'; next: evidentia ingest PATH")


def _refuse_existing(directory: Path) -> None:
    from evidentia.base.sync_base import connect
    from evidentia.contracts.errors import BaseMissingError

    if directory.exists() and not directory.is_dir():
        raise UsageError(f"'{directory}' is not a directory", hint="name a directory, which may be new")
    try:
        connect(directory).close()
    except BaseMissingError:
        return
    raise UsageError(f"there is a base at '{directory}' already", hint="use it with --base, or name another directory")
