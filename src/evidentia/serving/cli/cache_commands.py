"""`evidentia cache`: what is kept of what sources said: ask ahead of time, count, drop."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evidentia.contracts.errors import NotFoundError
from evidentia.serving.cli.invocation import CommandResult, Invocation, arg, command, command_group, opt
from evidentia.serving.cli.output import counted

if TYPE_CHECKING:
    from evidentia.base.sync_base import Base
    from evidentia.serving.cli.cache_report import CacheCounts

group = command_group("Manage the cache of source responses.")


@command(group, "warm", has_caller=True)
def warm(
    call: Invocation,
    *,
    questions: Annotated[list[str] | None, arg("QUESTION...", "Questions; default: those of --file, else of cache.warm.")] = None,
    file: Annotated[Path | None, opt("--file", "FILE", "File with one question per line; - reads stdin.")] = None,
    every: Annotated[str | None, opt("--every", "SPAN", "Repeat at this interval until interrupted: 15m, 1h, 7d.")] = None,
    deadline_ms: Annotated[int, opt("--deadline-ms", "N", "Latency deadline of each question.", low=1)] = 10000,
) -> None:
    """Precompute source responses for a list of questions.

    Existing cache entries are not used. New entries stay until they are invalidated or violate the freshness SLA of their source.
    """
    from evidentia.serving.cli.cache_report import keep_warm, questions_from, refuse_none
    from evidentia.serving.cli.durations import seconds_of

    pause_s = None if every is None else seconds_of(every, field="every")
    asked = questions_from(questions or (), file)
    with call.open_base() as base:
        refuse_none(asked or base.settings.cache.warm)
        keep_warm(call, lambda: base.warm(asked, latency_deadline_ms=deadline_ms), pause_s=pause_s)


@command(group, "stats")
def stats(base: "Base") -> "CommandResult[CacheCounts]":
    """Show cache entries and hit rates of the requests in the trace store."""
    from evidentia.serving.cli.cache_report import cache_counts, put_counts

    outside = {each.descriptor.source_id for each in base.sources() if not each.descriptor.is_own}
    traces = base.traces(limit=max(1, base.settings.telemetry.traces))
    return CommandResult(cache_counts(base.cache_stats(), traces, outside=outside), put_counts)


@command(group, "flush")
def flush(
    base: "Base", *, source_id: Annotated[str | None, arg("SOURCE", "The source; default: all sources.")] = None
) -> CommandResult[object]:
    """Invalidate cached responses of one source or of all."""
    if source_id is not None and source_id not in {each.descriptor.source_id for each in base.sources()}:
        raise NotFoundError("source", source_id)
    dropped = base.flush_cache(source_id)
    text = f"dropped {counted(dropped, 'kept answer')}{f' of {source_id}' if source_id else ''}"
    return CommandResult({"dropped": dropped}, text)
