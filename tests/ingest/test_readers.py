"""Each family of formats becomes the text a reader would expect, and text files stay as they are."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TYPE_CHECKING

import pypdf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ingest_samples import make_docx, make_pdf, make_pptx, make_xlsx

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.readers.file_types import Family, family_of
from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.readers.pdf import NO_CRYPTOGRAPHY
from evidentia.ingest.readers.registry import read_document, tool_of
from evidentia.ingest.reasons import SkipReason
from soak import cases

if TYPE_CHECKING:
    from evidentia.contracts.layout import ExtractedText

LIMITS = ReadLimits()


def read(name: str, content: bytes) -> ExtractedText:
    return read_document(content, name=name, limits=LIMITS)


def test_text_is_the_file_character_for_character() -> None:
    text = "---\r\ntitle: x\r\n---\r\n  Body\u00e9\r\n\r\n"

    assert text == read("a.md", text.encode()).text
    assert text == read("a.md", b"\xef\xbb\xbf" + text.encode()).text
    assert text == read("a.txt", text.encode("utf-16")).text


@pytest.mark.parametrize(
    ("name", "family", "structure", "media_type"),
    [
        ("a.md", Family.MARKDOWN, "markdown", "text/markdown"),
        ("a.rst", Family.TEXT, "text", "text/x-rst"),
        ("a.py", Family.CODE, "code", "text/plain"),
        ("Makefile", Family.CODE, "code", "text/plain"),
        ("a.yaml", Family.CONFIG, "text", "application/yaml"),
        ("a.csv", Family.TABLE, "text", "text/csv"),
        ("a.log", Family.LOG, "text", "text/plain"),
        ("a.proto", Family.SCHEMA, "text", "text/plain"),
        ("a.unheard-of", Family.UNKNOWN, "text", "text/plain"),
        ("A.MD", Family.MARKDOWN, "markdown", "text/markdown"),
    ],
)
def test_a_name_decides_the_family(name: str, family: Family, structure: str, media_type: str) -> None:
    extracted = read(name, b"---\nkey: value\n---\nText\n")

    assert family is family_of(name)
    assert (structure, media_type) == (extracted.structure, extracted.media_type)


def test_front_matter_belongs_to_prose_only() -> None:
    content = b"---\ntitle: x\n---\nText\n"

    assert read("a.md", content).body_start == 17
    assert read("a.yaml", content).body_start == 0


def test_html_gives_visible_text_and_what_its_head_says() -> None:
    page = b"""<html lang=de><head><title> A
      title</title><meta name=author content=Ada><meta name=keywords content="x, y">
      <meta property="article:modified_time" content="2024-05-01"><style>p {}</style></head>
      <body><h1>Head</h1><p>one <b>two</b> three<script>bad()</script></p><div hidden>secret</div>
      <p style="color: red; DISPLAY : none">unseen</p><ul><li>a<li>b</ul><pre>x
  y</pre><table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table><!-- c -->
      <noscript>no</noscript>tail &amp; end<br>last</body></html>"""
    extracted = read("a.html", page)

    assert extracted.text == "# Head\n\none two three\n\n- a\n- b\n\nx\n  y\n\nk | v\n1 | 2\n\ntail & end\nlast"
    assert {"title": "A title", "language": "de", "author": "Ada", "tags": ("x", "y"), "updated": "2024-05-01"} == dict(extracted.declared)


def test_pdf_gives_its_pages_in_order() -> None:
    extracted = read("a.pdf", make_pdf("First page", "Second page", title="Report"))

    assert extracted.text == "First page\n\n\fSecond page"
    assert extracted.declared["title"] == "Report"


AES = ("AES-128", "AES-256-R5", "AES-256")


def encrypted(algorithm: str, *, locked_with: str = "") -> bytes:
    """Return a PDF that only its owner may change; without a user password anybody may read it."""
    writer, stream = pypdf.PdfWriter(clone_from=io.BytesIO(make_pdf("Rotate keys every ninety days."))), io.BytesIO()
    writer.encrypt(locked_with, "owner", algorithm=algorithm)
    writer.write(stream)
    return stream.getvalue()


@pytest.mark.parametrize("algorithm", [*AES, "RC4-128", "RC4-40"])
def test_an_encrypted_pdf_that_asks_readers_for_no_password_is_read(algorithm: str) -> None:
    assert "Rotate keys every ninety days." == read("a.pdf", encrypted(algorithm)).text


@pytest.mark.parametrize("algorithm", AES)
def test_an_encrypted_pdf_that_asks_for_a_password_is_skipped_with_that_reason(algorithm: str) -> None:
    with pytest.raises(DocumentUnreadableError, match="is encrypted; remove the password and ingest it again") as refused:
        read("a.pdf", encrypted(algorithm, locked_with="pw"))

    assert SkipReason.ENCRYPTED == refused.value.reason


WITHOUT_CRYPTOGRAPHY = """
import sys
from importlib.machinery import PathFinder

