"""Snippets: the window with most of the query, its words marked, and never more than fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from evidentia.serving.cli.snippets import SNIPPET_CHARS, SnippetCutter

if TYPE_CHECKING:
    from evidentia.serving.cli.output import MarkedText


def cut(query: str, content: str) -> MarkedText:
    return SnippetCutter(query, language="english").cut(content)


def marked(snippet: MarkedText) -> list[str]:
    return [text for text, is_marked in snippet.pieces if is_marked]


def test_words_are_marked_by_their_terms_and_without_punctuation() -> None:
    snippet = cut("rotating keys", "The (key) is rotated, monthly; keyboards are not.")

    assert ["key", "rotated"] == marked(snippet)
    assert "The (key) is rotated, monthly; keyboards are not." == str(snippet).strip()


def test_stop_words_are_marked_only_when_there_is_nothing_else() -> None:
    assert ["key"] == marked(cut("is the key", "this is the key"))
    assert ["is", "the"] == marked(cut("is the", "this is the key"))


def test_window_with_more_different_words_wins_over_repetition() -> None:
    filler = "padding " * 60
    snippet = cut("alpha omega", f"alpha alpha alpha {filler} alpha near omega {filler}")

    assert ["alpha", "omega"] == marked(snippet)
    assert str(snippet).startswith("… padding")
    assert str(snippet).endswith("…")


def test_first_of_equal_windows_is_taken_and_the_beginning_without_any() -> None:
    content = " ".join(f"word{number}" for number in range(200))

    assert str(cut("absent", content)).startswith("word0 word1")
    assert ["needle1"] == marked(cut("needle1", f"needle1 {'x ' * 300} needle1"))


def test_identifiers_are_found_whole_and_in_parts() -> None:
    assert ["HRB-4012"] == marked(cut("HRB-4012", "Refused with HRB-4012 today"))
    assert ["rotate_keys"] == marked(cut("rotate", "call rotate_keys() now"))


def test_nothing_gives_nothing() -> None:
    assert "" == str(cut("word", ""))
    assert "" == str(cut("word", " \n "))


@given(st.text(max_size=30), st.text(max_size=600))
def test_snippet_is_a_stretch_of_the_content_and_fits(query: str, content: str) -> None:
    snippet = cut(query, content)
    shown = str(snippet).removeprefix("… ").removesuffix("…").strip()
    words = content.split()

    assert len(shown) <= SNIPPET_CHARS
    assert shown in " ".join(word[:SNIPPET_CHARS] for word in words)
