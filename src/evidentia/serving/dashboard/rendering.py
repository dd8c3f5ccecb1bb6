"""Templates with escaping always on, and the few words that they use for numbers, times and hashes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from evidentia.contracts.evidence import SCORE_ONE
from evidentia.serving.cli.durations import age_in_words, span_of
from evidentia.serving.dashboard.files import address_of

if TYPE_CHECKING:
    from collections.abc import Iterable

SHORT_HASH: Final = 12
_DASH: Final = "-"


def environment() -> Environment:
    """Return what renders templates; a name that a template does not know is an error."""
    made = Environment(
        loader=PackageLoader("evidentia.serving.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        age=age_in_words,
        count=count,
        joined=joined,
        moment=moment,
        ms=milliseconds,
        sentence=sentence,
        share=share,
        short=short,
        span=span_of,
        words=words,
    )
    made.globals.update(asset=address_of, address=address)
    return made


def address(path: str, **query: object) -> str:
    """Return a path with parameters; those that are None or empty are left out."""
    given: list[tuple[str, str]] = []
    for name, value in query.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        given += [(name, str(each)) for each in values if each not in (None, "")]
    return f"{path}?{urlencode(given)}" if given else path


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number of things in words: `1 document`, `1,024 documents`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def joined(values: Iterable[object], between: str = ", ") -> str:
    """Return values one after the other, or a dash when there are none."""
    return between.join(str(value) for value in values) or _DASH


def milliseconds(value: float | None) -> str:
    """Return a time in milliseconds as people read it."""
    return _DASH if value is None else f"{value:,.1f} ms"


def moment(at: datetime | str | None) -> str:
    """Return a moment in UTC to the second."""
    if at is None or at == "":
        return _DASH
    read = datetime.fromisoformat(at) if isinstance(at, str) else at
    return f"{read.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def sentence(text: str, is_begun: bool = True) -> str:  # noqa: FBT001, FBT002 - filters are given values by place
    """Return a message with its end, and with a capital letter where it begins a line."""
    said = text[:1].upper() + text[1:] if is_begun else text
    return said if said.endswith((".", "?", "!", "…")) else f"{said}."


def share(value: int | None, digits: int = 2) -> str:
    """Return a score at 2^-32 as a decimal from 0 to 1."""
    return _DASH if value is None else f"{value / SCORE_ONE:.{digits}f}"


def short(text: str, chars: int = SHORT_HASH) -> str:
    """Return the beginning of a hash or an id."""
    return text if len(text) <= chars else f"{text[:chars]}…"


def words(word: object) -> str:
    """Return a word of a vocabulary as people write it."""
    return str(getattr(word, "value", word)).replace("_", " ")
