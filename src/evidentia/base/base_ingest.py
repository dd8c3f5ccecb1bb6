"""The two long steps of a base, taking material in and embedding it, with the parts of an embedded base."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from evidentia.contracts.access import AccessRule
from evidentia.contracts.documents import CommitSummary, IngestOptions
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import SourceId, TenantId
from evidentia.contracts.reports import SkippedInput
from evidentia.contracts.sources import SourceDescriptor
from evidentia.contracts.vocabulary import AuthorityTier, Classification, LatencyTier, Vocabulary
from evidentia.wiring.model_registry import encoding_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evidentia.contracts.documents import ChangeSet, KnownDocument
    from evidentia.contracts.ids import DocumentId
    from evidentia.contracts.ports import Encoder, SourceWriter
    from evidentia.contracts.reports import IngestProgress, IngestReport
    from evidentia.contracts.vectors import EmbedProgress, EmbedReport
    from evidentia.ingest.reader_pool import ReadingTime
    from evidentia.wiring.components import BaseComponents


LANGUAGE_CODES = {
    "arabic": "ar", "armenian": "hy", "basque": "eu", "catalan": "ca", "danish": "da", "dutch": "nl", "english": "en", "esperanto": "eo",
    "estonian": "et", "finnish": "fi", "french": "fr", "german": "de", "greek": "el", "hindi": "hi", "hungarian": "hu", "indonesian": "id",
    "irish": "ga", "italian": "it", "lithuanian": "lt", "nepali": "ne", "norwegian": "no", "portuguese": "pt", "romanian": "ro",
    "russian": "ru", "serbian": "sr", "spanish": "es", "swedish": "sv", "tamil": "ta", "turkish": "tr", "yiddish": "yi",
}  # fmt: skip
"""What a document's language is taken for when it does not say, by the stemmer in the settings."""


WORTH_REWRITING = 0.25
"""When at least this share of the vectors is new, all of them are put into wide files, which are scanned faster."""


def given_paths(paths: object) -> list[Path]:
    """Return what is to be taken in as paths: several, or one by itself."""
    several = (paths,) if isinstance(paths, str | os.PathLike) else paths
    if isinstance(several, bytes) or not isinstance(several, Iterable):
        raise InvalidFieldError("paths", f"expected a path or several, not {type(paths).__name__}")
    given = list(several)
    for each in given:
        if not isinstance(each, str | os.PathLike):
            raise InvalidFieldError("paths", f"expected paths, not {type(each).__name__}")
    return [Path(each) for each in given]


def ingest_into(
    parts: BaseComponents,
    paths: list[Path],
    options: IngestOptions,
    *,
    is_embedding: bool,
    on_progress: Callable[[IngestProgress], None] | None,
    on_embedding: Callable[[EmbedProgress], None] | None,
    is_stopped: Callable[[], bool],
    max_s: int | None = None,
) -> IngestReport:
    """Take material in, then give what lacks one its vector; the state in the report is that after both.

    One that may take `max_s` seconds at most shares the base with others: it holds the writer's lock for its commits and not while it
    reads. What is not read by then is skipped with a reason, and what has no vector by then gets it later.
    """
    from evidentia.ingest.reader_pool import ReadingTime

    encoder = parts.encoder() if is_embedding else None  # a wrong setting shows before anything is taken in
    time = ReadingTime(parts.clock, max_s=max_s, is_stopped=is_stopped)
    writer = parts.writer() if max_s is None else _BriefWriter(parts.writer)
    report = _ingest(parts, paths, options, on_progress, writer=writer, time=time)
    if encoder is None:
        return report
    done = _embed(parts, encoder, on_progress=on_embedding, is_stopped=lambda: is_stopped() or time.left_s() <= 0)
    notes = report.notes if time.left_s() > 0 else (*report.notes, _vectors_later(max_s))
    return msgspec.structs.replace(report, evidence_state=done.evidence_state, sequence=done.sequence, notes=notes)


def embed_into(
    parts: BaseComponents, *, on_progress: Callable[[EmbedProgress], None] | None, is_stopped: Callable[[], bool]
) -> EmbedReport:
    """Give every chunk that lacks one its vector."""
    encoder = parts.encoder()
    if encoder is None:
        raise InvalidFieldError("embedding.encoder", "it is 'none'; set it to packaged, folder or endpoint in evidentia.toml to embed")
    return _embed(parts, encoder, on_progress=on_progress, is_stopped=is_stopped)


