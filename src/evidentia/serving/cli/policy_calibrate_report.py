"""A proposed threshold as text: where it lies among the recorded values, how sure it is, and what it would trigger."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from evidentia.serving.cli.output import put, put_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.policy_trials import Calibration, HistogramBar, TriggerRate

WIDTH = 50
"""Characters of the longest bar."""
_BLOCKS = ("█", "░", "─")
_PLAIN = ("#", ".", "-")


def put_calibration(found: Calibration, *, is_applied: bool) -> None:
    """Print the histogram with the threshold across it, then the figures, then how to apply it."""
    good, other, line = _BLOCKS if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8" else _PLAIN
    for row in histogram(found, good=good, other=other, line=line):
        put(row)
    put(f"{good} good runs  {other} other runs")
    put()
    facts = [
        ("rule", found.rule),
        ("threshold", _number(found.threshold)),
        ("percentile", f"{found.percentile}th of {found.good_values} values in {found.good_runs} good runs"),
        ("interval", _interval(found)),
        ("would trigger", _rate(found.predicted, found.unit)),
    ]
    if found.current is not None:
        facts.append(("triggers now", f"{_rate(found.current, found.unit)}, at {_number(found.current.threshold)}"))
    put_facts([*facts, *(("note", each) for each in found.notes)])
    if not is_applied:
        put()
        put(f"apply it: {found.command}")


def histogram(found: Calibration, *, good: str, other: str, line: str) -> list[str]:
    """Return the bars, lowest values first, with a line where the threshold lies."""
    bars = _without_empty_ends(found.histogram)
    label = max(len(_number(round(bar.low, 4))) for bar in bars)
    longest = max(1, *(bar.good + bar.other for bar in bars))
    rows: list[str] = []
    place = _threshold_place(bars, found.threshold)
    for number, bar in enumerate(bars):
        if number == place:
            rows.append(f"{line * label} {line * (WIDTH // 2)} {_number(found.threshold)}")
        count = bar.good + bar.other
        drawn = -(-count * WIDTH // longest)
        filled = drawn if not bar.other else bar.good * drawn // count
        rows.append(f"{_number(round(bar.low, 4)):>{label}} {good * filled}{other * (drawn - filled)} {count or ''}".rstrip())
    if place == len(bars):
        rows.append(f"{line * label} {line * (WIDTH // 2)} {_number(found.threshold)}")
    return rows


def _without_empty_ends(bars: Sequence[HistogramBar]) -> Sequence[HistogramBar]:
    """Return the bars from the first that holds something to the last, and one more on either side."""
    held = [number for number, bar in enumerate(bars) if bar.good + bar.other]
    return bars[max(0, held[0] - 1) : held[-1] + 2]


def _threshold_place(bars: Sequence[HistogramBar], threshold: float) -> int:
    """Return before which bar the line stands: the first that begins at the threshold or above it."""
    return next((number for number, bar in enumerate(bars) if bar.low >= threshold), len(bars))


def _interval(found: Calibration) -> str:
    low = "below anything seen" if found.low is None else _number(found.low)
    high = "above anything seen" if found.high is None else _number(found.high)
    alike = (
        ""
        if found.effective_values >= found.good_values
        else f"; values of a run resemble each other and count as {found.effective_values}"
    )
    return f"{low} to {high} ({found.confidence_percent}% sure{alike})"


def _rate(rate: TriggerRate, unit: str) -> str:
    values, runs = max(1, rate.values), max(1, rate.runs)
    return (
        f"{rate.value_triggers} of {rate.values} {unit}s ({100 * rate.value_triggers / values:.1f}%), "
        f"{rate.run_triggers} of {rate.runs} runs ({100 * rate.run_triggers / runs:.1f}%)"
    )


def _number(value: float) -> str:
    return f"{value:g}"
