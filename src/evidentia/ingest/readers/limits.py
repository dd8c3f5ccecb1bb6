"""How much a reader may take in and give out; one small message, because it crosses a process boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.reasons import SkipReason

if TYPE_CHECKING:
    from evidentia.contracts.settings import IngestSettings

BYTES_PER_CHARACTER = 8
"""Office files wrap a character of text in markup; more unpacked bytes than this per allowed character is no document."""


class ReadLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on what comes out of one file."""

    max_text_chars: int = 50_000_000
    max_unpacked_bytes: int = 400_000_000
    max_entries: int = 10_000
    max_ratio: int = 250
    """Unpacked to packed size of an archive above a few megabytes; XML rarely reaches 50."""
    max_depth: int = 2_000
    """Elements of HTML open at once; parsing takes time with the square of it."""
    max_page_bytes: int = 16 * 1024 * 1024
    """Drawing operators of one PDF page, unpacked; so many take half a minute to read, and a few hundred megabytes."""
    max_images: int = 1_000
    max_image_bytes: int = 16 * 1024 * 1024
    max_images_bytes: int = 64 * 1024 * 1024
    """All images of one document together, each counted once however often it is shown."""

    @classmethod
    def of(cls, settings: IngestSettings) -> ReadLimits:
        """Return the limits that follow from the settings."""
        return cls(max_text_chars=settings.max_text_chars, max_unpacked_bytes=settings.max_text_chars * BYTES_PER_CHARACTER)


class TextGatherer:
    """Collects pieces of text and refuses the one that goes beyond the limit, before memory is gone."""

    def __init__(self, limits: ReadLimits) -> None:
        self._pieces: list[str] = []
        self._left = limits.max_text_chars
        self._limit = limits.max_text_chars

    def add(self, piece: str) -> None:
        """Take one piece."""
        self._left -= len(piece)
        if self._left < 0:
            raise text_too_long(self._limit)
        self._pieces.append(piece)

    @property
    def length(self) -> int:
        """How many characters were taken so far, which is where the next piece begins."""
        return self._limit - self._left

    def joined(self) -> str:
        """Return everything taken so far as one string."""
        return "".join(self._pieces)


def text_too_long(limit: int) -> DocumentUnreadableError:
    """Return the refusal of a document with more text than the settings allow."""
    problem = f"holds more than {limit} characters of text; split it, or raise ingest.max_text_chars"
    return DocumentUnreadableError(SkipReason.TEXT_TOO_LONG, problem)
