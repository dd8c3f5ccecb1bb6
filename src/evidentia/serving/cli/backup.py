"""`evidentia backup`: a copy of a base that others may use meanwhile."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, Invocation, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.contracts.backups import BackupReport

DestinationArgument = Annotated[
    Path, typer.Argument(metavar="FILE_OR_DIR", help="A new directory, or a new file whose name ends in .tar.", show_default=False)
]


def backup(
    context: typer.Context,
    *,
    destination: DestinationArgument,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Take a consistent backup of a base in use.

    Searches, ingest and garbage collection go on meanwhile. An existing file is never overwritten.
    """
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.backup_bar import BackupBar
    from evidentia.serving.cli.output import put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    with connect(call.base) as opened, BackupBar("copying", is_wanted=not call.is_quiet) as bar:
        report = opened.backup(destination, on_progress=bar.update)
    if call.is_json:
        put_json(report)
    else:
        _put(call, report)


def _put(call: Invocation, report: "BackupReport") -> None:
    from evidentia.serving.cli.output import note, put_facts

    put_facts(
        [
            ("backup", report.destination),
            ("version", report.sequence),
            ("corpus_version", report.corpus_version),
            ("evidence_state", report.evidence_state),
            ("files", report.files),
            ("bytes", report.bytes),
            ("receipts", report.receipts),
            ("decisions", report.decisions),
        ]
    )
    for each in report.left_out:
        note(call, f"'{each.name}' is not in it: {each.reason}")
