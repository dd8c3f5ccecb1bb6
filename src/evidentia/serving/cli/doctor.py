"""`evidentia doctor`: a quick look at the installation and the base."""

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

CHECK_FAILED = 1
BASE_UNUSABLE = 3


def doctor(
    context: typer.Context,
    *,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Run quick health checks of the installation and the base.

    `evidentia verify` is the full check.
    """
    from evidentia.base.maintenance import check_up
    from evidentia.serving.cli.output import note, put_json, put_table

    call = invocation(context, base=base, quiet=quiet, json=json)
    report = check_up(call.base)
    failed = [finding for finding in report.findings if not finding.ok]
    if call.is_json:
        put_json(report)
    else:
        rows = [(finding.check, "ok" if finding.ok else "NOT OK", finding.detail) for finding in report.findings]
        put_table(("check", "state", "detail"), rows)
        for finding in failed:
            note(call, f"{finding.check}: {finding.hint}")
    if any(finding.check == "base" for finding in failed):
        raise typer.Exit(BASE_UNUSABLE)
    if failed:
        raise typer.Exit(CHECK_FAILED)
