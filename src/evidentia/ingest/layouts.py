"""What a reader found besides text becomes the layout of a document and the bytes that the layout names.

Everything is bounded here, whatever a reader hands over: what is too much is left out, and a note says so.
"""

from __future__ import annotations

import math
from itertools import accumulate
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.layout import Attachment, DocumentImage, DocumentLayout
from evidentia.contracts.tables import TableCard, table_id_of
from evidentia.ingest.reasons import NoteReason
from evidentia.ingest.tables.naming import table_sql_name
from evidentia.provenance.layouts import LARGEST_INTEGER, encode_content, encode_layout, extent, is_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evidentia.contracts.extraction import ExtractedText
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.ingestion import ReadDocument
    from evidentia.contracts.layout import ExtractedImage
    from evidentia.contracts.tables import CellValue, ExtractedTable

MAX_IMAGE_BYTES = 16 * 1024 * 1024
MAX_IMAGES = 2_000
MAX_IMAGES_BYTES = 128 * 1024 * 1024
"""What the images of one document may take together; one that is used twice counts once."""
MAX_TABLES = 1_000
MAX_CELLS = 10_000_000
"""What the tables of one document may hold together."""
MAX_WORDS = 1_000
"""How long the name and the description of an image may be."""


class LaidOut(NamedTuple):
    """The hash of a document's layout, None where it has none, and every byte that belongs to it, each once."""

    layout: Sha256 | None
    attachments: tuple[Attachment, ...]


NOTHING_LAID_OUT = LaidOut(None, ())


def bounded(extracted: ExtractedText) -> ExtractedText:
    """Return what was read without the images and tables that are too many, too large or not whole; its notes say how many.

    What is within bounds comes back as it is, so doing it twice changes nothing.
    """
    images = tuple(_admitted_images(extracted.images))
    tables = tuple(_admitted_tables(extracted.tables))
    notes = [
        f"{code}: has {len(given)} {kind}, of which {len(given) - kept} were left out: too many, too large or not fit to be stored"
        for code, kind, given, kept in (
            (NoteReason.IMAGES_LEFT_OUT.value, "images", extracted.images, len(images)),
            (NoteReason.TABLES_LEFT_OUT.value, "tables", extracted.tables, len(tables)),
        )
        if kept < len(given)
    ]
    if not notes:
        return extracted
    return structs.replace(extracted, images=images, tables=tables, notes=(*extracted.notes, *notes))


def lay_out(document: ReadDocument) -> LaidOut:
    """Return the layout of a document; one without pages, images and tables has none."""
    extracted = document.extracted
    if not (extracted.pages or extracted.images or extracted.tables):
        return NOTHING_LAID_OUT
    extracted = bounded(extracted)
    chars = len(extracted.text)
    found: dict[Sha256, bytes] = {}
    layout = DocumentLayout(
        pages=tuple(_pages(extracted.pages, chars=chars)),
        images=tuple(_image(each, chars=chars, found=found) for each in extracted.images),
        tables=tuple(_cards(document, extracted.tables, found=found)),
    )
    if layout == DocumentLayout():
        return NOTHING_LAID_OUT
    encoded = encode_layout(layout)
    named = sha256_hex(encoded)
    attachments = (Attachment(content_hash=key, content=content) for key, content in ({named: encoded} | found).items())
    return LaidOut(named, tuple(attachments))


def _pages(pages: Sequence[int], *, chars: int) -> Iterator[int]:
    """Yield where pages begin, the first at 0 and none before another or beyond the text."""
    for place in accumulate((0, *pages[1:]) if pages else (), max):
        yield min(place, chars)


def _image(image: ExtractedImage, *, chars: int, found: dict[Sha256, bytes]) -> DocumentImage:
    image_hash = sha256_hex(image.content)
    found[image_hash] = image.content
    start = max(0, min(image.start, chars))
    return DocumentImage(
        image_hash=image_hash,
        media_type=_words(image.media_type),
        byte_count=len(image.content),
        name=_words(image.name),
        alt=_words(image.alt),
        start=start,
        end=max(start, min(image.end, chars)),
    )


def _cards(document: ReadDocument, tables: Sequence[ExtractedTable], *, found: dict[Sha256, bytes]) -> Iterator[TableCard]:
    file_name = PurePosixPath(document.metadata.path or document.document_id.partition(":")[2]).name
    places: dict[int, int] = {}
    taken: set[str] = set()
    for table in tables:
        places[table.sheet] = places.get(table.sheet, 0) + 1
        encoded = encode_content(table.content)
        content = sha256_hex(encoded)
        found[content] = encoded
        sql_name = table_sql_name(file_name, table.sheet_name, table.title, taken)
        taken.add(sql_name)
        first_row, last_row, row_count = extent(table.content)
        yield TableCard(
            table_id=table_id_of(document.document_id, sheet=table.sheet, table=places[table.sheet]),
            document_id=document.document_id,
            source_id=document.source_id,
            file_name=file_name,
            sheet=table.sheet,
            sheet_name=table.sheet_name,
            title=table.title,
            sql_name=sql_name,
            header_rows=table.header_rows,
            first_row=first_row,
            last_row=last_row,
            row_count=row_count,
            total_rows=table.total_rows,
            columns=table.columns,
            content=content,
            notes=table.notes,
        )


def _admitted_images(images: Sequence[ExtractedImage]) -> Iterator[ExtractedImage]:
    seen: set[Sha256] = set()
    room = MAX_IMAGES_BYTES
    for image in images[:MAX_IMAGES]:
        if not 0 < len(image.content) <= MAX_IMAGE_BYTES:
            continue
        key = sha256_hex(image.content)
        if key not in seen and len(image.content) > room:
            continue
        room -= 0 if key in seen else len(image.content)
        seen.add(key)
        yield image


def _admitted_tables(tables: Sequence[ExtractedTable]) -> Iterator[ExtractedTable]:
    room = MAX_CELLS
    for table in tables[:MAX_TABLES]:
        cells = len(table.content.rows) * len(table.columns)
        if cells <= room and is_regular(table.content, columns=len(table.columns)) and _is_storable(table):
            room -= cells
            yield table


def _is_storable(table: ExtractedTable) -> bool:
    """Tell whether every word and cell has a form in which it can be stored; a reader that is wrong must not stop an ingest."""
    words = (table.sheet_name, table.title, *table.notes)
    headers = (word for column in table.columns for word in (column.name, column.sql_name, column.unit, *column.samples))
    return _is_text((*words, *headers)) and all(map(_is_column, table.content.columns))


def _is_column(column: tuple[CellValue, ...]) -> bool:
    kinds = set(map(type, column))
    if float in kinds and not all(math.isfinite(cell) for cell in column if isinstance(cell, float)):
        return False
    if int in kinds and not all(-LARGEST_INTEGER <= cell <= LARGEST_INTEGER for cell in column if isinstance(cell, int)):
        return False
    return str not in kinds or _is_text(cell for cell in column if isinstance(cell, str))


def _is_text(words: Iterable[str]) -> bool:
    """Tell whether texts have a UTF-8 form, which half a surrogate pair has not; the space keeps two halves from meeting."""
    try:
        " ".join(words).encode()
    except UnicodeEncodeError:
        return False
    return True


def _words(text: str) -> str:
    """Return the name or description of an image, bounded and fit to be stored."""
    return text[:MAX_WORDS].encode(errors="replace").decode()
