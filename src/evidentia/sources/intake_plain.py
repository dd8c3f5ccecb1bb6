"""The short way into the base: tells at once that nothing of a proposal would have to be cleaned, cut, put right or left out.

It only ever says yes where the readers in `intake_values` would return what they were given. Every field is read once.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.evidence import SCORE_ONE
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.vocabulary import ContentType
from evidentia.sources.intake_text import clean_text, is_clean_line
from evidentia.sources.intake_values import MAX_ID_CHARS, MAX_ORIGIN_CHARS, MAX_TITLE_CHARS, PLAIN_TEXT

if TYPE_CHECKING:
    from typing import TypeGuard


Plain = tuple[str, str, int | None, str, str, datetime | None, ContentType]
"""Content, own id, score at 2^-32, origin, title, date and kind of a proposal that is taken as it stands."""


def read_plain(proposed: object, *, most: int, latest: datetime) -> Plain | None:
    """Return what a `Candidate` of at most `most` characters says, if it is plain; None says nothing."""
    if type(proposed) is not Candidate:
        return None
    fields = msgspec.structs.astuple(proposed)
    content, own_id, score, origin, title, updated_at, media_type, content_type, confidence, access, metadata = fields
    is_plain = (
        _is_plain_text(content, most=most)
        and is_clean_line(own_id, most=MAX_ID_CHARS)
        and is_clean_line(origin, most=MAX_ORIGIN_CHARS)
        and type(title) is str
        and (not title or is_clean_line(title, most=MAX_TITLE_CHARS))
        and (updated_at is None or (type(updated_at) is datetime and updated_at.tzinfo is UTC and updated_at <= latest))
        and (score is None or (type(score) is float and 0 <= score <= 1))
        and type(content_type) is ContentType
        and type(media_type) is str
        and media_type == PLAIN_TEXT
        and confidence is None
        and access is None
        and type(metadata) is dict
        and not metadata
    )
    if not is_plain:
        return None
    return content, own_id, None if score is None else round(score * SCORE_ONE), origin, title, updated_at, content_type


def _is_plain_text(value: object, *, most: int) -> TypeGuard[str]:
    return type(value) is str and len(value) <= most and clean_text(value) == value and not value.isspace() and value != ""
