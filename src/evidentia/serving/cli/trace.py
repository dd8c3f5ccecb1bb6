"""`evidentia trace`: the newest requests, and where the time of one of them went."""

from typing import Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

group = typer.Typer(rich_markup_mode=None, help="Inspect request traces and their timings.", no_args_is_help=False)

LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Maximum number of requests.")]
RequestArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The request: its id, the beginning of its id, or the id of its receipt.")
]


@group.command("list")
def list_traces(
    context: typer.Context,
    *,
    limit: LimitOption = 20,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """List the newest requests, newest first.

    A trace holds no question and no answer.
    """
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.output import note, put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    with connect(call.base) as opened:
        traces = opened.traces(limit=limit)
    if call.is_json:
        put_json(traces)
        return
    from evidentia.serving.cli.trace_report import put_traces

    put_traces(traces)
    if not traces:
        note(call, "no request is remembered; telemetry.traces says how many are")


@group.command("show")
def show(
    context: typer.Context,
    *,
    request: RequestArgument,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Show the stages and sources of a request as a waterfall diagram."""
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(request=request)
    with connect(call.base) as opened:
        trace = opened.trace(request)
    if call.is_json:
        put_json(trace)
        return
    from evidentia.serving.cli.trace_report import put_trace

    put_trace(trace)
