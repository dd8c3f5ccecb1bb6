"""The reader for each family, and the one place where a parser's failure becomes a reason.

Refuses to let anything but DocumentUnreadableError out, whatever the bytes.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.readers import plain
from evidentia.ingest.readers.file_types import Family, check_type, family_of
from evidentia.ingest.reasons import NoteReason, SkipReason
from evidentia.tables import TABLES_VERSION

if TYPE_CHECKING:
    from evidentia.contracts.layout import ExtractedText
    from evidentia.contracts.ports import DocumentReader
    from evidentia.ingest.readers.limits import ReadLimits

_PACKAGES = {
    Family.HTML: "selectolax",
    Family.PARQUET: "pyarrow",
    Family.PDF: "pypdf",
    Family.SHEETS: "python-calamine",
    Family.SLIDES: "python-pptx",
    Family.WORD: "python-docx",
}
_TABLE_FAMILIES = frozenset({Family.PARQUET, Family.SHEETS, Family.TABLE})
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def read_document(content: bytes, *, name: str, limits: ReadLimits) -> ExtractedText:
    """Return the text of a file, or raise DocumentUnreadableError; never anything else, whatever the bytes."""
    family = family_of(name)
    if not content or content.isspace():
        raise DocumentUnreadableError(SkipReason.EMPTY, "is empty")
    check_type(content, family=family, name=name)
    try:
        extracted = reader_for(family, limits).read(content, name=name)
    except (DocumentUnreadableError, KeyboardInterrupt, SystemExit):
        raise
    except MemoryError as error:
        raise DocumentUnreadableError(SkipReason.READER_CRASHED, "needs more memory to read than there is") from error
    except BaseException as error:  # parsers fail in every way there is, Rust ones with a BaseException
        raise _refusal(error) from error
    if not extracted.text[extracted.body_start :].strip():
        raise DocumentUnreadableError(SkipReason.EMPTY, "is empty")
    return _storable(extracted)


def reader_for(family: Family, limits: ReadLimits) -> DocumentReader:
    """Return the reader of a family; its parser is imported only when it reads."""
    if family is Family.HTML:
        from evidentia.ingest.readers.html import HtmlReader

        return HtmlReader(limits=limits)
    if family is Family.PDF:
        from evidentia.ingest.readers.pdf import PdfReader

        return PdfReader(limits=limits)
    if family is Family.WORD:
        from evidentia.ingest.readers.word import WordReader

        return WordReader(limits=limits)
    if family is Family.SLIDES:
        from evidentia.ingest.readers.slides import SlidesReader

        return SlidesReader(limits=limits)
    return _table_reader(family, limits) or plain.PlainReader(family=family, limits=limits)


def _table_reader(family: Family, limits: ReadLimits) -> DocumentReader | None:
    if family is Family.SHEETS:
        from evidentia.ingest.readers.sheets import SheetsReader

        return SheetsReader(limits=limits)
    if family is Family.PARQUET:
        from evidentia.ingest.readers.parquet import ParquetReader

        return ParquetReader(limits=limits)
    return None


@functools.cache
def tool_of(family: Family) -> str:
    """Return the tool that reads a family with its version, part of a document's fingerprint."""
    package = _PACKAGES.get(family)
    tables = f"+tables.{TABLES_VERSION}" if family in _TABLE_FAMILIES else ""
    if package is None:
        return f"{plain.TOOL_ID} {plain.TOOL_VERSION}{tables}"
    return f"{package} {_version(package)}{tables}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _refusal(error: BaseException) -> DocumentUnreadableError:
    """Return the refusal for a parser's failure; its own words stay out of the message, for the file may have written them."""
    if isinstance(error, RecursionError) or "Excessive depth" in str(error):
        return DocumentUnreadableError(SkipReason.NESTED_TOO_DEEP, "nests deeper than it can be read; flatten it")
    problem = f"is damaged ({type(error).__name__}); save it again from the program that made it"
    return DocumentUnreadableError(SkipReason.DAMAGED, problem)


def _storable(extracted: ExtractedText) -> ExtractedText:
    """Replace what has no place in stored text; only parsers of binary formats produce it, so no offset into a text file moves."""
    if not _UNSTORABLE.search(extracted.text):
        return extracted
    note = f"{NoteReason.CHARACTERS_REPLACED.value}: holds characters that are not text; each was replaced by U+FFFD"
    return msgspec.structs.replace(extracted, text=_UNSTORABLE.sub("\ufffd", extracted.text), notes=(*extracted.notes, note))
