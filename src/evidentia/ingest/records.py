"""Lines of JSONL corpora become documents, a window of them at a time, in flat memory but for a few bytes per id."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.ids import DocumentId, Sha256
from evidentia.contracts.reports import SkippedInput
from evidentia.ingest.corpus import CorpusRecord, read_corpus
from evidentia.ingest.naming import legible
from evidentia.ingest.prepare import prepare
from evidentia.ingest.reasons import SkipReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evidentia.contracts.ports import Clock, EvidenceWriter
    from evidentia.ingest.batches import Batches
    from evidentia.ingest.recipe import Recipe
    from evidentia.ingest.tally import Tally
    from evidentia.ingest.walk import WalkedFile

WINDOW_RECORDS = 1_000
WINDOW_BYTES = 8 * 1024 * 1024
DIGEST_BYTES = 16

Window = list[tuple[CorpusRecord, Sha256]]


class RecordIngest:
    """Brings in the corpora of one run; the first record with an id wins, a different one later is skipped."""

    def __init__(self, recipe: Recipe, *, writer: EvidenceWriter, clock: Clock, batches: Batches, tally: Tally) -> None:
        self._recipe = recipe
        self._writer = writer
        self._clock = clock
        self._batches = batches
        self._tally = tally
        self._seen: dict[bytes, bytes] = {}
        self.lines_skipped = 0

    def reserve(self, own_ids: Iterable[str]) -> None:
        """Keep ids for files of the same run, so that a record cannot take one."""
        for own_id in own_ids:
            self._seen[_digest(own_id)] = b""

    def ingest(self, corpora: Iterable[WalkedFile]) -> None:
        """Bring in the records of `corpora` in order; a line that is no record is counted with its number and reason."""
        for corpus in corpora:
            try:
                for window in self._windows(corpus):
                    self._bring_in(window, corpus.own_id)
            except DocumentUnreadableError as error:
                shown = legible(corpus.own_id)
                self._skip(SkippedInput(path=shown, reason=str(error.reason), message=f"'{shown}' {error.problem}"))

    def has_seen(self, own_id: str) -> bool:
        """Tell whether a record or file of this run has the id."""
        return _digest(own_id) in self._seen

    def _windows(self, corpus: WalkedFile) -> Iterator[Window]:
        window: Window = []
        window_bytes = 0
        for record in read_corpus(corpus.path, name=corpus.own_id, max_line_bytes=self._recipe.settings.max_file_bytes):
            if isinstance(record, SkippedInput):
                self._skip(record)
                continue
            content_hash = sha256_hex(record.original)
            if not self._is_new(record, content_hash, corpus.own_id):
                continue
            window.append((record, content_hash))
            window_bytes += len(record.original)
            if len(window) >= WINDOW_RECORDS or window_bytes >= WINDOW_BYTES:
                yield window
                window, window_bytes = [], 0
        if window:
            yield window

    def _is_new(self, record: CorpusRecord, content_hash: Sha256, name: str) -> bool:
        content = bytes.fromhex(content_hash[: 2 * DIGEST_BYTES])
        first = self._seen.setdefault(_digest(record.own_id), content)
        if first is content:
            return True
        if first == content:
            self._tally.seen += 1
        else:
            self._skip(_duplicate(record, name))
        return False

    def _bring_in(self, window: Window, name: str) -> None:
        read_at = self._clock.now()
        recipe = self._recipe
        ids: list[DocumentId] = [recipe.document_id(record.own_id) for record, _ in window]
        known = self._writer.known(ids)
        for document_id, (record, content_hash) in zip(ids, window, strict=True):
            fingerprint = recipe.record_fingerprint(content_hash)
            remembered = known.get(document_id)
            if remembered is not None and remembered.fingerprint == fingerprint:
                self._tally.seen += 1
                continue
            try:
                document, notes = recipe.record_document(record, content_hash=content_hash, fingerprint=fingerprint, read_at=read_at)
            except DocumentUnreadableError as error:
                self._skip(_skipped_record(record, name, error))
                continue
            self._tally.seen += 1
            if notes:
                self._tally.note(f"{name}:{record.line}", notes)
            self._batches.add(prepare(document))
        self._batches.tell(name)

    def _skip(self, entry: SkippedInput) -> None:
        self.lines_skipped += 1
        self._tally.skip(entry)


def _digest(own_id: str) -> bytes:
    return hashlib.blake2b(own_id.encode(), digest_size=DIGEST_BYTES).digest()


def _skipped_record(record: CorpusRecord, name: str, error: DocumentUnreadableError) -> SkippedInput:
    shown = legible(name)
    message = f"line {record.line} of '{shown}' {error.problem}"
    return SkippedInput(path=f"{shown}:{record.line}", reason=str(error.reason), message=message)


def _duplicate(record: CorpusRecord, name: str) -> SkippedInput:
    problem = f"repeats the id '{legible(record.own_id)}' with different content; the first one was kept"
    return _skipped_record(record, name, DocumentUnreadableError(SkipReason.DUPLICATE_ID, problem))
