"""`evidentia verify`: recompute custody and name the first link that does not hold."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, Invocation, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.contracts.provenance import VerifyReport

CHECK_FAILED = 1

TargetArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET", help="A document id, a chunk id, or an exported .json file; default: the whole base.", show_default=False
    ),
]


def verify(
    context: typer.Context,
    *,
    target: TargetArgument = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Recompute custody and name the first broken link.

    Exit code 1 means that a link does not hold. An exported file is checked from its own bytes and needs no base.
    """
    from evidentia.serving.cli.output import put_json
    from evidentia.serving.cli.verify_report import put_report

    call = invocation(context, base=base, quiet=quiet, json=json)
    report = _checked(call, target)
    if call.is_json:
        put_json(report)
    else:
        put_report(report)
    if not report.ok:
        raise typer.Exit(CHECK_FAILED)


def _checked(call: Invocation, target: str | None) -> "VerifyReport":
    if target is not None and _is_file_name(target):
        from evidentia.provenance.verify import verify_export
        from evidentia.serving.cli.export_files import read_export

        return verify_export(read_export(Path(target)))

    from evidentia.base.sync_base import connect

    with connect(call.base) as opened:
        return opened.verify(target)


def _is_file_name(target: str) -> bool:
    """Tell a file from an id: an id has a colon after its source, and a file that is there is meant."""
    return (":" not in target and target.endswith(".json")) or "\0" in target or Path(target).exists()
