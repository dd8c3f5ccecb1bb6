"""`evidentia sources`: what a base can ask, how it is, how fresh it is, and what it answers by itself."""

from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import AsOption, BaseOption, JsonOption, QuietOption, invocation
from evidentia.serving.cli.source_adding import add

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.sources import SourceStatus

group = typer.Typer(rich_markup_mode=None, help="Register, test and monitor sources.", no_args_is_help=False)

SourceArgument = Annotated[str, typer.Argument(metavar="ID", help="The source; `sources list` prints the ids.")]
QueryArgument = Annotated[str, typer.Argument(metavar="QUERY", help="The test query.")]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1_000, help="Maximum number of candidates.")]

CHECK_FAILED = 1


@group.command("list")
def list_sources(
    context: typer.Context, *, caller: AsOption = None, base: BaseOption = None, quiet: QuietOption = False, json: JsonOption = False
) -> None:
    """List the sources that you may see, ordered by id.

    Internal sources show documents; external sources show calls, failures and latencies.
    """
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.output import note, put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    with asking(call, caller) as opened:
        statuses = opened.sources()
    if call.is_json:
        put_json(statuses)
        return
    from evidentia.serving.cli.sources_report import put_statuses

    put_statuses(statuses)
    if not statuses:
        note(call, "there is no source yet; `evidentia ingest` and `evidentia sources add` bring some")


@group.command("show")
def show(
    context: typer.Context,
    *,
    source: SourceArgument,
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Show the connection, access policy and health of a source."""
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(source_id=source)
    with asking(call, caller) as opened:
        status = _status_of(opened.sources(), source)
        freshness = next(each for each in opened.source_freshness() if each.source_id == source)
    if call.is_json:
        put_json({"status": status, "freshness": freshness})
        return
    from evidentia.serving.cli.sources_report import put_status

    put_status(status, freshness)


group.command("add")(add)


@group.command("remove")
def remove(
    context: typer.Context,
    *,
    source: SourceArgument,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Remove an external source and its cached responses."""
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put, put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(source_id=source)
    with connect(call.base) as opened:
        opened.remove_source(source)
    if call.is_json:
        put_json({"removed": source})
    else:
        put(f"removed {source}")


@group.command("test")
def try_source(
    context: typer.Context,
    *,
    source: SourceArgument,
    query: QueryArgument = "test",
    limit: LimitOption = 10,
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Send a test query to one external source.

    The timeout is 5 seconds; source selection and circuit breakers are bypassed, and the response is not cached. The exit code is 1
    unless the source answered.
    """
    from evidentia.contracts.vocabulary import CoverageState
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import flush, put_json
    from evidentia.serving.cli.snippets import SnippetCutter
    from evidentia.serving.cli.sources_report import put_trial

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(source_id=source, query=query)
    with asking(call, caller) as opened:
        trial = opened.test_source(source, query, limit=limit)
        if call.is_json:
            put_json(trial)
        else:
            put_trial(trial, cutter=SnippetCutter(query, language=opened.settings.text.language))
        flush()  # before the base is closed, which may wait for a source that is slow to let go
    if trial.report.state is not CoverageState.SEARCHED:
        raise typer.Exit(CHECK_FAILED)


@group.command("freshness")
def freshness(
    context: typer.Context, *, caller: AsOption = None, base: BaseOption = None, quiet: QuietOption = False, json: JsonOption = False
) -> None:
    """Compare the data age of every source with its freshness SLA.

    The exit code is 1 when a source violates its SLA. The age of an external source is that of its newest candidate so far.
    """
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.output import put_json
    from evidentia.serving.cli.sources_report import put_freshness

    call = invocation(context, base=base, quiet=quiet, json=json)
    with asking(call, caller) as opened:
        reports = opened.source_freshness()
    if call.is_json:
        put_json(reports)
    else:
        put_freshness(reports)
    if any(report.is_fresh is False for report in reports):
        raise typer.Exit(CHECK_FAILED)


@group.command("changed")
def changed(
    context: typer.Context,
    *,
    source: SourceArgument,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Invalidate the cached responses of a source whose data has changed."""
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put, put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(source_id=source)
    with connect(call.base) as opened:
        _status_of(opened.sources(), source)
        dropped = opened.source_changed(source)
    if call.is_json:
        put_json({"source_id": source, "dropped": dropped})
    else:
        put(f"dropped {dropped} kept {'answer' if dropped == 1 else 'answers'} of {source}")


def _status_of(statuses: "Sequence[SourceStatus]", source: str) -> "SourceStatus":
    from evidentia.contracts.errors import NotFoundError

    status = next((each for each in statuses if each.descriptor.source_id == source), None)
    if status is None:
        raise NotFoundError("source", source)
    return status
