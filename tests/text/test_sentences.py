"""Sentence spans: where they end, and that nothing is lost between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.text.sentences import split_sentences

ANYTHING = st.one_of(st.text(), st.text(alphabet='aA1 .!?\n\r\t\u3002\u2026)"#-'))


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["Keys rotate.", "Do they?", "Yes!"],
        ["Use a vault, e.g. Harbour, for Dr. Smith.", "Then stop."],
        ["The value is 3.14 today.", "It was 2.71."],
        ["J. R. Smith et al. Nature found it.", "See Fig. 3 for more."],
        ["Well... maybe not.", "Well...", "No."],
        ["He said \u201cStop.\u201d", "She left (at last).", "End."],
        ["It opens at 9 a.m. daily.", "It shuts at 5 p.m.", "Then it rests."],
        ["He asked \u201cWhy?\u201d and left."],
        ["Call os.path.join now.", "Version v2.3.1 is out."],
        ["Vitamin intake rose in 2019.", "It fell later."],
    ],
)
def test_sentences_end_at_their_punctuation(expected: list[str]) -> None:
    assert expected == sentences(" ".join(expected))


def test_chinese_full_stops_need_no_space() -> None:
    expected = ["\u4f60\u597d\u3002", "\u518d\u89c1\uff01"]

    assert expected == sentences("".join(expected))


@pytest.mark.parametrize(
    "expected",
    [
        ["# Rotating keys", "use the vault"],
        ["- first", "- second", "1. Open the door", "2. Shut the door"],
        ["a) one", "b) two"],
        ["Name | Age", "Ada | 36"],
    ],
)
def test_headings_and_list_items_stand_alone(expected: list[str]) -> None:
    assert expected == sentences("\n".join(expected))


def test_a_blank_line_ends_a_sentence_even_before_lower_case() -> None:
    expected = ["no stop here", "nor here"]

    assert expected == sentences("\r\n \r\n".join(expected))


@pytest.mark.parametrize("wrapped", ["Keys rotate\nevery month.", "Ask Dr.\nSmith."])
def test_a_wrapped_line_goes_on(wrapped: str) -> None:
    assert [wrapped] == sentences(wrapped)


@given(ANYTHING)
def test_spans_are_ordered_trimmed_and_leave_only_blanks_out(text: str) -> None:
    spans = split_sentences(text)
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    gaps = [text[end:start] for end, start in zip(edges[::2], edges[1::2], strict=True)]

    assert sorted(edges) == edges
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert not "".join(gaps).strip()


@pytest.mark.parametrize("unit", [".", ". ", "a\n", "?!", ".'"])
def test_hostile_repetition_loses_nothing(unit: str) -> None:
    text = unit * 50_000

    assert "".join(text.split()) == "".join("".join(sentences(text)).split())
