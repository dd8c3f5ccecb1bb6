"""Pages, images and tables through the public names, for those who may see them and nobody else."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING

import pytest

from evidentia import AccessRule, Principal, aconnect, connect
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.layout import ExtractedImage
from evidentia.contracts.vocabulary import Classification
from evidentia.testing.documents import TABLE, illustrated_document, make_document
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evidentia import Base
    from evidentia.contracts.documents import PreparedDocument

READER = Principal(principal_id=PrincipalId("reader"), clearance=Classification.INTERNAL)
SECRET = AccessRule(classification=Classification.RESTRICTED)
HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    """Return a base with a document that all may see, one that few may, and one without a layout."""
    with connect(tmp_path / "base", init=True) as made:
        commit(
            made,
            illustrated_document("open", picture=b"open"),
            illustrated_document("secret", picture=b"secret", access=SECRET),
            make_document("plain", "text"),
        )
        yield made


@pytest.fixture
def reader(base: Base) -> Iterator[Base]:
    """Return the same base as somebody sees it who may not see everything."""
    with connect(base.path, principal=READER) as made:
        yield made


def commit(base: Base, *documents: PreparedDocument) -> None:
    """Take prepared documents in."""
    parts = embedded.open_parts(base.path)
    writer = parts.writer()
    writer.commit(ChangeSet(documents=documents))
    writer.close()
    parts.close()


def test_the_owner_sees_every_layout(base: Base) -> None:
    layout = base.layout("test:secret")

    assert layout is not None
    assert (0, 12) == layout.pages
    assert ["test:open#S1T1", "test:secret#S1T1"] == [card.table_id for card in base.tables()]
    assert TABLE.content == base.open_table("test:secret#S1T1").content
    assert ("image/png", b"secret") == base.image(sha256_hex(b"secret"))


def test_a_document_without_a_layout_has_none(base: Base) -> None:
    assert base.layout("test:plain") is None


def test_a_reader_sees_what_it_may(reader: Base) -> None:
    assert ["test:open#S1T1"] == [card.table_id for card in reader.tables()]
    assert TABLE.columns == reader.open_table("test:open#S1T1").card.columns
    assert reader.layout("test:open") is not None
    assert ("image/png", b"open") == reader.image(sha256_hex(b"open"))


@pytest.mark.parametrize(
    ("call", "hidden", "missing"),
    [
        (lambda base: base.layout, "test:secret", "test:nothing"),
        (lambda base: base.open_table, "test:secret#S1T1", "test:nothing#S1T1"),
        (lambda base: base.image, sha256_hex(b"secret"), sha256_hex(b"nothing")),
    ],
)
def test_what_is_hidden_looks_like_what_is_missing(
    reader: Base, call: Callable[[Base], Callable[[str], object]], hidden: str, missing: str
) -> None:
    said = []
    for name in (hidden, missing):
        with pytest.raises(NotFoundError) as caught:
            call(reader)(name)
        said.append(str(caught.value).replace(name, "it"))

    assert 1 == len(set(said))


def test_hidden_documents_leave_no_trace_in_what_is_listed(tmp_path: Path) -> None:
    """Whatever somebody else keeps, under whatever name, a reader is told the same."""
    seen = []
    open_ones = (illustrated_document("m", picture=b"open"), illustrated_document("n", picture=b"both"))
    hidden = tuple(illustrated_document(name, picture=picture, access=SECRET) for name, picture in (("a", b"both"), ("z", b"secret")))
    for name, documents in (("without", open_ones), ("with", (*hidden, *open_ones))):
        with connect(tmp_path / name, init=True) as base:
            commit(base, *documents)
        with connect(tmp_path / name, principal=READER) as reader:
            images = [reader.image(sha256_hex(picture)) for picture in (b"open", b"both")]
            seen.append((reader.tables(), [reader.layout(f"test:{each}") for each in "mn"], images))

    assert seen[0] == seen[1]


def test_an_image_that_a_hidden_document_shares_is_seen_through_the_open_one(base: Base, reader: Base) -> None:
    """What an image is called is said by a document that the caller may see."""
    other = ExtractedImage(content=b"open", media_type="image/x-secret", start=0, end=1)
    commit(base, make_document("a-hidden", "text", images=(other,), access=SECRET))

    assert "image/x-secret" == base.image(sha256_hex(b"open"))[0]
    assert ("image/png", b"open") == reader.image(sha256_hex(b"open"))


def test_access_that_is_taken_away_is_gone_at_once(base: Base, reader: Base) -> None:
    assert 1 == len(reader.tables())
    base.set_access(["test:open"], SECRET)

    assert [] == reader.tables()
    for call in (
        lambda: reader.layout("test:open"),
        lambda: reader.image(sha256_hex(b"open")),
        lambda: reader.open_table("test:open#S1T1"),
    ):
        with pytest.raises(NotFoundError):
            call()


def test_an_older_version_shows_its_images_only_under_both_rules(base: Base, reader: Base) -> None:
    """As a text that is gone was under the rule of its own time, so was an image; and today's rule counts as well."""
    commit(base, illustrated_document("open", picture=b"newer"), illustrated_document("secret", picture=b"declassified"))
    assert ("image/png", b"open") == reader.image(sha256_hex(b"open"))
    assert ("image/png", b"declassified") == reader.image(sha256_hex(b"declassified"))
    with pytest.raises(NotFoundError):
        reader.image(sha256_hex(b"secret"))
    base.set_access(["test:open"], SECRET)
    with pytest.raises(NotFoundError):
        reader.image(sha256_hex(b"open"))