class _BriefWriter:
    """Implements `SourceWriter` for one who shares the base: each call takes the writer's lock, and gives it back when it is done."""

    def __init__(self, open_writer: Callable[[], SourceWriter]) -> None:
        self._open = open_writer
        self._descriptors: list[SourceDescriptor] = []

    def known(self, document_ids: Sequence[DocumentId]) -> Mapping[DocumentId, KnownDocument]:
        """Return what is remembered of those of the documents that are live."""
        with closing(self._open()) as writer:
            return writer.known(document_ids)

    def live_documents(self, source_id: SourceId) -> Mapping[DocumentId, KnownDocument]:
        """Return every live document of one source."""
        with closing(self._open()) as writer:
            return writer.live_documents(source_id)

    def descriptors(self) -> Mapping[SourceId, SourceDescriptor]:
        """Return every registered source."""
        with closing(self._open()) as writer:
            return writer.descriptors()

    def register(self, descriptor: SourceDescriptor) -> None:
        """Add a source or replace its descriptor with the next commit."""
        self._descriptors.append(descriptor)

    def commit(self, changes: ChangeSet) -> CommitSummary:
        """Make all of the changes durable and visible at once, or none of them."""
        with closing(self._open()) as writer:
            for descriptor in self._descriptors:
                writer.register(descriptor)
            summary = writer.commit(changes)
        self._descriptors.clear()
        return summary

    def close(self) -> None:
        """Do nothing: nothing is held between two calls."""


def _vectors_later(max_s: int | None) -> SkippedInput:
    from evidentia.ingest.reasons import NoteReason

    message = f"not every chunk has its vector yet, since the call had taken {max_s} s by then; `embed` makes those that are missing"
    return SkippedInput(path="", reason=NoteReason.VECTORS_LATER.value, message=message)


def _ingest(
    parts: BaseComponents,
    paths: list[Path],
    options: IngestOptions,
    on_progress: Callable[[IngestProgress], None] | None,
    *,
    writer: SourceWriter | _BriefWriter,
    time: ReadingTime,
) -> IngestReport:
    from evidentia.ingest.ingest_pipeline import ingest_paths

    try:
        writer.register(_described(writer, options))
        report = ingest_paths(
            paths,
            options=options,
            settings=parts.settings.ingest,
            language=LANGUAGE_CODES.get(parts.settings.text.language, "und"),
            writer=writer,
            clock=parts.clock,
            on_progress=on_progress,
            time=time,
        )
    finally:
        writer.close()
    parts.collector().compact()
    head = parts.reader.head()
    return msgspec.structs.replace(report, corpus_version=head.corpus_version, evidence_state=head.evidence_state, sequence=head.sequence)


def _embed(
    parts: BaseComponents, encoder: Encoder, *, on_progress: Callable[[EmbedProgress], None] | None, is_stopped: Callable[[], bool]
) -> EmbedReport:
    from evidentia.ingest.embedding import embed

    def tell(progress: EmbedProgress) -> None:
        if on_progress is not None:
            on_progress(progress)
        if progress.commit is not None and not is_stopped():
            parts.collector().compact()  # at once, or a long run would leave thousands of files

    settings = parts.settings.embedding
    head = parts.reader.head()
    with parts.vectors() as store:
        threads = encoding_threads(settings)
        report = embed(store, encoder, batch_chunks=settings.batch_chunks, threads=threads, on_progress=tell, is_cancelled=is_stopped)
        share = 0 if is_stopped() else report.embedded / max(1, store.state(encoder.identity).embedded)
    if share > WORTH_REWRITING:
        parts.collector().compact(full=True)
    if is_stopped():  # perhaps by closing the base, which cannot be asked then
        return report if report.evidence_state else _at(report, head)
    return _at(report, parts.reader.head())


def _at(report: EmbedReport, head: CommitSummary) -> EmbedReport:
    return msgspec.structs.replace(report, evidence_state=head.evidence_state, sequence=head.sequence)


def _described(writer: SourceWriter | _BriefWriter, options: IngestOptions) -> SourceDescriptor:
    """Return the descriptor of the source that documents come from: the one that is registered, else a new one."""
    known = writer.descriptors().get(options.source)
    if known is not None and not known.is_own:
        raise InvalidFieldError("source", f"'{options.source}' is registered as a source outside the base; choose another name")
    fresh = SourceDescriptor(source_id=options.source, latency_tier=LatencyTier.HOT)
    return msgspec.structs.replace(known or fresh, authority_tier=options.authority)


# --- options ---
# What a caller typed to what the rooms below take, with errors that name the argument.

Word = TypeVar("Word", bound=Vocabulary)


def ingest_options(
    *, source: str, authority: str, classification: str, tenant: str, acl: Iterable[str], tags: Iterable[str], prune: bool
) -> IngestOptions:
    """Return the options of an ingest."""
    access = AccessRule(
        tenant=TenantId(tenant),
        classification=word(Classification, classification, field="classification"),
        acl=tuple(sorted(set(acl))),
    )
    return IngestOptions(
        source=SourceId(source),
        authority=word(AuthorityTier, authority, field="authority"),
        access=access,
        tags=tuple(sorted(set(tags))),
        prune=prune,
    )


def word(vocabulary: type[Word], text: str, *, field: str) -> Word:
    """Return the member of a vocabulary that a word names."""
    try:
        return vocabulary(text)
    except ValueError as error:
        raise InvalidFieldError(field, f"'{text}' is not one of {', '.join(vocabulary.words())}") from error
