"""PDF: the text of each page, a form feed between pages, and the images on them; refuses to draw or to run anything."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import logging
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.extraction import ExtractedText
from evidentia.contracts.ids import SemanticVersion, ToolId
from evidentia.ingest.readers.images import ImageGatherer
from evidentia.ingest.readers.limits import ReadLimits, TextGatherer
from evidentia.ingest.readers.nearest_text import TextMap
from evidentia.ingest.readers.pdf_images import PdfImages
from evidentia.ingest.reasons import SkipReason

if TYPE_CHECKING:
    import pypdf

TOOL_ID = ToolId("pypdf")
PAGE_BREAK = "\n\n\f"
NO_CRYPTOGRAPHY = "is encrypted with AES, and the package that opens such files is missing: pip install cryptography"
_PLACEHOLDERS = frozenset({"anonymous", "untitled", "unspecified"})


class PdfReader(msgspec.Struct, frozen=True, kw_only=True):
    """Reads PDF files that hold text."""

    limits: ReadLimits = ReadLimits()

    def read(self, content: bytes, *, name: str) -> ExtractedText:  # noqa: ARG002  # the port's signature
        """Return the text of the pages in order and the declared title, author and dates."""
        from pypdf.errors import DependencyError

        logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it narrates every flaw; ours is the one message that counts
        try:
            return self._read(content)
        except DependencyError as error:
            if b"/Encrypt" in content and importlib.util.find_spec("cryptography") is None:
                raise DocumentUnreadableError(SkipReason.ENCRYPTED, NO_CRYPTOGRAPHY) from error
            raise

    def _read(self, content: bytes) -> ExtractedText:
        import pypdf

        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not _opens_without_password(reader):
            raise DocumentUnreadableError(SkipReason.ENCRYPTED, "is encrypted; remove the password and ingest it again")
        gatherer, gathered = TextGatherer(self.limits), ImageGatherer(self.limits)
        images = PdfImages(gathered)
        starts: list[int] = []
        for index, page in enumerate(reader.pages):
            gatherer.add(PAGE_BREAK if index else "")
            starts.append(gatherer.length)
            gatherer.add(images.text_of(page, section=index, start=gatherer.length))
        text = gatherer.joined()
        if not text.strip():
            raise DocumentUnreadableError(SkipReason.NO_TEXT, "holds no text, perhaps only scanned pages; run text recognition on it first")
        return ExtractedText(
            text=text,
            media_type="application/pdf",
            method="pdf_text_layer",
            tool_id=TOOL_ID,
            tool_version=SemanticVersion(importlib.metadata.version("pypdf")),
            declared=_declared(reader),
            notes=gathered.notes(),
            pages=tuple(starts),
            images=tuple(images.placed(TextMap(text, sections=starts, wraps=True, has_headings=False))),
        )


def _opens_without_password(reader: pypdf.PdfReader) -> bool:
    try:
        return bool(reader.decrypt(""))
    except NotImplementedError:
        return False


def _declared(reader: pypdf.PdfReader) -> dict[str, str | tuple[str, ...]]:
    about = reader.metadata
    if about is None:
        return {}
    declared: dict[str, str | tuple[str, ...]] = {}
    for key, field in (("title", "/Title"), ("author", "/Author")):
        value = about.get(field)
        if isinstance(value, str) and value.strip() and value.strip().lower() not in _PLACEHOLDERS:
            declared[key] = value.strip()
    for key, attribute in (("created", "creation_date"), ("updated", "modification_date")):
        try:
            moment = getattr(about, attribute)
        except ValueError:
            continue
        if moment is not None:
            declared[key] = moment.isoformat()
    return declared
