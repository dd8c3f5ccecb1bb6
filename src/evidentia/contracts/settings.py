"""Every setting, with its default and its bounds; `evidentia.toml` is this tree."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec


class IngestSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How material comes in."""

    chunk_chars: Annotated[int, msgspec.Meta(ge=200, le=100_000)] = 2_000
    """A chunk is closed at the first structural boundary after this many characters."""
    chunk_max_chars: Annotated[int, msgspec.Meta(ge=200, le=200_000)] = 4_000
    """No chunk is longer; a document this short stays whole."""
    max_file_bytes: Annotated[int, msgspec.Meta(ge=1)] = 64 * 1024 * 1024
    """Larger files are skipped with a reason."""
    max_text_chars: Annotated[int, msgspec.Meta(ge=1)] = 50_000_000
    """More extracted text than this from one file is refused, which stops archives that unfold without end."""
    batch_documents: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 5_000
    """At most this many documents become durable in one commit."""
    batch_bytes: Annotated[int, msgspec.Meta(ge=1)] = 32 * 1024 * 1024
    """A commit is also made when this much text has gathered."""
    readers: Annotated[int, msgspec.Meta(ge=0, le=64)] = 2
    """Processes that read PDF and office files; 0 reads them in the calling process."""
    reader_timeout_s: Annotated[int, msgspec.Meta(ge=1)] = 60
    """A file that takes longer to read is skipped with a reason."""
    reader_memory_mb: Annotated[int, msgspec.Meta(ge=64)] = 2_048
    """A reader process that needs more memory than this is stopped and its file skipped."""
    ignore: tuple[str, ...] = ()
    """Patterns in the manner of .gitignore, besides the built-in ones and the .gitignore and .evidentiaignore files found."""


class TextSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How text becomes terms."""

    language: str = "english"
    """The Snowball stemmer, or `none`."""


class StorageSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a base keeps what it holds."""

    writer_wait_ms: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    """How long a second writer waits before it gives up."""
    keep_versions: Annotated[int, msgspec.Meta(ge=1)] = 10
    """How many versions `gc` leaves readable."""
    segments_per_size: Annotated[int, msgspec.Meta(ge=2, le=100)] = 4
    """More segments than this of about the same size are merged at the end of an ingest."""


class SearchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How terms become scores; part of `config_hash`."""

    weighting: Literal["bm25", "tfidf"] = "bm25"
    """BM25, or plain tf-idf."""
    idf: Literal["lucene", "robertson"] = "lucene"
    """The idf of BM25: `lucene` is never negative, `robertson` is for terms in more than half of the documents."""
    k1_milli: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 1_500
    """BM25's k1 in thousandths: how soon more occurrences stop counting."""
    b_milli: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 750
    """BM25's b in thousandths: how much long passages are discounted."""
    max_query_chars: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 32_768
    """Longer queries are refused."""


class AccessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may see what, beyond tenant, clearance and ACL; part of `config_hash`."""

    rules: tuple[str, ...] = ()
    """Filters every document has to pass for a caller; `"$caller.NAME"` stands for the caller's attribute, and its absence denies."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a base."""

    ingest: IngestSettings = IngestSettings()
    text: TextSettings = TextSettings()
    search: SearchSettings = SearchSettings()
    access: AccessSettings = AccessSettings()
    storage: StorageSettings = StorageSettings()
