"""The values of a record: checked, as JSON can hold them, hashed. What cannot be compared or written down is refused by its field."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from numbers import Integral, Real
from typing import Any, Final

import msgspec

from evidentia.agents.errors import InvalidRecordError
from evidentia.contracts.ids import Sha256

LARGEST: Final = 1.7976931348623157e308
"""The largest finite number; a comparison with it refuses NaN and infinity at once."""
MAX_AGE_DAYS: Final = 1_000_000_000
RETRIEVAL_TOOLS: Final = frozenset(
    {
        "vector_search",
        "similarity_search",
        "semantic_search",
        "hybrid_search",
        "keyword_search",
        "document_search",
        "knowledge_search",
        "search",
        "retrieve",
        "retrieval",
        "source_retrieval",
        "retrieve_documents",
        "retrieve_sources",
        "rag_retrieve",
        "table_rag_retrieve",
        "evidence",
    }
)
"""A call of one of these opens no settlement: its documents may still be on their way."""

_CLOCK_SKEW: Final = timedelta(days=1)
_DEEPEST: Final = 12
_MAX_INTEGER: Final = 2**63
_ANSWERS: Final = ("answer", "output", "text", "response")
"""Where the words of a result are looked for."""

_encode = msgspec.json.Encoder(order="deterministic").encode


def checked_number(value: object, field: str) -> float:
    """Return a finite number as it prints; booleans and texts are not numbers."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidRecordError(field, f"expected a number, not {type(value).__name__}")
    number = _printed(value)
    if not math.isfinite(number):
        raise InvalidRecordError(field, f"{number} is not a finite number")
    return number


def checked_share(value: object, field: str) -> float:
    """Return a number from 0 to 1."""
    number = checked_number(value, field)
    if not 0 <= number <= 1:
        raise InvalidRecordError(field, f"{value} is not between 0 and 1; write 0.4 for 40 percent")
    return number


def checked_text(value: object, field: str) -> str:
    """Return a text that can be written as UTF-8."""
    if not isinstance(value, str):
        raise InvalidRecordError(field, f"expected text, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidRecordError(field, f"character {error.start} is half a surrogate pair; decode the text again") from error
    return str(value)


def checked_age(value: object) -> int | float:
    """Return an age in days: a whole or a decimal number, never negative."""
    number = checked_number(value, "age_days")
    if number < 0:
        raise InvalidRecordError("age_days", f"{value} is negative; give the days since the source was made, or None")
    if number > MAX_AGE_DAYS:
        raise InvalidRecordError("age_days", f"{value} is more than {MAX_AGE_DAYS} days")
    return int(number) if number.is_integer() else number


def age_since(created_at: object, *, now: datetime) -> int:
    """Return the whole days since a moment or day; one that lies up to a day ahead counts as now, since clocks differ."""
    if isinstance(created_at, date) and not isinstance(created_at, datetime):
        created_at = datetime(created_at.year, created_at.month, created_at.day, tzinfo=UTC)
    if not isinstance(created_at, datetime):
        raise InvalidRecordError("created_at", f"expected a datetime or a date, not {type(created_at).__name__}")
    if created_at.tzinfo is None:
        raise InvalidRecordError("created_at", "the time has no time zone; add tzinfo, or give age_days")
    age = now - created_at
    if age < -_CLOCK_SKEW:
        raise InvalidRecordError("created_at", f"'{created_at.isoformat()}' lies in the future")
    return max(0, age.days)


def checked_numbers(values: object, field: str) -> tuple[float, ...]:
    """Return a list of finite numbers; None is an empty one."""
    return tuple(checked_number(value, f"{field}[{place}]") for place, value in enumerate(listed(values, field)))


def checked_texts(values: object, field: str) -> tuple[str, ...]:
    """Return a list of texts; None is an empty one, and a single text is not a list."""
    return tuple(checked_text(value, f"{field}[{place}]") for place, value in enumerate(listed(values, field)))


def checked_count(value: object, field: str) -> int:
    """Return a whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < _MAX_INTEGER:
        raise InvalidRecordError(field, f"expected a whole number from 0, not {value!r}")
    return int(value)


def plain(value: Any, *, depth: int = 0) -> Any:  # noqa: ANN401 - whatever an agent holds becomes the values of JSON
    """Return a value as JSON can hold it; what it cannot hold is said in words, and what lies too deep is cut."""
    if value is None or isinstance(value, bool | str | Real):
        return _plain_scalar(value)
    if depth >= _DEEPEST:
        return "..."
    if isinstance(value, Mapping):
        return {_plain_scalar(str(key)): plain(inner, depth=depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, depth=depth + 1) for inner in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(inner, depth=depth + 1) for inner in value), key=str)
    return value.isoformat() if isinstance(value, datetime | date) else f"<{type(value).__qualname__}>"


def retrieves(name: str, retrieval: bool | None) -> bool:  # noqa: FBT001 - the caller's word, or None for none
    """Tell whether a tool retrieves: the caller's word where there is one, else its name, in any case and with any separator."""
    if retrieval is not None:
        return retrieval
    return name.strip().lower().replace("-", "_").replace(" ", "_") in RETRIEVAL_TOOLS


def hash_of(value: object) -> Sha256 | None:
    """Return the hash of a text, or of the JSON of anything else; None for nothing."""
    if value is None:
        return None
    content = value.encode("utf-8", "backslashreplace") if isinstance(value, str) else _encode(plain(value))
    return Sha256(sha256(content).hexdigest())


def source_count(sources: int | Sequence[object] | None) -> int | None:
    """Return how many sources a tool found, from their number or the list of them."""
    if sources is None:
        return None
    return checked_count(sources, "sources") if isinstance(sources, int) else len(sources)


def filled(**described: object) -> dict[str, Any]:
    """Return what says something, as JSON can hold it."""
    return {name: plain(value) for name, value in described.items() if value not in (None, "", [], {}, ())}


def output_text(result: object) -> str:
    """Return what a result says: itself, its answer, or the JSON of it; empty for none."""
    if result is None or isinstance(result, str):
        return result or ""
    if isinstance(result, dict):
        said = next((result[name] for name in _ANSWERS if isinstance(result.get(name), str)), None)
        if said is not None:
            return str(said)
    return msgspec.json.encode(plain(result)).decode()


def _plain_scalar(value: Any) -> Any:  # noqa: ANN401 - a value of JSON
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Integral):
        return int(value) if abs(int(value)) < _MAX_INTEGER else str(value)
    number = _printed(value)
    return number if math.isfinite(number) else str(number)


def _printed(value: Any) -> float:  # noqa: ANN401 - a number of any library
    """Return a number as it prints: a single-precision 0.7 is 0.7, and not what is nearest to it in single precision."""
    if isinstance(value, float | int):
        return float(value)
    try:
        return float(str(value))
    except ValueError:
        return float(value)


def listed(values: object, field: str) -> Iterable[object]:
    """Return values that are a list; None is an empty one, and neither a text nor a mapping is one."""
    if values is None:
        return ()
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidRecordError(field, f"expected a list, not {type(values).__name__}")
    return values
