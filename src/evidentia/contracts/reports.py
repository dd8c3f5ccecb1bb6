"""What the base reports after doing something: ingest, gc and doctor."""

from __future__ import annotations

import msgspec

from evidentia.contracts.documents import CommitSummary


class SkippedInput(msgspec.Struct, frozen=True, kw_only=True):
    """Something that did not get in: where, a stable reason, and the sentence for people."""

    path: str
    reason: str
    message: str


class IngestProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far an ingest has come; `commit` is set when a batch has just become durable."""

    seen: int
    stored: int
    total: int | None
    current: str
    commit: CommitSummary | None = None
    document_ids: tuple[str, ...] = ()


class IngestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an ingest did with everything it was given; the counts add up to what was seen."""

    seen: int
    added: int
    changed: int
    unchanged: int
    access_changed: int
    removed: int
    chunks: int
    skipped: tuple[SkippedInput, ...]
    notes: tuple[SkippedInput, ...]
    corpus_version: str
    evidence_state: str
    sequence: int


class GcReport(msgspec.Struct, frozen=True, kw_only=True):
    """What garbage collection removed."""

    versions_removed: int
    chunks_removed: int
    segments_removed: int
    bytes_before: int
    bytes_after: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a check-up: what was looked at, whether it is well, and what to do."""

    check: str
    ok: bool
    detail: str
    hint: str = ""


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """A check-up of the installation and of one base."""

    ok: bool
    findings: tuple[Finding, ...]
