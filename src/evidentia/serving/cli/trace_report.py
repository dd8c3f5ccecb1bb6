"""Traces as text: a table of requests, and one request with where its time went."""

from __future__ import annotations

import sys
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from evidentia.contracts.vocabulary import CoverageState
from evidentia.serving.cli.output import Figure, counted, printable, put, put_facts, put_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.telemetry import RequestTrace, TraceSpan


HASH_PREFIX: Final = 16
NONE: Final = "-"


def put_traces(traces: Sequence[RequestTrace]) -> None:
    """Print a table of requests."""
    rows = [
        (
            f"{trace.started_at:%Y-%m-%d %H:%M:%S}",
            trace.request_id,
            Figure(f"{trace.latency_ms:.1f} of {trace.deadline_ms} ms"),
            _answered_note(trace),
            trace.fragments,
            Figure(f"{trace.cache_hit_ratio:.0%}"),
            ", ".join((*(("late",) if is_late(trace) else ()), *trace.degraded)) or NONE,
        )
        for trace in traces
    ]
    put_table(("time", "id", "latency", "sources", "fragments", "cache", "degraded"), rows)


def put_trace(trace: RequestTrace) -> None:
    """Print one request: what is known of it, and where its time went."""
    put_facts(
        [
            ("request", trace.request_id),
            ("receipt", trace.receipt_id or NONE),
            ("time", f"{trace.started_at:%Y-%m-%d %H:%M:%S.%f}"),
            ("latency", f"{trace.latency_ms:.1f} of {trace.deadline_ms} ms{', late' if is_late(trace) else ''}"),
            ("caller", f"{trace.principal_fingerprint[:HASH_PREFIX]} in tenant {trace.tenant}"),
            *([("agent", trace.agent_name)] if trace.agent_name else []),
            ("mode", trace.mode),
            ("fragments", f"{trace.fragments} of {trace.candidates} candidates, at most {trace.limit}; {trace.tokens_used} tokens"),
            ("sources", f"{_answered_note(trace)} answered, {trace.cache_hit_ratio:.0%} from the cache"),
            ("degraded", ", ".join(trace.degraded) or NONE),
            ("result", trace.result_hash[:HASH_PREFIX]),
        ]
    )
    put()
    console = Console(markup=False, highlight=False, emoji=False)
    for line in waterfall(trace, width=console.width, glyphs=glyphs_for(sys.stdout.encoding)):
        console.print(line, soft_wrap=True)


def _answered_note(trace: RequestTrace) -> str:
    states = [span.state for span in trace.spans if span.kind == "source"]
    return f"{sum(state in ANSWERED for state in states)} of {len(states)}"


# One request as bars on a time axis, which ends at its deadline or its answer. Refuses to let a name or a note steer the terminal.

MAX_NAME: Final = 24
"""Cells of a longer name are cut; `--json` has all of it."""
LEAST_BAR: Final = 24
"""Remarks stand beside bars that are at least as long as this."""
TIME_WIDTH: Final = 10
COLUMN_GAP: Final = "  "
ORIGIN: Final = "0 ms"
MAX_MS: Final = 100_000
"""From here on a time is shown in seconds."""
ANSWERED: Final = frozenset({CoverageState.SEARCHED, CoverageState.CACHED, CoverageState.STALE})
UNASKED: Final = frozenset({CoverageState.SKIPPED, CoverageState.DENIED, CoverageState.BREAKER_OPEN})
"""States of a source that took no time, and so has no bar."""
STYLES: Final = {
    CoverageState.SEARCHED: "green",
    CoverageState.CACHED: "blue",
    CoverageState.STALE: "yellow",
    CoverageState.TIMED_OUT: "red",
    CoverageState.FAILED: "red",
    CoverageState.BREAKER_OPEN: "magenta",
    CoverageState.SKIPPED: "dim",
    CoverageState.DENIED: "dim",
}


class Glyphs(NamedTuple):
    """What bars are drawn with, so that they can be told apart without colours."""

    asked: str
    kept: str
    in_vain: str
    deadline: str
    crossed: str
    cut: str


