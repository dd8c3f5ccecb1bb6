"""Every decision note has the form that note 000 prescribes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
NOTES = sorted(FOLDER.glob("*.md"))
HEADINGS = ["The question", "The decision", "What was rejected", "What would make us think again"]
MAX_LINES = 60


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.*)$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)
def test_a_note_has_a_number_a_date_a_status_and_the_four_parts(note: Path) -> None:
    text = note.read_text(encoding="utf-8")
    parts = [part.strip() for part in re.split(r"^## .*$", text, flags=re.MULTILINE)[1:]]

    assert re.match(rf"# {note.name[:3]}: \S.*\n\nDate: \d{{4}}-\d\d-\d\d\.\nStatus: (in force|replaced by \d{{3}})\.\n\n## ", text)
    assert [name for name in headings(text) if name in HEADINGS] == HEADINGS
    assert all(parts)
    assert len(text.splitlines()) <= MAX_LINES


def test_notes_are_numbered_without_gaps() -> None:
    assert [f"{number:03}" for number in range(len(NOTES))] == [note.name[:3] for note in NOTES]


def test_a_replaced_note_names_one_that_exists() -> None:
    named = {
        number
        for note in NOTES
        for number in re.findall(r"^Status: replaced by (\d{3})\.$", note.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert named <= {note.name[:3] for note in NOTES}
