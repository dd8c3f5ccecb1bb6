"""Files of this machine as parcels for a served base: walked as a local ingest walks them, so that every document gets the same id.

A parcel holds whole files, the images that its documents show, and whole lines of corpora; what cannot be sent is named with a reason.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.doors import SentFile
from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.reports import IngestProgress, IngestReport, SkippedInput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from evidentia.contracts.documents import CommitSummary
    from evidentia.ingest.jsonl_corpus import CorpusRecord
    from evidentia.ingest.walk import WalkedFile


PARCEL_BYTES: Final = 8 << 20
"""A parcel is closed when it holds this much."""
PARCEL_FILES: Final = 1_000
MAX_FILE_BYTES: Final = 47 << 20
"""Of one file: as base64, with the rest of the message, it still fits into what a server reads."""
MAX_PATH_LENGTH: Final = 1_000


class Parcel(NamedTuple):
    """Files to send at once, and the paths among them that are only there because a document shows them."""

    files: tuple[SentFile, ...]
    shown: frozenset[str] = frozenset()
    last: str = ""


class Sending(NamedTuple):
    """What is to be sent, how many things that is where it is known beforehand, and what stays out."""

    parcels: Iterator[Parcel]
    total: int | None
    skipped: list[SkippedInput]
    """It grows while parcels are made."""


def prepare_sending(paths: Sequence[Path], *, parcel_bytes: int = PARCEL_BYTES) -> Sending:
    """Return the parcels of what is at some paths; a path that is not there is refused before anything is sent."""
    from evidentia.ingest.readers.file_types import Family, family_of
    from evidentia.ingest.walk import walk_paths

    walk = walk_paths(paths)
    corpora = [file for file in walk.files if family_of(file.own_id) is Family.CORPUS]
    files = [file for file in walk.files if family_of(file.own_id) is not Family.CORPUS]
    skipped = list(walk.skipped)
    packing = _Packing(files, skipped, parcel_bytes=parcel_bytes)
    total = None if corpora else len(files) + len(walk.skipped)
    return Sending(packing.parcels(files, corpora), total, skipped)


class _Packing:
    """Makes parcels, one after the other; no more than one is held."""

    def __init__(self, files: Sequence[WalkedFile], skipped: list[SkippedInput], *, parcel_bytes: int) -> None:
        from evidentia.ingest.neighbours import Neighbours
        from evidentia.ingest.readers.limits import ReadLimits

        self._neighbours = Neighbours(files, ReadLimits())
        self._own_ids = {(file.root, file.path): file.own_id for file in files}
        self._skipped = skipped
        self._parcel_bytes = parcel_bytes
        self._contents: dict[str, bytes] = {}
        self._shown: set[str] = set()
        self._sent: dict[str, bytes] = {}

    def parcels(self, files: Sequence[WalkedFile], corpora: Sequence[WalkedFile]) -> Iterator[Parcel]:
        """Yield files first and then the lines of corpora, as a local ingest takes them in."""
        for file in files:
            yield from self._add_file(file)
        yield from self._close()
        self._sent = {file.own_id: b"" for file in files}
        for corpus in corpora:
            yield from self._add_corpus(corpus)

    def _add_file(self, file: WalkedFile) -> Iterator[Parcel]:
        from evidentia.ingest.walk import read_original

        try:
            _require_sendable(file.own_id)
            content = read_original(file.path, max_bytes=MAX_FILE_BYTES)
        except DocumentUnreadableError as error:
            self._skip(file.own_id, error)
            return
        shown = self._shown_by(file, content)
        if self._is_beyond(content, shown):
            yield from self._close()
        self._shown -= {file.own_id}
        self._shown |= {own_id for own_id in shown if own_id not in self._contents}
        self._contents |= {**shown, file.own_id: content}

    def _add_corpus(self, corpus: WalkedFile) -> Iterator[Parcel]:
        from evidentia.ingest.jsonl_corpus import read_corpus

        lines: list[bytes] = []
        held = 0
        try:
            _require_sendable(corpus.own_id)
            for record in read_corpus(corpus.path, name=corpus.own_id, max_line_bytes=MAX_FILE_BYTES):
                if isinstance(record, SkippedInput):
                    self._skipped.append(record)
                elif self._is_new(record, corpus.own_id):
                    lines.append(record.original)
                    held += len(record.original)
                if held >= self._parcel_bytes:
                    yield _lines_of(corpus, lines)
                    lines, held = [], 0
        except DocumentUnreadableError as error:
            self._skip(corpus.own_id, error)
        if lines:
            yield _lines_of(corpus, lines)

    def _is_beyond(self, content: bytes, shown: dict[str, bytes]) -> bool:
        held = sum(map(len, self._contents.values()))
        coming = len(content) + sum(map(len, shown.values()))
        is_at_odds = any(self._contents.get(own_id, each) != each for own_id, each in shown.items())
        is_full = held + coming > self._parcel_bytes or len(self._contents) >= PARCEL_FILES
        return bool(self._contents) and (is_full or is_at_odds)

    def _close(self) -> Iterator[Parcel]:
        if self._contents:
            files = tuple(SentFile(path=own_id, content=content) for own_id, content in sorted(self._contents.items()))
            yield Parcel(files, frozenset(self._shown), max(self._contents))
        self._contents, self._shown = {}, set()

    def _shown_by(self, file: WalkedFile, content: bytes) -> dict[str, bytes]:
        """Return the images that a document names, as far as they fit beside it; the server says which it misses."""
        from evidentia.ingest.walk import read_original

        shown: dict[str, bytes] = {}
        room = MAX_FILE_BYTES - len(content)
        for each in self._neighbours.of(file, content):
            try:
                image = read_original(each.path, max_bytes=room)
            except DocumentUnreadableError:
                continue
            room -= len(image)
            shown[self._own_id(file, each.path)] = image
        return shown

    def _own_id(self, file: WalkedFile, path: str) -> str:
        """Return what an image is called within its source."""
        walked = self._own_ids.get((file.root, path))
        return walked or Path(path).relative_to(Path(file.root).resolve()).as_posix()

    def _is_new(self, record: CorpusRecord, name: str) -> bool:
        from evidentia.ingest.reasons import SkipReason, legible

        digest = hashlib.blake2b(record.original, digest_size=16).digest()
        first = self._sent.setdefault(record.own_id, digest)
        if first == digest:
            return True
        problem = f"repeats the id '{legible(record.own_id)}' with different content; the first one was kept"
        shown = legible(name)
        message = f"line {record.line} of '{shown}' {problem}"
        self._skipped.append(SkippedInput(path=f"{shown}:{record.line}", reason=SkipReason.DUPLICATE_ID.value, message=message))
        return False

    def _skip(self, own_id: str, error: DocumentUnreadableError) -> None:
        from evidentia.ingest.reasons import legible

        shown = legible(own_id)
        self._skipped.append(SkippedInput(path=shown, reason=str(error.reason), message=f"'{shown}' {error.problem}"))


def _lines_of(corpus: WalkedFile, lines: Sequence[bytes]) -> Parcel:
    return Parcel((SentFile(path=corpus.own_id, content=b"\n".join(lines)),), last=corpus.own_id)


def _require_sendable(own_id: str) -> None:
    """Refuse a name that a server does not take, so that the others get in."""
    from evidentia.ingest.reasons import SkipReason

    is_hidden = any(part.startswith(".") for part in own_id.split("/"))
    if is_hidden or not own_id.isprintable() or "\\" in own_id or len(own_id) > MAX_PATH_LENGTH:
        problem = "has a name that a served base does not take: hidden, too long or with unprintable characters; rename it"
        raise DocumentUnreadableError(SkipReason.BAD_NAME, problem)


# --- remote sending ---
# Parcels on their way to a served base, and one account of what became of them.


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
    from evidentia.ingest.reasons import legible

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
