"""The bytes that pages, images and tables are hashed as, and whether what is stored of a document's layout holds.

`metadata.layout` names a layout by the hash of its canonical form, and the layout names images and cells by the hash of their
bytes. The metadata is part of `corpus_version`, so one version pins every byte of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.decoding import json_decoder, msgpack_decoder
from evidentia.contracts.layout import DocumentImage, DocumentLayout
from evidentia.contracts.tables import TableCard, TableContent
from evidentia.contracts.tables import table_id_of as table_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evidentia.contracts.documents import StoredDocument
    from evidentia.contracts.ids import Sha256

LARGEST_INTEGER = 2**63 - 1
"""Cells hold integers of 64 bits, which is what a table engine computes with."""

_encode_content = msgspec.msgpack.Encoder().encode
_decode_content = msgpack_decoder(TableContent)
decode_layout = json_decoder(DocumentLayout)
"""Returns the layout that bytes stand for, or raises msgspec.MsgspecError."""


def encode_layout(layout: DocumentLayout) -> bytes:
    """Return the canonical bytes of a layout; it holds no floats."""
    return encode_struct(layout)


def encode_content(content: TableContent) -> bytes:
    """Return the cells of a table as MessagePack: a map of `rows`, then `columns`, every number in its shortest form, floats in 64 bits.

    JSON would not do: the canonical form has no floats, and a cell may be one.
    """
    return _encode_content(content)


def decode_content(encoded: bytes) -> TableContent:
    """Return the cells that bytes stand for, or raise msgspec.MsgspecError."""
    return _decode_content(encoded)


def named_hashes(layout: DocumentLayout) -> Iterator[Sha256]:
    """Yield the hash of every image and of every table's cells, in order; one that is used twice comes twice."""
    for image in layout.images:
        yield image.image_hash
    for card in layout.tables:
        yield card.content


class LayoutCheck:
    """Checks the layouts of documents, each once per text, however many versions share it."""

    def __init__(self, attachment: Callable[[Sha256], bytes | None]) -> None:
        self._attachment = attachment
        self._whole: set[tuple[str, str, str]] = set()
        self._sizes: dict[Sha256, int] = {}
        """Of images whose bytes have their hash: a logo may stand in every document."""

    def faults(self, document: StoredDocument) -> Iterator[tuple[str, str]]:
        """Yield what does not hold about a document's layout: where, and the problem."""
        named = document.metadata.layout
        if named is None:
            return
        key = (document.document_id, document.text_hash, named)
        if key in self._whole:
            return
        found = list(self._layout_faults(document, named))
        if not found:
            self._whole.add(key)
        yield from found

    def _layout_faults(self, document: StoredDocument, named: Sha256) -> Iterator[tuple[str, str]]:
        where = f"layout of '{document.document_id}'"
        encoded = self._attachment(named)
        problem = _hash_problem(encoded, named)
        if encoded is None or problem:
            yield where, problem
            return
        try:
            layout = decode_layout(encoded)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            yield where, f"it cannot be read ({error})"
            return
        if encode_layout(layout) != encoded:
            yield where, "it is not in its canonical form"
        yield from ((where, each) for each in _position_problems(layout, chars=len(document.text.decode())))
        yield from self._image_faults(layout, where=where)
        yield from self._table_faults(layout, document, where=where)

    def _image_faults(self, layout: DocumentLayout, *, where: str) -> Iterator[tuple[str, str]]:
        for number, image in enumerate(layout.images):
            problem = self._image_problem(image)
            if problem:
                yield f"image {number} in the {where}", problem

    def _image_problem(self, image: DocumentImage) -> str:
        if image.image_hash not in self._sizes:
            content = self._attachment(image.image_hash)
            problem = _hash_problem(content, image.image_hash)
            if content is None or problem:
                return problem
            self._sizes[image.image_hash] = len(content)
        size = self._sizes[image.image_hash]
        return "" if size == image.byte_count else f"there are {size} bytes instead of {image.byte_count}"

    def _table_faults(self, layout: DocumentLayout, document: StoredDocument, *, where: str) -> Iterator[tuple[str, str]]:
        places: dict[int, int] = {}
        for card in layout.tables:
            places[card.sheet] = places.get(card.sheet, 0) + 1
            at = f"table {places[card.sheet]} of sheet {card.sheet} in the {where}"
            own = (document.document_id, document.source_id, table_id(document.document_id, sheet=card.sheet, table=places[card.sheet]))
            if (card.document_id, card.source_id, card.table_id) != own:
                yield at, "its card names another document or place"
            problem = self._content_problem(card)
            if problem:
                yield at, problem
        if len({card.sql_name for card in layout.tables}) != len(layout.tables):
            yield where, "two of its tables have one name"

    def _content_problem(self, card: TableCard) -> str:
        encoded = self._attachment(card.content)
        problem = _hash_problem(encoded, card.content)
        if encoded is None or problem:
            return problem
        try:
            content = decode_content(encoded)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return f"its cells cannot be read ({error})"
        if encode_content(content) != encoded:
            return "its cells are not in the form in which they are stored"
        if not is_regular(content, columns=len(card.columns)):
            return "its columns are not as many or as long as they should be"
        if (card.first_row, card.last_row, card.row_count) != extent(content):
            return "its card counts other rows"
        return ""


def is_regular(content: TableContent, *, columns: int) -> bool:
    """Tell whether there are so many columns, each with a cell for every row."""
    return len(content.columns) == columns and all(len(column) == len(content.rows) for column in content.columns)


def extent(content: TableContent) -> tuple[int, int, int]:
    """Return the first and the last row of the sheet that a table has, and how many rows there are."""
    return (content.rows[0], content.rows[-1], len(content.rows)) if content.rows else (0, 0, 0)


def _hash_problem(content: bytes | None, named: Sha256) -> str:
    if content is None:
        return "its bytes are missing"
    return "" if sha256_hex(content) == named else "its bytes do not have the hash that names them"


def _position_problems(layout: DocumentLayout, *, chars: int) -> Iterator[str]:
    if layout.pages and (layout.pages[0] != 0 or list(layout.pages) != sorted(layout.pages) or layout.pages[-1] > chars):
        yield "its pages do not follow one another within the text"
    if any(not 0 <= image.start <= image.end <= chars for image in layout.images):
        yield "an image belongs to a stretch that is not in the text"
