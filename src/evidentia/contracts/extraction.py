"""What a document reader returns."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.contracts.layout import ExtractedImage
from evidentia.contracts.tables import ExtractedTable


class ExtractedText(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a file, how it was got, and what the file says about itself.

    `body_start` is where the text to be searched begins: after front matter, whose characters still count, so that
    offsets hold for the original. `declared` holds what the document claims (title, author, dates, tags); claims
    may lower trust and tighten access, never the opposite.
    """

    text: str
    media_type: str
    method: str
    tool_id: ToolId
    tool_version: SemanticVersion
    structure: str = "text"
    """How to chunk it: `text`, `markdown` or `code`."""
    body_start: int = 0
    declared: Mapping[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()
    """Where each page begins in the text, the first at 0; empty where there are none."""
    images: tuple[ExtractedImage, ...] = ()
    tables: tuple[ExtractedTable, ...] = ()