BLOCKS: Final = Glyphs(asked="█", kept="▒", in_vain="░", deadline="│", crossed="┼", cut="…")
ASCII: Final = Glyphs(asked="#", kept="=", in_vain=".", deadline="|", crossed="+", cut="~")


class WaterfallRow(NamedTuple):
    """A row of the waterfall."""

    name: str
    start_ms: float
    duration_ms: float
    fill: str
    style: str
    remark: str
    has_bar: bool = True
    is_stage: bool = False


class Axis(NamedTuple):
    """The time axis: how many cells stand for how many milliseconds."""

    cells: int
    whole_ms: float
    deadline_ms: int

    @property
    def deadline(self) -> int:
        """Return before which cell the deadline is marked; what took time on either side of it has a cell there."""
        last = self.cells if self.deadline_ms >= self.whole_ms else self.cells - 1
        return min(max(1, int(self.deadline_ms / self.whole_ms * self.cells)), max(1, last))


def glyphs_for(encoding: str | None) -> Glyphs:
    """Return blocks where they can be written, and plain characters elsewhere."""
    return BLOCKS if (encoding or "").lower().replace("-", "").startswith("utf") else ASCII


def is_late(trace: RequestTrace) -> bool:
    """Tell whether an answer came after its deadline."""
    return trace.latency_ms > trace.deadline_ms


