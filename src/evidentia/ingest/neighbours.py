"""Files that a Markdown text or a page shows as images: found next to it, hashed with it, and handed over when it has been read.

A reader sees only bytes, so it names the files it wants; here they are opened the way every original is. Refuses a path that
leaves the ingested directory, a file that was left out of the walk, and anything whose name is not that of an image.
"""

from __future__ import annotations

import hashlib
import html
import posixpath
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.contracts.ids import Sha256
from evidentia.ingest.ignore import is_ignored_name
from evidentia.ingest.readers.file_types import Family, ending_of, family_of
from evidentia.ingest.readers.image_gathering import ImageGatherer, OmissionReason
from evidentia.ingest.readers.image_sources import MAX_REFERENCE_LENGTH
from evidentia.ingest.readers.plain import decode, find_images
from evidentia.ingest.reasons import SkipReason
from evidentia.ingest.walk import WalkedFile, read_original

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evidentia.contracts.layout import ExtractedText
    from evidentia.ingest.readers.limits import ReadLimits

ENDINGS = frozenset({".bmp", ".emf", ".gif", ".jpeg", ".jpg", ".png", ".svg", ".tif", ".tiff", ".webp", ".wmf"})
"""Only files named like an image are opened on behalf of a document; what they are, their bytes say."""
MAX_LOOKED_FOR = 10_000
"""So many different names in one document are looked for on disk; a file of names alone would have millions."""
_SOURCE = re.compile(r"""\bsrc\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""", re.IGNORECASE)
_LOOK = 4 * MAX_REFERENCE_LENGTH
_QUERY = re.compile(r"[?#]")


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a document names: how it names it, where it is, and the hash of its bytes."""

    reference: str
    path: str
    image_hash: Sha256


class Neighbours:
    """Finds the image files of the documents of one run; a file that many documents show is hashed once."""

    def __init__(self, files: Iterable[WalkedFile], limits: ReadLimits) -> None:
        self._limits = limits
        self._walked = {(file.root, file.own_id): file.path for file in files if ending_of(file.own_id) in ENDINGS}
        self._hashes: dict[str, Sha256 | None] = {}

    def of(self, file: WalkedFile, content: bytes) -> tuple[Neighbour, ...]:
        """Return the files a document may show, in the order it names them; empty for formats that hold their images."""
        found: dict[str, Neighbour] = {}
        looked_for: set[str] = set()
        for reference in _references(file.own_id, content):
            if reference in looked_for:
                continue
            if len(found) >= self._limits.max_images or len(looked_for) >= MAX_LOOKED_FOR:
                break
            looked_for.add(reference)
            path = self._path(file, reference)
            image_hash = self._hash(path) if path else None
            if path and image_hash:
                found[reference] = Neighbour(reference=reference, path=path, image_hash=image_hash)
        return tuple(found.values())

    def attached(self, extracted: ExtractedText, file: WalkedFile, neighbours: Iterable[Neighbour]) -> ExtractedText:
        """Return what was read with the bytes of the files it names, and a note about those that are not there."""
        if all(image.content for image in extracted.images):
            return extracted
        paths = {neighbour.reference: neighbour.path for neighbour in neighbours}
        gatherer = ImageGatherer(self._limits)
        images = []
        for image in extracted.images:
            content = image.content or self._content(file, image.name, paths, gatherer)
            picture = None if content is None else gatherer.take(content, name=_plain(image.name), alt=image.alt)
            if picture is not None:
                images.append(picture.placed((image.start, image.end)))
        return msgspec.structs.replace(extracted, images=tuple(images), notes=(*extracted.notes, *gatherer.notes()))

    def _content(self, file: WalkedFile, reference: str, paths: dict[str, str], gatherer: ImageGatherer) -> bytes | None:
        path = paths.get(reference)
        if path is None:
            gatherer.leave_out(OmissionReason.OUTSIDE if _own_id(file.own_id, reference) is None else OmissionReason.MISSING)
            return None
        try:
            return read_original(path, max_bytes=self._limits.max_image_bytes)
        except DocumentUnreadableError as error:
            gatherer.leave_out(OmissionReason.LARGE if error.reason == SkipReason.TOO_LARGE else OmissionReason.MISSING)
            return None

    def _path(self, file: WalkedFile, reference: str) -> str | None:
        """Return where the file is, None when there is none that may be taken."""
        own_id = _own_id(file.own_id, reference)
        if own_id is None or ending_of(own_id) not in ENDINGS:
            return None
        if not file.is_named:
            return self._walked.get((file.root, own_id))
        try:
            root = Path(file.root).resolve(strict=True)
            target = (root / own_id).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            return None
        if not target.is_relative_to(root) or any(is_ignored_name(part) for part in target.relative_to(root).parts):
            return None
        return str(target)

    def _hash(self, path: str) -> Sha256 | None:
        """Return the hash of a file; of one that is too large to be taken, a hash that says so."""
        if path not in self._hashes:
            try:
                content = read_original(path, max_bytes=self._limits.max_image_bytes)
                self._hashes[path] = Sha256(hashlib.sha256(content).hexdigest())
            except DocumentUnreadableError as error:
                self._hashes[path] = Sha256(hashlib.sha256(b"too large").hexdigest()) if error.reason == SkipReason.TOO_LARGE else None
        return self._hashes[path]


def _references(own_id: str, content: bytes) -> Iterator[str]:
    """Yield what a document names as images; for a page, whose parser works elsewhere, everything that might be one."""
    family = family_of(own_id)
    if family not in {Family.HTML, Family.MARKDOWN} or (b"![" not in content and b"<img" not in content.lower() and b"\0" not in content):
        return
    try:
        text, _ = decode(content)
    except DocumentUnreadableError:
        return
    if family is Family.MARKDOWN:
        sources = (found.source for found in find_images(text))
    else:
        sources = (html.unescape((match.group(1) or match.group(2) or match.group(3) or "")[:_LOOK]) for match in _SOURCE.finditer(text))
    yield from (source.strip() for source in sources if len(source) <= MAX_REFERENCE_LENGTH)


def _own_id(document: str, reference: str) -> str | None:
    """Return the own id a reference leads to; None for one that is no relative path or leaves the root."""
    path = _plain(reference)
    if not path or path.startswith("/") or "\\" in path or "\0" in path or ":" in path.partition("/")[0]:
        return None
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(document), path))
    return None if joined.startswith(("../", "/")) or joined in {"..", "."} else unicodedata.normalize("NFC", joined)


def _plain(reference: str) -> str:
    return unquote(_QUERY.split(reference, maxsplit=1)[0], errors="replace")
