"""What a user holds: ingest, versions, access, proofs and collection, through the public names."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

import msgspec
import pytest

import evidentia
from evidentia import AccessRule, AsyncBase, Base, FragmentExport, aconnect, connect
from evidentia.contracts.errors import InvalidFieldError, NotFoundError, UnknownSettingError
from evidentia.contracts.vocabulary import Classification
from evidentia.provenance import merkle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with three small documents."""
    files = tmp_path / "docs"
    files.mkdir()
    for name in "abc":
        (files / f"{name}.md").write_text(f"# {name}\n\nThe page of {name}.\n")
    return files


@pytest.fixture
def base(tmp_path: Path, folder: Path) -> Iterator[Base]:
    """Return a base that has ingested the documents."""
    with connect(tmp_path / "base", init=True) as made:
        made.ingest([folder], source="handbook", authority="canonical")
        yield made


def test_the_sync_form_has_the_methods_and_arguments_of_the_async_form() -> None:
    names = {name for name in vars(AsyncBase) if not name.startswith("_")}

    assert names == {name for name in vars(Base) if not name.startswith("_")}
    for name in names:
        form, twin = vars(AsyncBase)[name], vars(Base)[name]
        if isinstance(form, property):
            assert isinstance(twin, property)
            continue
        assert inspect.signature(form).parameters == inspect.signature(twin).parameters, name
        if name == "governor":  # it opens nothing: what it returns is for both kinds of agents
            continue
        assert inspect.iscoroutinefunction(form) or inspect.isasyncgenfunction(form), name
        assert form.__doc__ == twin.__doc__, name


def test_every_public_name_is_importable_and_listed() -> None:
    assert evidentia.__all__ == sorted(evidentia.__all__)
    assert set(evidentia.__all__) == set(evidentia._EXPORTS)
    for name in evidentia.__all__:
        assert name == getattr(evidentia, name).__name__
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = evidentia.nothing


def test_a_second_ingest_of_the_same_files_changes_nothing(base: Base, folder: Path) -> None:
    before = base.head()
    report = base.ingest([folder], source="handbook", authority="canonical")

    assert (3, 0, 0, 3) == (report.seen, report.added, report.changed, report.unchanged)
    assert before == base.head()


def test_an_edited_file_is_a_new_version_and_the_old_text_is_still_provable(base: Base, folder: Path) -> None:
    (old,) = base.chunks("handbook:a.md")
    (folder / "a.md").write_text("# a\n\nAnother page.\n")
    report = base.ingest([folder], source="handbook", authority="canonical")
    export = base.export(old.chunk_id)

    assert (1, 2) == (report.changed, report.unchanged)
    assert "Another page" in base.chunks("handbook:a.md")[0].content
    assert not export.is_live
    assert base.verify(export).ok
    assert base.verify().ok


def test_a_file_that_is_gone_goes_only_when_asked(base: Base, folder: Path) -> None:
    (folder / "b.md").unlink()
    kept = base.ingest([folder], source="handbook", authority="canonical")
    pruned = base.ingest([folder], source="handbook", authority="canonical", prune=True)

    assert (0, 1) == (kept.removed, pruned.removed)
    assert ["handbook:a.md", "handbook:c.md"] == [document_id for document_id, _, _ in base.documents()]


def test_a_change_of_access_is_a_version_of_its_own(base: Base) -> None:
    before = base.head()
    rule = AccessRule(classification=Classification.RESTRICTED, acl=("group:security",))
    summary = base.set_access(["handbook:a.md"], rule)

    assert 1 == summary.access_changed
    assert before.corpus_version != summary.corpus_version
    assert rule == base.documents()[0][1]
    assert base.verify().ok


def test_ingesting_with_another_classification_changes_access_and_not_the_text(base: Base, folder: Path) -> None:
    before = [chunk.event_index for name in "abc" for chunk in base.chunks(f"handbook:{name}.md")]
    report = base.ingest([folder], source="handbook", authority="canonical", classification="confidential")

    assert 3 == report.access_changed
    assert before == [chunk.event_index for name in "abc" for chunk in base.chunks(f"handbook:{name}.md")]
    assert {Classification.CONFIDENTIAL} == {access.classification for _, access, _ in base.documents()}


def test_an_export_survives_json_and_each_changed_field_breaks_it(base: Base) -> None:
    export = base.export(base.chunks("handbook:a.md")[0].chunk_id)
    as_json = msgspec.json.encode(export)

    assert base.verify(msgspec.json.decode(as_json, type=FragmentExport)).ok
    for field, value in {
        "content": export.content + " ",
        "chunk_id": export.chunk_id.replace("#0", "#1"),
        "document_id": "handbook:b.md",
        "source_id": "wiki",
        "position": 1,
        "start": 1,
        "end": export.end + 1,
        "format": "other/1",
        "commit_hash": "0" * 64,
        "provenance_chain": export.provenance_chain[:-1],
        "event": msgspec.structs.replace(export.event, salt="00" * 16),
        "inclusion": msgspec.structs.replace(export.inclusion, leaf_index=export.inclusion.leaf_index + 1),
        "commit": msgspec.structs.replace(export.commit, corpus_version="0" * 64),
    }.items():
        assert not base.verify(msgspec.structs.replace(export, **{field: value})).ok, field


