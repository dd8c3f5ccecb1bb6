"""Whether this process lives, and whether it is ready: two questions with two answers, open to everybody, that tell nothing else."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from starlette.routing import Route

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.operations.api_errors import UNAVAILABLE, ApiError
from evidentia.serving.rest.http_exchange import encode, json_response, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from evidentia.serving.operations.server_context import ServerContext


LIVE: Final = "/live"
READY: Final = "/ready"
PATIENCE_S: Final = 5
"""How long the base and the writing process may take to answer before this one is not ready."""
WARMING_S: Final = 4
"""How long a question about readiness waits for what is being loaded."""
_log = logging.getLogger(__name__)


class WriterProbe(Protocol):
    """Tells whether the writing process answers."""

    async def reach(self) -> None:
        """Return once it has answered, or raise ApiError."""
        ...


def health_routes(context: ServerContext, readiness: Readiness, *, writer: WriterProbe | None = None) -> list[Route]:
    """Return the routes of both questions."""

    async def live(_: Request) -> Response:
        return json_response(200, encode({"status": "live"}), {})

    async def ready(_: Request) -> Response:
        try:
            await _check(context, readiness, writer)
        except ApiError as refusal:
            return refused(refusal)
        return json_response(200, encode({"status": "ready"}), {})

    return [Route(LIVE, live, methods=["GET"]), Route(READY, ready, methods=["GET"])]


async def _check(context: ServerContext, readiness: Readiness, writer: WriterProbe | None) -> None:
    """Refuse unless what requests need is loaded, the base can be read, its governance too, and the writing process answers."""
    if readiness.is_stopping:
        raise not_ready("stopping", "this process is stopping")
    try:
        if not await readiness.is_warm(context.served_base.warm):
            raise not_ready("warming", "this process still loads its index and its models")
        async with asyncio.timeout(PATIENCE_S):
            await context.served_base.version()
            await asyncio.to_thread(context.parts.policies.live, tenant="")
            if writer is not None:
                await writer.reach()
    except TimeoutError:
        raise not_ready("slow", f"the base did not answer within {PATIENCE_S} s") from None
    except (EvidentiaError, OSError) as error:
        _log.error("not ready: %s", type(error).__name__)
        raise not_ready("base_unreadable", "the base cannot be read; the log of the server names the error") from error


def not_ready(code: str, message: str) -> ApiError:
    """Return the refusal of a process that should be given no requests now."""
    return ApiError(UNAVAILABLE, code, message, hint="ask another process, or this one again later", headers={"retry-after": "1"})


class Readiness:
    """Whether this process has loaded what it needs, and whether it is stopping. Belongs to its event loop."""

    def __init__(self) -> None:
        self._before_waiting: list[Callable[[], None]] = []
        self._warming: asyncio.Task[None] | None = None
        self.is_stopping = False
        """From then on it is not ready for more, while it still answers what comes."""

    def begin_warming(self, warm: Callable[[], None]) -> asyncio.Task[None]:
        """Have what requests need loaded on a thread; what failed is tried again when it is asked for again."""
        warming = self._warming
        if warming is None or (warming.done() and (warming.cancelled() or warming.exception() is not None)):
            warming = self._warming = asyncio.create_task(asyncio.to_thread(warm), name="warming")
        return warming

    async def is_warm(self, warm: Callable[[], None]) -> bool:
        """Tell whether it is loaded, after waiting for it a while; raises what kept it from that."""
        warming = self.begin_warming(warm)
        done, _ = await asyncio.wait((warming,), timeout=WARMING_S)
        if done:
            warming.result()
        return bool(done)

    async def end_warming(self) -> None:
        """Return once nothing is loaded any more; a thread cannot be stopped."""
        if self._warming is not None:
            await asyncio.wait((self._warming,))

    def before_waiting(self, act: Callable[[], None]) -> None:
        """Have something done before requests under way are waited for, such as ending streams that never end by themselves."""
        self._before_waiting.append(act)

    def stop(self) -> None:
        """Say that no more is wanted; said twice it counts once."""
        self.is_stopping = True

    def end_streams(self) -> None:
        """Do what has to be done before requests under way are waited for."""
        self.is_stopping = True
        acts, self._before_waiting = self._before_waiting, []
        for act in acts:
            act()
