"""The images of PDF pages: bytes that other programs can open, and the text that lies next to them on the page."""

from __future__ import annotations

import base64
import io

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_samples import first_image, jpeg, nearest, png, read, sheet
from ingest_samples import make_pdf
from PIL import Image
from pypdf.generic import ArrayObject, ByteStringObject, DecodedStreamObject, DictionaryObject, NameObject, NumberObject
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas

from evidentia.ingest.readers.image_gathering import media_type_of
from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.readers.pdf_streams import _unwrapped, image_file

A, B = jpeg(1), jpeg(200)


def painted(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content)).convert("RGB")


def test_an_image_belongs_to_the_nearer_line_of_its_page() -> None:
    page = [
        ("A sentence. Above the image.", 700, 72),
        (A, 640, 72),
        ("Below, farther off.", 560, 72),
        (B, 500, 72),
        ("Just below.", 484, 72),
    ]
    extracted = read("a.pdf", sheet(page))

    assert nearest(extracted) == ["Above the image.", "Just below."]
    assert [A, B] == [image.content for image in extracted.images]


def test_the_order_of_drawing_has_no_say() -> None:
    page = [(B, 500, 72), ("Below.", 484, 72), ("Between.", 600, 72), (A, 640, 72), ("Above.", 700, 72)]
    extracted = read("a.pdf", sheet(page))

    assert [A, B] == [image.content for image in extracted.images]
    assert nearest(extracted) == ["Above.", "Below."]


def test_consecutive_images_share_and_a_caption_wins() -> None:
    first = [("Text above.", 700, 72), (A, 650, 72), (B, 600, 72), (png(9), 600, 200), ("Figure 1: Three images. All grey.", 500, 72)]
    extracted = read("a.pdf", sheet(first, [("Next page.", 700, 72)]))

    assert ["Figure 1: Three images. All grey."] * 3 == nearest(extracted)


def test_columns_are_told_apart() -> None:
    page = [("Left column text.", 650, 72), ("Right column text.", 640, 350), (A, 590, 350)]

    assert nearest(read("a.pdf", sheet(page))) == ["Right column text."]


def test_an_image_stays_on_its_page() -> None:
    extracted = read("a.pdf", sheet([("One.", 700, 72)], [(A, 600, 72)], [("Three.", 700, 72), (B, 600, 72)]))

    assert extracted.text == "One.\n\n\f\n\n\fThree."
    assert (0, 7, 10) == extracted.pages
    assert [(7, 7), (10, 16)] == [(image.start, image.end) for image in extracted.images]


def test_the_text_is_the_same_with_and_without_looking_at_images() -> None:
    content = sheet([("One.", 700, 72), (A, 640, 72), ("Two.", 600, 72)], [("Three.", 300, 72), ("Four.", 320, 72)])
    plain = [page.extract_text().strip() for page in pypdf.PdfReader(io.BytesIO(content)).pages]

    assert "\n\n\f".join(plain) == read("a.pdf", content).text


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P"])
def test_packed_pixels_become_a_png_with_the_same_pixels(mode: str) -> None:
    original = Image.linear_gradient("L").resize((40, 30)).convert(mode)
    stream = io.BytesIO()
    original.save(stream, "PNG")
    extracted = read("a.pdf", sheet([("Text.", 700, 72), (stream.getvalue(), 600, 72)]))

    assert ["image/png"] == [image.media_type for image in extracted.images]
    assert original.convert("RGB").tobytes() == painted(extracted.images[0].content).tobytes()


