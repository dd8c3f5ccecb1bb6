"""Resources: fragments and receipts by their ids, images by their hash. What may not be seen is answered like what is not there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

import msgspec

from evidentia.contracts.errors import InputError, InvalidFieldError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from evidentia.serving.identity.callers import Caller
    from evidentia.serving.mcp.memory import KeptReceipt, Memory
    from evidentia.serving.operations.served_base import ServedBase

SCHEME: Final = "evidentia"
FRAGMENT: Final = "fragment"
RECEIPT: Final = "receipt"
IMAGE: Final = "image"
PAGE: Final = 50
MAX_URI_LENGTH: Final = 8_000
_URI: Final = re.compile(rf"{SCHEME}://([a-z]+)/([^/?#]+)")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_MEDIA_TYPE: Final = re.compile(r"image/[a-z0-9.+-]{1,60}")


class Template(NamedTuple):
    """A kind of resource: constant words, and the form of its address."""

    kind: str
    parameter: str
    description: str
    media_type: str | None

    @property
    def pattern(self) -> str:
        """Return the form of the address."""
        return f"{SCHEME}://{self.kind}/{{{self.parameter}}}"


TEMPLATES: Final = (
    Template(FRAGMENT, "chunk_id", "The text of a fragment, and everything a stranger needs to check it.", None),
    Template(RECEIPT, "receipt_id", "A receipt of yours, answered again.", "application/json"),
    Template(IMAGE, "hash", "An image that belongs to a fragment.", None),
)


class Piece(NamedTuple):
    """One part of a resource: text, or bytes."""

    media_type: str
    content: str | bytes


def uri_of(kind: str, name: str) -> str:
    """Return the address of a resource; every character that could mean something in an address is escaped."""
    return f"{SCHEME}://{kind}/{quote(name, safe='')}"


class Reading:
    """Reads resources for whoever is connected."""

    def __init__(self, served_base: ServedBase, memory: Memory) -> None:
        self._office = served_base
        self._memory = memory
        self._kinds: dict[str, Callable[[str, Caller], Awaitable[Sequence[Piece]]]] = {
            FRAGMENT: self._fragment,
            RECEIPT: self._receipt,
            IMAGE: self._image,
        }

    async def read(self, uri: str, caller: Caller) -> Sequence[Piece]:
        """Return the parts of a resource.

        Raises:
            NotFoundError: There is no such resource, or the caller may not see it.
        """
        found = _URI.fullmatch(uri) if len(uri) <= MAX_URI_LENGTH else None
        reader = self._kinds.get(found[1]) if found else None
        if found is None or reader is None:
            raise NotFoundError("resource", uri[:MAX_URI_LENGTH])
        try:
            return await reader(unquote_to_bytes(found[2]).decode(), caller)
        except (InputError, UnicodeError) as error:
            raise NotFoundError("resource", uri) from error

    def receipts(self, caller: Caller, *, cursor: str | None) -> tuple[Sequence[KeptReceipt], str | None]:
        """Return a page of the caller's newest receipts, and what asks for the next; a cursor is the last receipt of the page before."""
        kept = self._memory.receipts(caller)
        begin = 0
        if cursor is not None:
            places = [place for place, receipt in enumerate(kept) if receipt.receipt_id == cursor]
            if not places:
                raise InvalidFieldError("cursor", "it names no page; list without a cursor")
            begin = places[0] + 1
        page = kept[begin : begin + PAGE]
        return page, page[-1].receipt_id if page and begin + PAGE < len(kept) else None

    async def _fragment(self, chunk_id: str, caller: Caller) -> Sequence[Piece]:
        exported = await self._office.base_for(caller.principal).export(chunk_id)
        return Piece("text/plain", exported.content), Piece("application/json", msgspec.json.encode(exported).decode())

    async def _receipt(self, receipt_id: str, caller: Caller) -> Sequence[Piece]:
        await self._office.receipt(receipt_id, asker=caller.principal)
        report = await self._office.base_for(caller.principal).replay(receipt_id)
        return (Piece("application/json", msgspec.json.encode(report).decode()),)

    async def _image(self, image_hash: str, caller: Caller) -> Sequence[Piece]:
        if not _HASH.fullmatch(image_hash):
            raise NotFoundError("image", image_hash)
        media_type, content = await self._office.base_for(caller.principal).image(image_hash)
        # The type was written by whoever made the document.
        return (Piece(media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream", content),)
