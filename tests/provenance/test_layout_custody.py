"""The bytes of layouts and cells are those that docs/custody.md specifies: written again here with nothing of ours."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.documents import DocumentMetadata
from evidentia.contracts.ids import SourceId
from evidentia.contracts.tables import TableContent
from evidentia.provenance.layout_custody import encode_content
from evidentia.testing.documents import TABLE, illustrated_document

LONG = "x" * 70_000
cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(
        [0, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, -32, -33, -128, -129, -32_768, -32_769, -(2**31), -(2**31) - 1]
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=40),
    st.sampled_from(["y" * 31, "y" * 32, "y" * 255, "y" * 256, LONG]),
)


def packed(value: object) -> bytes:
    """Return a value as MessagePack in its shortest form."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return _packed_integer(value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        encoded = value.encode()
        return _counted(len(encoded), short=(0xA0, 32), forms=((0xD9, "B"), (0xDA, "H"), (0xDB, "I"))) + encoded
    if isinstance(value, list):
        return _counted(len(value), short=(0x90, 16), forms=((0xDC, "H"), (0xDD, "I"))) + b"".join(map(packed, value))
    raise TypeError


def _packed_integer(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack("b", value)
    forms = ((0xCC, "B"), (0xCD, "H"), (0xCE, "I"), (0xCF, "Q")) if value >= 0 else ((0xD0, "b"), (0xD1, "h"), (0xD2, "i"), (0xD3, "q"))
    for mark, form in forms:
        try:
            return bytes([mark]) + struct.pack(">" + form, value)
        except struct.error:
            continue
    raise OverflowError


def _counted(count: int, *, short: tuple[int, int], forms: tuple[tuple[int, str], ...]) -> bytes:
    if count < short[1]:
        return bytes([short[0] | count])
    mark, form = next((mark, form) for mark, form in forms if count < 256 ** struct.calcsize(form))
    return bytes([mark]) + struct.pack(">" + form, count)


@given(st.lists(st.lists(cells, min_size=2, max_size=2), max_size=20), st.tuples(st.integers(1, 2**31), st.integers(1, 2**31)))
def test_cells_have_the_bytes_that_are_specified(columns: list[list[Any]], rows: tuple[int, int]) -> None:
    content = TableContent(rows=rows, columns=tuple(map(tuple, columns)))
    written = b"\x82" + packed("rows") + packed(list(rows)) + packed("columns") + packed(columns)

    assert written == encode_content(content)


def test_long_columns_have_the_bytes_that_are_specified() -> None:
    for count in (15, 16, 65_535, 65_536):
        content = TableContent(rows=tuple(range(1, count + 1)), columns=((1.5,) * count,))
        written = b"\x82" + packed("rows") + packed(list(range(1, count + 1))) + packed("columns") + packed([[1.5] * count])

        assert hashlib.sha256(written).digest() == hashlib.sha256(encode_content(content)).digest()


def test_an_image_is_vouched_for_by_the_metadata_of_its_document() -> None:
    """From the bytes of an image to the hash that `corpus_version` covers, with the standard library alone."""
    picture = "bytes of ünïcode".encode()
    document = illustrated_document("a", picture=picture)
    columns = [
        {"distinct": 2, "kind": "text", "name": "Product", "position": 1, "samples": ["rope", "Öl"], "sql_name": "product"},
        {"distinct": 2, "kind": "number", "missing": 1, "name": "Price", "position": 2, "sql_name": "price", "unit": "EUR"},
    ]
    content = b"\x82" + packed("rows") + packed([2, 3, 5]) + packed("columns") + packed([["rope", "Öl", None], [12.5, 7, None]])
    png, gif = hashlib.sha256(picture).hexdigest(), hashlib.sha256(b"GIF89a").hexdigest()
    layout = {
        "images": [
            {
                "alt": "plan of the harbour", "byte_count": len(picture), "end": 32, "image_hash": png, "media_type": "image/png",
                "name": "diagram", "start": 13,
            },
            {"byte_count": 6, "end": 53, "image_hash": gif, "media_type": "image/gif", "start": 34},
            {"byte_count": len(picture), "end": 53, "image_hash": png, "media_type": "image/png", "start": 34},
        ],
        "pages": [0, 12],
        "tables": [
            {
                "columns": columns, "content": hashlib.sha256(content).hexdigest(), "document_id": "test:a", "file_name": "a",
                "first_row": 2, "header_rows": [1], "last_row": 5, "row_count": 3, "sheet_name": "Prices", "source_id": "test",
                "sql_name": "prices", "table_id": "test:a#S1T1", "total_rows": [4],
            }
        ],
    }  # fmt: skip
    encoded = json.dumps(layout, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    assert encode_content(TABLE.content) == content
    assert hashlib.sha256(encoded).hexdigest() == document.metadata.layout
    assert [encoded, picture, b"GIF89a", content] == [each.content for each in document.attachments]


def test_a_document_without_a_layout_says_nothing_of_one() -> None:
    metadata = DocumentMetadata(source_id=SourceId("test"))

    assert b'{"source_id":"test"}' == msgspec.json.encode(metadata)
