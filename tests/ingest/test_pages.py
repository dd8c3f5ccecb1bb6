"""Where the pages of a document begin in its text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from image_samples import deck, read, sheet
from ingest_samples import make_docx, make_pdf, make_pptx


def test_pages_of_a_pdf_begin_after_the_form_feed() -> None:
    extracted = read("a.pdf", make_pdf("First page", "", "Third page"))

    assert extracted.text == "First page\n\n\f\n\n\fThird page"
    assert (0, 13, 16) == extracted.pages
    assert ["First page", "", "Third page"] == pages_of(extracted.text, extracted.pages)


def test_each_slide_is_a_page_even_without_text() -> None:
    extracted = read("a.pptx", deck([], [("Second.", 1, 1)], []))

    assert (0, 0, 20) == extracted.pages
    assert ["", "# Slide 2\n\nSecond.", ""] == pages_of(extracted.text, extracted.pages)


def test_formats_without_pages_have_none() -> None:
    files = {"a.docx": make_docx(), "a.md": b"One.\f\nTwo.", "a.html": b"<p>One.", "a.txt": b"One."}

    assert [()] * 4 == [read(name, content).pages for name, content in files.items()]


def test_slides_with_titles_and_notes_are_pages() -> None:
    extracted = read("a.pptx", make_pptx())

    assert ["# Roadmap\n\nShip the base\n\nNotes: Mention custody", "# Numbers\n\nrecall | 0.9"] == pages_of(
        extracted.text, extracted.pages
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["One.", "Two words", "3"]), max_size=3), min_size=1, max_size=6).filter(any))
def test_the_pages_together_are_the_text(pages: list[list[str]]) -> None:
    extracted = read("a.pdf", sheet(*[[(line, 700 - 20 * row, 72) for row, line in enumerate(lines)] for lines in pages]))

    assert len(pages) == len(extracted.pages)
    assert extracted.pages[0] == 0
    assert list(extracted.pages) == sorted(extracted.pages)
    assert ["\n".join(lines) for lines in pages] == pages_of(extracted.text, extracted.pages)


def pages_of(text: str, starts: tuple[int, ...]) -> list[str]:
    ends = [*starts[1:], len(text)]
    return [text[start:end].strip("\n\f") for start, end in zip(starts, ends, strict=True)]
