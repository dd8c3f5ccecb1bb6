"""JSONL corpora: one document a line, streamed; a line that is wrong stays out with its number, the others get in.

Refuses to hold more than one line at a time, and to take a file for a corpus when none of its first lines is a record.
"""

from __future__ import annotations

import codecs
import hashlib
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.decoding import json_decoder
from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.ids import DocumentId, SemanticVersion, Sha256, ToolId
from evidentia.contracts.layout import ExtractedText
from evidentia.contracts.reports import SkippedInput
from evidentia.ingest.preparation import prepare
from evidentia.ingest.reader_pool import UNTIMED, ReadingTime
from evidentia.ingest.reasons import SkipReason, legible
from evidentia.ingest.walk import WalkedFile, open_original

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evidentia.contracts.ports import Clock, EvidenceWriter
    from evidentia.ingest.batches import Batches, IngestCounts
    from evidentia.ingest.recipe import Recipe


TOOL_ID = ToolId("evidentia-jsonl")
TOOL_VERSION = SemanticVersion("1.0.0")
MEDIA_TYPE = "application/json"
MAX_ID_LENGTH = 1_000
LINES_TO_JUDGE_BY = 100
"""When this many lines from the start are all wrong, the file is something else and gets one entry instead of a million."""
MAX_SKIPPED_LINES = 1_000
_PIECE = 1024 * 1024
_NO_METADATA = frozenset([b"", b"{}", b"null"])


class CorpusRecord(msgspec.Struct, frozen=True):
    """One line of a corpus: where it is, its exact bytes, and what it holds."""

    line: int
    original: bytes
    own_id: str
    title: str
    text: str
    metadata: bytes
    """The metadata map as it is written; empty when there is none."""

    def declared(self) -> dict[str, str | tuple[str, ...]]:
        """Return the metadata as claims: strings, and lists of strings; other values in their JSON form."""
        if not self.metadata:
            return {}
        fields = _decode_metadata(self.metadata)
        return {key: _claim(value) for key, value in fields.items() if value is not None}

    def extracted(self) -> ExtractedText:
        """Return the text that is searched: the title, a blank line, the text."""
        text = f"{self.title}\n\n{self.text}" if self.title and self.text else self.title or self.text
        return ExtractedText(text=text, media_type=MEDIA_TYPE, method="jsonl_record", tool_id=TOOL_ID, tool_version=TOOL_VERSION)


class _CorpusLine(msgspec.Struct, gc=False):
    own_id: str = msgspec.field(name="_id")
    text: str | None = None
    title: str | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"")


_decode_line = json_decoder(_CorpusLine)
_decode_metadata = json_decoder(dict[str, object])


def read_corpus(path: str, *, name: str, max_line_bytes: int) -> Iterator[CorpusRecord | SkippedInput]:
    """Yield the records of a corpus in order, and an entry for each line that is none; memory does not grow with the file.

    Raises:
        DocumentUnreadableError: The file cannot be opened.
    """
    shown = legible(name)
    wrong = 0
    held: list[SkippedInput] | None = []
    with open_original(path) as corpus:
        for number, line in _lines(corpus, max_line_bytes):
            try:
                record = parse_record(line, number, max_line_bytes=max_line_bytes)
            except DocumentUnreadableError as error:
                wrong += 1
                entry = _skip(shown, number, error)
                if held is None:
                    if wrong <= MAX_SKIPPED_LINES:
                        yield entry
                    continue
                held.append(entry)
                if len(held) == LINES_TO_JUDGE_BY:
                    yield _not_a_corpus(shown, held[0])
                    return
                continue
            if held is not None:
                yield from held
                held = None
            yield record
    yield from held or ()
    if wrong > MAX_SKIPPED_LINES:
        message = f"'{shown}' has {wrong - MAX_SKIPPED_LINES} more lines that are not records; correct it and ingest it again"
        yield SkippedInput(path=shown, reason=SkipReason.MORE_LINES.value, message=message)


