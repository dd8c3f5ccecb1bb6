"""A dict-based evidence store and a one-call ingest for the tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.documents import ChangeSet, CommitSummary, IngestOptions, KnownDocument, PreparedDocument
from evidentia.contracts.ids import CorpusVersion, DocumentId, EvidenceState, SourceId
from evidentia.contracts.settings import IngestSettings
from evidentia.ingest.ingest_pipeline import ingest_paths
from evidentia.testing.determinism import START, SteppingClock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evidentia.contracts.reports import IngestProgress, IngestReport
    from evidentia.contracts.sources import SourceDescriptor


class DictStore:
    """Implements `EvidenceWriter` in memory; enough of a base to see what ingest does to one."""

    def __init__(self) -> None:
        self.documents: dict[DocumentId, PreparedDocument] = {}
        self.commits: list[ChangeSet] = []

    def known(self, document_ids: Sequence[DocumentId]) -> Mapping[DocumentId, KnownDocument]:
        live = self.documents
        return {one: KnownDocument(fingerprint=live[one].fingerprint, root=live[one].root) for one in document_ids if one in live}

    def live_documents(self, source_id: SourceId) -> Mapping[DocumentId, KnownDocument]:
        return self.known([one for one, document in self.documents.items() if document.source_id == source_id])

    def register(self, descriptor: SourceDescriptor) -> None:
        raise NotImplementedError(descriptor.source_id)

    def commit(self, changes: ChangeSet) -> CommitSummary:
        added = changed = access_changed = 0
        for document in changes.documents:
            old = self.documents.get(document.document_id)
            if old is None:
                added += 1
            elif (old.text_hash, old.metadata) == (document.text_hash, document.metadata) and old.access != document.access:
                access_changed += 1
            else:
                changed += 1
            self.documents[document.document_id] = document
        for document_id in changes.removals:
            del self.documents[document_id]
        self.commits.append(changes)
        version = sha256_hex(msgspec.json.encode(sorted((one, document.text_hash) for one, document in self.documents.items())))
        return CommitSummary(
            sequence=len(self.commits),
            corpus_version=CorpusVersion(version),
            evidence_state=EvidenceState(version),
            log_size=len(self.documents),
            log_root=version,
            committed_at=START,
            added=added,
            changed=changed,
            removed=len(changes.removals),
            access_changed=access_changed,
        )

    def close(self) -> None:
        self.documents.clear()

    def text(self, own_id: str, *, source: str = "documents") -> str:
        """Return the stored text of a document."""
        return self.documents[DocumentId(f"{source}:{own_id}")].text

    def own_ids(self) -> list[str]:
        """Return the own ids of every live document, sorted."""
        return sorted(one.partition(":")[2] for one in self.documents)


class Ingest:
    """Ingests into one store and keeps what was told on the way."""

    def __init__(self) -> None:
        self.store = DictStore()
        self.progress: list[IngestProgress] = []

    def __call__(self, *paths: Path | str, options: IngestOptions | None = None, settings: IngestSettings | None = None) -> IngestReport:
        """Ingest `paths` and check that the report's numbers add up; parsers run in this process unless settings say otherwise."""
        report = ingest_paths(
            paths,
            options=options or IngestOptions(),
            settings=settings or IngestSettings(readers=0),
            language="en",
            writer=self.store,
            clock=SteppingClock(),
            on_progress=self.progress.append,
        )
        assert report.seen == report.added + report.changed + report.unchanged + report.access_changed + len(report.skipped)
        assert report.unchanged >= 0
        return report


def skipped_beside(folder: Path, name: str, content: bytes, *, settings: IngestSettings | None = None) -> tuple[str, str]:
    """Ingest a bad file between two good ones, check that those got in, and return the reason and message for the bad one."""
    (folder / "a_good.md").write_text("# Good\n\nThe first good file.\n")
    (folder / name).write_bytes(content)
    (folder / "zz_good.txt").write_text("The last good file.\n")
    ingest = Ingest()
    report = ingest(folder, settings=settings)
    assert ingest.store.own_ids() == ["a_good.md", "zz_good.txt"]
    assert [entry.path for entry in report.skipped] == [name]
    return report.skipped[0].reason, report.skipped[0].message
