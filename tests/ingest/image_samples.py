"""Small images, and documents in real formats that show them, made at test time."""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any

import docx
import pptx
from pptx.util import Inches
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas

from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.readers.registry import read_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pypdf

    from evidentia.contracts.layout import ExtractedText


def png(shade: int = 0, *, width: int = 16, height: int = 12, claimed: tuple[int, int] | None = None) -> bytes:
    """Return a grey PNG; `claimed` writes another size into its head than its pixels have."""
    wide, high = claimed or (width, height)
    rows = b"".join(b"\0" + bytes([shade]) * width for _ in range(height))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", wide, high, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content)) for kind, content in parts
    )


def jpeg(shade: int = 0, mode: str = "RGB") -> bytes:
    """Return a JPEG of one colour."""
    from PIL import Image

    stream = io.BytesIO()
    Image.new(mode, (16, 12), (shade,) * len(mode)).save(stream, "JPEG")
    return stream.getvalue()


def read(name: str, content: bytes, limits: ReadLimits | None = None) -> ExtractedText:
    """Read a file the way an ingest does."""
    return read_document(content, name=name, limits=limits or ReadLimits())


def nearest(extracted: ExtractedText) -> list[str]:
    """Return the nearest text of each image in order."""
    return [extracted.text[image.start : image.end] for image in extracted.images]


def word(*blocks: str | bytes, captions: Iterable[str] = ()) -> bytes:
    """Return a Word document: a string is a paragraph, bytes are a picture in a paragraph of its own, `# x` a heading."""
    document = docx.Document()
    for block in blocks:
        if isinstance(block, bytes):
            document.add_picture(io.BytesIO(block))
        elif block.startswith("# "):
            document.add_heading(block[2:], level=1)
        else:
            document.add_paragraph(block, style="Caption" if block in captions else None)
    return saved(document)


def saved(document: object) -> bytes:
    """Return the bytes of an Office document."""
    stream = io.BytesIO()
    document.save(stream)  # type: ignore[attr-defined]
    return stream.getvalue()


def deck(*slides: Sequence[tuple[object, float, float]]) -> bytes:
    """Return slides of texts and pictures, each at its distance from the top and the left in inches."""
    presentation = pptx.Presentation()
    for contents in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[6])
        for what, top, left in contents:
            if isinstance(what, bytes):
                slide.shapes.add_picture(io.BytesIO(what), Inches(left), Inches(top))
            else:
                slide.shapes.add_textbox(Inches(left), Inches(top), Inches(2), Inches(0.5)).text_frame.text = str(what)
    return saved(presentation)


def first_image(writer: pypdf.PdfWriter) -> Any:
    """Return the first image of the first page, to be changed."""
    resources: Any = writer.pages[0]["/Resources"]
    return next(iter(resources["/XObject"].values())).get_object()


def sheet(*pages: Sequence[tuple[object, int, int]]) -> bytes:
    """Return a PDF of lines and 60 by 40 point images, each with its height and its distance from the left in points."""
    stream = io.BytesIO()
    pdf = canvas.Canvas(stream, invariant=1)
    for contents in pages:
        for what, height, left in contents:
            if isinstance(what, bytes):
                pdf.drawImage(ImageReader(io.BytesIO(what)), left, height, 60, 40)
            else:
                pdf.drawString(left, height, str(what))
        pdf.showPage()
    pdf.save()
    return stream.getvalue()
