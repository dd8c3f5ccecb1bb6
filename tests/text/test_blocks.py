"""Replies as blocks: what each line belongs to, exact spans, and linear cost on hostile text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.text.blocks import TAG, BlockKind, blocks, image_spans
from soak import cases

TAG_LINE = '<CITATION file="a" filename="b.pdf" page=3 />'
IMAGE_LINE = "![a lamp](evidentia-image:00ff)"


def kinds(markdown: str) -> list[str]:
    return [block.kind.value for block in blocks(markdown)]


def test_a_reply_is_read_into_its_blocks() -> None:
    words = f"# Title\n\nWords and\nmore words.\n{TAG_LINE}\n\n- one\n- two\n\n> said\n\n{IMAGE_LINE}\n\n"
    reply = words + "```py\n# no heading\n```\n---\n| a | b |\n|---|---|\n| 1 | 2 |"

    assert ["heading", "paragraph", "citation", "list", "quote", "image", "code", "break", "table"] == kinds(reply)


@pytest.mark.parametrize(
    "markdown",
    [
        "- one\n\n- two\n\n- three",
        "- one\n  - nested\n    more\n- two",
        "1. one\n\n   goes on\n2) two",
        "* one\nlazy line\n* two",
        "(a) one\n(b) two",
        "- [ ] open\n- [x] done",
    ],
)
def test_a_list_goes_on_over_blank_lines_and_nested_items(markdown: str) -> None:
    assert ["list"] == kinds(markdown)


def test_the_items_of_a_list_have_spans() -> None:
    markdown = "Before:\n\n- one\n  goes on\n- two"

    found = blocks(markdown)[1]

    assert ["- one\n  goes on\n", "- two"] == [markdown[item.start : item.end] for item in found.items]


@pytest.mark.parametrize("marked", [TAG_LINE, f"- {TAG_LINE}", f"{TAG_LINE}, {TAG_LINE}.", "<citation broken", f"  {TAG_LINE}"])
def test_a_line_of_tags_alone_is_a_citation_line(marked: str) -> None:
    assert ["paragraph", "citation"] == kinds(f"Words.\n{marked}")
    assert ["list", "citation"] == kinds(f"- item\n{marked}")


def test_a_tag_behind_words_stays_in_its_paragraph() -> None:
    assert ["paragraph"] == kinds(f"Words. {TAG_LINE}")


def test_a_fence_without_an_end_takes_the_rest() -> None:
    assert ["paragraph", "code"] == kinds(f"Words.\n```\n- a\n\n{TAG_LINE}\n# b")


def test_two_fences_one_behind_the_other_are_two_blocks() -> None:
    assert ["code", "code", "paragraph"] == kinds("```\na\n```\n~~~\n```\n~~~\nwords")


def test_bars_without_a_rule_are_words() -> None:
    assert ["paragraph"] == kinds("a | b\nc | d")
    assert ["paragraph", "table"] == kinds("words\na | b\n--|--\nc | d")


def test_underlined_words_are_a_heading() -> None:
    assert ["heading", "paragraph"] == kinds("Title\n===\nwords")
    assert ["heading", "paragraph"] == kinds("Title\n---\nwords")


def test_images_are_found_with_their_targets() -> None:
    assert [(0, 31, "evidentia-image:00ff")] == image_spans(IMAGE_LINE)
    assert [] == image_spans("![ not ]( an image")


@given(st.text(alphabet='ab \n\t-*#>|`~!<>[]()=1."/&_CITATION\r', max_size=200))
def test_blocks_are_in_order_and_lose_nothing_but_blanks(markdown: str) -> None:
    found = blocks(markdown)
    ends = [0, *(block.end for block in found)]
    between = [markdown[end : block.start] for end, block in zip(ends, found, strict=False)] + [markdown[ends[-1] :]]

    assert "" == "".join(between).strip()
    assert all(block.text == markdown[block.start : block.end] and block.text.strip() for block in found)
    assert all(end <= block.start for end, block in zip(ends, found, strict=False))


LENGTH = cases(200_000, of=1_000_000)
DELIMITERS = [
    "<", ">", '"', "'", "<CITATION ", '<CITATION "', "<CITATION a=[", "<CITATION a='", "</citation", "![", "](", "![a](", '![a](b "',
    "`", "```\n", "~~~", "|", "|-", "| - |\n", "-", "- ", "- a\n\n  b\n", "* * ", "_", "# ", ">", "\n", " ", "1. ", "a\n---\n", "=",
    "[", "(", "&#1", "\r\n", "\\|",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_delimiters_without_end_cost_what_their_length_costs(delimiter: str) -> None:
    """A cost that grows with the square would take minutes here, and hours with EVIDENTIA_SOAK=full; there is nothing to measure."""
    hostile = (delimiter * (LENGTH // len(delimiter) + 1))[:LENGTH]

    found = blocks(hostile)

    assert len(hostile) >= sum(len(block.text) for block in found)
    assert len(hostile) >= sum(len(tag[0]) for tag in TAG.finditer(hostile))
    assert isinstance(image_spans(hostile), list)
    assert {block.kind for block in found} <= set(BlockKind)
