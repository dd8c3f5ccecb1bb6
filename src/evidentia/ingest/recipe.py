"""How one run turns originals into documents: options, settings and tools together, and the fingerprint that stands for them.

Two runs with the same recipe give the same document for the same bytes, which is why an unchanged one need not be read.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.canonical import hash_record
from evidentia.contracts.documents import DocumentMetadata, IngestOptions, ReadDocument
from evidentia.contracts.ids import DocumentId, Sha256, document_id_of
from evidentia.contracts.vocabulary import ContentType
from evidentia.ingest import jsonl_corpus
from evidentia.ingest.chunking import chunker_version, cut, title_of
from evidentia.ingest.document_claims import Claims, apply_claims
from evidentia.ingest.neighbours import Neighbour
from evidentia.ingest.preparation import bounded
from evidentia.ingest.readers.file_types import Family, family_of
from evidentia.ingest.readers.registry import tool_of
from evidentia.ingest.version_control import FileHistory
from evidentia.ingest.walk import WalkedFile
from evidentia.text.languages import SAMPLE_CHARS, language_of

if TYPE_CHECKING:
    from datetime import datetime

    from evidentia.contracts.layout import ExtractedText
    from evidentia.contracts.settings import IngestSettings

RECIPE_VERSION = "4"
HASH_VERSION_DIGITS = 16

_CONTENT_TYPES = {
    Family.CODE: ContentType.CODE,
    Family.CONFIG: ContentType.CONFIG,
    Family.LOG: ContentType.LOG,
    Family.SCHEMA: ContentType.SCHEMA,
}


class Original(msgspec.Struct, frozen=True, kw_only=True):
    """A file's bytes with what identifies them."""

    file: WalkedFile
    document_id: DocumentId
    content: bytes
    content_hash: Sha256
    history: FileHistory | None
    fingerprint: Sha256
    neighbours: tuple[Neighbour, ...] = ()


