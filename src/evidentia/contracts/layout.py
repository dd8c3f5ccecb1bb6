"""What a document holds besides its text: where its pages begin, its images with the text they belong to, and its tables."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evidentia.contracts.ids import SemanticVersion, Sha256, ToolId
from evidentia.contracts.tables import ExtractedTable, TableCard

IMAGE_SCHEME = "evidentia-image:"
"""How an image is named in a text: this, and the hash of its bytes."""


class ExtractedImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image as a reader found it, and the stretch of the extracted text it stands next to."""

    content: bytes
    media_type: str
    name: str = ""
    alt: str = ""
    start: int = 0
    end: int = 0
    """Characters of the nearest text; images that follow one another share it."""


class DocumentImage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An image of a document: the hash of its bytes, and the stretch of the document's text it belongs to."""

    image_hash: Sha256
    media_type: str
    byte_count: int
    name: str = ""
    alt: str = ""
    start: int = 0
    end: int = 0


class DocumentLayout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pages, images and tables of one document; `metadata.layout` is the hash of its canonical form."""

    pages: tuple[int, ...] = ()
    """Where each page begins in the text, the first at 0; empty where there are no pages."""
    images: tuple[DocumentImage, ...] = ()
    tables: tuple[TableCard, ...] = ()


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that belong to a document and are not its text: an image, the cells of a table, or a layout itself."""

    content_hash: Sha256
    content: bytes


class FragmentImage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An image that belongs to the text of a fragment."""

    image_hash: Sha256
    media_type: str
    name: str = ""
    alt: str = ""
    nearest_text: str = ""
    """The sentence or line of the document it stands next to."""


# --- extraction ---
# What a document reader returns.


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