def waterfall(trace: RequestTrace, *, width: int, glyphs: Glyphs) -> list[Text]:
    """Return stages and sources as bars on one axis, each with its time and a remark; no line is wider than `width` cells.

    Where remarks do not fit beside the bars, those of stages are left out, and then those of sources stand below.
    """
    bars = [_request_bar(trace, glyphs), *(_bar(span, glyphs) for span in trace.spans)]
    names = min(MAX_NAME, max(cell_len(bar.name) for bar in bars), max(1, width // 3))
    room = width - names - TIME_WIDTH - 3 * len(COLUMN_GAP) - 1
    if not _fit_beside(bars, room):
        bars = [bar._replace(remark="") if bar.is_stage else bar for bar in bars]
    is_beside = _fit_beside(bars, room)
    cells = max(1, room - _widest(bars) if is_beside else room + len(COLUMN_GAP))
    axis = Axis(cells=cells, whole_ms=max(trace.latency_ms, trace.deadline_ms), deadline_ms=trace.deadline_ms)
    lines = [_heading(axis, names=names, glyphs=glyphs)]
    for bar in bars:
        lines += _row(bar, axis, names=names, width=width, is_beside=is_beside, glyphs=glyphs)
    return lines


def _fit_beside(bars: Sequence[WaterfallRow], room: int) -> bool:
    return room - _widest(bars) >= LEAST_BAR


def _widest(bars: Sequence[WaterfallRow]) -> int:
    return max(cell_len(bar.remark) for bar in bars)


def _request_bar(trace: RequestTrace, glyphs: Glyphs) -> WaterfallRow:
    remark = "answered late" if is_late(trace) else "answered"
    return WaterfallRow("request", 0.0, trace.latency_ms, glyphs.asked, "bold red" if is_late(trace) else "bold", remark)


def _bar(span: TraceSpan, glyphs: Glyphs) -> WaterfallRow:
    name, note = printable(span.name), printable(span.note)
    if span.kind != "source":
        return WaterfallRow(f" {name}", span.start_ms, span.duration_ms, glyphs.asked, "cyan", note, is_stage=True)
    fill = glyphs.in_vain
    if span.state in ANSWERED:
        fill = glyphs.asked if span.state is CoverageState.SEARCHED else glyphs.kept
    style = STYLES[span.state] if span.state else ""
    return WaterfallRow(f" > {name}", span.start_ms, span.duration_ms, fill, style, _source_remark(span, note), span.state not in UNASKED)


def _source_remark(span: TraceSpan, note: str) -> str:
    said = [span.state.value if span.state else "unknown"]
    if "tier" in span.attributes:
        said.append(f"from {printable(str(span.attributes['tier']))}")
    if span.state in ANSWERED:
        said.append(_counted(span, "candidates", "candidate"))
    if span.attributes.get("faults"):
        said.append(_counted(span, "faults", "fault"))
    if span.attributes.get("part"):
        said.append(f"part {span.attributes['part']}")
    return ", ".join(said) + (f": {note}" if note else "")


def _counted(span: TraceSpan, attribute: str, singular: str) -> str:
    return counted(int(span.attributes.get(attribute, 0)), singular)


def _heading(axis: Axis, *, names: int, glyphs: Glyphs) -> Text:
    """Return the line above the bars, with the deadline over its mark where there is room."""
    begin = ORIGIN if axis.deadline > len(ORIGIN) else ""
    room, label = axis.deadline - len(begin), f"deadline {axis.deadline_ms} ms "
    return Text(f"{'':{names}}{COLUMN_GAP}{begin}{label if len(label) < room else '':>{room}}{glyphs.deadline}", style="dim")


def _row(bar: WaterfallRow, axis: Axis, *, names: int, width: int, is_beside: bool, glyphs: Glyphs) -> list[Text]:
    line = Text(_fitted(bar.name, names, glyphs))
    line.append(COLUMN_GAP)
    line.append_text(_cells(bar, axis, glyphs))
    line.append(COLUMN_GAP)
    line.append(_duration(bar.duration_ms).rjust(TIME_WIDTH))
    remark = Text(bar.remark, style=bar.style if bar.fill == glyphs.in_vain else "")
    if is_beside:
        line.append(COLUMN_GAP)
        line.append_text(remark)
    line.rstrip()
    if is_beside or not bar.remark:
        return [line]
    indent, room = Text(" " * (names + len(COLUMN_GAP))), max(2, width - names - len(COLUMN_GAP))
    below = [indent + part for part in remark.wrap(Console(width=room), room)]
    for part in below:
        part.rstrip()
    return [line, *below]


def _cells(bar: WaterfallRow, axis: Axis, glyphs: Glyphs) -> Text:
    """Return the bar with the mark of the deadline between its cells."""
    first, end = _extent(bar, axis)
    is_crossing = bar.start_ms < axis.deadline_ms < bar.start_ms + bar.duration_ms
    before, after = (
        (bar.has_bar and first <= cell < end for cell in part) for part in (range(axis.deadline), range(axis.deadline, axis.cells))
    )
    cells = Text()
    for is_filled in before:
        cells.append(bar.fill if is_filled else " ", style=bar.style)
    cells.append(glyphs.crossed if is_crossing else glyphs.deadline, style="bold red" if is_crossing else "dim")
    for is_filled in after:
        cells.append(bar.fill if is_filled else " ", style=bar.style)
    return cells


def _extent(bar: WaterfallRow, axis: Axis) -> tuple[int, int]:
    """Return the first cell of a bar and the one after its last, on the right side of the deadline."""
    first = min(int(bar.start_ms / axis.whole_ms * axis.cells), axis.cells - 1)
    end = min(max(ceil((bar.start_ms + bar.duration_ms) / axis.whole_ms * axis.cells), first + 1), axis.cells)
    if bar.start_ms + bar.duration_ms <= axis.deadline_ms:
        end = min(end, axis.deadline)
        return min(first, end - 1), end
    if bar.start_ms >= axis.deadline_ms:
        first = min(max(first, axis.deadline), axis.cells - 1)
        return first, max(end, first + 1)
    return first, max(end, min(axis.deadline + 1, axis.cells))


def _duration(duration_ms: float) -> str:
    return f"{duration_ms:.1f} ms" if duration_ms < MAX_MS else f"{duration_ms / 1_000:.0f} s"


def _fitted(name: str, cells: int, glyphs: Glyphs) -> str:
    return set_cell_size(name, cells) if cell_len(name) <= cells else set_cell_size(name, cells - 1) + glyphs.cut
