"""Pages that keep themselves up to date: a bounded number of open streams, each ended with its session or with the server."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar

from starlette.responses import Response, StreamingResponse

from evidentia.foundation.rate_limit import Shares
from evidentia.serving.dashboard import http_headers
from evidentia.serving.dashboard.http_headers import HEADERS
from evidentia.serving.operations.api_errors import TOO_MANY, ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from starlette.requests import Request

    from evidentia.contracts.ports import Clock
    from evidentia.serving.dashboard.dashboard_app import DashboardApp
    from evidentia.serving.identity.admission import Identity

EVERY_S: Final = 1.0
MAX_STREAMS: Final = 100
MAX_OF_ONE: Final = 6
"""Streams of one token: browsers open no more than six connections to a server anyway."""
QUIET_BEATS: Final = 15
"""After so many looks at which nothing was new, a comment is sent, so that a reader who is gone is noticed."""
REST_TIMES: Final = 10
"""So many times as long as a part took to read is it left alone."""
Read = TypeVar("Read")
SIGNED_OUT: Final = b"event: signed-out\ndata: \n\n"
_QUIET: Final = b": nothing new\n\n"


class LiveStreams:
    """The streams that are open in one process."""

    def __init__(self, *, most: int = MAX_STREAMS, max_of_one: int = MAX_OF_ONE, every_s: float = EVERY_S) -> None:
        self.every_s = every_s
        self._shares = Shares[str](most, of_one=max_of_one)
        self._open: list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._is_closed = False

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._open)

    def close(self) -> None:
        """End every stream and open none any more; from any thread, before the server waits for what is under way."""
        self._is_closed = True
        for _, loop, ended in list(self._open):
            with suppress(RuntimeError):  # a loop that has stopped has no streams left
                loop.call_soon_threadsafe(ended.set)

    @contextmanager
    def entered(self, token_id: str) -> Iterator[asyncio.Event]:
        """Hold a place while a stream is open; what it gives is set when the stream has to end, at once where there is no place."""
        ended = asyncio.Event()
        if not self._shares.take(token_id):
            ended.set()
            yield ended
            return
        place = (token_id, asyncio.get_running_loop(), ended)
        self._open.append(place)
        if self._is_closed:
            ended.set()
        try:
            yield ended
        finally:
            self._open.remove(place)
            self._shares.give_back(token_id)

    def has_room(self, token_id: str) -> bool:
        """Tell whether the holder of a token may have one more."""
        return not self._is_closed and self._shares.taken < self._shares.most and self._shares.held(token_id) < self._shares.of_one

    def require_room(self, token_id: str) -> None:
        """Refuse one stream too many."""
        if not self.has_room(token_id):
            message = "too many pages are kept up to date at once"
            hint = "close other tabs; the page shows what was true when it was loaded"
            raise ApiError(TOO_MANY, "too_many_streams", message, hint=hint, headers={"retry-after": "10"})


class Pace:
    """Says when something may be read again: after a moment, and so much later than it took that it costs a small share of the time."""

    def __init__(self, clock: Clock, *, at_least_ns: int) -> None:
        self._elapsed_ns = clock.elapsed_ns
        self._at_least_ns = at_least_ns
        self._due_ns = self._elapsed_ns() + at_least_ns

    def is_due(self) -> bool:
        """Tell whether it may be read again."""
        return self._elapsed_ns() >= self._due_ns

    async def timed(self, read: Callable[[], Awaitable[Read]]) -> Read:
        """Read it, and take note of how long that takes."""
        began_ns = self._elapsed_ns()
        try:
            return await read()
        finally:
            ended_ns = self._elapsed_ns()
            self._due_ns = max(began_ns + self._at_least_ns, ended_ns + REST_TIMES * (ended_ns - began_ns))


def stream(app: DashboardApp, request: Request, shown: Callable[[Identity], Awaitable[str]]) -> Response:
    """Return the stream that sends a part of a page again whenever it has changed."""
    app.live.require_room(app.signed_in(request).identity.token.token_id)
    headers = {**HEADERS, "x-accel-buffering": "no"}
    return StreamingResponse(_events(app, http_headers.key_in(request), shown), headers=headers, media_type="text/event-stream")


def event_of(part: str) -> bytes:
    """Return a part of a page as one event; its lines become lines of data."""
    return "".join(f"data: {line}\n" for line in part.splitlines()).encode() + b"\n"


async def _events(app: DashboardApp, key: str, shown: Callable[[Identity], Awaitable[str]]) -> AsyncIterator[bytes]:
    session = await app.sessions.find(key, is_use=False)
    if session is None:
        yield SIGNED_OUT
        return
    with app.live.entered(session.identity.token.token_id) as ended:
        last, quiet = "", 0
        while not ended.is_set():
            found = await app.sessions.find(key, is_use=False)
            if found is None:
                yield SIGNED_OUT
                return
            try:
                part = await shown(found.identity)
            except ApiError:  # what cannot be read now may be readable in a moment
                part = last
            if part != last:
                yield event_of(part)
                last, quiet = part, 0
            elif quiet >= QUIET_BEATS:
                yield _QUIET
                quiet = 0
            quiet += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), app.live.every_s)
