"""The images of Word files and presentations: all of them, in order, with the text they belong to."""

from __future__ import annotations

import io

import docx
import pptx
from docx.oxml import parse_xml
from image_samples import deck, jpeg, nearest, png, read, saved, word
from ingest_samples import make_docx, make_pptx
from pptx.util import Inches

A, B, C = png(1), png(2), png(3)
OUTSIDE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/image"


def test_a_picture_of_a_word_file_belongs_to_the_sentence_before_it() -> None:
    extracted = read("a.docx", word("# Pumps", "Two pumps run. The third waits.", A, "Valves follow."))

    assert extracted.text == "# Pumps\n\nTwo pumps run. The third waits.\n\nValves follow.\n\n"
    assert nearest(extracted) == ["The third waits."]
    assert [(A, "image/png", "image1.png")] == [(image.content, image.media_type, image.name) for image in extracted.images]


def test_consecutive_pictures_share_and_a_caption_wins() -> None:
    content = word("# Pumps", A, B, "The first pump", "Text.", C, "Figure 2: The second pump. From above.", captions=["The first pump"])
    extracted = read("a.docx", content)

    assert nearest(extracted) == ["The first pump", "The first pump", "Figure 2: The second pump. From above."]
    assert [A, B, C] == [image.content for image in extracted.images]


def test_a_picture_first_in_its_section_belongs_to_the_text_after_it() -> None:
    assert nearest(read("a.docx", word("# Pumps", A, "Two pumps run. More."))) == ["Two pumps run."]
    assert nearest(read("a.docx", word(A, "Two pumps run."))) == ["Two pumps run."]


def test_a_picture_in_a_line_belongs_to_that_line() -> None:
    document = docx.Document()
    document.add_paragraph("Before.")
    begins = document.add_paragraph()
    begins.add_run().add_picture(io.BytesIO(A))
    begins.add_run("Line of its own.")
    ends = document.add_paragraph("One. Two.")
    ends.add_run().add_picture(io.BytesIO(B))
    document.add_paragraph("After.")

    assert nearest(read("a.docx", saved(document))) == ["Line of its own.", "Two."]


def test_a_picture_in_a_table_belongs_to_its_row() -> None:
    document = docx.Document()
    document.add_paragraph("Before.")
    table = document.add_table(rows=2, cols=2)
    for row, cells in zip(table.rows, [("pump", "shape"), ("P1", "")], strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    table.cell(1, 1).paragraphs[0].add_run().add_picture(io.BytesIO(A))
    only = document.add_table(rows=1, cols=1)
    only.cell(0, 0).paragraphs[0].add_run().add_picture(io.BytesIO(B))
    document.add_paragraph("After.")
    extracted = read("a.docx", saved(document))

    assert extracted.text == "Before.\n\npump | shape\nP1 | \n\n\n\nAfter.\n\n"
    assert nearest(extracted) == ["P1 |", "P1 |"]


def test_anchored_and_old_pictures_and_their_alt_texts_are_found_once() -> None:
    document = docx.Document()
    part = document.part
    ids = [part.get_or_add_image(io.BytesIO(content))[0] for content in (A, B, C)]
    spaces = (
        'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
        'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:v="urn:schemas-microsoft-com:vml" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
        'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
    )
    both = (
        f'<mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor><wp:docPr id="1" name="x" descr="anchored"/>'
        f'<a:blip r:embed="{ids[0]}"/>'
        f'</wp:anchor></w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape><v:imagedata r:id="{ids[0]}"/></v:shape></w:pict></mc:Fallback>'
        "</mc:AlternateContent>"
    )
    old = f'<w:pict><v:shape alt="old"><v:imagedata r:id="{ids[1]}"/></v:shape></w:pict>'
    removed = f'<w:del><w:r><w:drawing><a:blip r:embed="{ids[2]}"/></w:drawing></w:r></w:del>'
    document.add_paragraph("Text.")
    document.element.body.insert(1, parse_xml(f"<w:p {spaces}><w:r>{both}</w:r><w:r>{old}</w:r>{removed}</w:p>"))
    extracted = read("a.docx", saved(document))

    assert [(A, "anchored"), (B, "old")] == [(image.content, image.alt) for image in extracted.images]


def test_a_linked_picture_is_noted_and_never_fetched() -> None:
    document = docx.Document()
    document.add_paragraph("Text.")
    document.add_picture(io.BytesIO(A))
    blip = next(iter(document.element.body.iter("{http://schemas.openxmlformats.org/drawingml/2006/main}blip")))
    embed = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}embed"
    del blip.attrib[embed]
    linked = document.part.rels.get_or_add_ext_rel(OUTSIDE, "https://Spy.example.com/p.png?who=me")
    blip.set(embed.replace("embed", "link"), linked)
    extracted = read("a.docx", saved(document))

    assert extracted.images == ()
    assert extracted.notes == ("images_left_out: has images that were left out: 1 elsewhere on the web (spy.example.com)",)


def test_each_slide_is_a_page_and_pictures_come_from_top_to_bottom() -> None:
    first = [(B, 4.0, 1.0), ("Lower text.", 3.0, 1.0), (A, 1.5, 1.0), ("Upper text.", 1.0, 1.0)]
    second = [(C, 2.0, 1.0)]
    extracted = read("a.pptx", deck(first, second, [("Third.", 1.0, 1.0)]))

    assert extracted.text == "# Slide 1\n\nLower text.\n\nUpper text.\n\n# Slide 3\n\nThird.\n\n"
    assert (0, 37, 37) == extracted.pages
    assert [A, B, C] == [image.content for image in extracted.images]
    assert nearest(extracted) == ["Upper text.", "Lower text.", ""]
    assert (37, 37) == (extracted.images[2].start, extracted.images[2].end)


def test_a_picture_under_a_title_belongs_to_the_text_and_groups_are_opened() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Pumps"
    group = slide.shapes.add_group_shape()
    picture = group.shapes.add_picture(io.BytesIO(A), Inches(1), Inches(2))
    picture._element.nvPicPr.cNvPr.set("descr", "a pump")
    slide.shapes.add_textbox(Inches(1), Inches(4), Inches(2), Inches(1)).text_frame.text = "Two run. One waits."
    extracted = read("a.pptx", saved(presentation))

    assert nearest(extracted) == ["Two run."]
    assert ["a pump"] == [image.alt for image in extracted.images]


def test_a_slide_whose_places_are_broken_keeps_its_text_and_its_pictures() -> None:
    presentation = pptx.Presentation(io.BytesIO(deck([("Text.", 1, 1), (A, 2, 1)])))
    for place in presentation.slides[0].shapes._spTree.iter("{http://schemas.openxmlformats.org/drawingml/2006/main}off"):
        place.set("y", "nowhere")
    extracted = read("a.pptx", saved(presentation))

    assert ("# Slide 1\n\nText.\n\n", ["Text."]) == (extracted.text, nearest(extracted))


def test_files_without_pictures_give_what_they_gave() -> None:
    assert ((), ()) == (read("a.docx", make_docx()).images, read("a.docx", make_docx()).pages)
    assert ((), (0, 50)) == (read("a.pptx", make_pptx()).images, read("a.pptx", make_pptx()).pages)


def test_jpeg_is_kept_as_it_is() -> None:
    assert [("image/jpeg", jpeg(5))] == [(image.media_type, image.content) for image in read("a.docx", word("x", jpeg(5))).images]
