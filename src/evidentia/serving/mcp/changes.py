"""Who is told that there is a new corpus version: every session and every listening request, each through a queue of its own."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import EvidentiaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evidentia.serving.operations.served_base import ServedBase

POLL_S: Final = 2.0
"""How often the base is asked for its newest version."""
MAX_SUBSCRIBED: Final = 1_000
"""Addresses of one session."""

_log = logging.getLogger(__name__)


class Changes:
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