def parse_record(line: bytes, number: int, *, max_line_bytes: int) -> CorpusRecord:
    """Return the record in a line without its newline, or raise DocumentUnreadableError saying what is wrong with it."""
    if len(line) > max_line_bytes:
        raise DocumentUnreadableError(SkipReason.LINE_TOO_LONG, f"is longer than {max_line_bytes} bytes; split the document")
    try:
        parsed = _decode_line(line)
        metadata = bytes(parsed.metadata)
        if metadata in _NO_METADATA:
            metadata = b""
        else:
            _decode_metadata(metadata)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad_line(error) from error
    own_id, title, text = parsed.own_id, parsed.title or "", parsed.text or ""
    if not own_id or not own_id.isprintable() or len(own_id) > MAX_ID_LENGTH:
        problem = f"has an '_id' that is empty, longer than {MAX_ID_LENGTH} characters or not printable"
        raise DocumentUnreadableError(SkipReason.BAD_ID, problem)
    if "\0" in text or "\0" in title:
        raise DocumentUnreadableError(SkipReason.NUL_BYTE, "holds a NUL character, so it is no text")
    if not text.strip() and not title.strip():
        raise DocumentUnreadableError(SkipReason.EMPTY, "has neither title nor text")
    return CorpusRecord(number, line, own_id, title, text, metadata)


def _lines(corpus: BinaryIO, max_line_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line that is not blank, cut off just beyond the limit."""
    number = 0
    while line := corpus.readline(max_line_bytes + 2):
        number += 1
        if line.endswith(b"\n"):
            line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
        elif len(line) > max_line_bytes:
            _pass_over_rest(corpus)
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if line and not line.isspace():
            yield number, line


def _pass_over_rest(corpus: BinaryIO) -> None:
    while (piece := corpus.readline(_PIECE)) and not piece.endswith(b"\n"):
        pass


def _claim(value: object) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return tuple(entry if isinstance(entry, str) else _as_json(entry) for entry in value)
    return _as_json(value)


def _as_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _bad_line(error: Exception) -> DocumentUnreadableError:
    if isinstance(error, RecursionError):
        return DocumentUnreadableError(SkipReason.NESTED_TOO_DEEP, "nests deeper than it can be read")
    if isinstance(error, UnicodeDecodeError):
        return DocumentUnreadableError(SkipReason.BAD_ENCODING, "is not UTF-8")
    if isinstance(error, msgspec.ValidationError) and "_id" in str(error):
        return DocumentUnreadableError(SkipReason.BAD_ID, f"has no usable '_id' ({_cause(error)})")
    return DocumentUnreadableError(SkipReason.BAD_LINE, f"is not a record ({_cause(error)})")


def _cause(error: Exception) -> str:
    text = str(error)
    return legible(text if text[:2].isupper() else text[:1].lower() + text[1:])


def _skip(shown: str, number: int, error: DocumentUnreadableError) -> SkippedInput:
    return SkippedInput(path=f"{shown}:{number}", reason=str(error.reason), message=f"line {number} of '{shown}' {error.problem}")


def _not_a_corpus(shown: str, first: SkippedInput) -> SkippedInput:
    message = f"'{shown}' is no corpus: none of its first {LINES_TO_JUDGE_BY} lines is a record; {first.message}"
    return SkippedInput(path=shown, reason=SkipReason.NOT_A_CORPUS.value, message=message)


# --- records ---
# Lines of JSONL corpora become documents, a window of them at a time, in flat memory but for a few bytes per id.

WINDOW_RECORDS = 1_000
WINDOW_BYTES = 8 * 1024 * 1024
DIGEST_BYTES = 16

Window = list[tuple[CorpusRecord, Sha256]]


class RecordIngest:
    """Brings in the corpora of one run; the first record with an id wins, a different one later is skipped."""

    def __init__(
        self,
        recipe: Recipe,
        *,
        writer: EvidenceWriter,
        clock: Clock,
        batches: Batches,
        tally: IngestCounts,
        time: ReadingTime = UNTIMED,
    ) -> None:
        self._recipe = recipe
        self._time = time
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
            if self._time.left_s() <= 0:
                yield window
                self._time.check()
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
