"""What the cache is worth, counted over the requests that a base remembers.

The cache's own counts begin with each process, so those of a command that has just begun say nothing; entries are everybody's.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vocabulary import CacheTier, CoverageState
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.durations import span_of
from evidentia.serving.cli.input_files import read_bytes
from evidentia.serving.cli.output import Figure, counted, note, put, put_json, put_table
from evidentia.serving.cli.snippets import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from evidentia.contracts.evidence import CoverageReport
    from evidentia.contracts.reports import CacheStats
    from evidentia.contracts.retrieval import WarmReport
    from evidentia.contracts.telemetry import RequestTrace
    from evidentia.serving.cli.invocation import Invocation


_NEEDED = frozenset(CoverageState) - {CoverageState.DENIED, CoverageState.SKIPPED}
"""States of a source that was to answer; one that was left out was not looked for in the cache."""


class TierCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One tier: what it keeps, and how often it served."""

    tier: CacheTier
    hits: int
    hit_ratio: float
    """Of all answers of sources that were needed."""
    stale_hits: int
    entries: int


class CacheCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The cache over the remembered requests."""

    requests: int
    finds: int
    """Answers of sources outside the base that these requests needed."""
    hits: int
    hit_ratio: float
    stale_hits: int
    entries: int
    tiers: tuple[TierCounts, ...]


def cache_counts(stats: CacheStats, traces: Sequence[RequestTrace], *, outside: Collection[str]) -> CacheCounts:
    """Return the entries of every tier beside what they did for the remembered requests."""
    spans = [span for trace in traces for span in trace.spans if span.kind == "source" and span.name in outside and span.state in _NEEDED]
    hits = Counter(span.attributes.get("tier") for span in spans if span.state is CoverageState.CACHED)
    stale = Counter(span.attributes.get("tier") for span in spans if span.state is CoverageState.STALE)
    tiers = tuple(
        TierCounts(
            tier=each.tier,
            hits=hits[each.tier.value],
            hit_ratio=_share(hits[each.tier.value], len(spans)),
            stale_hits=stale[each.tier.value],
            entries=each.entries,
        )
        for each in stats.tiers
    )
    return CacheCounts(
        requests=len(traces),
        finds=len(spans),
        hits=hits.total(),
        hit_ratio=_share(hits.total(), len(spans)),
        stale_hits=stale.total(),
        entries=stats.entries,
        tiers=tiers,
    )


def put_counts(counts: CacheCounts) -> None:
    """Print the tiers, nearest first, and what they come to."""
    rows = [(each.tier.value, each.hits, Figure(f"{each.hit_ratio:.0%}"), each.stale_hits, each.entries) for each in counts.tiers]
    put_table(("tier", "hits", "ratio", "stale", "entries"), rows)
    put()
    put(
        f"{counts.finds} answers of sources were needed by the last {counts.requests} requests: "
        f"{counts.hits} were kept ({counts.hit_ratio:.0%}), {counts.stale_hits} stood in past their time"
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


# Asking ahead of time, once or at intervals, and telling what came of it.

LARGEST_BYTES = 1 << 24
HINT = "give questions, a --file with one a line, or the setting cache.warm"


def questions_from(typed: Sequence[str], file: Path | None) -> tuple[str, ...]:
    """Return the questions that were typed and those of a file, each once, in their order; empty lines ask nothing."""
    lines = [] if file is None else _lines(file)
    return tuple(dict.fromkeys([*typed, *(line.strip() for line in lines if line.strip())]))


def refuse_none(questions: Sequence[str]) -> None:
    """Refuse to ask nothing, which looks like having asked."""
    if not questions:
        raise UsageError("there is nothing to ask", hint=HINT)


def keep_warm(call: Invocation, ask: Callable[[], WarmReport], *, pause_s: int | None, pause: Callable[[float], None] = time.sleep) -> None:
    """Ask once, or with a pause again and again until interrupted; then each pass is one line of JSON."""
    if pause_s is not None and pause_s < 1:
        raise InvalidFieldError("every", "a pause is at least a second")
    while True:
        _tell(call, ask(), is_repeated=pause_s is not None)
        if pause_s is None:
            return
        sys.stdout.flush()  # whoever reads through a pipe wants each pass when it is over
        note(call, f"asking again in {span_of(pause_s)}; press Ctrl-C to stop")
        pause(pause_s)


def _tell(call: Invocation, report: WarmReport, *, is_repeated: bool) -> None:
    if call.is_json:
        put_json(report, is_compact=is_repeated)
        return
    rows = [
        (source, *_account(each), shortened(question))
        for question, coverage in report.coverage.items()
        for source, each in sorted(coverage.items())
    ]
    if rows:
        put_table(("source", "state", "candidates", "reason", "question"), rows)
        put()
    put(f"{counted(report.questions, 'question')}, {counted(report.kept, 'answer')} of sources kept")
    if not rows:
        note(call, "no source outside the base was asked; `evidentia sources list` shows which there are")


def _account(report: CoverageReport) -> tuple[str, int, str]:
    return report.state.value, report.candidates, "-" if report.state is CoverageState.SEARCHED else report.reason or "-"


def _lines(file: Path) -> list[str]:
    content = read_bytes(file, most=LARGEST_BYTES, hint=HINT, large_hint="ask fewer questions at a time")
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"'{file}' cannot be read: it is not UTF-8", hint=HINT) from error
