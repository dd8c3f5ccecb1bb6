"""Looking again at the same paths, at intervals, and telling what changed."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from evidentia.serving.cli.output import note, put, put_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.reports import IngestProgress, IngestReport
    from evidentia.serving.cli.invocation import Invocation

LOOK_EVERY_S = 2.0


def keep_looking(
    call: Invocation,
    take_in: Callable[[Callable[[IngestProgress], None]], IngestReport],
    *,
    first: IngestReport,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Ingest again and again until interrupted; a pass that finds nothing prints nothing."""
    note(call, "watching; press Ctrl-C to stop")
    skipped_before = _skipped(first)
    while True:
        sys.stdout.flush()  # whoever reads through a pipe wants each pass when it is over
        pause(LOOK_EVERY_S)
        stored: list[str] = []
        report = take_in(partial(_remember, stored))
        newly_skipped = sorted(_skipped(report) - skipped_before)
        skipped_before = _skipped(report)
        if _has_changes(report) or newly_skipped:
            _tell(call, report, stored=stored, newly_skipped=newly_skipped)


def _remember(stored: list[str], progress: IngestProgress) -> None:
    stored.extend(progress.document_ids)


def _skipped(report: IngestReport) -> set[str]:
    return {entry.message for entry in report.skipped}


def _has_changes(report: IngestReport) -> bool:
    return bool(report.added or report.changed or report.access_changed or report.removed)


def _tell(call: Invocation, report: IngestReport, *, stored: list[str], newly_skipped: list[str]) -> None:
    if call.is_json:
        put_json(report, is_compact=True)
        return
    for document_id in stored:
        put(f"stored   {document_id}")
    if report.removed:
        put(f"removed  {report.removed} {'document' if report.removed == 1 else 'documents'}")
    for message in newly_skipped:
        put(f"skipped  {message}")
    put(f"version  {report.corpus_version}")