def changed(content: bytes, **fields: object) -> bytes:
    """Return a PDF whose first image has other fields."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(content))
    image = first_image(writer)
    for name, value in fields.items():
        if name == "data":
            image._data = value
        elif value is None:
            image.pop(f"/{name}", None)
        else:
            image[NameObject(f"/{name}")] = value
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def test_rows_that_are_marked_like_a_png_are_kept_as_they_are() -> None:
    pixels = png(7)
    packed = pixels[pixels.index(b"IDAT") + 4 : pixels.index(b"IEND") - 8]
    settings = DictionaryObject({NameObject("/Predictor"): NumberObject(15), NameObject("/Columns"): NumberObject(16)})
    content = changed(
        sheet([("Text.", 700, 72), (pixels, 600, 72)]),
        data=packed,
        Filter=NameObject("/FlateDecode"),
        DecodeParms=settings,
        ColorSpace=NameObject("/DeviceGray"),
    )

    assert [pixels] == [image.content for image in read("a.pdf", content).images]


def test_a_fax_page_gets_the_head_of_a_tiff() -> None:
    original = Image.linear_gradient("L").resize((64, 48)).convert("1")
    stream = io.BytesIO()
    original.save(stream, "PDF")
    content = image_file(first_image(pypdf.PdfWriter(clone_from=io.BytesIO(stream.getvalue()))), ReadLimits())

    assert isinstance(content, bytes)
    assert media_type_of(content) == "image/tiff"
    assert original.tobytes() == Image.open(io.BytesIO(content)).convert("1").tobytes()


@given(st.binary(max_size=40))
def test_text_coding_is_undone(content: bytes) -> None:
    assert content == _unwrapped("/ASCII85Decode", base64.a85encode(content, wrapcol=7, adobe=True), 1_000)
    assert content == _unwrapped("/ASCIIHexDecode", content.hex(" ").encode() + b">", 1_000)


def test_a_palette_is_kept() -> None:
    space = ArrayObject([NameObject("/Indexed"), NameObject("/DeviceRGB"), NumberObject(1), ByteStringObject(b"\xff\0\0\0\0\xff")])
    base = sheet([("Text.", 700, 72), (png(), 600, 72)])
    content = changed(base, data=b"\0\x01" * 8 * 12, Filter=None, ColorSpace=space)
    extracted = read("a.pdf", content)

    assert [(255, 0, 0), (0, 0, 255)] == [painted(extracted.images[0].content).getpixel((x, 3)) for x in (0, 1)]


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"ColorSpace": NameObject("/DeviceCMYK")}, "in a coding or colours that are not read"),
        ({"ColorSpace": NumberObject(4)}, "in a coding or colours that are not read"),
        ({"Filter": NameObject("/JBIG2Decode")}, "in a coding or colours that are not read"),
        ({"data": b"nothing packed"}, "in a coding or colours that are not read"),
        ({"Width": NameObject("/wide")}, "in a coding or colours that are not read"),
        ({"Width": NumberObject(2_000_000_000)}, "larger than an image may be"),
        ({"Width": NumberObject(1)}, "smaller than 8 by 8 pixels"),
        ({"ColorSpace": NameObject("/DeviceRGB"), "Height": NumberObject(90)}, "in a coding or colours that are not read"),
    ],
)
def test_what_cannot_be_kept_is_noted_and_costs_no_text(fields: dict[str, object], cause: str) -> None:
    extracted = read("a.pdf", changed(sheet([("Text.", 700, 72), (png(), 600, 72)]), **fields))

    assert (extracted.text, ()) == ("Text.", extracted.images)
    assert extracted.notes == (f"images_left_out: has images that were left out: 1 {cause}",)


def test_a_jpeg_for_printing_is_left_out() -> None:
    extracted = read("a.pdf", sheet([("Text.", 700, 72), (jpeg(3, "CMYK"), 600, 72)]))

    assert ((), 1) == (extracted.images, len(extracted.notes))


def test_an_image_inside_a_form_is_found() -> None:
    stream = io.BytesIO()
    pdf = canvas.Canvas(stream, invariant=1)
    pdf.beginForm("stamp")
    pdf.drawImage(ImageReader(io.BytesIO(A)), 72, 600, 60, 40)
    pdf.endForm()
    pdf.drawString(72, 700, "Text.")
    pdf.doForm("stamp")
    pdf.save()

    assert ([A], ["Text."]) == (
        [image.content for image in read("a.pdf", stream.getvalue()).images],
        nearest(read("a.pdf", stream.getvalue())),
    )


def test_forms_that_hold_themselves_end() -> None:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(make_pdf("Text.")))
    form = DecodedStreamObject()
    form.set_data(b"/Loop Do")
    form.update({NameObject("/Subtype"): NameObject("/Form"), NameObject("/Type"): NameObject("/XObject")})
    reference = writer._add_object(form)
    inside = DictionaryObject({NameObject("/XObject"): DictionaryObject({NameObject(f"/Loop{n}"): reference for n in range(40)})})
    form[NameObject("/Resources")] = inside
    writer.pages[0][NameObject("/Resources")][NameObject("/XObject")] = inside["/XObject"]  # type: ignore[index]
    stream = io.BytesIO()
    writer.write(stream)

    assert read("a.pdf", stream.getvalue()).text == "Text."


def test_a_logo_on_every_page_is_kept_a_few_times_and_counted() -> None:
    extracted = read("a.pdf", sheet(*([(f"Page {number}.", 600, 72), (A, 700, 72)] for number in range(12))))

    assert [f"Page {number}." for number in range(8)] == nearest(extracted)
    assert extracted.notes == ("images_left_out: has images that were left out: 4 seen more than 8 times",)
