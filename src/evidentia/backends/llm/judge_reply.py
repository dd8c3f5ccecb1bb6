"""One score out of what a model said, or none: a reply is a number or `{"score": number}` as a whole, and never searched for one."""

from __future__ import annotations

import re
from typing import Final

_MAX_LENGTH: Final = 64
_NUMBER: Final = r"(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
_BLANKS: Final = r"[ \t\r\n]*"
# Matched as a whole: a score that a reply merely quotes is somebody else's, and of two scores neither can be believed.
_REPLY: Final = re.compile(rf'{_BLANKS}(?:{_NUMBER}|\{{{_BLANKS}"score"{_BLANKS}:{_BLANKS}{_NUMBER}{_BLANKS}\}}){_BLANKS}')


def read_score(said: str) -> float | None:
    """Return the score between 0 and 1 that is all that was said; None for everything else."""
    if len(said) > _MAX_LENGTH:
        return None
    found = _REPLY.fullmatch(said)
    if found is None:
        return None
    score = float(found[1] or found[2])
    # The sum makes a plain zero of a negative one.
    return score + 0.0 if 0.0 <= score <= 1.0 else None
