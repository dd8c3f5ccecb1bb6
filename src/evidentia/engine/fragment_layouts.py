"""On which pages a fragment stands, and which images belong to its text.

A layout never changes under its hash, so those that were read are kept by hash, whatever version they were read for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.contracts.canonical import sha256_hex
from evidentia.contracts.errors import BaseDamagedError, VersionCollectedError
from evidentia.contracts.layout import DocumentImage, DocumentLayout, FragmentImage
from evidentia.contracts.ports import SearchableSnapshot, SupportsLayouts
from evidentia.foundation.lru import SharedLruCache
from evidentia.provenance.layout_custody import decode_layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.documents import StoredChunk
    from evidentia.contracts.evidence import EvidenceFragment
    from evidentia.contracts.ids import Sha256

KEPT_BYTES = 16 * 1024 * 1024
"""How much of layouts is kept, counted as they are stored."""
MAX_NEAREST_TEXT_LENGTH = 300


class FragmentLayout(NamedTuple):
    """What a fragment shows of its document's layout."""

    pages: tuple[int, ...]
    images: tuple[FragmentImage, ...]


NO_LAYOUT = FragmentLayout((), ())


class LayoutReader:
    """Reads layouts, and keeps those it read for a while. Thread safe."""

    def __init__(self, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept: SharedLruCache[Sha256, tuple[DocumentLayout, int]] = SharedLruCache(max_weight=kept_bytes, weigh=itemgetter(1))

    def layout(self, named: Sha256, snapshot: SearchableSnapshot) -> DocumentLayout:
        """Return the layout with a hash; one that a version names and no longer has was collected with it."""
        kept = self._kept.get(named)
        if kept is not None:
            return kept[0]
        encoded = snapshot.attachment(named) if isinstance(snapshot, SupportsLayouts) else None
        if encoded is None:
            raise VersionCollectedError(snapshot.version.commit.corpus_version)
        layout = _decoded(encoded, named)
        self._kept.put(named, (layout, len(encoded)))
        return layout


@cache
def _shared_reader() -> LayoutReader:
    return LayoutReader()


def layout_of(chunk: StoredChunk, snapshot: SearchableSnapshot, *, reader: LayoutReader | None = None) -> FragmentLayout:
    """Return the pages and images of a chunk; a document without a layout costs nothing."""
    named = chunk.metadata.layout
    if named is None:
        return NO_LAYOUT
    layout = (reader or _shared_reader()).layout(named, snapshot)
    return FragmentLayout(
        pages=pages_between(layout.pages, start=chunk.start, end=chunk.end),
        images=tuple(_images(layout.images, start=chunk.start, content=chunk.content)),
    )


def pages_between(pages: Sequence[int], *, start: int, end: int) -> tuple[int, ...]:
    """Return the pages, from 0, that characters `start` to `end` stand on; a page without text is not among them."""
    first, beyond = max(0, bisect_right(pages, start) - 1), bisect_left(pages, end)
    return tuple(page for page in range(first, beyond) if page + 1 == len(pages) or pages[page + 1] > pages[page])


def layout_problems(fragment: EvidenceFragment) -> Iterator[str]:
    """Yield what is wrong with a fragment's pages and images as far as it can be told without the base."""
    if list(fragment.pages) != sorted(set(fragment.pages)) or any(page < 0 for page in fragment.pages):
        yield "its pages do not follow one another"
    text = _squeezed(fragment.content + fragment.cut_off) if fragment.images else ""
    if any(image.nearest_text not in text for image in fragment.images):
        yield "an image is said to stand next to text that is not its own"


def _images(images: Sequence[DocumentImage], *, start: int, content: str) -> Iterator[FragmentImage]:
    """Yield the images whose nearest text overlaps a chunk, in order of that text, with the part of it that is in the chunk."""
    end = start + len(content)
    near = [image for image in images if _touches(image, start=start, end=end)]
    for image in sorted(near, key=lambda each: (each.start, each.end)):  # those that share a text keep the order of the document
        nearest = content[max(0, image.start - start) : image.end - start]
        yield FragmentImage(
            image_hash=image.image_hash,
            media_type=image.media_type,
            name=image.name,
            alt=image.alt,
            nearest_text=_squeezed(nearest)[:MAX_NEAREST_TEXT_LENGTH].rstrip(),
        )


def _touches(image: DocumentImage, *, start: int, end: int) -> bool:
    if image.start == image.end:  # next to no text: it belongs where it stands
        return start <= image.start <= end
    return image.start < end and image.end > start


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _decoded(encoded: bytes, named: Sha256) -> DocumentLayout:
    """Return a layout from bytes that have its hash, so that damage in one base is never kept for another."""
    try:
        if sha256_hex(encoded) == named:
            return decode_layout(encoded)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BaseDamagedError(f"layout '{named[:16]}'", f"it cannot be read ({error})") from error
    raise BaseDamagedError(f"layout '{named[:16]}'", "its bytes do not have the hash that names them")
