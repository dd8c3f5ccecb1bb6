"""Asks a base that is given open or as a path, from code that is async or is not. It knows no framework."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from evidentia.base.answers import EvidenceResponse
from evidentia.base.async_base import AsyncBase
from evidentia.base.sync_base import Base, connect
from evidentia.contracts.access import Principal
from evidentia.contracts.errors import InvalidFieldError
from evidentia.foundation.loop_thread import LoopThread

GivenBase = Base | AsyncBase | str | Path
"""A base that is open and stays so, or the directory of one."""
GivenPrincipal = Principal | Mapping[str, object]
"""Whoever asks, also in the form in which a file keeps it."""
OnAnswer = Callable[[EvidenceResponse], None]
"""What is told of every answer, also of an empty one, whose account has no fragment to stand on."""

_log = logging.getLogger(__name__)


class Asker:
    """Asks one base. A path is opened when it is first asked, as its owner, and given back by `close`; then it may be asked again."""

    def __init__(self, given: GivenBase) -> None:
        if not isinstance(given, Base | AsyncBase | str | Path):
            raise InvalidFieldError("base", f"expected a base or the path of one, got {type(given).__name__}")
        self.given = given
        self._lock = threading.Lock()
        self._opened: Base | None = None
        self._loop: LoopThread | None = None

    def open(self) -> None:
        """Open a base that was given as a path, unless it is open."""
        if not isinstance(self.given, AsyncBase):
            self._base(self.given)

    def ask(self, query: str, fields: Mapping[str, object]) -> EvidenceResponse:
        """Answer a question; `fields` are those of a request."""
        if isinstance(self.given, AsyncBase):
            return self._running_loop().run(self.ask_async(query, fields))
        return _warned(self._base(self.given).retrieve(query, **fields))

    async def ask_async(self, query: str, fields: Mapping[str, object]) -> EvidenceResponse:
        """Answer a question, and leave the event loop free meanwhile."""
        if isinstance(self.given, AsyncBase):
            return _warned(await self.given.retrieve(query, **fields))
        return await asyncio.to_thread(self.ask, query, fields)

    def close(self) -> None:
        """Give back what was opened here; a base that was given open stays open."""
        with self._lock:
            opened, loop = self._opened, self._loop
            self._opened = self._loop = None
        if opened is not None:
            opened.close()
        if loop is not None:
            loop.close()

    def _base(self, given: Base | str | Path) -> Base:
        if isinstance(given, Base):
            return given
        with self._lock:
            if self._opened is None:
                self._opened = connect(given)
            return self._opened

    def _running_loop(self) -> LoopThread:
        with self._lock:
            if self._loop is None:
                self._loop = LoopThread("evidentia")
            return self._loop


def _warned(response: EvidenceResponse) -> EvidenceResponse:
    """Return an answer; that a search did not finish in time is logged, since a framework takes an empty list for an empty base."""
    if response.unfinished:
        _log.warning("the search did not finish in time: %s", ", ".join(response.unfinished))
    return response
