"""What may be the name of a source: one rule for documents that are ingested and for sources that are registered."""

from __future__ import annotations

import re
from typing import Final

SOURCE_NAME_RULE: Final = "1 to 128 letters, digits, dots, underscores or hyphens"

_SOURCE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


def is_source_name(name: str) -> bool:
    """Tell whether a text follows `SOURCE_NAME_RULE`; letters and digits are those of ASCII."""
    return _SOURCE_NAME.fullmatch(name) is not None
