"""The geometry of small pictures: bars on a time axis, a histogram, a curve. Pure; templates draw it, and say the same in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.policy_trials import Calibration, HistogramBar

AXIS: Final = 1_000
"""Units across a time axis."""
LEAST_BAR: Final = 4
"""Units of a bar that would else not be seen."""
PLOT_WIDTH: Final = 720
PLOT_HEIGHT: Final = 220
LEFT: Final = 46
RIGHT: Final = 14
TOP: Final = 14
BOTTOM: Final = 34
_WHOLE: Final = 100


class TimeBar(NamedTuple):
    """A bar on a time axis of `AXIS` units."""

    x: int
    width: int


class Tick(NamedTuple):
    """A mark on an axis with what it says."""

    at: float
    label: str


class HistogramRect(NamedTuple):
    """One bar of a histogram: good runs below, others on top of them."""

    x: float
    width: float
    good_y: float
    good_height: float
    other_y: float
    other_height: float


class Histogram(NamedTuple):
    """A histogram of recorded values with the proposed threshold across it."""

    bars: tuple[HistogramRect, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    threshold_x: float


class Curve(NamedTuple):
    """How much of the traffic a threshold would catch, for every threshold."""

    points: str
    """As an SVG polyline takes them."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    threshold_x: float


class Caught(NamedTuple):
    """A threshold, and how many of all values lie beyond it."""

    threshold: float
    values: int
    percent: float


def time_bar(start: float, duration: float, whole: float) -> TimeBar:
    """Return where a bar stands on an axis that is `whole` long; it never leaves the axis and is never too thin to see."""
    if whole <= 0:
        return TimeBar(0, LEAST_BAR)
    x = min(AXIS - LEAST_BAR, max(0, round(start / whole * AXIS)))
    width = max(LEAST_BAR, round(duration / whole * AXIS))
    return TimeBar(x, min(width, AXIS - x))


def time_mark(at: float, whole: float) -> int | None:
    """Return where a moment stands on an axis; None when it lies beyond its end."""
    return round(at / whole * AXIS) if whole > 0 and at <= whole else None


def histogram(found: Calibration) -> Histogram:
    """Return the histogram of a calibration; the highest bar fills the plot."""
    most = max(1, *(bar.good + bar.other for bar in found.histogram))
    low, high = found.histogram[0].low, found.histogram[-1].high
    bars = []
    for bar in found.histogram:
        x, end = _across(bar.low, low, high), _across(bar.high, low, high)
        good, other = _tall(bar.good, most), _tall(bar.other, most)
        floor = PLOT_HEIGHT - BOTTOM
        bars.append(
            HistogramRect(
                x=x,
                width=max(1.0, round(end - x - 1, 2)),
                good_y=round(floor - good, 2),
                good_height=good,
                other_y=round(floor - good - other, 2),
                other_height=other,
            )
        )
    y_ticks = tuple(Tick(round(PLOT_HEIGHT - BOTTOM - _tall(count, most), 2), f"{count:,}") for count in sorted({0, most // 2, most}))
    return Histogram(tuple(bars), _x_ticks(low, high), y_ticks, _across(found.threshold, low, high))


def caught_by(rule: str, bars: Sequence[HistogramBar]) -> tuple[Caught, ...]:
    """Return how many values lie beyond each edge of a histogram; below it for a minimum, above it for a maximum."""
    counts = [bar.good + bar.other for bar in bars]
    whole = max(1, sum(counts))
    is_maximum = rule.startswith("max_")
    told = []
    for place in range(len(bars) + 1):
        threshold = bars[place].low if place < len(bars) else bars[-1].high
        beyond = sum(counts[place:]) if is_maximum else sum(counts[:place])
        told.append(Caught(threshold, beyond, round(_WHOLE * beyond / whole, 1)))
    return tuple(told)


def curve(found: Calibration) -> Curve:
    """Return the share of values that a threshold would catch as a line."""
    steps = caught_by(found.rule, found.histogram)
    low, high = steps[0].threshold, steps[-1].threshold
    points = " ".join(f"{_across(step.threshold, low, high):g},{_up(step.percent):g}" for step in steps)
    y_ticks = tuple(Tick(_up(percent), f"{percent}%") for percent in (0, 25, 50, 75, 100))
    return Curve(points, _x_ticks(low, high), y_ticks, _across(found.threshold, low, high))


def _across(value: float, low: float, high: float) -> float:
    span = high - low
    share = (value - low) / span if span else 0.0
    return round(LEFT + min(1.0, max(0.0, share)) * (PLOT_WIDTH - LEFT - RIGHT), 2)


def _tall(count: int, most: int) -> float:
    return round(count / most * (PLOT_HEIGHT - TOP - BOTTOM), 2)


def _up(percent: float) -> float:
    return round(PLOT_HEIGHT - BOTTOM - percent / _WHOLE * (PLOT_HEIGHT - TOP - BOTTOM), 2)


def _x_ticks(low: float, high: float) -> tuple[Tick, ...]:
    values: Sequence[float] = [low + (high - low) * quarter / 4 for quarter in range(5)]
    return tuple(Tick(_across(value, low, high), f"{value:g}" if high - low < AXIS else f"{value:,.0f}") for value in values)
