"""Dates, times and durations written as text, as ISO 8601; refuses to guess which number is the day and which the month."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, time

import msgspec

MAX_MOMENT_LENGTH = 40
LAST_MONTH = 12
NOON = 12
_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,9}))?)?\s?(?P<half>[AaPp]\.?[Mm]\.?)?"
_ZONE = r"\s?(?P<zone>Z|UTC|[+-][0-9]{2}:?[0-9]{2})?"
_TAIL = rf"(?:(?:,?\s{{1,2}}|T){_TIME}{_ZONE})?"
_YEAR_FIRST = re.compile(rf"(?P<year>[0-9]{{4}})(?P<mark>[-/.])(?P<month>[0-9]{{1,2}})(?P=mark)(?P<day>[0-9]{{1,2}}){_TAIL}")
_YEAR_LAST = re.compile(rf"(?P<one>[0-9]{{1,2}})(?P<mark>[-/.])(?P<two>[0-9]{{1,2}})(?P=mark)(?P<year>[0-9]{{4}}){_TAIL}")
_DAY_NAMED = re.compile(rf"(?P<day>[0-9]{{1,2}})\.?[\s-](?P<name>[^\W\d_]{{3,9}})\.?,?[\s-](?P<year>[0-9]{{4}}){_TAIL}")
_MONTH_NAMED = re.compile(rf"(?P<name>[^\W\d_]{{3,9}})\.?\s(?P<day>[0-9]{{1,2}}),?\s(?P<year>[0-9]{{4}}){_TAIL}")
_DIGIT = re.compile("[0-9]")
_CLOCK = re.compile(_TIME)
_DURATION = re.compile(r"(-)?P(?:([0-9]{1,6})D)?T?(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)S)?")
_ENGLISH = "january february march april may june july august september october november december"
_GERMAN = "januar februar märz april mai juni juli august september oktober november dezember"  # codespell:ignore
_MONTHS = {name: number for names in (_ENGLISH, _GERMAN) for number, name in enumerate(names.split(), start=1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9, "mrz": 3}


class MomentReading(msgspec.Struct, frozen=True, kw_only=True):
    """What the texts of a column are as moments; a text that is none is in none of the three."""

    dates: Mapping[str, str] = {}
    datetimes: Mapping[str, str] = {}
    times: Mapping[str, str] = {}
    note: str = ""


def read_moments(texts: Mapping[str, int]) -> MomentReading:
    """Return the dates, moments and times of day among `texts`; an order of day and month must follow from the texts themselves."""
    dates: dict[str, str] = {}
    datetimes: dict[str, str] = {}
    times: dict[str, str] = {}
    undecided: dict[str, re.Match[str]] = {}
    for text in texts:
        stripped = text.strip()
        if len(stripped) > MAX_MOMENT_LENGTH or not _DIGIT.search(stripped):
            continue
        if clock := _CLOCK.fullmatch(stripped):
            _put(times, text, _clock(clock))
        elif match := _YEAR_LAST.fullmatch(stripped):
            undecided[text] = match
        else:
            _put_moment(dates, datetimes, text, _named_or_ordered(stripped))
    is_day_first, note = _order(undecided)
    if is_day_first is not None:
        for text, match in undecided.items():
            day, month = (match["one"], match["two"]) if is_day_first else (match["two"], match["one"])
            _put_moment(dates, datetimes, text, _moment(match, year=match["year"], month=int(month), day=day))
    return MomentReading(dates=dates, datetimes=datetimes, times=times, note=note)


def duration_seconds(text: str) -> int | float | None:
    """Return the seconds of a duration in the manner of ISO 8601, such as `PT30H00M00S`, or None."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()[1:]):
        return None
    sign, days, hours, minutes, seconds = match.groups()
    total = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + float(seconds or 0)
    whole: int | float = int(total) if total.is_integer() else total
    return -whole if sign else whole


def _order(undecided: Mapping[str, re.Match[str]]) -> tuple[bool | None, str]:
    """Return whether the day comes first, or None when the texts do not say."""
    if not undecided:
        return None, ""
    is_day_first = any(int(match["one"]) > LAST_MONTH or match["mark"] == "." for match in undecided.values())
    is_month_first = any(int(match["two"]) > LAST_MONTH for match in undecided.values())
    if is_day_first == is_month_first:
        why = "both orders of day and month" if is_day_first else "nothing that tells the day from the month"
        return None, f"has dates with {why}, which are kept as text"
    return is_day_first, ""


def _named_or_ordered(text: str) -> tuple[str, str] | None:
    if match := _YEAR_FIRST.fullmatch(text):
        return _moment(match, year=match["year"], month=int(match["month"]), day=match["day"])
    match = _DAY_NAMED.fullmatch(text) or _MONTH_NAMED.fullmatch(text)
    month = _MONTHS.get(match["name"].casefold()) if match else None
    return _moment(match, year=match["year"], month=month, day=match["day"]) if match and month else None


def _moment(match: re.Match[str], *, year: str, month: int, day: str) -> tuple[str, str] | None:
    """Return the date and the time with its zone, both in ISO 8601, the second empty where there is none."""
    try:
        day_text = date(int(year), month, int(day)).isoformat()
    except ValueError:
        return None
    if match["hour"] is None:
        return day_text, ""
    clock = _clock(match)
    return (day_text, clock + _zone(match["zone"])) if clock else None


def _clock(match: re.Match[str]) -> str:
    hour, half = int(match["hour"]), (match["half"] or "").lower().replace(".", "")
    if half:
        if not 1 <= hour <= NOON:
            return ""
        hour = hour % NOON + (NOON if half == "pm" else 0)
    part = (match["part"] or "")[:6].ljust(6, "0")
    try:
        return time(hour, int(match["minute"]), int(match["second"] or 0), int(part)).isoformat()
    except ValueError:
        return ""


def _zone(zone: str | None) -> str:
    if zone is None:
        return ""
    return "+00:00" if zone in {"Z", "UTC"} else f"{zone[:3]}:{zone[-2:]}"


def _put(values: dict[str, str], text: str, value: str) -> None:
    if value:
        values[text] = value


def _put_moment(dates: dict[str, str], datetimes: dict[str, str], text: str, moment: tuple[str, str] | None) -> None:
    if moment is None:
        return
    if moment[1]:
        datetimes[text] = f"{moment[0]}T{moment[1]}"
    else:
        dates[text] = moment[0]
