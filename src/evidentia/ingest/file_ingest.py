"""Files become documents, a window of them at a time: read, skip what is unchanged, extract, cut, prepare, hand on.

A window bounds memory and lets the base be asked about many documents at once, before anything expensive is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.reports import SkippedInput
from evidentia.ingest.neighbours import Neighbours
from evidentia.ingest.preparation import prepare
from evidentia.ingest.reader_pool import UNTIMED, ReadingTime
from evidentia.ingest.readers.file_types import PARSED_FAMILIES, family_of
from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.readers.registry import read_document
from evidentia.ingest.reasons import legible
from evidentia.ingest.walk import WalkedFile, read_original

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from concurrent.futures import Future

    from evidentia.contracts.layout import ExtractedText
    from evidentia.contracts.ports import Clock, EvidenceWriter
    from evidentia.ingest.batches import Batches, IngestCounts
    from evidentia.ingest.reader_pool import ReaderPool
    from evidentia.ingest.recipe import Original, Recipe
    from evidentia.ingest.version_control import FileHistory, RootHistory

WINDOW_FILES = 256
LARGE_BYTES = 1024 * 1024
"""A larger file of any kind is read in a process of its own: what is slow to read takes time by its size, and a process can be stopped."""


class FileIngest:
    """Brings in the files of one run."""

    def __init__(
        self,
        recipe: Recipe,
        *,
        writer: EvidenceWriter,
        clock: Clock,
        batches: Batches,
        tally: IngestCounts,
        pool: ReaderPool,
        time: ReadingTime = UNTIMED,
    ) -> None:
        self._recipe = recipe
        self._writer = writer
        self._clock = clock
        self._batches = batches
        self._tally = tally
        self._pool = pool
        self._time = time
        self._limits = ReadLimits.of(recipe.settings)
        self._neighbours = Neighbours((), self._limits)

    def ingest(self, files: Iterable[WalkedFile], histories: Mapping[str, RootHistory]) -> None:
        """Bring in `files` in their order; what cannot be read is counted with its reason."""
        files = tuple(files)
        self._neighbours = Neighbours(files, self._limits)
        for window in self._windows(files, histories):
            known = self._writer.known([original.document_id for original in window])
            changed = []
            for original in window:
                remembered = known.get(original.document_id)
                if remembered is not None and remembered.fingerprint == original.fingerprint:
                    self._tally.seen += 1
                else:
                    changed.append(original)
            self._bring_in(changed)

    def _windows(self, files: Iterable[WalkedFile], histories: Mapping[str, RootHistory]) -> Iterator[list[Original]]:
        settings = self._recipe.settings
        window: list[Original] = []
        window_bytes = 0
        for file in files:
            try:
                content = read_original(file.path, max_bytes=settings.max_file_bytes)
            except DocumentUnreadableError as error:
                self._skip(file, error)
                continue
            neighbours = self._neighbours.of(file, content)
            window.append(self._recipe.original(file, content, _history_of(file, histories), neighbours))
            window_bytes += len(content)
            if len(window) >= WINDOW_FILES or window_bytes >= settings.batch_bytes:
                yield window
                window, window_bytes = [], 0
        yield window

    def _bring_in(self, originals: list[Original]) -> None:
        read_at = self._clock.now()
        waiting = {
            original.document_id: self._pool.submit(original.content, name=original.file.own_id)
            for original in originals
            if family_of(original.file.own_id) in PARSED_FAMILIES or len(original.content) > LARGE_BYTES
        }
        for original in originals:
            try:
                extracted = self._extracted(original, waiting.pop(original.document_id, None))
                extracted = self._neighbours.attached(extracted, original.file, original.neighbours)
                document, notes = self._recipe.file_document(original, extracted, read_at=read_at)
            except DocumentUnreadableError as error:
                self._skip(original.file, error)
                continue
            self._tally.seen += 1
            self._tally.note(original.file.own_id, notes)
            self._batches.tell(original.file.own_id)
            self._batches.add(prepare(document))

    def _extracted(self, original: Original, pending: Future[ExtractedText] | None) -> ExtractedText:
        if pending is not None:
            return pending.result()
        self._time.check()
        return read_document(original.content, name=original.file.own_id, limits=self._limits)

    def _skip(self, file: WalkedFile, error: DocumentUnreadableError) -> None:
        shown = legible(file.own_id)
        self._tally.skip(SkippedInput(path=shown, reason=str(error.reason), message=f"'{shown}' {error.problem}"))
        self._batches.tell(file.own_id)


def _history_of(file: WalkedFile, histories: Mapping[str, RootHistory]) -> FileHistory | None:
    history = histories.get(file.root)
    return history.files.get(file.path.removeprefix(file.root).lstrip("/")) if history else None
