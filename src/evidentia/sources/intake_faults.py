"""What can be wrong with what a source proposes, in the words that coverage reports use."""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """Something that was refused, cut or put right."""

    NOT_A_CANDIDATE = "not_a_candidate"
    """Refused: it has none of the shapes that are read."""
    UNREADABLE = "unreadable"
    """Refused: it raises when it is read."""
    NOT_TEXT = "not_text"
    """Refused: its content is no text."""
    EMPTY = "empty"
    """Refused: nothing is left of its content once it is clean."""
    BAD_ACCESS = "bad_access"
    """Refused: it limits access in words that are not understood."""
    BROKEN_CUSTODY = "broken_custody"
    """Refused: the custody chain it came with does not hold."""
    DUPLICATE_ID = "duplicate_id"
    """Refused: another candidate of the reply has its id."""
    TOO_MANY = "too_many"
    """Not read: as many candidates as are taken had come."""
    REPLY_TOO_LARGE = "reply_too_large"
    """Not read any further: as many characters as are taken had come."""
    TOO_LONG = "too_long"
    """Cut: its content was longer than a candidate's may be."""
    BAD_ID = "bad_id"
    """Put right: its id is no name; the hash of its content stands in."""
    BAD_SCORE = "bad_score"
    """Left out: its score is no number from 0 to 1, so the order of the reply holds."""
    BAD_CONFIDENCE = "bad_confidence"
    """Left out: its confidence is no number from 0 to 1."""
    BAD_DATE = "bad_date"
    """Left out: its date cannot be read, or has no time zone."""
    FUTURE_DATE = "future_date"
    """Left out: it says it was changed after the moment that was asked about."""
    BAD_MEDIA_TYPE = "bad_media_type"
    """Put right: its media type is none; plain text stands in."""
    BAD_CONTENT_TYPE = "bad_content_type"
    """Put right: its kind of content is not known; documentation stands in."""
    BAD_TITLE = "bad_title"
    """Left out or cut: its title is no text, or too long."""
    BAD_ORIGIN = "bad_origin"
    """Left out or cut: its origin is no text, or too long."""
    BAD_METADATA = "bad_metadata"
    """Left out: some of its metadata is not what names and short values are."""
    RESERVED_METADATA = "reserved_metadata"
    """Left out: some of its metadata claims what only the registry or the engine says."""
    METADATA_CUT = "metadata_cut"
    """Left out: it has more metadata than is kept, or longer values."""


CUT_FLAG = "cut_by_intake"
"""On a candidate whose content was cut."""
NO_ORIGIN_FLAG = "no_origin"
"""On a candidate that does not say where it can be found."""


class RefusedError(Exception):
    """A proposal is not taken; never leaves the intake."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault
