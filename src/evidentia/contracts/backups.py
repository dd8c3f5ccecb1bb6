"""Copies of a base: what one holds, what was left out of it and why, and what taking and restoring one report."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from evidentia.contracts.ids import CorpusVersion, EvidenceState, Sha256

BACKUP_FORMAT = "evidentia-backup/1"
"""The only format there is so far; one with another name is refused."""


class BackupFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of a backup, under the name it has in a base, with `/` between folders."""

    name: str
    size: Annotated[int, msgspec.Meta(ge=0)]
    sha256: Sha256


class LeftOut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that lies in a base or is named by its settings, and is not in the backup."""

    name: str
    reason: str


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a backup holds: every file with its hash, and the version that its records show.

    `seal` is the SHA-256 of the canonical form of all other fields, so a manifest that was changed is noticed as well.
    """

    format: str
    taken_at: datetime
    base_id: str
    sequence: int
    corpus_version: CorpusVersion
    evidence_state: EvidenceState
    files: tuple[BackupFile, ...]
    left_out: tuple[LeftOut, ...] = ()
    seal: str = ""


class BackupProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a backup or a restore has come; the total is what lay there at the beginning."""

    done_bytes: int
    total_bytes: int
    current: str


class BackupReport(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was taken: where it is, the version it holds, and what is not in it."""

    destination: str
    taken_at: datetime
    sequence: int
    corpus_version: CorpusVersion
    evidence_state: EvidenceState
    files: int
    bytes: int
    receipts: int
    decisions: int
    seal: str
    left_out: tuple[LeftOut, ...] = ()


class RestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """A base that was made from a backup, and the version it begins with."""

    directory: str
    taken_at: datetime
    sequence: int
    corpus_version: CorpusVersion
    evidence_state: EvidenceState
    files: int
    bytes: int
