"""Does what was asked, on a thread where it blocks, and in the writing process where it changes something."""

from __future__ import annotations

import asyncio
import inspect
import logging
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from starlette.concurrency import run_in_threadpool

from evidentia.base.enforcement_point import counting
from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.operations import MAX_BYTES
from evidentia.serving.operations.api_errors import INTERNAL, ApiError, refusal_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

    from starlette.types import Receive

    from evidentia.serving.operations.endpoint import Endpoint, OperationRequest, Reply
    from evidentia.serving.operations.server_context import ServerContext

SCREENED: Final = "evidentia-policies"
"""The header that says how much of what was asked for policies withheld, and how much of what is handed out they flagged."""

_log = logging.getLogger(__name__)
Result = TypeVar("Result")
CLIENT_LEFT: Final = 499


async def perform(
    context: ServerContext, endpoint: Endpoint, read: Callable[[], OperationRequest], *, left: asyncio.Future[None] | None = None
) -> Reply:
    """Return the answer of an endpoint; `read` reads what was sent, and may take its time over it.

    Once `left` is done nobody waits for the answer, and reading ends. A change that was begun goes on: it would be half done, or done
    without a word in the audit.

    Raises:
        ApiError: Whatever went wrong; nobody outside reads a stack trace.
    """
    performing = _performed(context, endpoint, read)
    watched = performing if context.watch is None else context.watch(endpoint, performing)
    return await (watched if left is None or endpoint.is_writing else unless_left(watched, left))


async def unless_left(work: Awaitable[Result], left: asyncio.Future[Any]) -> Result:  # Any: nobody reads it
    """Return what comes of work; once its client has left, it is cancelled, and what it waits for with it."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait((working, left), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
    finally:
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))
    raise ApiError(CLIENT_LEFT, "client_left", "the client has left, so the work for it was ended", hint="send the request again")


async def disconnected(receive: Receive) -> None:
    """Return when the client behind an HTTP request has left; its body has been read by then."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def perform_stream(context: ServerContext, endpoint: Endpoint, read: Callable[[], OperationRequest]) -> AsyncGenerator[object, None]:
    """Yield the parts of an answer; what goes wrong is a refusal, as with `perform`."""
    with _as_api_errors(endpoint):
        parts = cast("AsyncGenerator[object, None]", endpoint.answer(context, read()))
        async for part in parts:
            yield part


def internal(endpoint: Endpoint, error: Exception) -> ApiError:
    """Return the refusal for a fault of our own; the log says what and where, and never what was sent."""
    _log.error("endpoint failed: %s raised %s at %s", endpoint.name, type(error).__name__, _place_of(error))
    hint = "try again; if it stays, see the log of the plane"
    return ApiError(INTERNAL, "internal", "something went wrong inside the plane", hint=hint)


async def _performed(context: ServerContext, endpoint: Endpoint, read: Callable[[], OperationRequest]) -> Reply:
    with _as_api_errors(endpoint), counting() as screened:
        reply = await _answered(context, endpoint, read)
    told = ", ".join(f"{word}={count}" for word, count in sorted(screened.items()) if count)
    return reply._replace(headers={**reply.headers, SCREENED: told}) if told else reply


@contextmanager
def _as_api_errors(endpoint: Endpoint) -> Iterator[None]:
    """Have whatever goes wrong raised as a refusal."""
    try:
        yield
    except ApiError:
        raise
    except EvidentiaError as error:
        raise refusal_of(error) from error
    except Exception as error:
        raise internal(endpoint, error) from error


async def _answered(context: ServerContext, endpoint: Endpoint, read: Callable[[], OperationRequest]) -> Reply:
    if endpoint.is_writing and context.writer is not None:
        return await context.writer.forward(endpoint, await _read(endpoint, read))
    if _is_async(endpoint.answer):
        request = await _read(endpoint, read)
        return await _screened(context, endpoint, request, await cast("Awaitable[Reply]", endpoint.answer(context, request)))
    request, reply = await run_in_threadpool(_done, context, endpoint, read)
    return await _screened(context, endpoint, request, reply)


def _done(context: ServerContext, endpoint: Endpoint, read: Callable[[], OperationRequest]) -> tuple[OperationRequest, Reply]:
    """Do it on this thread. What it decided is with the operating system before it is acknowledged, so that no kill takes it away.

    Of callers that come together, the first that writes does so for all; the others find it done (group commit).
    """
    try:
        request = read()
        return request, cast("Reply", endpoint.answer(context, request))
    finally:
        if endpoint.is_writing:
            with suppress(EvidentiaError, OSError):  # it stays in line, and the log's `problem` says why
                context.parts.log.flush()


async def _screened(context: ServerContext, endpoint: Endpoint, request: OperationRequest, reply: Reply) -> Reply:
    """Return what policies let out of a reply: a base screens what its methods answer, so the rest is screened here."""
    if endpoint.base_method or not endpoint.hands_out_content:
        return reply
    point = context.served_base.enforcement_point(request.principal, request.token)
    return reply if point.is_free else reply._replace(message=await run_in_threadpool(point.screen, endpoint.name, reply.message, {}))


async def _read(endpoint: Endpoint, read: Callable[[], OperationRequest]) -> OperationRequest:
    """Return what was asked; where it may be large it is read on a thread, since others wait for this one."""
    return read() if endpoint.max_bytes <= MAX_BYTES else await run_in_threadpool(read)


@cache
def _is_async(answer: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(answer)


def _place_of(error: Exception) -> str:
    """Return the file and line that raised."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "" if last is None else f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}"
