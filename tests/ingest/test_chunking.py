"""Chunks cover a text exactly: ordered, without overlap, nothing but white space between them, none too long."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.ingest import chunking
from evidentia.ingest.chunking import Span, chunker_version, cut
from soak import cases

PIECES = st.sampled_from(
    [
        *(
            "# Heading\n",
            "\n\n",
            "\r\n",
            " ",
            "\t",
            "word ",
            "A sentence. ",
            "\u00e9\u0301",
            "\U0001f469\u200d\U0001f680",
            "- entry\n",
            "> ",
        ),
        *("```\ncode\n```\n", "| a | b |\n|---|---|\n", "x" * 90, "\u2028", "\x0c", "**bold** ", "\u3000", "\x1f"),
    ]
)


def check_law(text: str, spans: tuple[Span, ...], *, body_start: int, longest: int) -> None:
    end = body_start
    for start, stop in spans:
        assert end <= start < stop
        assert not text[end:start].strip()
        assert text[start:stop].strip()
        assert stop - start <= longest
        end = stop
    assert not text[end:].strip()


@settings(max_examples=cases(100, of=300), deadline=None)
@given(
    pieces=st.lists(PIECES, max_size=120),
    structure=st.sampled_from(["text", "markdown", "code"]),
    sizes=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    body_start=st.integers(0, 20),
)
def test_spans_cover_the_body_exactly(pieces: list[str], structure: str, sizes: tuple[int, int], body_start: int) -> None:
    text = "".join(pieces)
    body_start = min(body_start, len(text))
    shortest, longest = sorted(sizes)
    spans = cut(text, structure=structure, body_start=body_start, chunk_chars=shortest, chunk_max_chars=longest)

    check_law(text, spans, body_start=body_start, longest=longest)


@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(PIECES, max_size=120), sizes=st.tuples(st.integers(1, 200), st.integers(1, 200)))
def test_the_plain_scan_obeys_the_same_law(pieces: list[str], sizes: tuple[int, int]) -> None:
    text = "".join(pieces)
    shortest, longest = sorted(sizes)
    spans = tuple(chunking._trimmed(text, 0, chunking._windows(text, 0, len(text), shortest, longest)))

    check_law(text, spans, body_start=0, longest=longest)


def test_a_short_document_stays_whole() -> None:
    text = "# Title\n\n" + "word " * 700

    assert ((0, len(text) - 1),) == cut(text, structure="markdown", chunk_chars=2_000, chunk_max_chars=4_000)


def test_front_matter_is_not_chunked_but_its_characters_count() -> None:
    text = "---\ntitle: x\n---\n\nBody here.\n"

    assert ((18, 28),) == cut(text, body_start=17, chunk_chars=2_000, chunk_max_chars=4_000)
    assert text[18:28] == "Body here."


def test_a_blank_body_has_no_chunks() -> None:
    assert () == cut(" \n\t\n", chunk_chars=2_000, chunk_max_chars=4_000)


def test_long_markdown_is_cut_at_headings() -> None:
    section = "Words that fill a section. " * 60
    text = "\n".join(f"## Part {number}\n\n{section}\n" for number in range(6))
    spans = cut(text, structure="markdown", chunk_chars=1_500, chunk_max_chars=3_000)

    assert all(text[start:].startswith("## Part") for start, _ in spans)


@pytest.mark.parametrize("structure", ["text", "markdown"])
@pytest.mark.parametrize("unit", ["a", "a ", "abc. ", "\u00e9", "a" * 9_000 + "\n", ">", "[" * 3_000 + "\n", "*a "])
def test_megabytes_made_to_be_slow_are_cut_quickly(structure: str, unit: str) -> None:
    text = unit * (3_000_000 // len(unit))
    started = time.process_time()
    spans = cut(text, structure=structure, chunk_chars=2_000, chunk_max_chars=4_000)

    assert time.process_time() - started < 3
    check_law(text, spans, body_start=0, longest=4_000)


def test_the_version_names_us_and_the_splitter() -> None:
    assert chunker_version().startswith("1.0.0+semantic-text-splitter.")
