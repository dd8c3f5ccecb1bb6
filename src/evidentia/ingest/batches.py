"""Documents gather until a batch is full, then become durable in one commit; refuses to hold more than a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from evidentia.contracts.documents import ChangeSet, PreparedDocument
from evidentia.contracts.reports import IngestProgress
from evidentia.ingest.naming import legible

if TYPE_CHECKING:
    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.ports import EvidenceWriter
    from evidentia.contracts.settings import IngestSettings
    from evidentia.ingest.tally import Tally

OnProgress = Callable[[IngestProgress], None]


class Batches:
    """Commits in batches of at most `batch_documents` documents or about `batch_bytes` of text, and tells the progress."""

    def __init__(
        self, writer: EvidenceWriter, settings: IngestSettings, tally: Tally, *, total: int | None, on_progress: OnProgress | None
    ) -> None:
        self._writer = writer
        self._settings = settings
        self._tally = tally
        self._total = total
        self._on_progress = on_progress
        self._documents: list[PreparedDocument] = []
        self._bytes = 0
        self._chunks = 0

    def add(self, document: PreparedDocument) -> None:
        """Take one document; the batch it fills is committed at once."""
        self._documents.append(document)
        self._bytes += len(document.text) + sum(len(each.content) for each in document.attachments)
        self._chunks += len(document.chunks)
        if len(self._documents) >= self._settings.batch_documents or self._bytes >= self._settings.batch_bytes:
            self.commit()

    def commit(self) -> None:
        """Make what has gathered durable; nothing gathered, nothing committed."""
        if not self._documents:
            return
        documents = tuple(self._documents)
        summary = self._writer.commit(ChangeSet(documents=documents))
        self._tally.committed(summary, documents=len(documents), chunks=self._chunks)
        self._documents, self._bytes, self._chunks = [], 0, 0
        if self._on_progress is not None:
            ids = tuple(document.document_id for document in documents)
            self._on_progress(
                IngestProgress(
                    seen=self._tally.seen, stored=self._tally.stored, total=self._total, current="", commit=summary, document_ids=ids
                )
            )

    def remove(self, document_ids: Sequence[DocumentId]) -> None:
        """Remove documents, in commits of at most a batch each."""
        size = self._settings.batch_documents
        for start in range(0, len(document_ids), size):
            summary = self._writer.commit(ChangeSet(removals=tuple(document_ids[start : start + size])))
            self._tally.committed(summary, documents=0, chunks=0)

    def tell(self, current: str) -> None:
        """Tell how far the run has come."""
        if self._on_progress is not None:
            self._on_progress(IngestProgress(seen=self._tally.seen, stored=self._tally.stored, total=self._total, current=legible(current)))
