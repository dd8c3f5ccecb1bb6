"""Layouts, images and cells in an embedded base: stored with their documents or not at all, verified byte for byte, and old bases."""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from evidentia.backends.embedded.records import schema, writer
from evidentia.backends.embedded.records.attachments import EmbeddedLayouts
from evidentia.contracts.access import AccessRule, local_owner
from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import AccessChange, ChangeSet, DocumentMetadata
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError, NotFoundError
from evidentia.contracts.ids import DocumentId, EvidenceState, Sha256, SourceId
from evidentia.contracts.layout import Attachment
from evidentia.contracts.ports import SupportsLayouts
from evidentia.contracts.settings import SearchSettings
from evidentia.contracts.vocabulary import Classification
from evidentia.policy.access import access_scope
from evidentia.provenance.layout_custody import decode_content, decode_layout, encode_content, encode_layout
from evidentia.provenance.verification import verify_base, verify_document
from evidentia.testing.documents import TABLE, illustrated_document, make_document
from evidentia.testing.store_kit import many_documents
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.contracts.documents import PreparedDocument
    from evidentia.contracts.provenance import BrokenLink
    from evidentia.wiring.embedded import EmbeddedComponents

PLAIN_VERSION = "088ec7617b7ef15bf7ffda50383a47135d848754dade95adc45fa5fff674e1cb"
"""The corpus version of three plain documents, computed before documents could have a layout."""
OWNER = access_scope(local_owner(), acl_scope=None, rules=())


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[EmbeddedComponents]:
    """Return an empty base."""
    embedded.create(tmp_path / "base")
    opened = embedded.open_parts(tmp_path / "base")
    yield opened
    opened.close()


def commit(parts: EmbeddedComponents, *documents: PreparedDocument, removals: tuple[str, ...] = ()) -> EvidenceState:
    """Commit, and return the state."""
    opened = parts.writer()
    try:
        changes = ChangeSet(documents=documents, removals=tuple(map(DocumentId, removals)))
        return EvidenceState(opened.commit(changes).evidence_state)
    finally:
        opened.close()


def broken(parts: EmbeddedComponents, document_id: str | None = None) -> tuple[BrokenLink, ...]:
    """Return what verification finds."""
    archive = parts.archive()
    try:
        return (verify_base(archive) if document_id is None else verify_document(archive, document_id)).broken
    finally:
        archive.close()


def change(parts: EmbeddedComponents, statement: str, *values: object) -> int:
    """Change the database behind everybody's back, and return how many rows that met."""
    database = sqlite3.connect(parts.directory / "evidentia.sqlite")
    count = database.execute(statement, values).rowcount
    database.commit()
    database.close()
    return count


def stored(parts: EmbeddedComponents) -> dict[bytes, bytes]:
    database = sqlite3.connect(parts.directory / "evidentia.sqlite")
    found = dict(database.execute("SELECT content_hash, body FROM attachments"))
    database.close()
    return found


# --- what stays as it was ---


def test_plain_documents_have_the_corpus_version_that_they_always_had(parts: EmbeddedComponents) -> None:
    commit(parts, *many_documents(3))

    assert PLAIN_VERSION == parts.reader.head().corpus_version
    assert {} == stored(parts)


# --- storing ---


def test_an_image_that_many_documents_show_is_stored_once(parts: EmbeddedComponents) -> None:
    commit(parts, *(illustrated_document(name) for name in "abc"))

    assert 3 + 3 == len(stored(parts))  # a layout each; two images and the cells of one table for all


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_a_document_without_all_that_its_layout_names_is_refused(parts: EmbeddedComponents, kept: int) -> None:
    document = illustrated_document("a")
    lacking = msgspec.structs.replace(document, attachments=document.attachments[:kept] + document.attachments[kept + 1 :])
    with pytest.raises(InvalidFieldError, match="attachments"):
        commit(parts, make_document("b", "other"), lacking)

    assert 0 == parts.reader.head().sequence
    assert not parts.reader.holds(DocumentId("test:b"))


