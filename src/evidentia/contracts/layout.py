"""What a document holds besides its text: where its pages begin, its images with the text they belong to, and its tables."""

from __future__ import annotations

import msgspec

from evidentia.contracts.ids import Sha256
from evidentia.contracts.tables import TableCard

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
