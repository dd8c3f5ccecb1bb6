"""Text, Markdown, source code, configuration, logs and comma-separated tables: the text is the decoded file, character for character.

Refuses to guess encodings: UTF-8, or UTF-16 that says so with a byte order mark.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.extraction import ExtractedText
from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.ingest.front_matter import split_front_matter
from evidentia.ingest.readers.families import Family, ending_of
from evidentia.ingest.readers.images import ImageGatherer
from evidentia.ingest.readers.limits import ReadLimits, text_too_long
from evidentia.ingest.readers.markdown_images import place_images
from evidentia.ingest.reasons import SkipReason

if TYPE_CHECKING:
    from evidentia.contracts.tables import ExtractedTable

TOOL_ID = ToolId("evidentia-text")
TOOL_VERSION = SemanticVersion("1.0.0")

_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".rst": "text/x-rst",
    ".toml": "application/toml",
    ".tsv": "text/tab-separated-values",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_FRONT_MATTER_FAMILIES = frozenset({Family.MARKDOWN, Family.TEXT})
_STRUCTURES = {Family.MARKDOWN: "markdown", Family.CODE: "code"}


class PlainReader(msgspec.Struct, frozen=True, kw_only=True):
    """Reads files that are text already."""

    family: Family
    limits: ReadLimits = ReadLimits()

    def read(self, content: bytes, *, name: str) -> ExtractedText:
        """Return the decoded file and what its front matter declares."""
        text, encoding = self._decoded(content)
        if len(text) > self.limits.max_text_chars:
            raise text_too_long(self.limits.max_text_chars)
        front = split_front_matter(text) if self.family in _FRONT_MATTER_FAMILIES else None
        gatherer = ImageGatherer(self.limits)
        body_start = front.body_start if front else 0
        images = place_images(text, gatherer, body_start=body_start) if self.family is Family.MARKDOWN else ()
        tables, table_notes = self._tables(text, name)
        return ExtractedText(
            text=text,
            media_type=self._media_type(name),
            method=f"decode_{encoding}",
            tool_id=TOOL_ID,
            tool_version=TOOL_VERSION,
            structure=_STRUCTURES.get(self.family, "text"),
            body_start=body_start,
            declared=front.declared if front else {},
            notes=(*(front.notes if front else ()), *gatherer.notes(), *table_notes),
            images=images,
            tables=tables,
        )

    def _tables(self, text: str, name: str) -> tuple[tuple[ExtractedTable, ...], tuple[str, ...]]:
        if self.family is not Family.TABLE:
            return (), ()
        from evidentia.ingest.readers.delimited import delimited_tables

        return delimited_tables(text, name=name)

    def _decoded(self, content: bytes) -> tuple[str, str]:
        if self.family is not Family.UNKNOWN:
            return decode(content)
        try:
            return decode(content)
        except DocumentUnreadableError as error:
            raise DocumentUnreadableError(SkipReason.UNSUPPORTED_TYPE, "is of no type that is read and not text either") from error

    def _media_type(self, name: str) -> str:
        if self.family is Family.MARKDOWN:
            return "text/markdown"
        return _MEDIA_TYPES.get(ending_of(name), "text/plain")


def decode(content: bytes) -> tuple[str, str]:
    """Return the text without its byte order mark and the name of the encoding, or refuse with the place that is wrong."""
    mark, encoding, label = _encoding_of(content)
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        problem = f"is not {label} (first wrong byte at offset {len(mark) + error.start}); save it as UTF-8 and ingest it again"
        raise DocumentUnreadableError(SkipReason.BAD_ENCODING, problem) from error
    if (offset := text.find("\0")) >= 0:
        problem = f"holds a NUL character at character {offset}, so it is no text; remove it and ingest the file again"
        raise DocumentUnreadableError(SkipReason.NUL_BYTE, problem)
    return text, encoding.replace("-", "_")


def _encoding_of(content: bytes) -> tuple[bytes, str, str]:
    if content.startswith(codecs.BOM_UTF8):
        return codecs.BOM_UTF8, "utf-8", "UTF-8"
    if content.startswith(codecs.BOM_UTF16_LE):
        return codecs.BOM_UTF16_LE, "utf-16-le", "the UTF-16 its first bytes announce"
    if content.startswith(codecs.BOM_UTF16_BE):
        return codecs.BOM_UTF16_BE, "utf-16-be", "the UTF-16 its first bytes announce"
    return b"", "utf-8", "UTF-8"
