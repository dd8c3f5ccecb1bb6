"""What callers share in one process: places for requests, their bytes, streams and sessions. One token holds at most its share of each.

Whoever asks for more than that is refused with 429 and `retry-after`, and the others go on. To be worked on is waited for instead: while
others ask too, a token has a few requests worked on at once, and its next ones wait for its own; alone it has all there is.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import asynccontextmanager, contextmanager
from math import inf
from typing import TYPE_CHECKING, Final

from evidentia.contracts.operations import OPERATIONS
from evidentia.foundation.rate_limit import Shares
from evidentia.serving.operations.api_errors import TOO_MANY, ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

SHARE_PERCENT: Final = 25
MAX_REQUESTS: Final = 400
"""Requests that were let in and are not answered yet, at all doors."""
MAX_WORKED_ON: Final = 40
"""Requests of one token that are worked on at once while nobody else asks: as many as there are worker threads."""
MAX_WORKED_ON_BESIDE: Final = 16
"""Of which a token has its share while others ask too: Python works on one at a time, so others wait as many times longer."""
BESIDE_S: Final = 1.0
"""For so long after its last request a token counts as one that asks."""
HOLD_BACK_S: Final = 0.1
"""How long a refusal for asking too much is held back: a client that does not wait is slowed down, and costs little."""
MAX_BODIES_BYTES: Final = 256 << 20
"""Of the bodies of those requests; a token has room for the largest body at least."""
MAX_STREAMS: Final = 400
"""Answers that last: streams of MCP, and evidence that is sent part by part."""
MAX_MCP_SESSIONS: Final = 1_000


class SharedPool:
    """Places of one kind. Thread safe."""

    def __init__(self, shares: Shares[str], *, code: str, what: str, retry_s: int = 1) -> None:
        self.shares = shares
        self._code = code
        self._what = what
        self._retry_s = retry_s

    def take(self, holder: str, amount: int = 1) -> None:
        """Take places; whoever has its share, or finds none left, is refused with 429."""
        if not self.shares.take(holder, amount):
            raise self.refusal()

    def refusal(self) -> ApiError:
        """Return what somebody is told who asks for too much."""
        message = f"one token has at most {self.shares.of_one} of {self.shares.most} {self._what} at once"
        hint = "wait as long as retry-after says, and ask for less at once; server.share_percent sets the share"
        return ApiError(TOO_MANY, self._code, message, hint=hint, headers={"retry-after": str(self._retry_s)})

    @contextmanager
    def holding(self, holder: str, amount: int = 0) -> Iterator[Holding]:
        """Hold places meanwhile; more can be taken as they are needed."""
        held = Holding(self, holder)
        try:
            held.grow(amount)
            yield held
        finally:
            if held.amount:
                self.shares.give_back(holder, held.amount)


class Holding:
    """What one request holds of a pool."""

    __slots__ = ("_holder", "_pool", "amount")

    def __init__(self, pool: SharedPool, holder: str) -> None:
        self._pool = pool
        self._holder = holder
        self.amount = 0

    def grow(self, amount: int) -> None:
        """Take more."""
        if amount:
            self._pool.take(self._holder, amount)
            self.amount += amount


class Pools:
    """The pools of one process. `turn` belongs to its event loop, the rest is thread safe."""

    def __init__(self, *, share_percent: int = SHARE_PERCENT) -> None:
        self.share_percent = share_percent
        self.requests = self.pool(MAX_REQUESTS, code="too_many_requests", what="requests")
        self.streams = self.pool(MAX_STREAMS, code="too_many_streams", what="streams")
        self.mcp_sessions = self.pool(MAX_MCP_SESSIONS, code="too_many_sessions", what="sessions of MCP", retry_s=10)
        largest = max(operation.max_bytes for operation in OPERATIONS)
        of_one = max(largest, MAX_BODIES_BYTES * share_percent // 100)
        self.bytes = SharedPool(Shares(MAX_BODIES_BYTES, of_one=of_one), code="too_many_bytes", what="bytes of requests")
        self.turns = Turns(MAX_WORKED_ON, of_one=max(1, MAX_WORKED_ON_BESIDE * share_percent // 100))

    def pool(self, most: int, *, code: str, what: str, retry_s: int = 1) -> SharedPool:
        """Return another pool with the same share."""
        return SharedPool(Shares.by_percent(most, self.share_percent), code=code, what=what, retry_s=retry_s)

    @asynccontextmanager
    async def entered(self, holder: str) -> AsyncIterator[Holding]:
        """Hold a place for a request, and once it is its turn go on with what counts the bytes of its body."""
        with self.requests.holding(holder, 1), self.bytes.holding(holder) as body:
            async with self.turns.held(holder):
                yield body


class Turns:
    """Who is worked on. Belongs to its event loop; whoever waits gets its turn in the order of coming, within its own token's share."""

    def __init__(self, most: int, *, of_one: int) -> None:
        self._most = most
        self._of_one = of_one
        self._running = Counter[str]()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._last: tuple[str, float] = ("", -inf)
        """Who asked last, and when one asked last that is somebody else."""
        self._other_s = -inf

    @asynccontextmanager
    async def held(self, holder: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it meanwhile."""
        self._note(holder)
        if holder in self._waiting or not self._may(holder):
            await self._wait(holder)
        else:
            self._running[holder] += 1
        try:
            yield
        finally:
            self._end(holder)

    async def _wait(self, holder: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(holder, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(holder)
            raise

    def _end(self, holder: str) -> None:
        self._running[holder] -= 1
        if not self._running[holder]:
            del self._running[holder]
        for each in tuple(self._waiting):
            line = self._waiting[each]
            while line and (line[0].done() or self._may(each)):
                turn = line.popleft()
                if not turn.done():
                    self._running[each] += 1
                    turn.set_result(None)
            if not line:
                del self._waiting[each]

    def _note(self, holder: str) -> None:
        now = asyncio.get_running_loop().time()
        if holder != self._last[0]:
            self._other_s = self._last[1]
        self._last = (holder, now)

    def _may(self, holder: str) -> bool:
        running = self._running[holder]
        if running < self._of_one:
            return True
        others_s = self._other_s if holder == self._last[0] else self._last[1]
        has_it_alone = len(self._running) <= 1 and asyncio.get_running_loop().time() - others_s > BESIDE_S
        return has_it_alone and running < self._most
