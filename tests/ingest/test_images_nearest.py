"""The nearest text of an image: total, deterministic, within its page, and what a person would point at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.ingest.readers.nearest_text import MAX_LENGTH, TextMap, TextUnit, choose, is_caption

BEFORE, AFTER = TextUnit(0, 5), TextUnit(9, 12)


def found(text: str, **options: bool) -> str:
    """Return the nearest text of an image where the text has a `^`."""
    anchor = text.index("^")
    plain = text.replace("^", " ")
    start, end = TextMap(plain, **options).nearest(anchor)  # type: ignore[arg-type]
    return plain[start:end]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One.\n\n^\n\nTwo.", "One."),
        ("First. Last.\n\n^\n\nTwo. Three.", "Last."),
        ("^\n\nTwo. Three.", "Two."),
        ("# Head\n\n^\n\nTwo. Three.", "Two."),
        ("# Head\n\n^\n\n# Next", "Head"),
        ("One.\n\n^\n\n# Next\n\nTwo.", "One."),
        ("One.\n\n^ Two. Three.", "Two."),
        ("One. ^\n\nTwo.", "One."),
        ("One ^ goes on. Two.", "One   goes on."),
        ("One.\n\n^\n\nFigure 3: The pump. From above.\n\nTwo.", "Figure 3: The pump. From above."),
        ("One. ^\n\nAbbildung 2. Die Pumpe.\n", "Abbildung 2. Die Pumpe."),
        ("One.\n\n^\n\nFigure 3 shows the pump.", "One."),
        ("- an entry\n^", "an entry"),
        ("key | age\nsigning | 30\n^\n", "signing | 30"),
        ("One.\n\n---\n\n^\n\n***", "One."),
        ("^", ""),
        ("---\n^\n***", ""),
    ],
)
def test_the_nearest_text_is_what_a_person_would_point_at(text: str, expected: str) -> None:
    assert expected == found(text)


def test_a_wrapped_sentence_is_whole() -> None:
    assert found("Other. A sentence that\ngoes on.\n\n^\n", wraps=True) == "A sentence that\ngoes on."


def test_text_without_sentences_is_bounded_next_to_the_image() -> None:
    before, after = found("ab " * 1_000 + "end\n^"), found("^\nbegin " + "ab " * 1_000)

    assert before.endswith("ab end")
    assert after.startswith("begin ab")
    assert max(len(before), len(after)) <= MAX_LENGTH
    assert len(found("^\n" + "x" * 5_000)) == MAX_LENGTH


def test_the_document_may_say_what_a_caption_is() -> None:
    text = "One.\n\n\n\nThe pump\n\nTwo."
    at = text.index("The pump")

    assert (at, at + len("The pump")) == TextMap(text, captions={at}).nearest(5)
    assert TextMap(text).nearest(5) == (0, 4)


def test_an_image_never_takes_the_text_of_another_page() -> None:
    pages = TextMap("One.\n\n\n\nThree.", sections=(0, 6, 8))

    assert [(0, 4), (6, 6), (8, 14)] == [pages.nearest(start, section=page) for page, start in enumerate((0, 6, 8))]


@pytest.mark.parametrize(
    "line",
    [
        "Figure 3: x",
        "Fig. 3. x",
        "*Figure 3*: x",
        "**Abb. 2:** x",
        "Image: x",
        "Figure 2",
        "Figure A.1: x",
        "Figure IV. x",
        "图 3\uff1ax",
        "Рис. 3. x",
    ],
)
def test_captions_are_known(line: str) -> None:
    assert is_caption(line)


@pytest.mark.parametrize(
    "line",
    ["Figure 3 shows x", "Figures are nice: see", "Figure 3-4 show x", "Imagine: x", "See Figure 3: x", "Table 3: x", "Figure it out", ""],
)
def test_other_lines_are_no_captions(line: str) -> None:
    assert not is_caption(line)


UNITS = st.tuples(st.booleans(), st.booleans())


@given(gaps=st.tuples(st.integers(0, 50), st.integers(0, 50)), kinds=st.tuples(UNITS, UNITS))
def test_the_choice_is_a_law(gaps: tuple[int, int], kinds: tuple[tuple[bool, bool], tuple[bool, bool]]) -> None:
    near, far = gaps
    (heading, last_caption), (next_heading, caption) = kinds
    before = BEFORE._replace(is_heading=heading, is_caption=last_caption)
    after = AFTER._replace(is_heading=next_heading, is_caption=caption)
    chosen = choose(before, after, gap_before=near, gap_after=far)

    assert (before == choose(before, None, gap_before=near, gap_after=far)) is (
        after == choose(None, after, gap_before=near, gap_after=far)
    )
    if caption or far < near:
        assert chosen == after
    elif near < far or not heading or next_heading:
        assert chosen == before
    else:
        assert chosen == after


TEXT = st.lists(
    st.sampled_from(["a b.", "Cd", " ", "\n", "# H", "Figure 1: x", "|", "\n\n", "...", "é? ", "x" * 600, "1. "]), max_size=25
).map("".join)


@given(st.lists(TEXT, min_size=1, max_size=4), st.data())
def test_every_image_gets_one_stretch_of_its_page_whatever_the_text(pages: list[str], data: st.DataObject) -> None:
    starts = [sum(len(page) + 3 for page in pages[:number]) for number in range(len(pages))]
    text = "\n\n\f".join(pages)
    page = data.draw(st.integers(0, len(pages) - 1))
    anchor = data.draw(st.integers(starts[page], starts[page] + len(pages[page])))
    wraps = data.draw(st.booleans())
    start, end = TextMap(text, sections=starts, wraps=wraps).nearest(anchor, section=page)
    piece = text[start:end]

    assert (start, end) == TextMap(text, sections=starts, wraps=wraps).nearest(anchor, section=page)
    assert starts[page] <= start <= end <= starts[page] + len(pages[page])
    assert piece == piece.strip()
    assert end - start <= MAX_LENGTH
    assert bool(piece) is any(character.isalnum() for character in pages[page])


@given(TEXT, st.data())
def test_images_with_nothing_between_them_share_their_text(text: str, data: st.DataObject) -> None:
    before = data.draw(st.integers(0, len(text)))
    whole = f"{text[:before]}\n\n\n\n\n{text[before:]}"
    texts = TextMap(whole)

    assert len({texts.nearest(before + step) for step in (1, 2, 3, 4)}) == 1
