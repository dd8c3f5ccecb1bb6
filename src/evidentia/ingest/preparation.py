"""A read document becomes one that can be stored: chunks identified, hashed and chained, pages, images and tables laid out.

Nothing here depends on time, place or order except the timestamps inside custody records, so the same text under
the same document id always gives the same chunk ids.
"""

from __future__ import annotations

import math
from itertools import accumulate
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from evidentia.contracts.canonical import has_utf8, sha256_hex
from evidentia.contracts.documents import PreparedChunk, PreparedDocument, ReadDocument
from evidentia.contracts.ids import SemanticVersion, Sha256, ToolId, chunk_id_of
from evidentia.contracts.layout import Attachment, DocumentImage, DocumentLayout, ExtractedImage, ExtractedText
from evidentia.contracts.provenance import DocumentCustody, OriginDescriptor, ToolStamp, TransformationRecord
from evidentia.contracts.tables import CellValue, ExtractedTable, TableCard, table_id_of
from evidentia.contracts.vocabulary import SourceType
from evidentia.ingest.reasons import NoteReason
from evidentia.provenance.custody_chain import DocumentChain, chunk_record
from evidentia.provenance.layout_custody import LARGEST_INTEGER, encode_content, encode_layout, extent, is_regular
from evidentia.tables.sql_names import table_sql_name
from evidentia.text.prompt_injection import hostile_flags

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


CHUNKER = ToolId("evidentia.ingest.chunking")


def prepare(document: ReadDocument) -> PreparedDocument:
    """Return the document with its chunks identified, its custody sealed and its layout named by its metadata."""
    text = document.extracted.text
    encoded = text.encode()
    text_hash = sha256_hex(encoded)
    custody = _custody(document, text_hash=text_hash)
    layout, attachments = lay_out(document)
    remarks = _remarks(document)
    return PreparedDocument(
        source_id=document.source_id,
        document_id=document.document_id,
        text=text,
        text_hash=text_hash,
        custody=custody,
        metadata=structs.replace(document.metadata, layout=layout, remarks=remarks) if layout or remarks else document.metadata,
        access=document.access,
        chunks=tuple(_chunks(document, custody=custody, encoded=encoded, text_hash=text_hash)),
        fingerprint=document.fingerprint,
        root=document.root,
        attachments=attachments,
    )


def _remarks(document: ReadDocument) -> dict[str, tuple[int, ...]]:
    """Return what readers of each chunk should be warned of, by name; most documents have nothing of the kind."""
    found: dict[str, list[int]] = {}
    for position, (start, end) in enumerate(document.spans):
        for flag in hostile_flags(document.extracted.text[start:end]):
            found.setdefault(flag, []).append(position)
    return {flag: tuple(found[flag]) for flag in sorted(found)}


def _custody(document: ReadDocument, *, text_hash: Sha256) -> DocumentCustody:
    extracted = document.extracted
    origin = OriginDescriptor(
        source_id=document.source_id,
        source_type=SourceType.INVERTED_INDEX,
        document_id=document.document_id,
        document_version=document.document_version,
        extraction_method=extracted.method,
        extraction_timestamp=document.read_at,
        content_hash=document.original_hash,
        content_length=document.original_length,
        media_type=extracted.media_type,
    )
    extraction = TransformationRecord(
        step="extract",
        tool_id=extracted.tool_id,
        tool_version=extracted.tool_version,
        timestamp=document.read_at,
        input_hash=document.original_hash,
        output_hash=text_hash,
    )
    cut_by = ToolStamp(tool_id=CHUNKER, tool_version=SemanticVersion(document.chunker_version), timestamp=document.read_at)
    return DocumentCustody(origin=origin, transformations=(extraction,), cut_by=cut_by)


def _chunks(document: ReadDocument, *, custody: DocumentCustody, encoded: bytes, text_hash: Sha256) -> Iterator[PreparedChunk]:
    chain = DocumentChain(custody)
    text = document.extracted.text
    whole = (0, len(text))
    byte_end = previous_end = 0
    for position, (start, end) in enumerate(document.spans):
        if (start, end) == whole:
            content, content_hash, byte_start, byte_end = encoded, text_hash, 0, len(encoded)
        else:
            content = text[start:end].encode()
            content_hash = sha256_hex(content)
            byte_start = byte_end + len(text[previous_end:start].encode())
            byte_end = byte_start + len(content)
        previous_end = end
        record = chunk_record(custody, position=position, start=start, end=end, text_hash=text_hash, content_hash=content_hash)
        yield PreparedChunk(
            chunk_id=chunk_id_of(document.document_id, position=position, content_hash=content_hash),
            position=position,
            start=start,
            end=end,
            byte_start=byte_start,
            byte_end=byte_end,
            content_hash=content_hash,
            custody_head=chain.head(content, record),
        )


# --- layouts ---
# What a reader found besides text becomes the layout of a document and the bytes that the layout names.
#
# Everything is bounded here, whatever a reader hands over: what is too much is left out, and a note says so.

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
    return has_utf8(" ".join(words))


def _words(text: str) -> str:
    """Return the name or description of an image, bounded and fit to be stored."""
    return text[:MAX_WORDS].encode(errors="replace").decode()