def test_rules_of_the_settings_count(tmp_path: Path) -> None:
    with connect(tmp_path / "base", init=True) as base:
        commit(base, illustrated_document("a"), illustrated_document("b", picture=b"b"))
        (base.path / "evidentia.toml").write_text("[access]\nrules = ['document_id = \"test:a\"']\n")
        with connect(base.path, principal=READER) as reader:
            assert ["test:a#S1T1"] == [card.table_id for card in reader.tables()]
            with pytest.raises(NotFoundError):
                reader.image(sha256_hex(b"b"))
        with connect(base.path) as owner:
            assert 2 == len(owner.tables())


def test_a_removed_document_has_no_layout(base: Base) -> None:
    base.remove(["test:open"])

    assert ["test:secret#S1T1"] == [card.table_id for card in base.tables()]
    with pytest.raises(NotFoundError):
        base.layout("test:open")
    with pytest.raises(NotFoundError):
        base.open_table("test:open#S1T1")


def test_listing_tables_reads_no_cell(base: Base) -> None:
    cells = base.tables()[0].content
    database = sqlite3.connect(base.path / "evidentia.sqlite")
    database.execute("DELETE FROM attachments WHERE content_hash = ?", (bytes.fromhex(cells),))
    database.commit()
    database.close()
    with connect(base.path) as again:
        assert 2 == len(again.tables())
        with pytest.raises(NotFoundError):
            again.open_table("test:open#S1T1")


def test_a_verified_base_with_layouts_is_whole(base: Base) -> None:
    assert base.verify().ok
    assert base.verify("test:open").ok
    assert base.doctor().findings


def test_the_async_form_does_the_same(base: Base) -> None:
    async def ask() -> tuple[int, object, tuple[str, bytes], int]:
        async with await aconnect(base.path) as twin:
            opened = await twin.open_table("test:open#S1T1")
            return len(await twin.tables()), await twin.layout("test:open"), await twin.image(sha256_hex(b"open")), opened.card.row_count

    assert (2, base.layout("test:open"), ("image/png", b"open"), 3) == asyncio.run(ask())


def test_hostile_names_and_descriptions_stay_text(base: Base) -> None:
    image = ExtractedImage(content=b"x", media_type=HOSTILE, name=HOSTILE, alt=HOSTILE, start=0, end=9)
    commit(base, make_document("hostile", f"zanzibar {HOSTILE}", images=(image,), pages=(0,)))
    answer = base.retrieve("zanzibar", mode="lexical")
    (fragment,) = answer.fragments

    assert (HOSTILE, HOSTILE, (0,)) == (fragment.images[0].alt, fragment.images[0].name, fragment.pages)
    assert "<script>" not in answer._repr_html_()
    assert HOSTILE == answer.to_dict()["fragments"][0]["images"][0]["alt"]
    assert base.verify(answer).ok


def test_an_answer_with_images_becomes_a_data_frame(base: Base) -> None:
    pytest.importorskip("pandas")
    answer = base.retrieve("harbour plan", mode="lexical")

    assert len(answer.fragments) == len(answer.to_pandas())
