"""An ingest as a whole: what gets in, what is left alone, what is removed, and numbers that add up."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from ingest_rig import Ingest
from ingest_samples import make_pdf

from evidentia.contracts.access import AccessRule
from evidentia.contracts.documents import IngestOptions
from evidentia.contracts.errors import DuplicateDocumentError, InvalidFieldError
from evidentia.contracts.ids import SourceId
from evidentia.contracts.settings import IngestSettings
from evidentia.contracts.vocabulary import AuthorityTier, Classification, ContentType

if TYPE_CHECKING:
    from pathlib import Path

PRUNE = IngestOptions(prune=True)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("---\ntags: [ops]\n---\n# Alpha\n\nText of a.\n")
    (folder / "b.txt").write_text("Text of b.")
    (folder / "sub" / "c.py").write_text("print('c')\n")
    return folder


def test_files_become_documents(docs: Path) -> None:
    ingest = Ingest()
    options = IngestOptions(source=SourceId("handbook"), authority=AuthorityTier.CANONICAL, tags=("team",))
    report = ingest(docs, options=options)
    documents = ingest.store.documents
    alpha = documents["handbook:a.md"]  # type: ignore[index]  # a literal id

    assert (3, 3, 3) == (report.seen, report.added, report.chunks)
    assert ["handbook:a.md", "handbook:b.txt", "handbook:sub/c.py"] == list(documents)
    assert ("Alpha", "a.md", ("ops", "team")) == (alpha.metadata.title, alpha.metadata.path, alpha.metadata.tags)
    assert AuthorityTier.CANONICAL is alpha.metadata.authority_tier
    assert [ContentType.DOCUMENTATION, ContentType.DOCUMENTATION, ContentType.CODE] == [d.metadata.content_type for d in documents.values()]
    assert alpha.text[alpha.chunks[0].start : alpha.chunks[0].end] == "# Alpha\n\nText of a."
    assert (1, report.corpus_version != "") == (report.sequence, True)


def test_unchanged_files_are_skipped_before_they_are_extracted(docs: Path) -> None:
    (docs / "d.pdf").write_bytes(make_pdf("x"))
    ingest = Ingest()
    ingest(docs)
    report = ingest(docs, settings=IngestSettings(readers=1))

    assert (4, 4, 0, 0) == (report.seen, report.unchanged, report.chunks, report.sequence)
    assert len(ingest.store.commits) == 1


def test_a_changed_file_is_changed_and_a_new_one_added(docs: Path) -> None:
    ingest = Ingest()
    ingest(docs)
    (docs / "b.txt").write_text("New text of b.")
    (docs / "new.md").write_text("New.")
    report = ingest(docs)

    assert (1, 1, 2) == (report.added, report.changed, report.unchanged)


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (IngestOptions(tags=("x",)), IngestSettings(readers=0)),
        (IngestOptions(authority=AuthorityTier.USER), IngestSettings(readers=0)),
        (IngestOptions(), IngestSettings(readers=0, chunk_max_chars=3_000)),
    ],
)
def test_other_options_make_everything_read_again(docs: Path, options: IngestOptions, settings: IngestSettings) -> None:
    ingest = Ingest()
    ingest(docs)

    assert ingest(docs, options=options, settings=settings).unchanged == 0


def test_an_access_change_is_told_apart(docs: Path) -> None:
    ingest = Ingest()
    ingest(docs)
    report = ingest(docs, options=IngestOptions(access=AccessRule(classification=Classification.RESTRICTED)))

    assert (3, 0) == (report.access_changed, report.changed)


def test_prune_removes_what_is_gone_and_nothing_else(docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "o.md").write_text("other")
    ingest = Ingest()
    ingest(docs)
    ingest(other)
    (docs / "b.txt").unlink()
    (docs / "a.md").write_bytes(b"\xff")
    without = ingest(docs)
    with_prune = ingest(docs, options=PRUNE)

    assert (0, 1) == (without.removed, with_prune.removed)
    assert ["a.md", "o.md", "sub/c.py"] == ingest.store.own_ids()


def test_prune_with_a_file_leaves_its_neighbours(docs: Path) -> None:
    ingest = Ingest()
    ingest(docs)
    (docs / "b.txt").unlink()

    assert ingest(docs / "a.md", options=PRUNE).removed == 0


def test_prune_removes_records_that_left_their_corpus(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"_id": "1", "text": "x"}\n{"_id": "2", "text": "y"}\n')
    ingest = Ingest()
    ingest(corpus)
    corpus.write_text('{"_id": "2", "text": "y"}\n')
    report = ingest(corpus, options=PRUNE)

    assert (1, ["2"]) == (report.removed, ingest.store.own_ids())


def test_prune_leaves_records_alone_when_a_line_could_not_be_read(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"_id": "1", "text": "x"}\n{"_id": "2", "text": "y"}\n')
    ingest = Ingest()
    ingest(corpus)
    corpus.write_text('{"_id": "1", "text\n{"_id": "2", "text": "y"}\n')
    report = ingest(corpus, options=PRUNE)

    assert (0, ["1", "2"]) == (report.removed, ingest.store.own_ids())
    assert ["'c.jsonl' was not pruned, because 1 lines could not be read"] == [note.message for note in report.notes]


def test_one_id_from_two_roots_commits_nothing(docs: Path, tmp_path: Path) -> None:
    shutil.copytree(docs, tmp_path / "copy")
    ingest = Ingest()
    with pytest.raises(DuplicateDocumentError):
        ingest(docs, tmp_path / "copy")

    assert ingest.store.commits == []


def test_an_id_that_another_root_still_has_is_refused(docs: Path, tmp_path: Path) -> None:
    shutil.copytree(docs, tmp_path / "copy")
    ingest = Ingest()
    ingest(docs)
    with pytest.raises(DuplicateDocumentError) as caught:
        ingest(tmp_path / "copy")

    assert str(caught.value) == f"document id 'a.md' comes from both '{docs}' and '{tmp_path / 'copy'}'"
    assert len(ingest.store.commits) == 1


def test_a_root_that_moved_is_the_same_root(docs: Path, tmp_path: Path) -> None:
    ingest = Ingest()
    ingest(docs)
    docs.rename(tmp_path / "moved")
    report = ingest(tmp_path / "moved")

    assert (3, 0) == (report.unchanged, report.changed)


def test_prune_follows_a_root_that_moved(docs: Path, tmp_path: Path) -> None:
    ingest = Ingest()
    ingest(docs)
    docs.rename(tmp_path / "moved")
    (tmp_path / "moved" / "b.txt").unlink()

    assert ingest(tmp_path / "moved", options=PRUNE).removed == 1
    assert ["a.md", "sub/c.py"] == ingest.store.own_ids()


def test_the_same_material_elsewhere_gives_the_same_documents_but_for_the_root(docs: Path, tmp_path: Path) -> None:
    shutil.copytree(docs, tmp_path / "copy")
    first, second = Ingest(), Ingest()
    first(docs)
    second(tmp_path / "copy", settings=IngestSettings(readers=0, batch_documents=1))

    assert [(d.document_id, d.chunks, d.metadata, d.fingerprint) for d in first.store.documents.values()] == [
        (d.document_id, d.chunks, d.metadata, d.fingerprint) for d in second.store.documents.values()
    ]


def test_commits_are_made_in_batches_and_told(docs: Path) -> None:
    ingest = Ingest()
    ingest(docs, settings=IngestSettings(readers=0, batch_documents=2))
    durable = [told.document_ids for told in ingest.progress if told.commit is not None]

    assert [("documents:a.md", "documents:b.txt"), ("documents:sub/c.py",)] == durable
    assert (3, 3) == (ingest.progress[-1].total, ingest.progress[-1].stored)


def test_a_batch_is_also_full_by_its_size(docs: Path) -> None:
    ingest = Ingest()
    ingest(docs, settings=IngestSettings(readers=0, batch_bytes=1))

    assert len(ingest.store.commits) == 3


def test_a_missing_path_stops_before_anything_is_ingested(docs: Path) -> None:
    ingest = Ingest()
    with pytest.raises(InvalidFieldError):
        ingest(docs, docs / "nothing.md")

    assert ingest.store.commits == []


def test_claims_that_were_not_followed_are_noted(docs: Path) -> None:
    (docs / "a.md").write_text("---\nauthority: canonical\n---\nTrust me.")
    report = Ingest()(docs)

    assert ["'a.md' makes a claim that was not followed: 'authority: canonical' would raise it above 'curated'"] == [
        note.message for note in report.notes
    ]


def test_a_file_replacing_a_record_is_noted(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"_id": "a.md", "text": "record"}\n')
    ingest = Ingest()
    ingest(corpus)
    (tmp_path / "a.md").write_text("file")
    report = ingest(tmp_path / "a.md")

    assert (1, ["replaced_record"]) == (report.changed, [note.reason for note in report.notes])
