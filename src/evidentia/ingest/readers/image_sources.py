"""Where the bytes of an image come from: a part of the file, data inside an address, or a file next to the document.

Refuses to fetch: an address on the web is counted, and only its host is ever named.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

from evidentia.ingest.readers.images import LeftOut

if TYPE_CHECKING:
    from evidentia.ingest.readers.images import ImageGatherer, Picture

MAX_REFERENCE_LENGTH = 1_000
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:")
_DATA = re.compile(r"\s*data:[^,]{0,200},", re.IGNORECASE)


def take_related(gatherer: ImageGatherer, relations: object, relation_id: str, *, alt: str) -> Picture | None:
    """Take the image a relation of an Office file names, or count it as elsewhere or missing."""
    if not relation_id:
        return None
    relation = relations.get(relation_id)  # type: ignore[attr-defined]  # neither Office library has types
    if relation is None:
        gatherer.leave_out(LeftOut.MISSING)
        return None
    if relation.is_external:
        gatherer.leave_out(LeftOut.REMOTE, host=host_of(relation.target_ref))
        return None
    part = relation.target_part
    return gatherer.take(part.blob, name=str(part.partname), alt=alt)


def take_source(gatherer: ImageGatherer, source: str, *, alt: str) -> Picture | None:
    """Take what an image in a page or a Markdown text names: data inside it, or a file next to it."""
    if match := _DATA.match(source):
        return _inline(gatherer, source, match, alt=alt)
    reference = source.strip()
    if reference.startswith(("//", "\\\\")) or _SCHEME.match(reference):
        gatherer.leave_out(LeftOut.REMOTE, host=host_of(reference))
        return None
    if not reference or reference.startswith("#") or len(reference) > MAX_REFERENCE_LENGTH:
        gatherer.leave_out(LeftOut.MISSING)
        return None
    return gatherer.refer(reference, alt=alt)


def _inline(gatherer: ImageGatherer, source: str, match: re.Match[str], *, alt: str) -> Picture | None:
    if (len(source) - match.end()) * 3 // 4 > gatherer.limits.max_image_bytes:
        gatherer.leave_out(LeftOut.LARGE)
        return None
    encoded = unquote_to_bytes(source[match.end() :])
    if ";base64" not in match.group().lower():
        return gatherer.take(encoded, alt=alt)
    try:
        return gatherer.take(base64.b64decode(encoded), alt=alt)
    except binascii.Error:
        gatherer.leave_out(LeftOut.KIND)
        return None


def host_of(address: str) -> str:
    """Return the host of an address, empty when there is none; nothing else of an address is ever shown."""
    try:
        return urlsplit(address[:2_000]).hostname or ""
    except ValueError:
        return ""
