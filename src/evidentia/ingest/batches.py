"""Documents gather until a batch is full, then become durable in one commit; refuses to hold more than a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from evidentia.contracts.documents import ChangeSet, CommitSummary, PreparedDocument
from evidentia.contracts.reports import IngestProgress, IngestReport, SkippedInput
from evidentia.ingest.reasons import NoteReason, legible

if TYPE_CHECKING:
    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.ports import EvidenceWriter
    from evidentia.contracts.settings import IngestSettings


OnProgress = Callable[[IngestProgress], None]


class Batches:
    """Commits in batches of at most `batch_documents` documents or about `batch_bytes` of text, and tells the progress."""

    def __init__(
        self, writer: EvidenceWriter, settings: IngestSettings, tally: IngestCounts, *, total: int | None, on_progress: OnProgress | None
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


# --- tally ---
# The count of one run: what was seen and what became of it; `report` is where the numbers have to add up.

MAX_NOTES = 1_000


class IngestCounts:
    """Counts as a run goes on; not for several threads."""

    def __init__(self) -> None:
        self.seen = 0
        self.stored = 0
        self._added = self._changed = self._access_changed = self._removed = 0
        self._chunks = 0
        self._notes_left_out = 0
        self._skipped: list[SkippedInput] = []
        self._notes: list[SkippedInput] = []
        self._last: CommitSummary | None = None

    def skip(self, entry: SkippedInput) -> None:
        """Count something seen that stays out."""
        self.seen += 1
        self._skipped.append(entry)

    def note(self, path: str, notes: Iterable[str]) -> None:
        """Keep remarks of the form `code: sentence` about something seen, up to a bound."""
        shown = legible(path)
        for remark in notes:
            if len(self._notes) >= MAX_NOTES:
                self._notes_left_out += 1
                continue
            reason, _, sentence = remark.partition(": ")
            self._notes.append(SkippedInput(path=shown, reason=reason, message=f"'{shown}' {sentence}"))

    def committed(self, summary: CommitSummary, *, documents: int, chunks: int) -> None:
        """Count what one commit made durable."""
        self._added += summary.added
        self._changed += summary.changed
        self._access_changed += summary.access_changed
        self._removed += summary.removed
        self.stored += documents
        self._chunks += chunks
        self._last = summary

    def report(self) -> IngestReport:
        """Return the account; without a commit its version fields are empty, for the caller to fill in from the base's head."""
        unchanged = self.seen - self._added - self._changed - self._access_changed - len(self._skipped)
        return IngestReport(
            seen=self.seen,
            added=self._added,
            changed=self._changed,
            unchanged=unchanged,
            access_changed=self._access_changed,
            removed=self._removed,
            chunks=self._chunks,
            skipped=tuple(self._skipped),
            notes=(*self._notes, *self._more_notes()),
            corpus_version=self._last.corpus_version if self._last else "",
            evidence_state=self._last.evidence_state if self._last else "",
            sequence=self._last.sequence if self._last else 0,
        )

    def _more_notes(self) -> tuple[SkippedInput, ...]:
        if not self._notes_left_out:
            return ()
        message = f"{self._notes_left_out} more notes were left out"
        return (SkippedInput(path="", reason=NoteReason.MORE_NOTES.value, message=message),)