class Missing(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {"cryptography", "Crypto"} else super().find_spec(name, path, target)

sys.meta_path[:] = [Missing if finder is PathFinder else finder for finder in sys.meta_path]
from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.readers.registry import read_document
try:
    read_document(sys.stdin.buffer.read(), name="a.pdf", limits=ReadLimits())
except DocumentUnreadableError as error:
    print(error.reason, error.problem, sep=": ")
"""


@pytest.mark.parametrize("algorithm", AES)
def test_without_the_package_that_opens_it_an_encrypted_pdf_says_which(algorithm: str) -> None:
    program = [sys.executable, "-c", WITHOUT_CRYPTOGRAPHY]
    told = subprocess.run(program, input=encrypted(algorithm), capture_output=True, check=True).stdout.decode()

    assert f"encrypted: {NO_CRYPTOGRAPHY}\n" == told


def test_docx_gives_paragraphs_and_tables_in_order() -> None:
    extracted = read("a.docx", make_docx())

    assert extracted.text == "# Keys\n\nRotate keys every ninety days.\n\nkey | age\nsigning | 30\n\n## Why\n\nBecause they leak.\n\n"
    assert ("Rotation", "Ada") == (extracted.declared["title"], extracted.declared["author"])


def test_pptx_gives_slides_tables_and_notes() -> None:
    assert read("a.pptx", make_pptx()).text == "# Roadmap\n\nShip the base\n\nNotes: Mention custody\n\n# Numbers\n\nrecall | 0.9\n\n"


def test_xlsx_gives_rows_as_lines() -> None:
    assert read("a.xlsx", make_xlsx()).text == "# Prices\n\nitem | price | sold\nlamp | 12.5 | true\ndesk | 80 | false\n\n"


@pytest.mark.parametrize("family", Family)
def test_every_family_names_its_tool(family: Family) -> None:
    assert len(tool_of(family).split()) == 2


SEEDS = {
    "a.pdf": make_pdf("x", "y"),
    "a.docx": make_docx(),
    "a.pptx": make_pptx(),
    "a.xlsx": make_xlsx(),
    "a.html": b"<p>a<table><td>b</p>c",
    "a.md": b"# a\n",
}


@settings(max_examples=cases(50, of=150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(sorted(SEEDS)),
    flips=st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 255)), max_size=30),
    cut=st.integers(0, 60_000),
)
def test_whatever_the_bytes_a_reader_gives_text_or_a_known_reason(name: str, flips: list[tuple[int, int]], cut: int) -> None:
    content = bytearray(SEEDS[name])
    for place, byte in flips:
        content[place % len(content)] = byte
    outcome = outcome_of(name, bytes(content[: cut or None]))

    if isinstance(outcome, str):
        assert outcome in SkipReason.words()
    else:
        assert outcome.text.strip()
        assert "\0" not in outcome.text
        assert outcome.text == outcome.text.encode().decode()


def outcome_of(name: str, content: bytes) -> ExtractedText | str:
    try:
        return read(name, content)
    except DocumentUnreadableError as error:
        return str(error.reason)
