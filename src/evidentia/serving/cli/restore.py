"""`evidentia restore`: a base made from a backup."""

from pathlib import Path
from typing import Annotated

import typer

from evidentia.serving.cli.invocation import JsonOption, QuietOption, invocation

BackupArgument = Annotated[Path, typer.Argument(metavar="BACKUP", help="What `evidentia backup` wrote.", show_default=False)]
DirectoryArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A directory that is new or empty.", show_default=False)]


def restore(
    context: typer.Context,
    *,
    backup: BackupArgument,
    directory: DirectoryArgument,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Restore a base from a backup.

    Every byte of the backup is verified before anything is written.
    """
    from evidentia.base.maintenance import restore as restore_base
    from evidentia.serving.cli.backup_bar import BackupBar
    from evidentia.serving.cli.output import note, put_facts, put_json

    call = invocation(context, quiet=quiet, json=json)
    with BackupBar("restoring", is_wanted=not call.is_quiet) as bar:
        report = restore_base(backup, directory, on_progress=bar.update)
    if call.is_json:
        put_json(report)
        return
    put_facts(
        [
            ("base", report.directory),
            ("taken at", report.taken_at.isoformat()),
            ("version", report.sequence),
            ("corpus_version", report.corpus_version),
            ("evidence_state", report.evidence_state),
            ("files", report.files),
            ("bytes", report.bytes),
        ]
    )
    note(call, f"check it: evidentia verify --base {report.directory}")
