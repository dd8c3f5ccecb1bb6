"""The metadata of a proposal: short names with short values, and nothing that only the registry or the engine may say."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from itertools import islice
from typing import Final

from evidentia.sources.intake_faults import Fault
from evidentia.sources.intake_text import clean_line, exact_text

OWN_PREFIX: Final = "evidentia."
"""Names that begin so are between parts of the engine."""
READ_ELSEWHERE: Final = frozenset({"content_type", "media_type", "title", "updated_at"})
"""Names that fields of a candidate have; fragments show those, so metadata of that name is dropped without a word."""
RESERVED: Final = frozenset(
    {
        *("acl", "authority_tier", "chunk_id", "classification", "confidence_basis", "document_id", "origin"),
        *("retrieved_at", "source_id", "tenant", "token_count_basis"),
    }
)
"""Names under which only the registry and the engine speak."""
MAX_ENTRIES: Final = 32
MAX_VALUE_CHARS: Final = 1_000

_MAX_READ: Final = 256
_MAX_NUMBER_BITS: Final = 256
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MAX_NAME_LENGTH: Final = 64


def read_metadata(value: object, faults: list[Fault]) -> dict[str, str]:
    """Return what is kept, ordered by name: the first 32. Of a mapping with more than 256 entries nothing is, whatever their order."""
    if value is None or (type(value) is dict and not value):
        return {}
    entries = list(islice(value.items(), _MAX_READ + 1)) if isinstance(value, Mapping) else None
    if entries is None or len(entries) > _MAX_READ:
        faults.append(Fault.BAD_METADATA)
        return {}
    noted: set[Fault] = set()
    kept = sorted(entry for each in entries if (entry := _read_entry(each, noted)) is not None)
    if len(kept) > MAX_ENTRIES:
        noted.add(Fault.METADATA_CUT)
    faults += sorted(noted)
    return dict(kept[:MAX_ENTRIES])


def _read_entry(entry: object, noted: set[Fault]) -> tuple[str, str] | None:
    if not isinstance(entry, tuple) or len(entry) != len(("name", "value")):
        noted.add(Fault.BAD_METADATA)
        return None
    name = exact_text(entry[0], most=_MAX_NAME_LENGTH + 1) if isinstance(entry[0], str) else ""
    if not _NAME.fullmatch(name):
        noted.add(Fault.BAD_METADATA)
        return None
    if name in READ_ELSEWHERE or entry[1] is None:
        return None
    if name in RESERVED or name.startswith(OWN_PREFIX):
        noted.add(Fault.RESERVED_METADATA)
        return None
    return _with_value(name, entry[1], noted)


def _with_value(name: str, value: object, noted: set[Fault]) -> tuple[str, str] | None:
    text = _value_text(value)
    if text is None:
        noted.add(Fault.BAD_METADATA)
        return None
    line = clean_line(text, most=MAX_VALUE_CHARS + 1)
    if len(line) > MAX_VALUE_CHARS:
        noted.add(Fault.METADATA_CUT)
    return name, clean_line(line, most=MAX_VALUE_CHARS)


def _value_text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and int(value).bit_length() <= _MAX_NUMBER_BITS:
        return str(int(value))
    if isinstance(value, float) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, date):
        return value.isoformat()
    return None
