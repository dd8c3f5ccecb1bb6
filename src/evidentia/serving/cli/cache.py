"""`evidentia cache`: what is kept of what sources said: ask ahead of time, count, drop."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import AsOption, BaseOption, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.contracts.retrieval import WarmReport

group = typer.Typer(rich_markup_mode=None, help="Manage the cache of source responses.", no_args_is_help=False)

QuestionsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="QUESTION...", help="Questions; default: those of --file, else of cache.warm.", show_default=False),
]
FileOption = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="File with one question per line; - reads stdin.", show_default=False)
]
EveryOption = Annotated[
    str | None, typer.Option("--every", metavar="SPAN", help="Repeat at this interval until interrupted: 15m, 1h, 7d.", show_default=False)
]
DeadlineOption = Annotated[int, typer.Option("--deadline-ms", metavar="N", min=1, help="Latency deadline of each question.")]
SourceArgument = Annotated[str | None, typer.Argument(metavar="SOURCE", help="The source; default: all sources.", show_default=False)]


@group.command("warm")
def warm(
    context: typer.Context,
    *,
    questions: QuestionsArgument = None,
    file: FileOption = None,
    every: EveryOption = None,
    deadline_ms: DeadlineOption = 10_000,
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Precompute source responses for a list of questions.

    Existing cache entries are not used. New entries stay until they are invalidated or violate the freshness SLA of their source.
    """
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.durations import seconds_of
    from evidentia.serving.cli.warming import keep_warm, questions_from, refuse_none

    call = invocation(context, base=base, quiet=quiet, json=json)
    pause_s = None if every is None else seconds_of(every, field="every")
    require_text(questions=questions)
    asked = questions_from(questions or (), file)
    with asking(call, caller) as opened:
        refuse_none(asked or opened.settings.cache.warm)

        def ask() -> "WarmReport":
            return opened.warm(asked, latency_deadline_ms=deadline_ms)

        keep_warm(call, ask, pause_s=pause_s)


@group.command("stats")
def stats(context: typer.Context, *, base: BaseOption = None, quiet: QuietOption = False, json: JsonOption = False) -> None:
    """Show cache entries and hit rates of the requests in the trace store."""
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.cache_report import counted, put_counts
    from evidentia.serving.cli.output import put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    with connect(call.base) as opened:
        outside = {each.descriptor.source_id for each in opened.sources() if not each.descriptor.is_own}
        traces = opened.traces(limit=max(1, opened.settings.telemetry.traces))
        counts = counted(opened.cache_stats(), traces, outside=outside)
    if call.is_json:
        put_json(counts)
    else:
        put_counts(counts)


@group.command("flush")
def flush(
    context: typer.Context,
    *,
    source: SourceArgument = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Invalidate cached responses of one source or of all."""
    from evidentia.base.sync_base import connect
    from evidentia.contracts.errors import NotFoundError
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put, put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(source_id=source)
    with connect(call.base) as opened:
        if source is not None and source not in {each.descriptor.source_id for each in opened.sources()}:
            raise NotFoundError("source", source)
        dropped = opened.flush_cache(source)
    if call.is_json:
        put_json({"dropped": dropped})
    else:
        put(f"dropped {dropped} kept {'answer' if dropped == 1 else 'answers'}{f' of {source}' if source else ''}")
