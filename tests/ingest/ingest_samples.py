"""Files in real formats, made at test time so that no binary is kept in the repository."""

from __future__ import annotations

import io

import docx
import openpyxl
import pptx
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen import canvas


def make_pdf(*pages: str, locked_with: str = "", title: str = "") -> bytes:
    """Return a PDF with one line of text a page."""
    stream = io.BytesIO()
    encryption = StandardEncryption(locked_with, ownerPassword="owner") if locked_with else None
    sheet = canvas.Canvas(stream, encrypt=encryption, invariant=1)
    if title:
        sheet.setTitle(title)
    for text in pages:
        sheet.drawString(72, 720, text)
        sheet.showPage()
    sheet.save()
    return stream.getvalue()


def make_docx(*, title: str = "Rotation") -> bytes:
    """Return a Word document with headings, paragraphs and a table between them."""
    document = docx.Document()
    document.core_properties.title = title
    document.core_properties.author = "Ada"
    document.add_heading("Keys", level=1)
    document.add_paragraph("Rotate keys every ninety days.")
    table = document.add_table(rows=2, cols=2)
    for row, cells in zip(table.rows, [("key", "age"), ("signing", "30")], strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    document.add_heading("Why", level=2)
    document.add_paragraph("Because they leak.")
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def make_pptx() -> bytes:
    """Return a presentation of two slides, one with notes."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Roadmap"
    slide.placeholders[1].text = "Ship the base"
    slide.notes_slide.notes_text_frame.text = "Mention custody"
    second = deck.slides.add_slide(deck.slide_layouts[5])
    second.shapes.title.text = "Numbers"
    table = second.shapes.add_table(1, 2, 0, 0, 100, 100).table
    table.cell(0, 0).text, table.cell(0, 1).text = "recall", "0.9"
    stream = io.BytesIO()
    deck.save(stream)
    return stream.getvalue()


def make_xlsx(*, far_cell: str = "") -> bytes:
    """Return a workbook of two sheets."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Prices"
    sheet.append(["item", "price", "sold"])
    sheet.append(["lamp", 12.5, True])
    sheet.append(["desk", 80, False])
    book.create_sheet("Empty")
    if far_cell:
        sheet[far_cell] = "far"
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()