def test_bytes_that_nothing_names_are_refused(parts: EmbeddedComponents) -> None:
    stray = Attachment(content_hash=sha256_hex(b"stray"), content=b"stray")
    for document in (illustrated_document("a"), make_document("a", "text")):
        with pytest.raises(InvalidFieldError, match="attachments"):
            commit(parts, msgspec.structs.replace(document, attachments=(*document.attachments, stray)))


def test_a_commit_that_fails_leaves_no_attachment(parts: EmbeddedComponents, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(parts, make_document("before", "text"))

    def fail(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError

    opened = parts.writer()
    with monkeypatch.context() as patched:
        patched.setattr(writer, "seal", fail)
        with pytest.raises(BaseDamagedError):
            opened.commit(ChangeSet(documents=(illustrated_document("a"),)))
    assert {} == stored(parts)
    opened.commit(ChangeSet(documents=(illustrated_document("a"),)))
    opened.close()

    assert 4 == len(stored(parts))
    assert () == broken(parts)


PROGRAM = """
import sys
from pathlib import Path
from evidentia.contracts.documents import ChangeSet
from evidentia.testing.documents import illustrated_document
from evidentia.wiring import embedded
writer = embedded.open_parts(Path(sys.argv[1])).writer()
for number in range(10_000):
    picture = number.to_bytes(4) * 50_000
    writer.commit(ChangeSet(documents=tuple(illustrated_document(f"{number}-{each}", picture=picture + b"%d" % each) for each in range(5))))
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_writer_that_is_killed_leaves_whole_documents(parts: EmbeddedComponents, seed: int) -> None:
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(parts.directory)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for _ in range(random.Random(seed).randrange(1, 9)):
        acknowledged = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    live = [document_id for document_id, _, _ in parts.reader.documents()]

    assert acknowledged + 1 <= len(live) // 5
    assert 0 == len(live) % 5
    assert all(parts.reader.layout(document_id) is not None for document_id in live)
    assert () == broken(parts)


def test_a_field_of_the_same_name_in_extra_is_no_layout(parts: EmbeddedComponents) -> None:
    metadata = DocumentMetadata(source_id=SourceId("test"), extra={"layout": "0" * 64})
    commit(parts, make_document("a", "text", metadata=metadata), illustrated_document("b"))
    commit(parts, removals=("test:b",))
    parts.collector().collect(keep_versions=1)

    assert {} == stored(parts)
    assert parts.reader.layout(DocumentId("test:a")) is None
    assert () == parts.layouts.cards(None)
    assert () == broken(parts)


# --- reading ---


def test_reader_snapshot_and_archive_keep_layouts(parts: EmbeddedComponents) -> None:
    commit(parts, illustrated_document("a"))
    archive = parts.archive()
    snapshot = parts.index.at(search=SearchSettings())
    document_id = DocumentId("test:a")
    for each in (parts.reader, archive, snapshot):
        assert isinstance(each, SupportsLayouts)
        assert parts.reader.layout(document_id) == each.layout(document_id)
        assert each.layout(DocumentId("test:nothing")) is None
        assert each.attachment(Sha256("0" * 64)) is None
        assert each.attachment(Sha256("no hash")) is None
    archive.close()


def test_each_version_has_the_layout_it_had(parts: EmbeddedComponents) -> None:
    first = commit(parts, illustrated_document("a", picture=b"old"))
    second = commit(parts, illustrated_document("a", picture=b"new"))
    third = commit(parts, removals=("test:a",))
    for state, picture in ((first, b"old"), (second, b"new")):
        layout = parts.index.at(search=SearchSettings(), evidence_state=state).layout(DocumentId("test:a"))
        assert layout is not None
        assert sha256_hex(picture) == layout.images[0].image_hash

    assert parts.index.at(search=SearchSettings(), evidence_state=third).layout(DocumentId("test:a")) is None
    assert parts.reader.layout(DocumentId("test:a")) is None


# --- collecting ---


def test_a_collection_keeps_what_a_readable_version_shows(parts: EmbeddedComponents) -> None:
    for picture in (b"first", b"second", b"third"):
        commit(parts, illustrated_document("a", picture=picture))
    parts.collector().collect(keep_versions=2)
    bodies = set(stored(parts).values())

    assert {b"second", b"third"} == {b"first", b"second", b"third"} & bodies
    assert () == broken(parts)


def test_what_was_removed_is_gone_from_the_file(parts: EmbeddedComponents) -> None:
    picture = b"a picture that nobody else has" * 400
    commit(parts, illustrated_document("a", picture=picture), make_document("b", "text"))
    commit(parts, removals=("test:a",))
    parts.collector().collect(keep_versions=1)
    files = b"".join(path.read_bytes() for path in parts.directory.rglob("*") if path.is_file())

    assert {} == stored(parts)
    assert b"a picture that nobody else has" not in files


def test_tidying_reads_no_layout(parts: EmbeddedComponents) -> None:
    for number in range(6):
        commit(parts, make_document(f"{number}", f"text {number}"), illustrated_document("a", picture=b"%d" % number))
    change(parts, "UPDATE attachments SET body = x'00'")
    report = parts.collector().compact()

    assert report.segments_removed > 1
    assert report.versions_removed == 0


# --- verifying ---


def test_a_whole_base_with_layouts_passes(parts: EmbeddedComponents) -> None:
    secret = AccessRule(classification=Classification.RESTRICTED)
    commit(parts, illustrated_document("a"), illustrated_document("b", picture=b"other"), make_document("c", "plain"))
    opened = parts.writer()
    opened.commit(ChangeSet(access_changes=(AccessChange(document_id=DocumentId("test:a"), access=secret),)))
    opened.close()

    assert () == broken(parts)
    assert () == broken(parts, "test:a")


@pytest.mark.parametrize("kind", ["layout", "image", "cells"])
@pytest.mark.parametrize("damage", ["missing", "other", "empty"])
def test_every_kind_of_damage_is_found(parts: EmbeddedComponents, kind: str, damage: str) -> None:
    document = illustrated_document("a", picture=b"a picture")
    commit(parts, document, make_document("b", "plain"))
    layout = parts.reader.layout(document.document_id)
    assert layout is not None
    key = {"layout": document.metadata.layout, "image": layout.images[0].image_hash, "cells": layout.tables[0].content}[kind]
    statement = {
        "missing": "DELETE FROM attachments WHERE content_hash = ?",
        "other": "UPDATE attachments SET body = CAST(body || x'20' AS BLOB) WHERE content_hash = ?",
        "empty": "UPDATE attachments SET body = x'' WHERE content_hash = ?",
    }[damage]

    assert () == broken(parts)
    assert 1 == change(parts, statement, bytes.fromhex(key or ""))
    assert () != broken(parts)
    assert () != broken(parts, "test:a")


def test_an_attachment_that_nothing_names_is_found(parts: EmbeddedComponents) -> None:
    commit(parts, illustrated_document("a"))
    change(parts, "INSERT INTO attachments VALUES (?, ?)", bytes.fromhex(sha256_hex(b"stray")), b"stray")

    assert ["1 images, tables or layouts belong to no document"] == [link.problem for link in broken(parts)]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"pages": (0, 40, 20)}, "its pages do not follow one another within the text"),
        ({"pages": (3,)}, "its pages do not follow one another within the text"),
        ({"pages": (0, 9_999)}, "its pages do not follow one another within the text"),
        ({"image": {"end": 9_999}}, "an image belongs to a stretch that is not in the text"),
        ({"image": {"byte_count": 3}}, "there are 4 bytes instead of 3"),
        ({"table": {"row_count": 2}}, "its card counts other rows"),
        ({"table": {"document_id": "test:b"}}, "its card names another document or place"),
        ({"table": {"table_id": "test:a#S1T2"}}, "its card names another document or place"),
        ({"table": {"columns": ()}}, "its columns are not as many or as long as they should be"),
    ],
)
def test_a_layout_that_does_not_fit_its_document_is_found(parts: EmbeddedComponents, wrong: dict[str, object], problem: str) -> None:
    """Whoever writes a wrong layout with all its hashes right is found by what it says."""
    document = illustrated_document("a")
    attachments = {each.content_hash: each.content for each in document.attachments}
    layout = decode_layout(attachments.pop(document.metadata.layout or Sha256("")))
    if "pages" in wrong:
        layout = msgspec.structs.replace(layout, pages=wrong["pages"])
    if isinstance(changes := wrong.get("image"), dict):
        layout = msgspec.structs.replace(layout, images=(msgspec.structs.replace(layout.images[0], **changes), *layout.images[1:]))
    if isinstance(changes := wrong.get("table"), dict):
        layout = msgspec.structs.replace(layout, tables=(msgspec.structs.replace(layout.tables[0], **changes),))
    commit(parts, _with_layout(document, encode_layout(layout), attachments))

    assert [("layout", problem)] == [(link.check, link.problem) for link in broken(parts)]


def test_bytes_that_say_the_same_in_another_form_are_found(parts: EmbeddedComponents) -> None:
    document = illustrated_document("a")
    attachments = {each.content_hash: each.content for each in document.attachments}
    encoded = attachments.pop(document.metadata.layout or Sha256(""))
    commit(parts, _with_layout(document, encoded + b" ", attachments))

    assert ["it is not in its canonical form"] == [link.problem for link in broken(parts)]


def test_cells_in_another_form_are_found(parts: EmbeddedComponents) -> None:
    document = illustrated_document("a")
    attachments = {each.content_hash: each.content for each in document.attachments}
    layout = decode_layout(attachments.pop(document.metadata.layout or Sha256("")))
    cells = msgspec.msgpack.encode({"columns": TABLE.content.columns, "rows": TABLE.content.rows})
    assert decode_content(cells) == TABLE.content
    assert encode_content(TABLE.content) == attachments.pop(layout.tables[0].content) != cells
    layout = msgspec.structs.replace(layout, tables=(msgspec.structs.replace(layout.tables[0], content=sha256_hex(cells)),))
    commit(parts, _with_layout(document, encode_layout(layout), attachments | {sha256_hex(cells): cells}))

    assert ["its cells are not in the form in which they are stored"] == [link.problem for link in broken(parts)]


def _with_layout(document: PreparedDocument, encoded: bytes, attachments: dict[Sha256, bytes]) -> PreparedDocument:
    named = sha256_hex(encoded)
    return msgspec.structs.replace(
        document,
        metadata=msgspec.structs.replace(document.metadata, layout=named),
        attachments=tuple(Attachment(content_hash=key, content=content) for key, content in ({named: encoded} | attachments).items()),
    )


def test_any_flipped_bit_of_an_attachment_is_found(parts: EmbeddedComponents, tmp_path: Path) -> None:
    commit(parts, illustrated_document("a", picture=b"a picture"), illustrated_document("b"))
    work = tmp_path / "work"
    shutil.copytree(parts.directory, work)
    damaged = embedded.open_parts(work)
    database = sqlite3.connect(work / "evidentia.sqlite", isolation_level=None)
    chance = random.Random(7)
    rows = database.execute("SELECT rowid, content_hash, body FROM attachments").fetchall()
    for rowid, key, body in rows:
        for column, original in (("content_hash", key), ("body", body)):
            for _ in range(4):
                flipped = bytearray(original)
                flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
                database.execute(f"UPDATE attachments SET {column} = ? WHERE rowid = ?", (bytes(flipped), rowid))
                assert () != broken(damaged), (column, bytes(flipped))
            database.execute(f"UPDATE attachments SET {column} = ? WHERE rowid = ?", (original, rowid))
    database.close()

    assert 6 == len(rows)
    assert () == broken(damaged)
    damaged.close()


def test_damage_is_not_read_as_if_it_were_whole(parts: EmbeddedComponents) -> None:
    commit(parts, illustrated_document("a", picture=b"a picture"))
    (card,) = parts.layouts.cards(None)
    change(parts, "UPDATE attachments SET body = CAST(body || x'20' AS BLOB)")
    with pytest.raises(BaseDamagedError):
        parts.reader.layout(DocumentId("test:a"))
    with pytest.raises(BaseDamagedError):
        parts.layouts.content(card)
    with pytest.raises(BaseDamagedError):
        parts.layouts.image(sha256_hex(b"a picture"), OWNER)


# --- bases of schema 3 ---


@pytest.fixture
def old(parts: EmbeddedComponents) -> EmbeddedComponents:
    """Return a base with documents as schema 3 left it."""
    commit(parts, *many_documents(3))
    database = sqlite3.connect(parts.directory / "evidentia.sqlite")
    for name in schema.LIST_INDEXES:
        database.execute(f"DROP INDEX {name}")
    database.execute("DROP TABLE attachments")
    database.execute("PRAGMA user_version = 3")
    database.commit()
    assert [] == schema.schema_faults(database)
    database.close()
    return parts


def test_an_old_base_is_read_and_verified_as_it_is(old: EmbeddedComponents) -> None:
    document_id = DocumentId("test:0")

    assert () == broken(old)
    assert old.reader.layout(document_id) is None
    assert old.reader.attachment(Sha256("0" * 64)) is None
    assert () == old.layouts.cards(None)
    assert old.index.at(search=SearchSettings()).layout(document_id) is None
    assert PLAIN_VERSION == old.reader.head().corpus_version


def test_an_old_base_takes_layouts_once_a_writer_has_brought_it_up(old: EmbeddedComponents) -> None:
    before = old.index.at(search=SearchSettings())
    assert () == old.layouts.cards(None)
    commit(old, illustrated_document("a"))

    assert () == broken(old)
    assert old.reader.layout(DocumentId("test:a")) is not None
    assert 1 == len(old.layouts.cards(None))
    assert before.layout(DocumentId("test:a")) is None
    old.collector().collect(keep_versions=1)
    assert () == broken(old)


def test_an_old_base_that_claims_layouts_is_broken(parts: EmbeddedComponents) -> None:
    commit(parts, illustrated_document("a"))
    for name in schema.LIST_INDEXES:
        change(parts, f"DROP INDEX {name}")
    change(parts, "DROP TABLE attachments")
    change(parts, "PRAGMA user_version = 3")

    assert ["its bytes are missing"] == [link.problem for link in broken(parts)]


# --- the list of tables ---


def test_cells_are_kept_within_bounds(parts: EmbeddedComponents) -> None:
    commit(parts, illustrated_document("a"))
    roomy, narrow = EmbeddedLayouts(parts.reader, kept_cells=9), EmbeddedLayouts(parts.reader, kept_cells=8)
    (card,) = roomy.cards(None)

    assert roomy.content(card) is roomy.content(card)
    assert narrow.content(card) is not narrow.content(card)
    assert TABLE.content == narrow.content(card)


def test_the_list_follows_what_is_committed_and_collected(parts: EmbeddedComponents) -> None:
    old = sha256_hex(b"old")
    commit(parts, illustrated_document("a", picture=b"old"))
    assert ["test:a#S1T1"] == [card.table_id for card in parts.layouts.cards(OWNER)]
    assert parts.layouts.cards(OWNER) is parts.layouts.cards(OWNER)
    commit(parts, illustrated_document("b"), make_document("a", "text"))
    assert ["test:b#S1T1"] == [card.table_id for card in parts.layouts.cards(OWNER)]
    assert ("image/png", b"old") == parts.layouts.image(old, OWNER)  # a version that can still be asked for shows it
    parts.collector().collect(keep_versions=1)
    with pytest.raises(NotFoundError, match="no image"):
        parts.layouts.image(old, OWNER)
