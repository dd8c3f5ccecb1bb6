"""What the base reports after doing something: ingest, gc, doctor and the cache."""

from __future__ import annotations

import msgspec

from evidentia.contracts.documents import CommitSummary
from evidentia.contracts.vocabulary import CacheTier


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
    """How many versions can no longer be read."""
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


class TierStats(msgspec.Struct, frozen=True, kw_only=True):
    """One tier: the counts are this process's since it began, the entries are everybody's."""

    tier: CacheTier
    finds: int = 0
    """How often it was looked in."""
    hits: int = 0
    """How often something good was there."""
    reused: int = 0
    """How many of the hits were for another, similar question."""
    stale_hits: int = 0
    """How often something past its time stood in for a source that gave no answer; not among the hits."""
    entries: int = 0
    """How many answers are kept; 0 for the request's own tier, which ends with the request."""


class CacheStats(msgspec.Struct, frozen=True, kw_only=True):
    """What the cache did: finds and hits of questions, and the same for each tier, nearest first."""

    finds: int
    hits: int
    stale_hits: int
    entries: int
    tiers: tuple[TierStats, ...]