def test_verification_of_a_document_names_what_it_checked(base: Base) -> None:
    assert 1 == base.verify("handbook:a.md").documents
    with pytest.raises(NotFoundError, match=r"no document or chunk 'handbook:nothing.md'"):
        base.verify("handbook:nothing.md")


def test_an_earlier_log_is_a_provable_prefix(base: Base, folder: Path) -> None:
    earlier = base.head()
    (folder / "d.md").write_text("# d\n\nLater.\n")
    base.ingest([folder], source="handbook", authority="canonical")
    proof = base.consistency(earlier.log_size)

    assert merkle.verify_consistency(
        first=earlier.log_size,
        second=base.head().log_size,
        path=[bytes.fromhex(each) for each in proof.hashes],
        first_root=bytes.fromhex(earlier.log_root),
        second_root=bytes.fromhex(base.head().log_root),
    )
    with pytest.raises(InvalidFieldError, match="field 'first_size': 99 is not between 0 and the log's 4 entries"):
        base.consistency(99)


def test_collection_drops_old_text_and_keeps_the_rest(base: Base, folder: Path) -> None:
    (old,) = base.chunks("handbook:a.md")
    (folder / "a.md").write_text("# a\n\nAnother page.\n")
    base.ingest([folder], source="handbook", authority="canonical")
    before = base.versions()
    report = base.gc(keep_versions=1)

    assert (len(before) - 1, 1) == (report.versions_removed, report.chunks_removed)
    assert report.versions_removed == sum(1 for each in base.versions() if not each.is_kept)
    with pytest.raises(NotFoundError):
        base.export(old.chunk_id)
    assert base.verify().ok
    assert 0 == base.gc(keep_versions=1).versions_removed


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("authority", "gospel", "field 'authority': 'gospel' is not one of ephemeral, user, derived, curated, canonical"),
        ("classification", "secret", "field 'classification': 'secret' is not one of public, internal, confidential, restricted"),
        ("source", "a:b", "field 'source'"),
        ("acl", ["everyone"], "field 'acl'"),
    ],
)
def test_a_wrong_option_is_named_before_anything_happens(base: Base, folder: Path, option: str, value: str, message: str) -> None:
    before = base.head()
    with pytest.raises(InvalidFieldError) as caught:
        base.ingest([folder], **{option: value})  # type: ignore[arg-type]  # the mistake under test

    assert str(caught.value).startswith(message)
    assert before == base.head()


def test_one_path_by_itself_is_that_path_and_no_row_of_letters(base: Base, folder: Path) -> None:
    assert base.ingest([folder]).seen == base.ingest(str(folder)).seen == base.ingest(folder).seen > 0


@pytest.mark.parametrize("paths", [b"docs", 7, None, [3], [None]])
def test_what_is_no_path_is_refused_by_name(base: Base, paths: object) -> None:
    with pytest.raises(InvalidFieldError, match="field 'paths': expected "):
        base.ingest(paths)  # type: ignore[arg-type]  # what callers without types may pass


@pytest.mark.parametrize("wrong", [None, 7, b"x", "", ["x"]])
@pytest.mark.parametrize(
    ("method", "field"),
    [
        ("replay", "receipt_id"),
        ("export", "chunk_id"),
        ("chunks", "document_id"),
        ("layout", "document_id"),
        ("open_table", "table_id"),
        ("image", "image_hash"),
    ],
)
def test_what_is_no_id_is_refused_by_name(base: Base, method: str, field: str, wrong: object) -> None:
    with pytest.raises(InvalidFieldError, match=f"field '{field}': expected a text"):
        getattr(base, method)(wrong)


def test_a_wrong_setting_is_named_with_its_file(tmp_path: Path) -> None:
    connect(tmp_path, init=True).close()
    settings = tmp_path / "evidentia.toml"
    settings.write_text("[ingest]\nchunk_charz = 3\n")
    with pytest.raises(UnknownSettingError, match=r"'evidentia.toml' names the setting 'ingest.chunk_charz', which does not exist"):
        connect(tmp_path)
    settings.write_text("[ingest]\nchunk_chars = 3\n")
    with pytest.raises(InvalidFieldError, match=r"field 'ingest.chunk_chars': expected `int` >= 200, in evidentia.toml"):
        connect(tmp_path)
    settings.write_text("[ingest\n")
    with pytest.raises(InvalidFieldError, match=r"field 'evidentia.toml': the file is not TOML"):
        connect(tmp_path)


def test_the_async_form_works_and_the_sync_form_works_inside_a_running_loop(tmp_path: Path, folder: Path) -> None:
    async def use() -> int:
        async with await aconnect(tmp_path / "base", init=True) as base:
            await base.ingest([folder])
        with connect(tmp_path / "base") as inside_loop:
            return len(inside_loop.documents())

    assert 3 == asyncio.run(use())


def test_a_check_up_says_what_is_wrong(base: Base) -> None:
    assert base.doctor().ok
    (base.path / "evidentia.sqlite").write_bytes(b"")
    report = base.doctor()

    assert not report.ok
    assert ["base"] == [finding.check for finding in report.findings if not finding.ok]
