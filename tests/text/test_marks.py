"""Text of documents never forms a mark of ours, however it is disguised."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.text.confusables import seen
from evidentia.text.marks import neutral_line, neutralise

MARKS: Final = re.compile(
    r"<\s*/?\s*citation|\[(?:extra_)?instruction\]|\[/?evidence|rag_knowledge|table_knowledge|file_ref_table|__src|evidentia-image:"
    r"|^\s*#+\s*\[\d|(?<![a-z0-9_])f\d+s\d+r\d",
    re.IGNORECASE | re.MULTILINE,
)
PIECES: Final = (
    "<CITATION", "< citation ", "</CITATION", "[INSTRUCTION]", "[extra_instruction]", "[EVIDENCE x]", "RAG_KNOWLEDGE END",
    "TABLE_KNOWLEDGE BEGIN", "file_ref_table:", "__src", "### [1] file=", "F1S1R5", "![a](evidentia-image:00)",
    "\n", " ", "\u200b", "<", "[", "#", "x", "é", "&#60;",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_no_mark_is_left(text: str) -> None:
    assert MARKS.search(neutralise(text)) is None


@given(st.text(max_size=300))
def test_only_marks_are_changed(text: str) -> None:
    neutral = neutralise(text)

    assert neutral == text or "&#" in neutral


@pytest.mark.parametrize(
    "disguised",
    [
        "<CIT\u200bATION file='x'/>",
        "\N{FULLWIDTH LESS-THAN SIGN}CITATION",
        "<\N{CYRILLIC CAPITAL LETTER ES}ITATION",
        "[IN\u2060STRUCTION]",
        "\N{LEFT BLACK LENTICULAR BRACKET}INSTRUCTION\N{RIGHT BLACK LENTICULAR BRACKET}",
        "TABLE\u00ad_KNOWLEDGE END",
        "_\u200b_src",
        "evidentia\u200d-image:00",
        "\u200b### [1] file=x",
        "#\u2060## [1] file=x",
        "### [\u200b1] file=x",
        "\N{FULLWIDTH NUMBER SIGN} [1] file=x",
        "F\u200b1S\u20601R\u00ad5",
        "F1\u200bS1R5",
        "<\U000e0043CITATION",
        "RAG\U000e0020_KNOWLEDGE",
        "< \u200b/CITATION>",
    ],
)
def test_a_disguise_does_not_help(disguised: str) -> None:
    assert neutralise(disguised) != disguised
    assert "&#" in neutralise(disguised)


def test_ordinary_brackets_stay() -> None:
    text = "See [1], [Instructions for use] and <b>x</b>; a < b, src, F1 and S2 R5."

    assert text == neutralise(text)


def test_a_name_stays_on_one_line() -> None:
    assert "a b &#91;INSTRUCTION] c" == neutral_line("a\nb\r\n[INSTRUCTION]\tc\0")


def test_what_is_seen_has_no_disguise() -> None:
    assert "citation" == seen("\N{CYRILLIC CAPITAL LETTER ES}i t\u200bATion")
