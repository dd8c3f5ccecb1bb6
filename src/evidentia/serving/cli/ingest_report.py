"""An ingest report as text: the counts, then what stayed out and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.serving.cli.output import note, put, put_facts, put_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.reports import IngestReport, SkippedInput
    from evidentia.serving.cli.invocation import Invocation

MAX_ROWS = 20


def put_report(call: Invocation, report: IngestReport) -> None:
    """Print a report; what was skipped is also said on stderr, since the exit code does not tell."""
    put_facts(
        [
            ("added", report.added),
            ("changed", report.changed),
            ("unchanged", report.unchanged),
            ("access changed", report.access_changed),
            ("removed", report.removed),
            ("skipped", len(report.skipped)),
            ("chunks", report.chunks),
            ("corpus_version", report.corpus_version),
        ]
    )
    _put_entries("skipped", report.skipped)
    _put_entries("notes", report.notes)
    if report.skipped:
        count = len(report.skipped)
        note(call, f"{count} {'input was' if count == 1 else 'inputs were'} skipped; everything else is in")


def _put_entries(title: str, entries: Sequence[SkippedInput]) -> None:
    if not entries:
        return
    put()
    put_table(("path", "reason", "message"), [(entry.path, entry.reason, entry.message) for entry in entries[:MAX_ROWS]], title=title)
    if len(entries) > MAX_ROWS:
        put(f"... and {len(entries) - MAX_ROWS} more; --json lists all")
