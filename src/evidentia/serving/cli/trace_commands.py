"""`evidentia trace`: the newest requests, and where the time of one of them went."""

from typing import TYPE_CHECKING, Annotated

from evidentia.serving.cli.invocation import CommandResult, arg, command, command_group, opt

if TYPE_CHECKING:
    from evidentia.base.sync_base import Base
    from evidentia.contracts.telemetry import RequestTrace

group = command_group("Inspect request traces and their timings.")

NO_TRACE = "no request is remembered; telemetry.traces says how many are"


@command(group, "list")
def list_traces(
    base: "Base", *, limit: Annotated[int, opt("--limit", "N", "Maximum number of requests.", low=1)] = 20
) -> "CommandResult[list[RequestTrace]]":
    """List the newest requests, newest first.

    A trace holds no question and no answer.
    """
    from evidentia.serving.cli.trace_report import put_traces

    traces = base.traces(limit=limit)
    return CommandResult(traces, put_traces, notes=() if traces else [NO_TRACE])


@command(group, "show")
def show(
    base: "Base", *, request: Annotated[str, arg("ID", "The request: its id, the beginning of its id, or the id of its receipt.")]
) -> "CommandResult[RequestTrace]":
    """Show the stages and sources of a request as a waterfall diagram."""
    from evidentia.serving.cli.trace_report import put_trace

    return CommandResult(base.trace(request), put_trace)
