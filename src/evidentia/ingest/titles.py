"""What a document without a declared title is called: its first heading, else its file name."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evidentia.contracts.extraction import ExtractedText

LOOK_WITHIN = 4_096
MAX_TITLE_LENGTH = 500
_HEADING = re.compile(r"^#{1,2}[ \t]+(\S[^\r\n]*)", re.MULTILINE)


def title_of(extracted: ExtractedText, *, own_id: str) -> str:
    """Return the first heading near the top of a structured text, else the file's name without its extension."""
    if extracted.structure == "markdown":
        match = _HEADING.search(extracted.text, extracted.body_start, extracted.body_start + LOOK_WITHIN)
        heading = match.group(1).strip(" \t#") if match else ""
        if heading:
            return heading[:MAX_TITLE_LENGTH]
    return PurePosixPath(own_id).stem[:MAX_TITLE_LENGTH]
