"""Parcels on their way to a served base, and one account of what became of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evidentia.contracts.reports import IngestProgress, IngestReport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from evidentia.base.remote_parcels import Parcel, Sending
    from evidentia.contracts.documents import CommitSummary
    from evidentia.contracts.reports import SkippedInput


async def send(
    sending: Sending,
    take_in: Callable[[Parcel, bool], Awaitable[IngestReport]],
    *,
    head: Callable[[], Awaitable[CommitSummary]],
    on_progress: Callable[[IngestProgress], None] | None,
) -> IngestReport:
    """Hand over one parcel after the other, the last one marked as such, and return the account of all."""
    reports: list[tuple[Parcel, IngestReport]] = []
    parcel = await asyncio.to_thread(next, sending.parcels, None)
    while parcel is not None:
        following = await asyncio.to_thread(next, sending.parcels, None)
        reports.append((parcel, await take_in(parcel, following is None)))
        if on_progress is not None:
            await asyncio.to_thread(on_progress, _progress(sending, reports, await head()))
        parcel = following
    return _account(sending, reports, await head())


def _progress(sending: Sending, reports: Sequence[tuple[Parcel, IngestReport]], head: CommitSummary) -> IngestProgress:
    done = _account(sending, reports, head)
    stored = done.added + done.changed + done.access_changed
    return IngestProgress(seen=done.seen, stored=stored, total=sending.total, current=reports[-1][0].last, commit=head)


def _account(sending: Sending, reports: Sequence[tuple[Parcel, IngestReport]], head: CommitSummary) -> IngestReport:
    """Return the sum; what a server says of files that came along to be shown is left out."""
    from evidentia.ingest.naming import legible

    skipped: list[SkippedInput] = list(sending.skipped)
    uncounted = 0
    for parcel, report in reports:
        shown = {legible(path) for path in parcel.shown}
        kept = [entry for entry in report.skipped if entry.path not in shown]
        uncounted += len(report.skipped) - len(kept)
        skipped += kept
    done = [report for _, report in reports]
    return IngestReport(
        seen=sum(each.seen for each in done) + len(sending.skipped) - uncounted,
        added=sum(each.added for each in done),
        changed=sum(each.changed for each in done),
        unchanged=sum(each.unchanged for each in done),
        access_changed=sum(each.access_changed for each in done),
        removed=0,
        chunks=sum(each.chunks for each in done),
        skipped=tuple(skipped),
        notes=tuple(note for each in done for note in each.notes),
        corpus_version=done[-1].corpus_version if done else head.corpus_version,
        evidence_state=done[-1].evidence_state if done else head.evidence_state,
        sequence=done[-1].sequence if done else head.sequence,
    )