class Recipe:
    """Options, settings and language of one run; everything it makes depends on these and the originals alone."""

    def __init__(self, options: IngestOptions, settings: IngestSettings, language: str) -> None:
        self.options = options
        self.settings = settings
        self.chunker_version = chunker_version()
        self._language = language
        self._keys: dict[str, bytes] = {}
        self._record_defaults = DocumentMetadata(
            source_id=options.source,
            media_type=jsonl_corpus.MEDIA_TYPE,
            authority_tier=options.authority,
            language=language,
            tags=options.tags,
        )

    def document_id(self, own_id: str) -> DocumentId:
        """Return the id of the document an original becomes."""
        return document_id_of(self.options.source, own_id)

    def original(self, file: WalkedFile, content: bytes, history: FileHistory | None, neighbours: tuple[Neighbour, ...] = ()) -> Original:
        """Return a file's bytes with their hash and fingerprint; a history that ends before these bytes tells only how it began.

        The fingerprint also stands for the image files the document shows, so that a changed image makes a changed document.
        """
        if history is not None and not history.holds(content):
            history = msgspec.structs.replace(history, blob="", commit="", author="", updated_at=None)
        content_hash = Sha256(hashlib.sha256(content).hexdigest())
        facts = msgspec.json.encode(history)
        if neighbours:
            facts += msgspec.json.encode([(neighbour.reference, neighbour.image_hash) for neighbour in neighbours])
        fingerprint = self._fingerprint(tool_of(family_of(file.own_id)), content_hash.encode() + facts)
        return Original(
            file=file,
            document_id=self.document_id(file.own_id),
            content=content,
            content_hash=content_hash,
            history=history,
            fingerprint=fingerprint,
            neighbours=neighbours,
        )

    def file_document(self, original: Original, extracted: ExtractedText, *, read_at: datetime) -> tuple[ReadDocument, tuple[str, ...]]:
        """Return the document a file becomes and notes about it, or raise DocumentUnreadableError for a claim that forbids it."""
        extracted = bounded(extracted)
        own_id, history = original.file.own_id, original.history
        content_type = _CONTENT_TYPES.get(family_of(own_id), ContentType.DOCUMENTATION)
        defaults = DocumentMetadata(
            source_id=self.options.source,
            title=title_of(extracted, own_id=own_id),
            path=own_id,
            media_type=extracted.media_type,
            content_type=content_type,
            language=self._language_of(extracted) if content_type is ContentType.DOCUMENTATION else self._language,
        )
        claims = apply_claims(extracted.declared, defaults=defaults, options=self.options, history=history)
        commit = history.commit if history else ""
        document = ReadDocument(
            source_id=self.options.source,
            document_id=original.document_id,
            document_version=commit or f"sha256:{original.content_hash[:HASH_VERSION_DIGITS]}",
            original_hash=original.content_hash,
            original_length=len(original.content),
            extracted=extracted,
            spans=self._spans(extracted),
            chunker_version=self.chunker_version,
            metadata=claims.metadata,
            access=claims.access,
            fingerprint=original.fingerprint,
            read_at=read_at,
            root=original.file.root,
        )
        return document, (*extracted.notes, *claims.notes)

    def record_fingerprint(self, content_hash: Sha256) -> Sha256:
        """Return the fingerprint of a corpus line with this hash."""
        return self._fingerprint("jsonl", content_hash.encode())

    def record_document(
        self, record: jsonl_corpus.CorpusRecord, *, content_hash: Sha256, fingerprint: Sha256, read_at: datetime
    ) -> tuple[ReadDocument, tuple[str, ...]]:
        """Return the document a corpus line becomes and notes about it; a claim that forbids it raises DocumentUnreadableError."""
        extracted = record.extracted()
        claims = self._record_claims(record, extracted)
        document = ReadDocument(
            source_id=self.options.source,
            document_id=self.document_id(record.own_id),
            document_version=f"sha256:{content_hash[:HASH_VERSION_DIGITS]}",
            original_hash=content_hash,
            original_length=len(record.original),
            extracted=extracted,
            spans=self._spans(extracted),
            chunker_version=self.chunker_version,
            metadata=claims.metadata,
            access=claims.access,
            fingerprint=fingerprint,
            read_at=read_at,
        )
        return document, claims.notes

    def _record_claims(self, record: jsonl_corpus.CorpusRecord, extracted: ExtractedText) -> Claims:
        metadata = msgspec.structs.replace(self._record_defaults, title=record.title[:500], language=self._language_of(extracted))
        if not record.metadata:
            return Claims(metadata=metadata, access=self.options.access)
        return apply_claims(record.declared(), defaults=metadata, options=self.options)

    def _language_of(self, extracted: ExtractedText) -> str:
        """Return the language of a text, or the one of the settings where it cannot be told."""
        body = extracted.text[extracted.body_start : extracted.body_start + SAMPLE_CHARS[-1]]
        return language_of(body, otherwise=self._language)

    def _spans(self, extracted: ExtractedText) -> tuple[tuple[int, int], ...]:
        return cut(
            extracted.text,
            structure=extracted.structure,
            body_start=extracted.body_start,
            chunk_chars=self.settings.chunk_chars,
            chunk_max_chars=self.settings.chunk_max_chars,
        )

    def _fingerprint(self, tool: str, facts: bytes) -> Sha256:
        key = self._keys.get(tool)
        if key is None:
            key = self._keys[tool] = self._key(tool).encode()
        return Sha256(hashlib.sha256(key + facts).hexdigest())

    def _key(self, tool: str) -> Sha256:
        options = self.options
        return hash_record(
            {
                "recipe": RECIPE_VERSION,
                "tool": tool,
                "corpus_tool": jsonl_corpus.TOOL_VERSION,
                "chunker": self.chunker_version,
                "chunk_chars": self.settings.chunk_chars,
                "chunk_max_chars": self.settings.chunk_max_chars,
                "language": self._language,
                "source": options.source,
                "authority": options.authority.value,
                "tenant": options.access.tenant,
                "classification": options.access.classification.value,
                "acl": options.access.acl,
                "tags": options.tags,
            }
        )
