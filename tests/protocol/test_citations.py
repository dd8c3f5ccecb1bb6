"""Citations: three forms, what is refused and what to write instead, and that nothing from a document can forge one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.protocol.citations import (
    DocumentCitation,
    TableCitation,
    WebCitation,
    cite_piece,
    cite_rows,
    cite_url,
    escape,
    find_citations,
    parse_citation,
    unescape,
)
from evidentia.protocol.tool_results import EvidencePiece

PLAIN = '<CITATION file="a:b.pdf" filename="b.pdf" page=3 />'
names = st.text(min_size=1, max_size=40).filter(lambda text: text.strip())
numbers = st.integers(min_value=1, max_value=999_999_999)
citations = st.one_of(
    st.builds(DocumentCitation, file=names, filename=names, page=st.integers(min_value=0, max_value=999_999_999)),
    st.builds(TableCitation, file=names, filename=names, sheet=numbers, rows=st.lists(numbers, min_size=1, max_size=5).map(tuple)),
    st.builds(WebCitation, url=names),
)


def problems(text: str) -> str:
    return " | ".join(f"{problem.what}: {problem.write}" for found in find_citations(text) for problem in found.problems)


@given(citations)
def test_what_is_written_is_what_is_read(citation: DocumentCitation | TableCitation | WebCitation) -> None:
    assert citation == parse_citation(citation.text)


@given(citations, citations)
def test_no_value_ends_its_tag_or_begins_another(
    first: DocumentCitation | TableCitation | WebCitation, second: DocumentCitation | TableCitation | WebCitation
) -> None:
    found = find_citations(f"Words {first.text} words\n{second.text}")

    assert [first, second] == [each.citation for each in found]
    assert "\n" not in first.text
    assert 1 == first.text.count("<") == first.text.count(">")


@given(st.text())
def test_escaping_can_be_undone(text: str) -> None:
    assert text == unescape(escape(text))


@pytest.mark.parametrize("value", ["&#0;&", "&#55296;", "&#9999999;", "&nbsp;", "&", "AT&T.pdf", "&#x41;"])
def test_what_is_no_escape_stays(value: str) -> None:
    assert value.replace("&#0;", "\0") == unescape(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PLAIN, DocumentCitation(file="a:b.pdf", filename="b.pdf", page=3)),
        (PLAIN.replace(" />", "/>"), DocumentCitation(file="a:b.pdf", filename="b.pdf", page=3)),
        ('<CITATION page=0   filename="b.pdf" file="a" />', DocumentCitation(file="a", filename="b.pdf", page=0)),
        ('<CITATION file="a" filename="b.xlsx" sheet=1 rows=[2, 4] />', TableCitation(file="a", filename="b.xlsx", sheet=1, rows=(2, 4))),
        ('<CITATION file="a" filename="b.xlsx" sheet=1 rows=[2,4]/>', TableCitation(file="a", filename="b.xlsx", sheet=1, rows=(2, 4))),
        ('<CITATION url="https://example.org/?a=1&amp;b=2" />', WebCitation(url="https://example.org/?a=1&b=2")),
        ('<CITATION file="a" filename="AT&T &quot;x&quot;.pdf" page=1 />', DocumentCitation(file="a", filename='AT&T "x".pdf', page=1)),
    ],
)
def test_the_three_forms_are_read(text: str, expected: object) -> None:
    assert expected == parse_citation(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('<CITATION file="a" filename="b" page="3" />', "page is in quotes: write page=3"),
        ('<citation file="a" filename="b" page=3 />', "it begins with '(citation': begin it with <CITATION"),
        ('< CITATION file="a" filename="b" page=3 />', "begin it with <CITATION"),
        ('<CITATIONS file="a" filename="b" page=3 />', "begin it with <CITATION"),
        ('<CITATION file="a" filename="b" page=3>', "its slash is missing: end it with />"),
        ('<CITATION file="a" filename="b" page=3></CITATION>', "its slash is missing: end it with />"),
        ('<CITATION file="a" filename="b" page=3', "it does not end: end it with />"),
        ('<CITATION file="a" filename="b', "it does not end"),
        ('<CITATION file="a" page=3 />', "filename is missing: write <CITATION file="),
        ('<CITATION file="a" filename="b" />', "page is missing"),
        (
            '<CITATION file="a" filename="b" pages=[3] />',
            "'pages' is no attribute: use only file, filename, page, sheet, rows, url; did you mean page",
        ),
        ('<CITATION file="a" filename="b" page=-1 />', "page is '-1': write page= and one whole number"),
        ('<CITATION file="a" filename="b" page=3.5 />', "page is '3.5'"),
        ('<CITATION file="a" filename="b" page=\u0663 />', "write page= and one whole number"),
        ('<CITATION file="a" filename="b" page=three />', "page is 'three'"),
        ('<CITATION file="a" filename="b" sheet=0 rows=[1] />', "sheet is 0: count sheets from 1"),
        ('<CITATION file="a" filename="b" sheet=1 rows=[0] />', "rows holds 0: count rows from 1"),
        ('<CITATION file="a" filename="b" sheet=1 rows=[] />', "write rows=[2, 4]"),
        ('<CITATION file="a" filename="b" sheet=1 rows="[2]" />', "write rows=[2, 4]"),
        ('<CITATION file="a" filename="b" sheet=1 rows=2 />', "write rows=[2, 4]"),
        ('<CITATION file="a" filename="b" sheet=1 rows=[F1S1R5] />', "write rows=[2, 4]"),
        ('<CITATION file="a" filename="b" rows=[2] />', "sheet is missing"),
        ('<CITATION file="a" filename="b" page=3 rows=[2] />', "rows does not go with file"),
        ('<CITATION file="a" filename="b" page=3 url="https://x" />', "url does not go with file"),
        ('<CITATION url="https://x" page=3 />', "page does not go with url"),
        ("<CITATION url=https://x />", 'url is not in double quotes: write url="..."'),
        ("<CITATION file='a' filename='b' page=3 />", "file is not in double quotes"),
        ('<CITATION file="" filename="b" page=3 />', "file is empty"),
        ('<CITATION file="a<b" filename="b" page=3 />', "file holds an angle bracket: write &lt; and &gt;"),
        ('<CITATION file="a" file="c" filename="b" page=3 />', "file stands twice"),
        ('<CITATION file="a"filename="b" page=3 />', "no space stands before 'filename'"),
        ("<CITATION 1 />", "'1' is no attribute"),
        ("</CITATION>", "an end tag stands alone"),
        ("<CITATION/>", "file, filename, page is missing"),
    ],
)
def test_a_near_miss_is_told_with_what_to_write(text: str, told: str) -> None:
    assert parse_citation(text) is None
    assert told in problems(text)


def test_a_tag_never_takes_the_next_line_or_the_next_tag() -> None:
    found = find_citations(f'<CITATION file="a\n" filename="x" page=1 />\n{PLAIN} <CITATION file="b" {PLAIN}')

    assert [None, "b.pdf", None, "b.pdf"] == [getattr(each.citation, "filename", None) for each in found]


def test_a_word_that_only_begins_like_the_tag_is_none() -> None:
    assert () == find_citations("<citation-style> <citationer> citation a < b > c")


@pytest.mark.parametrize("delimiter", ["a=b ", "a=[", "a='", "=", "/", '"', 'a="b" ', "&#1;", "page=1 ", "a=/", "\t", "a=1/"])
def test_one_tag_of_a_million_characters_is_read_once(delimiter: str) -> None:
    """A cost that grows with the square would take hours here."""
    found = find_citations(f"<CITATION {delimiter * (1_000_000 // len(delimiter))} />")

    assert 1 == len(found)
    assert found[0].citation is None
    assert 1 <= len(found[0].problems) <= 8


def test_a_piece_is_cited_by_its_first_page_or_the_one_named() -> None:
    piece = EvidencePiece(file="a:b.pdf", filename="b.pdf", pages=(3, 4))

    assert PLAIN == cite_piece(piece).text
    assert 4 == cite_piece(piece, page=4).page
    with pytest.raises(InvalidFieldError, match="5 is not one of"):
        cite_piece(piece, page=5)
    with pytest.raises(InvalidFieldError, match="0 is not one of"):
        cite_piece(piece, page=0)
    with pytest.raises(InvalidFieldError, match="cite_url"):
        cite_piece(EvidencePiece(text="words"))


def test_rows_are_merged_for_each_file_and_sheet() -> None:
    files = {"F1": ("a", "a.xlsx"), "F2": ("b", "b.xlsx"), "F10": ("c", "c.xlsx")}

    found = cite_rows(["F2S1R9", "F1S2R10", "F1S1R5", "F10S1R1", "F1S1R2", "F1S1R5"], files)

    assert [("a", 1, (2, 5)), ("a", 2, (10,)), ("b", 1, (9,)), ("c", 1, (1,))] == [(each.file, each.sheet, each.rows) for each in found]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 50)), max_size=12), st.randoms(use_true_random=False))
def test_merging_ignores_the_order_of_the_codes(places: list[tuple[int, int, int]], shuffled: object) -> None:
    files = {f"F{number}": (f"file{number}", f"{number}.xlsx") for number in (1, 2, 3)}
    codes = [f"F{file}S{sheet}R{row}" for file, sheet, row in places]
    other = list(codes)
    shuffled.shuffle(other)  # type: ignore[attr-defined]  # hypothesis hands over a random.Random

    assert cite_rows(codes, files) == cite_rows(other, files)
    assert len(set(codes)) == sum(len(citation.rows) for citation in cite_rows(codes, files))


@pytest.mark.parametrize("code", ["F3S1R1", "F1S1", "", "f1s1r1", "F1S1R1 ", "__src"])
def test_a_code_that_is_none_is_refused(code: str) -> None:
    with pytest.raises(InvalidFieldError, match="no code of this result"):
        cite_rows([code], {"F1": ("a", "a.xlsx")})


def test_an_address_is_cited_and_an_empty_one_refused() -> None:
    assert '<CITATION url="https://example.org/a" />' == cite_url("https://example.org/a").text
    with pytest.raises(InvalidFieldError, match="url"):
        cite_url(" ")
