"""Resources: fragments and receipts by their ids, images by their hash. What may not be seen is answered like what is not there."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

import msgspec

from evidentia.contracts.errors import EvidentiaError, InputError, InvalidFieldError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from evidentia.serving.identity.callers import Caller
    from evidentia.serving.mcp.conversations import ConversationMemory, KeptReceipt
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


class ResourcePart(NamedTuple):
    """One part of a resource: text, or bytes."""

    media_type: str
    content: str | bytes


def uri_of(kind: str, name: str) -> str:
    """Return the address of a resource; every character that could mean something in an address is escaped."""
    return f"{SCHEME}://{kind}/{quote(name, safe='')}"


class ResourceReader:
    """Reads resources for whoever is connected."""

    def __init__(self, served_base: ServedBase, memory: ConversationMemory) -> None:
        self._office = served_base
        self._memory = memory
        self._kinds: dict[str, Callable[[str, Caller], Awaitable[Sequence[ResourcePart]]]] = {
            FRAGMENT: self._fragment,
            RECEIPT: self._receipt,
            IMAGE: self._image,
        }

    async def read(self, uri: str, caller: Caller) -> Sequence[ResourcePart]:
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

    async def _fragment(self, chunk_id: str, caller: Caller) -> Sequence[ResourcePart]:
        exported = await self._office.base_for(caller.principal, caller.token).export(chunk_id)
        return ResourcePart("text/plain", exported.content), ResourcePart("application/json", msgspec.json.encode(exported).decode())

    async def _receipt(self, receipt_id: str, caller: Caller) -> Sequence[ResourcePart]:
        await self._office.receipt(receipt_id, asker=caller.principal)
        report = await self._office.base_for(caller.principal, caller.token).replay(receipt_id)
        return (ResourcePart("application/json", msgspec.json.encode(report).decode()),)

    async def _image(self, image_hash: str, caller: Caller) -> Sequence[ResourcePart]:
        if not _HASH.fullmatch(image_hash):
            raise NotFoundError("image", image_hash)
        media_type, content = await self._office.base_for(caller.principal, caller.token).image(image_hash)
        # The type was written by whoever made the document.
        return (ResourcePart(media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream", content),)


# Who is told that there is a new corpus version: every session and every listening request, each through a queue of its own.

POLL_S: Final = 2.0
"""How often the base is asked for its newest version."""
MAX_SUBSCRIBED: Final = 1_000
"""Addresses of one session."""

_log = logging.getLogger(__name__)


class ResourceChanges:
    """Watches the base, and wakes whoever waits. Not thread safe: it belongs to one event loop."""

    def __init__(self, served_base: ServedBase, *, poll_s: float = POLL_S) -> None:
        self._office = served_base
        self._poll_s = poll_s
        self._waiting: dict[object, asyncio.Event] = {}
        self._subscribed: dict[str, dict[str, None]] = {}
        self._listened: Counter[str] = Counter()

    async def watch(self) -> None:
        """Look for new versions until cancelled; a base that cannot be read for a while is looked at again."""
        known: str | None = None
        while True:
            try:
                newest = await self._office.version()
            except (EvidentiaError, OSError) as error:
                _log.warning("the newest version cannot be read: %s", type(error).__name__)
            else:
                if known is not None and newest != known:
                    self.tell()
                known = newest
            await asyncio.sleep(self._poll_s)

    def tell(self) -> None:
        """Wake everybody who waits."""
        for event in self._waiting.values():
            event.set()

    @contextmanager
    def waiting(self) -> Iterator[asyncio.Event]:
        """Give an event that is set with every change; whoever waits clears it."""
        token, event = object(), asyncio.Event()
        self._waiting[token] = event
        try:
            yield event
        finally:
            del self._waiting[token]

    def subscribe(self, session: str, uri: str) -> bool:
        """Remember that a session wants to hear of a resource; false when it already hears of as many as it may."""
        uris = self._subscribed.setdefault(session, {})
        if len(uris) >= MAX_SUBSCRIBED and uri not in uris:
            return False
        uris[uri] = None
        return True

    def unsubscribe(self, session: str, uri: str) -> None:
        """Forget that a session wanted to hear of a resource."""
        self._subscribed.get(session, {}).pop(uri, None)

    def subscribed(self, session: str) -> tuple[str, ...]:
        """Return what a session wants to hear of, in the order in which it said so."""
        return tuple(self._subscribed.get(session, {}))

    def end(self, session: str) -> None:
        """Forget a session."""
        self._subscribed.pop(session, None)

    @contextmanager
    def listening(self, uris: Iterable[str]) -> Iterator[None]:
        """Count addresses that a listening request wants to hear of, while it lasts."""
        counted = Counter(uris)
        self._listened.update(counted)
        try:
            yield
        finally:
            self._listened -= counted

    def listened(self) -> tuple[str, ...]:
        """Return every address that some listening request wants to hear of, sorted."""
        return tuple(sorted(self._listened))
