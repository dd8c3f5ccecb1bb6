"""Image files next to Markdown texts and pages come in with them, and only those that may."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from image_samples import png, read
from ingest_rig import DictStore

from evidentia.contracts.documents import IngestOptions
from evidentia.contracts.ids import DocumentId
from evidentia.contracts.settings import IngestSettings
from evidentia.ingest.ingest_pipeline import ingest_paths
from evidentia.ingest.neighbours import Neighbours
from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.walk import read_original, walk_paths
from evidentia.testing.determinism import SteppingClock

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.layout import ExtractedText
    from evidentia.contracts.reports import IngestReport

A, B = png(1), png(2)


def taken(path: Path, own_id: str, limits: ReadLimits | None = None) -> ExtractedText:
    """Read one document below `path` with its neighbours."""
    limits = limits or ReadLimits()
    files = walk_paths([path]).files
    neighbours = Neighbours(files, limits)
    file = next(file for file in files if file.own_id == own_id)
    content = read_original(file.path, max_bytes=1_000_000)
    return neighbours.attached(read(own_id, content, limits), file, neighbours.of(file, content))


def ingest(store: DictStore, *paths: Path) -> IngestReport:
    return ingest_paths(
        paths,
        options=IngestOptions(),
        settings=IngestSettings(readers=0),
        language="en",
        writer=store,
        clock=SteppingClock(),
        on_progress=None,
    )


def write(root: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/a.md", "One.\n\n![a pump](../img/a%20b.png?raw=true)\n"),
        ("docs/a.html", "<p>One.</p><img alt='a pump' src='../img/a b.png#top'>"),
        ("docs/a.html", "<p>One.</p><img alt='a pump' src='..&#47;img/a%20b.png'>"),
    ],
)
def test_a_file_next_to_a_document_comes_with_it(tmp_path: Path, name: str, text: str) -> None:
    for path, content in ((name, text.encode()), ("img/a b.png", A)):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    extracted = taken(tmp_path, name)
    (image,) = extracted.images

    assert (A, "image/png", "a b.png", "a pump") == (image.content, image.media_type, image.name, image.alt)
    assert extracted.text[image.start : image.end] == "One."
    assert extracted.notes == ()


@pytest.mark.parametrize(
    ("reference", "cause"),
    [
        ("../../outside.png", "named by a path that leaves the ingested directory"),
        ("..%2f..%2foutside.png", "named by a path that leaves the ingested directory"),
        ("/etc/logo.png", "named by a path that leaves the ingested directory"),
        ("..\\outside.png", "named by a path that leaves the ingested directory"),
        ("missing.png", "not found"),
        ("link.png", "not found"),
        ("../.git/a.png", "not found"),
        ("ignored.png", "not found"),
        ("secret.key", "not found"),
        ("text.png", "of a kind that is not kept"),
        ("empty.png", "of a kind that is not kept"),
        ("big.png", "larger than an image may be"),
        ("dot.png", "smaller than 8 by 8 pixels"),
        ("pipe.png", "not found"),
    ],
)
def test_what_may_not_be_taken_is_left_out_with_a_reason(tmp_path: Path, reference: str, cause: str) -> None:
    root = tmp_path / "root"
    write(tmp_path, outside_dot_png=A)
    write(
        root, docs__a_dot_md=f"One.\n\n![a]({reference})\n", docs__text_dot_png="no image", docs__empty_dot_png=b"", docs__secret_dot_key=A
    )
    write(root, docs__big_dot_png=A + b"\0" * 70_000, docs__dot_dot_png=png(width=4), docs__ignored_dot_png=A, _dot_git__a_dot_png=A)
    write(root, _dot_evidentiaignore="ignored.png\n")
    (root / "docs" / "link.png").symlink_to(tmp_path / "outside.png")
    os.mkfifo(root / "docs" / "pipe.png")
    extracted = taken(root, "docs/a.md", ReadLimits(max_image_bytes=60_000))

    assert extracted.images == ()
    assert extracted.notes == (f"images_left_out: has images that were left out: 1 {cause}",)


def test_a_file_given_by_name_has_neighbours_too_and_they_stay_below_it(tmp_path: Path) -> None:
    write(
        tmp_path, outside_dot_png=A, root__img__a_dot_png=B, root__a_dot_md="One.\n\n![a](img/a.png) ![b](../outside.png) ![c](link.png)\n"
    )
    (tmp_path / "root" / "link.png").symlink_to(tmp_path / "outside.png")
    extracted = taken(tmp_path / "root" / "a.md", "a.md")

    assert [B] == [image.content for image in extracted.images]


def test_a_changed_image_makes_a_changed_document(tmp_path: Path) -> None:
    write(tmp_path, a_dot_md="One.\n\n![a](a.png)\n", b_dot_html="<p>Two.</p><img src=a.png>", c_dot_md="Three.\n", a_dot_png=A)
    store = DictStore()
    ingest(store, tmp_path)
    before = {one: document.fingerprint for one, document in store.documents.items()}
    ingest(store, tmp_path)
    again = {one: document.fingerprint for one, document in store.documents.items()}
    write(tmp_path, a_dot_png=B)
    ingest(store, tmp_path)
    after = {one: document.fingerprint for one, document in store.documents.items()}

    assert before == again
    assert ["documents:a.md", "documents:b.html"] == sorted(one for one in after if after[one] != before[one])


def test_an_image_that_appears_later_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, a_dot_md="One.\n\n![a](a.png)\n")
    store = DictStore()
    report = ingest(store, tmp_path)
    before = store.documents[DocumentId("documents:a.md")].fingerprint
    write(tmp_path, a_dot_png=A)
    ingest(store, tmp_path)

    assert ["'a.md' has images that were left out: 1 not found"] == [note.message for note in report.notes]
    assert before != store.documents[DocumentId("documents:a.md")].fingerprint


def test_bytes_are_shared_by_repeated_references(tmp_path: Path) -> None:
    write(tmp_path, a_dot_md="One.\n\n" + "![a](a.png)\n" * 20, a_dot_png=A)
    extracted = taken(tmp_path, "a.md")

    assert 8 == len(extracted.images)
    assert 1 == len({id(image.content) for image in extracted.images})
