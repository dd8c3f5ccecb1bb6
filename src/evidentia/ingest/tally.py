"""The count of one run: what was seen and what became of it; `report` is where the numbers have to add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.reports import IngestReport, SkippedInput
from evidentia.ingest.naming import legible
from evidentia.ingest.reasons import NoteReason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evidentia.contracts.documents import CommitSummary

MAX_NOTES = 1_000


class Tally:
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
