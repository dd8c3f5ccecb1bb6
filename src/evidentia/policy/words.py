"""How numbers and names are spelt in reasons, and which name was meant.

Reasons are read in logs, so that the name of a document cannot bring control characters along.
"""

from __future__ import annotations

import difflib
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_NAME_LENGTH: Final = 200


def shown(name: str) -> str:
    """Return a name for a reason: as it is, or escaped and cut where it would spoil the line."""
    if name.isprintable() and len(name) <= _MAX_NAME_LENGTH:
        return name
    plain = name[:_MAX_NAME_LENGTH]
    if not plain.isprintable():
        plain = plain.encode("unicode_escape").decode("ascii")
    return plain + ("…" if len(name) > _MAX_NAME_LENGTH else "")


def two_decimals(score: float) -> str:
    """Return a relevance; zero has no sign."""
    return f"{score + 0.0:.2f}"


def shortest(score: float) -> str:
    """Return a grounding score: the shortest decimal that stands for it; zero has no sign."""
    return _shortest(score + 0.0)


@lru_cache(maxsize=1_024)
def _shortest(score: float) -> str:
    return repr(score)


def days(age: float) -> str:
    """Return an age; a whole number has no decimals."""
    return str(int(age)) if age == int(age) else repr(age)


def percent(ratio: float) -> str:
    """Return a share in whole percent, rounded half up from its decimal form."""
    return str((Decimal(repr(ratio)) * 100).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def percent_of(part: int, whole: int) -> int:
    """Return a count as a share of another in whole percent, rounded half up."""
    return (200 * part + whole) // (2 * whole)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like another; empty when none is."""
    near = difflib.get_close_matches(name.lower(), sorted(known), n=1)
    return near[0] if near else ""
