"""The images of pages and Markdown texts: found where they stand, without moving a character of the text."""

from __future__ import annotations

import base64

import pytest
from image_samples import nearest, png, read

from evidentia.ingest.readers.plain import find_images

A, B = png(1), png(2)


def data(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def names(text: str) -> list[tuple[str, str]]:
    return [(image.source, image.alt) for image in find_images(text)]


def test_inline_data_of_a_page_is_taken() -> None:
    extracted = read("a.html", f"<p>One. Two.</p><img src='{data(A)}' alt='a pump'><p>Three.</p>".encode())

    assert extracted.text == "One. Two.\n\nThree."
    assert [(A, "image/png", "a pump")] == [(image.content, image.media_type, image.alt) for image in extracted.images]
    assert nearest(extracted) == ["Two."]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<h1>Head</h1><img src=x.png><p>Text. More.</p>", "Text."),
        ("<p>One.</p><p><img src=x.png> Two. Three.</p>", "Two."),
        ("<p>One. <img src=x.png></p><p>Two.</p>", "One."),
        ("<p>One.<br><img src=x.png></p><p>Two.</p>", "One."),
        ("<p>One <img src=x.png> goes on. Two.</p>", "One goes on."),
        ("<p>One.</p><figure><figcaption>The pump. From above.</figcaption><img src=x.png></figure><p>Two.</p>", "The pump. From above."),
        ("<p>One.</p><figure><img src=x.png><figcaption> </figcaption></figure><p>Two.</p>", "One."),
        ("<p>One.</p><img src=x.png><p>Figure 1: The pump. From above.</p>", "Figure 1: The pump. From above."),
        ("<table><tr><td>P1</td><td><img src=x.png></td></tr><tr><td>P2</td></tr></table>", "P1 |"),
        ("<ul><li>One</li><li>Two <img src=x.png></li></ul>", "Two"),
    ],
)
def test_the_place_of_an_image_in_a_page(page: str, expected: str) -> None:
    assert [expected] == nearest(read("a.html", page.encode()))


def test_consecutive_images_of_a_figure_share_its_caption() -> None:
    page = "<p>One.</p><figure><img src=a.png><div><img src=b.png></div><figcaption>Both.</figcaption></figure><img src=c.png><p>Two.</p>"

    assert nearest(read("a.html", page.encode())) == ["Both.", "Both.", "Both."]


def test_what_is_hidden_tiny_remote_or_loaded_by_a_script_is_no_image() -> None:
    page = """<p>Text.</p><div hidden><img src=a.png></div><img src=b.png width=1 height=1><img data-src=c.png>
    <img src="https://user:secret@Track.example.com/p.gif?who=me"><img src="//cdn.example.org/x.png"><img src="javascript:alert(1)">
    <img srcset="d.png 2x"><noscript><img src=e.png></noscript>"""
    extracted = read("a.html", page.encode())

    assert extracted.images == ()
    counted = "1 smaller than 8 by 8 pixels, 3 elsewhere on the web (track.example.com, cdn.example.org), 2 not found"
    assert extracted.notes == (f"images_left_out: has images that were left out: {counted}",)


def test_markdown_images_are_found_in_every_form() -> None:
    text = (
        "![a](one.png) ![b](<two of.png> 'title') ![c][ref] ![ref][] ![Ref] ![none] [link](x.png)\n"
        '<img alt="d &amp; e" src=\'three.png\'> ![f [g]](four(1).png "t") \\\n![h\\]](five\\_.png)\n\n[ref]: <six.png> "title"\n'
    )

    assert [
        ("one.png", "a"),
        ("two of.png", "b"),
        ("six.png", "c"),
        ("six.png", "ref"),
        ("six.png", "Ref"),
        ("three.png", ""),
        ("four(1).png", "f [g]"),
        ("five_.png", "h]"),
    ] == names(text)


@pytest.mark.parametrize(
    "text",
    [
        "```\n![a](x.png)\n```\n",
        "~~~ md\n![a](x.png)\n```\n![a](x.png)\n~~~\n",
        "- list\n  ```\n  ![a](x.png)\n  ```\n",
        "```\n![a](never closed.png)",
        "`![a](x.png)`",
        "``a ` ![a](x.png)``",
        "<!-- ![a](x.png) -->",
        "---\ntitle: ![a](x.png)\n---\nText.",
    ],
)
def test_an_example_in_code_is_no_image(text: str) -> None:
    assert [] == names(text) if not text.startswith("---") else read("a.md", text.encode()).images == ()


def test_two_backticks_of_two_paragraphs_hide_nothing() -> None:
    assert [("x.png", "a")] == names("A ` tick.\n\n![a](x.png) and ` another.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Head\n\nOne. Two.\n\n![a](x.png)\n\nThree.\n", "Two."),
        ("# Head\n\n![a](x.png)\n\nThree. Four.\n", "Three."),
        ("One.\n\n![a](x.png)\n*Figure 1: The pump.*\n\nTwo.\n", "*Figure 1: The pump.*"),
        ("One.\n\n[![badge](x.png)](https://example.com/build)\n\nTwo.\n", "One."),
        ('One.\n\n<p align="center"><img src="x.png"></p>\n\nTwo.\n', "One."),
        ("One.\r\n\r\n![a](x.png)\r\n\r\nTwo.\r\n", "One."),
        ("---\ntitle: x\n---\n![a](x.png)\n\nBody.\n", "Body."),
        ("A line that\nwraps here.\n![a](x.png)\n", "A line that\nwraps here."),
        ("See ![a](x.png) here. Then.\n", "See ![a](x.png) here."),
    ],
)
def test_the_place_of_an_image_in_markdown(text: str, expected: str) -> None:
    extracted = read("a.md", text.encode())

    assert text == extracted.text
    assert [expected] == nearest(extracted)


def test_consecutive_images_in_markdown_share() -> None:
    assert nearest(read("a.md", b"One.\n\n![a](x.png) ![b](y.png)\n\n![c](z.png)\n\nTwo.")) == ["One."] * 3


def test_inline_data_in_markdown_is_taken() -> None:
    extracted = read("a.md", f"One.\n\n![a]({data(A)})\n![again]({data(A)})\n".encode())

    assert [A, A] == [image.content for image in extracted.images]
    assert extracted.images[0].content is extracted.images[1].content


def test_only_markdown_and_pages_name_images() -> None:
    for name in ("a.txt", "a.py", "a.rst"):
        assert read(name, b"![a](x.png)").images == ()
