"""What an Office file, which is a zip archive, would unfold into; looked up in its directory before anything is unpacked."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import datetime
from typing import TYPE_CHECKING

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.readers.file_types import Family, ending_of
from evidentia.ingest.reasons import SkipReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.ingest.readers.limits import ReadLimits


RATIO_MATTERS_ABOVE = 8 * 1024 * 1024
LOOK_FOR_ENTITIES_WITHIN = 64 * 1024
_ENTITY = re.compile(rb"<!(?:DOCTYPE|ENTITY)")
_EXPECTED = {Family.WORD: ("word/",), Family.SLIDES: ("ppt/",), Family.SHEETS: ("xl/", "content.xml")}


def open_checked(content: bytes, *, family: Family, name: str, limits: ReadLimits) -> zipfile.ZipFile:
    """Return the archive after checking its size, its kind and its XML for entity declarations."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except (zipfile.BadZipFile, ValueError, OverflowError) as error:
        problem = "is damaged: its zip directory cannot be read; save it again from the program that made it"
        raise DocumentUnreadableError(SkipReason.DAMAGED, problem) from error
    entries = archive.infolist()
    _check_size(entries, packed=len(content), limits=limits)
    _check_kind(entries, family=family, name=name)
    _check_entities(archive, entries)
    return archive


def xml_parts(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    """Yield the entries that hold XML."""
    yield from (entry for entry in archive.infolist() if entry.filename.endswith((".xml", ".rels")))


def _check_size(entries: list[zipfile.ZipInfo], *, packed: int, limits: ReadLimits) -> None:
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > limits.max_entries:
        raise _bomb(f"holds {len(entries)} parts, more than the {limits.max_entries} of any real document")
    if unpacked > limits.max_unpacked_bytes:
        raise _bomb(f"would unfold to {unpacked} bytes, more than the {limits.max_unpacked_bytes} allowed")
    if unpacked > RATIO_MATTERS_ABOVE and unpacked > packed * limits.max_ratio:
        raise _bomb(f"would unfold to {unpacked // packed} times its size, more than the {limits.max_ratio} times allowed")


def _check_kind(entries: list[zipfile.ZipInfo], *, family: Family, name: str) -> None:
    names = {entry.filename for entry in entries}
    is_office = "[Content_Types].xml" in names or "mimetype" in names
    if is_office and any(entry.startswith(_EXPECTED[family]) for entry in names):
        return
    problem = f"is named {ending_of(name)} but is another kind of zip archive; give it the right extension or unpack it"
    raise DocumentUnreadableError(SkipReason.TYPE_MISMATCH, problem)


def _check_entities(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo]) -> None:
    if any(entry.flag_bits & 1 for entry in entries):
        raise DocumentUnreadableError(SkipReason.ENCRYPTED, "is encrypted; save it without a password and ingest it again")
    for entry in xml_parts(archive):
        with archive.open(entry) as part:
            if _ENTITY.search(part.read(LOOK_FOR_ENTITIES_WITHIN)):
                problem = f"declares XML entities in '{entry.filename[:80]}', which no Office program writes; it is not read"
                raise DocumentUnreadableError(SkipReason.XML_ENTITIES, problem)


def _bomb(problem: str) -> DocumentUnreadableError:
    return DocumentUnreadableError(SkipReason.ARCHIVE_BOMB, f"{problem}; it is not unpacked")


# --- properties ---
# What Office files declare about themselves in their core properties.

_FIELDS = (("title", "title"), ("author", "author"), ("created", "created"), ("updated", "modified"), ("language", "language"))
_TEMPLATE_TITLES = frozenset({"PowerPoint Presentation", "Word Document"})
_TEMPLATE_AUTHORS = frozenset({"python-docx", "Steve Canny"})


def declared_properties(properties: object) -> dict[str, str | tuple[str, ...]]:
    """Return the declared title, author, dates, language and keywords; what is malformed counts as absent."""
    declared: dict[str, str | tuple[str, ...]] = {}
    for key, attribute in _FIELDS:
        value = _property(properties, attribute)
        if isinstance(value, datetime):
            declared[key] = value.isoformat()
        elif isinstance(value, str) and value.strip() and value not in _TEMPLATE_TITLES | _TEMPLATE_AUTHORS:
            declared[key] = value.strip()
    keywords = _property(properties, "keywords")
    if isinstance(keywords, str) and keywords.strip():
        declared["tags"] = tuple(word.strip() for word in keywords.replace(";", ",").split(",") if word.strip())
    return declared


def _property(properties: object, attribute: str) -> object:
    try:
        return getattr(properties, attribute)
    except ValueError:
        return None
