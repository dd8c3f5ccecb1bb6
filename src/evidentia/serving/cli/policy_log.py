"""`evidentia policy log`: verify the decision log, take details out of it, retire what is old, prove records, export decisions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from datetime import datetime

    from evidentia.contracts.decisions import LogHead
    from evidentia.contracts.ports import Clock

group = typer.Typer(rich_markup_mode=None, help="Verify, redact, prune and export the decision log.", no_args_is_help=False)

HeadsOption = Annotated[
    Path | None,
    typer.Option(
        "--heads", metavar="FILE", help="Saved heads, as `log verify --json` prints them; detects truncation.", show_default=False
    ),
]
RecordArgument = Annotated[str, typer.Argument(metavar="LOG:SEQ", help="Log and sequence number of the record, as decisions show them.")]
RecordOption = Annotated[str | None, typer.Option("--record", metavar="LOG:SEQ", help="This record.", show_default=False)]
RunOption = Annotated[str | None, typer.Option("--run", metavar="ID", help="Only this run.", show_default=False)]
BeforeOption = Annotated[
    str | None,
    typer.Option("--before", metavar="WHEN", help="Records older than this: a date, a time, or a span such as 90d.", show_default=False),
]
OlderOption = Annotated[
    str, typer.Option("--before", metavar="WHEN", help="Records older than this: a date, a time, or a span such as 365d.")
]
WhyOption = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason; recorded in the log.")]
ByOption = Annotated[str, typer.Option("--by", metavar="NAME", help="The operator's name; recorded in the log.")]
SinceOption = Annotated[str | None, typer.Option("--since", metavar="WHEN", help="Only records since then.", show_default=False)]

CHECK_FAILED = 1
OWNER = "owner"


@group.command("verify")
def verify(
    context: typer.Context, *, heads: HeadsOption = None, base: BaseOption = None, quiet: QuietOption = False, json: JsonOption = False
) -> None:
    """Verify the hash chain of the decision log; the exit code is 1 when a record does not match."""
    from evidentia.governance.log_maintenance import verify as check
    from evidentia.serving.cli.output import put_json
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    kept = _heads(heads)
    with open_control(call.base) as control:
        report = check(control.log, heads=kept)
    if call.is_json:
        put_json(report)
    else:
        from evidentia.serving.cli.policy_report import put_log_report

        put_log_report(report)
    if not report.ok:
        raise typer.Exit(CHECK_FAILED)


@group.command("redact")
def redact(
    context: typer.Context,
    *,
    why: WhyOption,
    record: RecordOption = None,
    run: RunOption = None,
    before: BeforeOption = None,
    by: ByOption = OWNER,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Redact calls, reasons and metadata of records for good; the hash chain still verifies.

    A record must match all of --record, --run and --before that are given. The log records who redacted it and why.
    """
    from evidentia.contracts.runs import RunId
    from evidentia.governance.log_maintenance import redact as take_out
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(why=why, by=by, run=run, record=record)
    place = None if record is None else _place(record)
    with open_control(call.base) as control:
        limit = _moment(before, control.clock)
        report = take_out(
            control.log, by=by, why=why, clock=control.clock, record=place, run_id=None if run is None else RunId(run), before=limit
        )
    _tell("redacted", report.records, report, is_json=call.is_json)


@group.command("retire")
def retire(
    context: typer.Context,
    *,
    before: OlderOption,
    why: WhyOption,
    by: ByOption = OWNER,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Remove old records for good behind a checkpoint, so that the rest still verifies (retention)."""
    from evidentia.governance.log_maintenance import retire as take_away
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.policy_moments import moment_of
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(why=why, by=by, before=before)
    with open_control(call.base) as control:
        report = take_away(control.log, before=moment_of(before, control.clock, field="before"), by=by, why=why, clock=control.clock)
    _tell("retired", report.records, report, is_json=call.is_json)


@group.command("proof")
def proof(
    context: typer.Context, *, record: RecordArgument, base: BaseOption = None, quiet: QuietOption = False, json: JsonOption = False
) -> None:
    """Print the inclusion proof of a record as JSON.

    Anyone who has the root of the log can verify it without the log.
    """
    from evidentia.governance.log_maintenance import prove
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(record=record)
    log, seq = _place(record)
    with open_control(call.base) as control:
        put_json(prove(control.log, log, seq))


@group.command("export")
def export(
    context: typer.Context,
    *,
    run: RunOption = None,
    since: SinceOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Export decisions as JSON lines, oldest first in each log."""
    from evidentia.governance.decision_expansion import expand
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json
    from evidentia.serving.cli.policy_moments import moment_of
    from evidentia.serving.cli.policy_suites import recorded
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(run=run)
    with open_control(call.base) as control:
        begin = None if since is None else moment_of(since, control.clock, field="since")
        for decision in expand(recorded(call._replace(is_quiet=True), control.log)):
            if run in {None, decision.run_id} and (begin is None or decision.at >= begin):
                put_json(decision, is_compact=True)


def _tell(what: str, records: int, report: object, *, is_json: bool) -> None:
    from evidentia.serving.cli.output import put, put_json

    if is_json:
        put_json(report)
    else:
        put(f"{what} {records} {'record' if records == 1 else 'records'}")


def _place(typed: str) -> tuple[str, int]:
    from evidentia.contracts.errors import InvalidFieldError

    log, colon, seq = typed.rpartition(":")
    if not colon or not log or not seq.isascii() or not seq.isdigit():
        raise InvalidFieldError("record", f"'{typed[:80]}' is not LOG:SEQ, such as 20260301-4f2a:17")
    return log, int(seq)


def _moment(typed: str | None, clock: "Clock") -> "datetime | None":
    from evidentia.serving.cli.policy_moments import moment_of

    return None if typed is None else moment_of(typed, clock, field="before")


def _heads(path: Path | None) -> "tuple[LogHead, ...]":
    if path is None:
        return ()
    import msgspec

    from evidentia.contracts.decisions import LogHead
    from evidentia.serving.cli.cli_errors import UsageError
    from evidentia.serving.cli.policy_files import read_document

    document = read_document(path)
    heads = document.get("heads", document) if isinstance(document, dict) else document
    try:
        return msgspec.convert(heads, tuple[LogHead, ...])
    except msgspec.ValidationError as error:
        raise UsageError(f"'{path}' holds no heads: {error}", hint="keep what `evidentia policy log verify --json` prints") from error
