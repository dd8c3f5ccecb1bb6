"""`evidentia gc`: remove old versions."""

from typing import Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

KeepOption = Annotated[
    int | None,
    typer.Option("--keep", metavar="N", help="Number of versions to keep; default: storage.keep_versions.", show_default=False),
]


def gc(
    context: typer.Context,
    *,
    keep: KeepOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Remove old versions (garbage collection).

    The event log is never shortened.
    """
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.output import put_facts, put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    with connect(call.base) as opened:
        report = opened.gc(keep_versions=keep)
    if call.is_json:
        put_json(report)
        return
    put_facts(
        [
            ("versions removed", report.versions_removed),
            ("chunks removed", report.chunks_removed),
            ("segments removed", report.segments_removed),
            ("bytes before", report.bytes_before),
            ("bytes after", report.bytes_after),
        ]
    )
