"""Any byte of a base may rot: verification says so, or nothing that is read back has changed."""

from __future__ import annotations

import hashlib
import random
import shutil
import sqlite3
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from evidentia.backends.embedded.vectors.vector_store import EmbeddedVectors
from evidentia.contracts.access import AccessRule
from evidentia.contracts.documents import AccessChange, ChangeSet
from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.ids import DocumentId, Sha256, SourceId
from evidentia.contracts.sources import SourceConnection, SourceDescriptor
from evidentia.contracts.vectors import VectorIdentity
from evidentia.contracts.vocabulary import Classification, ConnectionKind
from evidentia.provenance.verification import verify_base
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.testing.documents import illustrated_document, make_document
from evidentia.testing.store_kit import many_documents
from evidentia.wiring import embedded
from soak import cases

if TYPE_CHECKING:
    from pathlib import Path

SHARDS, FLIPS_PER_SHARD = cases(1, of=4), cases(300, of=600)
TABLES = (
    "contents", "revisions", "chunks", "versions", "access_rules", "source_versions", "source_history", "roots", "segments",
    "events", "log_tiles", "commits", "vector_spaces", "vector_reigns", "vector_files", "vectors", "attachments",
)  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a closed base with every kind of record in it, and a log that fills a tile."""
    directory = tmp_path_factory.mktemp("flips") / "base"
    embedded.create(directory)
    parts = embedded.open_parts(directory)
    writer = parts.writer()
    writer.register(SourceDescriptor(source_id=SourceId("test"), max_qps=10))
    writer.register(SourceDescriptor(source_id=SourceId("forgotten")))
    writer.commit(ChangeSet(documents=(*many_documents(140), illustrated_document("picture", picture=bytes(range(256)) * 60))))
    writer.close()
    _embed(directory, "left behind", most=20)
    _embed(directory, "in force", most=60)
    writer = parts.writer()
    writer.commit(ChangeSet(documents=(illustrated_document("picture"), illustrated_document("plan"))))
    writer.commit(ChangeSet(documents=(make_document("0", "a new text", root="/srv/corpus"), make_document("unicode", "naïve ☃ text"))))
    writer.register(SourceDescriptor(source_id=SourceId("test"), max_qps=20))
    writer.register(SourceDescriptor(source_id=SourceId("wiki"), connection=SourceConnection(kind=ConnectionKind.PYTHON)))
    writer.commit(ChangeSet(removals=(DocumentId("test:1"), DocumentId("test:2"))))
    writer.remove_source(SourceId("forgotten"))
    secret = AccessRule(classification=Classification.RESTRICTED, acl=("group:x",))
    writer.commit(ChangeSet(access_changes=(AccessChange(document_id=DocumentId("test:3"), access=secret),)))
    writer.close()
    parts.collector().collect(keep_versions=5)
    parts.close()
    return directory


def _embed(directory: Path, name: str, *, most: int) -> None:
    """Give some chunks vectors, in two files, the second of which a collection rewrites."""
    store = EmbeddedVectors(directory, clock=SteppingClock(), entropy=RepeatableEntropy(len(name)), wait_ms=0)
    space = VectorIdentity(model=Sha256("0" * 64), dimension=3, normalisation="unit", name=name)
    for _ in range(2):
        pending = store.pending(space, limit=most // 2)
        store.add(space, {chunk.key: np.asarray([chunk.key, -7, 1 << 22], dtype=np.int32) for chunk in pending})
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_flipped_byte_is_detected_or_changes_nothing(base: Path, tmp_path: Path, shard: int) -> None:
    files = sorted(path for path in base.rglob("*") if path.suffix in (".sqlite", ".seg", ".vec"))
    work = tmp_path / "base"
    for path in base.rglob("*"):
        if path.is_file():
            target = work / path.relative_to(base)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    expected = _logical_values(work)
    chance = random.Random(shard)
    outcomes: Counter[str] = Counter()
    for _ in range(FLIPS_PER_SHARD):
        path = chance.choices(files, weights=[3 if file.suffix == ".sqlite" else 1 for file in files])[0]
        original = path.read_bytes()
        flipped = bytearray(original)
        place = chance.randrange(len(flipped))
        flipped[place] ^= 1 << chance.randrange(8)
        target = work / path.relative_to(base)
        target.write_bytes(flipped)
        outcome = _outcome(work, expected)
        target.write_bytes(original)
        assert "missed" != outcome, f"byte {place} of {path.name}"
        outcomes[outcome] += 1

    assert "whole" == _verdict(work)
    assert FLIPS_PER_SHARD == outcomes.total()
    assert outcomes["detected"] > outcomes["harmless"]


def _outcome(work: Path, expected: str) -> str:
    if _verdict(work) == "broken":
        return "detected"
    return "harmless" if _logical_values(work) == expected else "missed"


def _verdict(work: Path) -> str:
    try:
        parts = embedded.open_parts(work)
        try:
            archive = parts.archive()
            try:
                report = verify_base(archive)
            finally:
                archive.close()
        finally:
            parts.close()
    except EvidentiaError:
        return "broken"
    return "whole" if report.ok else "broken"


def _logical_values(work: Path) -> str:
    """Return a digest of every value that can be read back."""
    digest = hashlib.sha256()
    database = sqlite3.connect(f"file:{work / 'evidentia.sqlite'}?mode=ro", uri=True)
    try:
        for table in TABLES:
            for row in database.execute(f"SELECT * FROM {table}"):
                digest.update(repr(row).encode())
    finally:
        database.close()
    for path in sorted([*(work / "segments").glob("*.seg"), *(work / "vectors").glob("*.vec")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@pytest.mark.parametrize("column", ["byte_stop", "byte_start", "stop", "start", "position", "event_index", "ordinal", "segment_key"])
@pytest.mark.parametrize("step", [1, -1])
def test_every_number_of_a_chunk_is_covered(base: Path, tmp_path: Path, column: str, step: int) -> None:
    """The last chunk of a document is the one whose end could lie beyond the text without changing what is cut out."""
    work = tmp_path / "base"
    shutil.copytree(base, work)
    database = sqlite3.connect(work / "evidentia.sqlite")
    database.execute(f"UPDATE chunks SET {column} = {column} + ? WHERE chunk_key = (SELECT max(chunk_key) - 2 FROM chunks)", (step,))
    database.commit()
    database.close()

    assert "broken" == _verdict(work)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE source_versions SET added_seq = added_seq - 1 WHERE source_id = 'test' AND removed_seq IS NULL",
        "UPDATE source_versions SET added_seq = added_seq + 1 WHERE source_id = 'test' AND removed_seq IS NULL",
        "UPDATE source_versions SET added_seq = added_seq - 1 WHERE source_id = 'test' AND removed_seq IS NOT NULL",
        "UPDATE source_versions SET added_seq = added_seq + 1 WHERE source_id = 'forgotten'",
        "UPDATE source_versions SET removed_seq = removed_seq - 1 WHERE source_id = 'test'",
        "UPDATE source_versions SET removed_seq = removed_seq + 1 WHERE source_id = 'test'",
        "UPDATE source_versions SET removed_seq = removed_seq + 1 WHERE source_id = 'forgotten'",
        "UPDATE source_versions SET removed_seq = NULL WHERE source_id = 'forgotten'",
        "UPDATE source_versions SET removed_seq = 99 WHERE source_id = 'wiki'",
        "UPDATE source_versions SET removed_seq = (SELECT max(sequence) FROM commits) WHERE source_id = 'wiki'",
        "UPDATE source_versions SET source_id = 'other' WHERE source_id = 'wiki'",
        "UPDATE source_versions SET descriptor = CAST(replace(CAST(descriptor AS TEXT), ':10,', ':11,') AS BLOB) WHERE source_id = 'test'",
        "UPDATE source_versions SET descriptor = CAST(CAST(descriptor AS TEXT) || ' ' AS BLOB) WHERE source_id = 'forgotten'",
        "DELETE FROM source_versions WHERE source_id = 'forgotten'",
        "DELETE FROM source_versions WHERE source_id = 'wiki'",
        "INSERT INTO source_versions SELECT 'forgotten', 99, NULL, descriptor FROM source_versions WHERE source_id = 'forgotten'",
        "INSERT INTO source_versions SELECT 'forgotten', 1, 2, descriptor FROM source_versions WHERE source_id = 'forgotten'",
        "UPDATE source_history SET since = since + 1",
        "UPDATE source_history SET since = since - 1",
        "UPDATE source_history SET record_hash = zeroblob(32)",
        "DELETE FROM source_history",
        "INSERT INTO source_history SELECT since + 1, record_hash FROM source_history",
    ],
)
def test_every_row_of_the_history_of_sources_is_covered(base: Path, tmp_path: Path, statement: str) -> None:
    work = tmp_path / "base"
    shutil.copytree(base, work)
    database = sqlite3.connect(work / "evidentia.sqlite")
    changed = database.execute(statement).rowcount
    database.commit()
    database.close()

    assert 0 < changed
    assert "whole" == _verdict(base)
    assert "broken" == _verdict(work)


@pytest.mark.slow
def test_any_flipped_bit_of_a_descriptor_is_found(base: Path, tmp_path: Path) -> None:
    """Old descriptors lack fields that came later, so their bytes and not what they decode to must have the hash."""
    work = tmp_path / "base"
    shutil.copytree(base, work)
    database = sqlite3.connect(work / "evidentia.sqlite", isolation_level=None)
    stored = database.execute("SELECT source_id, added_seq, descriptor FROM source_versions").fetchall()
    write = "UPDATE source_versions SET descriptor = ? WHERE source_id = ? AND added_seq = ?"
    chance = random.Random(5)
    for source_id, added, descriptor in stored:
        for _ in range(12):
            flipped = bytearray(descriptor)
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
            database.execute(write, (bytes(flipped), source_id, added))
            assert "broken" == _verdict(work), bytes(flipped)
        database.execute(write, (descriptor, source_id, added))
    database.close()

    assert len(stored) >= 4
    assert "whole" == _verdict(work)
