"""Fragments say on which pages they stand and which images belong to them, for the version that is asked."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia import connect
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.errors import BaseDamagedError, VersionCollectedError
from evidentia.contracts.ids import DocumentId
from evidentia.contracts.layout import ExtractedImage
from evidentia.contracts.settings import SearchSettings
from evidentia.engine.answer_verification import verify_response
from evidentia.engine.fragment_layouts import LayoutReader, layout_of, pages_between
from evidentia.testing.documents import illustrated_document, make_document
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia import Base, EvidenceResponse
    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.evidence import EvidenceFragment

AS_OF = "2026-03-01T00:00:00Z"


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    """Return an empty base without vectors."""
    with connect(tmp_path / "base", init=True) as made:
        yield made


def commit(base: Base, *documents: PreparedDocument) -> None:
    """Take prepared documents in."""
    parts = embedded.open_parts(base.path)
    writer = parts.writer()
    writer.commit(ChangeSet(documents=documents))
    writer.close()
    parts.close()


def ask(base: Base, query: str, **fields: object) -> EvidenceResponse:
    return base.retrieve(query, as_of=AS_OF, mode="lexical", **fields)


def fragments(base: Base, query: str) -> list[EvidenceFragment]:
    return sorted(ask(base, query).fragments, key=lambda each: each.position)


# --- pages ---


@given(
    st.lists(st.integers(0, 60), max_size=8).map(lambda places: (0, *sorted(places))),
    st.integers(0, 59),
    st.integers(1, 60),
)
def test_pages_are_those_whose_characters_a_fragment_holds(pages: tuple[int, ...], start: int, length: int) -> None:
    end = min(60, start + length)
    owner = [max(page for page, place in enumerate(pages) if place <= char) for char in range(60)]

    assert tuple(sorted(set(owner[start:end]))) == pages_between(pages, start=start, end=end)


def test_a_document_without_pages_has_none() -> None:
    assert () == pages_between((), start=0, end=10)


def test_a_fragment_names_its_pages(base: Base) -> None:
    commit(base, illustrated_document("a"))

    first, second = fragments(base, "harbour plan tide")
    assert ((0, 1), (1,)) == (first.pages, second.pages)


# --- images ---


def test_a_fragment_shows_the_images_that_belong_to_its_text(base: Base) -> None:
    commit(base, illustrated_document("a", picture=b"plan"))
    first, second = fragments(base, "harbour plan tide")

    assert [("diagram", "plan of the harbour", "See the plan below.")] == [
        (image.name, image.alt, image.nearest_text) for image in first.images
    ]
    assert [("image/gif", sha256_hex(b"GIF89a")), ("image/png", sha256_hex(b"plan"))] == [
        (image.media_type, image.image_hash) for image in second.images
    ]
    assert {"And the tide table."} == {image.nearest_text for image in second.images}


def test_images_are_ordered_by_the_text_they_belong_to(base: Base) -> None:
    text = "alpha beta gamma delta"
    places = [(17, 22), (0, 5), (6, 10), (0, 22), (22, 22), (0, 5)]
    images = tuple(
        ExtractedImage(content=b"%d" % number, media_type="image/png", name=str(number), start=start, end=end)
        for number, (start, end) in enumerate(places)
    )
    commit(base, make_document("a", text, images=images))
    (fragment,) = fragments(base, "alpha")

    assert ["1", "5", "3", "2", "0", "4"] == [image.name for image in fragment.images]
    assert ["alpha", "alpha", text, "beta", "delta", ""] == [image.nearest_text for image in fragment.images]


def test_nearest_text_is_the_part_that_stands_in_the_fragment_squeezed_and_bounded(base: Base) -> None:
    text = "zebra\n\n  crossing " + "word " * 200
    cut = len("zebra\n\n  crossing word ")
    image = ExtractedImage(content=b"x", media_type="image/png", start=3, end=len(text))
    commit(base, make_document("a", text, images=(image,), spans=[(0, cut), (cut, len(text))]))
    first, second = fragments(base, "zebra word")

    assert "ra crossing word" == first.images[0].nearest_text
    assert second.images[0].nearest_text == " ".join(["word"] * 60)[:300].rstrip()
    assert verify_response(ask(base, "zebra word")).ok


def test_plain_documents_and_those_with_a_layout_are_answered_together(base: Base) -> None:
    commit(base, illustrated_document("a"), make_document("b", "the harbour of another town"))
    shown = {fragment.document_id: (bool(fragment.pages), bool(fragment.images)) for fragment in ask(base, "harbour").fragments}

    assert {"test:a": (True, True), "test:b": (False, False)} == shown


def test_pages_and_images_leave_the_hash_of_an_answer_to_the_evidence_state(tmp_path: Path) -> None:
    """A layout changes `evidence_state` and through it every result hash; the fields themselves take no part."""
    answers = []
    for name, documents in (("plain", (make_document("a", "text"),)), ("paged", (make_document("a", "text", pages=(0,)),))):
        with connect(tmp_path / name, init=True) as base:
            commit(base, *documents)
            answers.append(ask(base, "text"))
    plain, paged = answers
    bare = tuple(msgspec.structs.replace(fragment, pages=(), images=()) for fragment in paged.fragments)

    assert plain.evidence_state != paged.evidence_state
    assert plain.result_hash != paged.result_hash
    assert ["response"] == [link.check for link in verify_response(msgspec.structs.replace(paged, fragments=bare)).broken]


# --- versions ---


def test_a_replay_shows_the_layout_of_its_own_version(base: Base) -> None:
    commit(base, illustrated_document("a", picture=b"old"))
    before = ask(base, "harbour plan tide")
    commit(base, illustrated_document("a", picture=b"new"))
    after = ask(base, "harbour plan tide")
    old = ask(base, "harbour plan tide", evidence_state=before.evidence_state)
    report = base.replay(before.receipt_id or "")

    assert report.is_same
    assert [each.images for each in before.fragments] == [each.images for each in report.response.fragments]
    assert [each.images for each in before.fragments] == [each.images for each in old.fragments]
    assert [each.images for each in before.fragments] != [each.images for each in after.fragments]
    assert ("image/png", b"old") == base.image(sha256_hex(b"old"))


def test_a_layout_that_went_with_its_version_is_not_answered_without(base: Base) -> None:
    document = illustrated_document("a")
    commit(base, document)
    parts = embedded.open_parts(base.path)
    snapshot = parts.index.at(search=SearchSettings())
    (chunk, _) = parts.reader.chunks_of(DocumentId("test:a"))
    assert 1 == len(layout_of(chunk, snapshot, reader=LayoutReader()).images)
    commit(base, make_document("a", "another text"))
    base.gc(keep_versions=1)

    with pytest.raises(VersionCollectedError):
        layout_of(chunk, snapshot, reader=LayoutReader())
    parts.close()


def test_layouts_that_were_read_are_kept_within_bounds(base: Base) -> None:
    commit(base, illustrated_document("a"), illustrated_document("b"))
    parts = embedded.open_parts(base.path)
    snapshot = parts.index.at(search=SearchSettings())
    (a, *_), (b, *_) = parts.reader.chunks_of(DocumentId("test:a")), parts.reader.chunks_of(DocumentId("test:b"))
    assert a.metadata.layout is not None
    assert b.metadata.layout is not None
    size = len(snapshot.attachment(a.metadata.layout) or b"")
    one, both = LayoutReader(kept_bytes=size), LayoutReader(kept_bytes=2 * size)
    for reader, is_kept in ((one, False), (both, True)):
        first = reader.layout(a.metadata.layout, snapshot)
        reader.layout(b.metadata.layout, snapshot)
        assert is_kept is (first is reader.layout(a.metadata.layout, snapshot))
    parts.close()


def test_a_damaged_layout_is_neither_shown_nor_kept(base: Base) -> None:
    commit(base, illustrated_document("a"))
    parts = embedded.open_parts(base.path)
    snapshot = parts.index.at(search=SearchSettings())
    (chunk, _) = parts.reader.chunks_of(DocumentId("test:a"))
    reader = LayoutReader()
    database = sqlite3.connect(base.path / "evidentia.sqlite", isolation_level=None)
    key = bytes.fromhex(chunk.metadata.layout or "")
    (body,) = database.execute("SELECT body FROM attachments WHERE content_hash = ?", (key,)).fetchone()
    write = "UPDATE attachments SET body = ? WHERE content_hash = ?"
    database.execute(write, (body.replace(b"diagram", b"diagrom"), key))
    with pytest.raises(BaseDamagedError, match="do not have the hash"):
        layout_of(chunk, snapshot, reader=reader)
    database.execute(write, (body, key))
    database.close()

    assert 1 == len(layout_of(chunk, snapshot, reader=reader).images)
    parts.close()


# --- what a response alone can show ---


@pytest.mark.parametrize(
    "changed",
    [{"pages": (1, 0)}, {"pages": (0, 0)}, {"pages": (-1,)}, {"images": "text that is nowhere"}],
)
def test_an_answer_whose_pages_or_images_cannot_be_true_is_found(base: Base, changed: dict[str, object]) -> None:
    commit(base, illustrated_document("a"))
    answer = ask(base, "harbour plan")
    first, *others = answer.fragments
    if isinstance(text := changed.get("images"), str):
        changed = {"images": tuple(msgspec.structs.replace(image, nearest_text=text) for image in first.images)}
    forged = msgspec.structs.replace(answer, fragments=(msgspec.structs.replace(first, **changed), *others))

    assert verify_response(answer).ok
    assert ["layout", "response"] == [link.check for link in verify_response(forged).broken]


def test_an_answer_with_images_survives_json(base: Base) -> None:
    commit(base, illustrated_document("a"))
    answer = ask(base, "harbour plan")
    plain = answer.to_dict()

    assert [list(fragment.pages) for fragment in answer.fragments] == [fragment["pages"] for fragment in plain["fragments"]]
    assert plain == json.loads(answer.to_json())
    assert answer.fragments == msgspec.json.decode(answer.to_json(), type=type(answer)).fragments
