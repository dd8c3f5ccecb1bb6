"""What readers find besides text becomes a layout that is the same every time, bounded whatever a reader hands over."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.layout import DocumentImage, ExtractedImage
from evidentia.contracts.tables import ColumnKind, ExtractedTable, TableColumn, TableContent
from evidentia.ingest import preparation
from evidentia.ingest.preparation import bounded
from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.readers.registry import read_document
from evidentia.provenance.layout_custody import decode_content, decode_layout, encode_content
from evidentia.testing.documents import TABLE, illustrated_document, make_document

if TYPE_CHECKING:
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.layout import DocumentLayout, ExtractedText

cells = st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text()


def layout_of(document: PreparedDocument) -> DocumentLayout:
    """Return the layout that a document carries under the hash that its metadata names."""
    return decode_layout(next(each.content for each in document.attachments if each.content_hash == document.metadata.layout))


def picture(content: bytes, *, start: int = 0, end: int = 0, alt: str = "") -> ExtractedImage:
    return ExtractedImage(content=content, media_type="image/png", alt=alt, start=start, end=end)


def table(*cell_values: object, sheet: int = 1, title: str = "") -> ExtractedTable:
    column = TableColumn(name="n", sql_name="n", kind=ColumnKind.TEXT)
    content = TableContent(rows=tuple(range(2, 2 + len(cell_values))), columns=(tuple(cell_values),))  # type: ignore[arg-type]  # any cell
    return ExtractedTable(sheet=sheet, title=title, columns=(column,), content=content)


def read(extracted_from: bytes = b"text") -> ExtractedText:
    return read_document(extracted_from, name="a.txt", limits=ReadLimits())


def test_a_plain_document_has_no_layout_and_is_what_it_was() -> None:
    document = make_document("a", "text")

    assert (None, ()) == (document.metadata.layout, document.attachments)


def test_a_layout_names_each_byte_once() -> None:
    document = illustrated_document("a", picture=b"same")
    layout = layout_of(document)

    assert len(document.attachments) == len({each.content_hash for each in document.attachments}) == 4
    assert all(sha256_hex(each.content) == each.content_hash for each in document.attachments)
    assert ["diagram", "", ""] == [image.name for image in layout.images]
    assert (layout.images[0].image_hash, 4) == (layout.images[2].image_hash, layout.images[2].byte_count)


def test_the_same_findings_give_the_same_layout_and_others_another() -> None:
    first, same, other = illustrated_document("a"), illustrated_document("a"), illustrated_document("b")

    assert first == same
    assert first.metadata.layout != other.metadata.layout


def test_a_card_tells_where_its_table_stands() -> None:
    document = make_document("prices.xlsx", "text", tables=(TABLE, table("x", sheet=2), structs.replace(TABLE, sheet=1)))
    first, second, third = layout_of(document).tables

    assert ["test:prices.xlsx#S1T1", "test:prices.xlsx#S2T1", "test:prices.xlsx#S1T2"] == [
        first.table_id,
        second.table_id,
        third.table_id,
    ]
    assert ("prices.xlsx", 2, 5, 3, (4,)) == (first.file_name, first.first_row, first.last_row, first.row_count, first.total_rows)
    assert 3 == len({first.sql_name, second.sql_name, third.sql_name})
    assert first.content == third.content


def test_an_empty_table_has_no_rows() -> None:
    (card,) = layout_of(make_document("a", "text", tables=(table(),))).tables

    assert (0, 0, 0) == (card.first_row, card.last_row, card.row_count)


@given(st.lists(st.lists(cells, min_size=3, max_size=3), max_size=4))
def test_cells_come_back_as_they_were(columns: list[list[object]]) -> None:
    content = TableContent(rows=(1, 2, 3), columns=tuple(map(tuple, columns)))  # type: ignore[arg-type]  # cells of every kind
    again = decode_content(encode_content(content))

    assert repr(content) == repr(again)  # 1, 1.0 and True are equal, and not the same


@given(st.lists(st.integers(-5, 50)), st.lists(st.tuples(st.integers(-5, 50), st.integers(-5, 50))))
def test_positions_stay_within_the_text_whatever_a_reader_says(pages: list[int], stretches: list[tuple[int, int]]) -> None:
    text = "twenty characters ok"
    images = tuple(picture(b"x", start=start, end=end) for start, end in stretches)
    document = make_document("a", text, pages=tuple(pages), images=images)
    if document.metadata.layout is None:
        assert not pages
        assert not images
        return
    layout = layout_of(document)

    assert len(pages) == len(layout.pages)
    assert list(layout.pages) == sorted(layout.pages)
    assert not layout.pages or (0, True) == (layout.pages[0], layout.pages[-1] <= len(text))
    assert all(0 <= image.start <= image.end <= len(text) for image in layout.images)


def test_images_that_are_too_many_or_too_large_are_left_out_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "MAX_IMAGES", 4)
    monkeypatch.setattr(preparation, "MAX_IMAGE_BYTES", 10)
    monkeypatch.setattr(preparation, "MAX_IMAGES_BYTES", 15)
    images = (picture(b"0123456789"), picture(b"0123456789"), picture(b"too large, this"), picture(b"no room"), picture(b"fits"))
    extracted = structs.replace(read(), images=images)

    cut = bounded(extracted)

    assert images[:2] == cut.images
    assert ("images_left_out: has 5 images, of which 3 were left out: too many, too large or not fit to be stored",) == cut.notes
    assert bounded(cut) is cut


@pytest.mark.parametrize("cell", [math.nan, math.inf, 2**63, -(2**70), "half a pair \ud800"])
def test_a_table_with_a_cell_that_cannot_be_stored_is_left_out_and_noted(cell: object) -> None:
    extracted = structs.replace(read(), tables=(table("fine"), table("fine", cell)))

    cut = bounded(extracted)

    assert extracted.tables[:1] == cut.tables
    assert ("tables_left_out: has 2 tables, of which 1 were left out: too many, too large or not fit to be stored",) == cut.notes


def test_a_table_that_is_not_regular_is_left_out() -> None:
    short = structs.replace(TABLE, content=TableContent(rows=(2, 3), columns=((1,), (1, 2))))
    extracted = structs.replace(read(), tables=(short, structs.replace(TABLE, columns=TABLE.columns[:1])))

    assert () == bounded(extracted).tables


def test_tables_share_a_bounded_number_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "MAX_CELLS", 3)
    monkeypatch.setattr(preparation, "MAX_TABLES", 3)
    tables = (table(1, 2), table(1, 2, 3), table(1), table())

    assert (tables[0], tables[2]) == bounded(structs.replace(read(), tables=tables)).tables


def test_what_describes_an_image_is_bounded_and_can_be_stored() -> None:
    document = make_document("a", "text", images=(picture(b"x", alt="\udfff" + "a" * 5_000),))

    assert ["?" + "a" * 999] == [image.alt for image in layout_of(document).images]


def test_a_layout_of_nothing_that_could_be_kept_is_none() -> None:
    assert make_document("a", "text", images=(picture(b""),)).metadata.layout is None


def test_an_image_without_text_belongs_to_the_place_where_it_stands() -> None:
    (image,) = layout_of(make_document("a", "text", images=(picture(b"x", start=4, end=4),))).images

    assert DocumentImage(image_hash=sha256_hex(b"x"), media_type="image/png", byte_count=1, start=4, end=4) == image
