"""Does what was asked, on a thread where it blocks, and in the writing process where it changes something."""

from __future__ import annotations

import inspect
import logging
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, cast

from starlette.concurrency import run_in_threadpool

from evidentia.contracts.errors import EvidentiaError
from evidentia.serving.operations.asking import MOST_BYTES
from evidentia.serving.operations.refusals import INTERNAL, Refusal, refusal_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

    from evidentia.serving.operations.asking import Asked, Endpoint, Reply
    from evidentia.serving.operations.plane import Plane

_log = logging.getLogger(__name__)


async def perform(plane: Plane, endpoint: Endpoint, ask: Callable[[], Asked]) -> Reply:
    """Return the answer of an endpoint; `ask` reads what was sent, and may take its time over it.

    Raises:
        Refusal: Whatever went wrong; nobody outside reads a stack trace.
    """
    performing = _performed(plane, endpoint, ask)
    return await (performing if plane.watch is None else plane.watch(endpoint, performing))


async def perform_stream(plane: Plane, endpoint: Endpoint, ask: Callable[[], Asked]) -> AsyncGenerator[object, None]:
    """Yield the parts of an answer; what goes wrong is a refusal, as with `perform`."""
    with _as_refusals(endpoint):
        parts = cast("AsyncGenerator[object, None]", endpoint.answer(plane, ask()))
        async for part in parts:
            yield part


def internal(endpoint: Endpoint, error: Exception) -> Refusal:
    """Return the refusal for a fault of our own; the log says what and where, and never what was sent."""
    _log.error("endpoint failed: %s raised %s at %s", endpoint.operation, type(error).__name__, _place_of(error))
    hint = "try again; if it stays, see the log of the plane"
    return Refusal(INTERNAL, "internal", "something went wrong inside the plane", hint=hint)


async def _performed(plane: Plane, endpoint: Endpoint, ask: Callable[[], Asked]) -> Reply:
    with _as_refusals(endpoint):
        return await _answered(plane, endpoint, ask)


@contextmanager
def _as_refusals(endpoint: Endpoint) -> Iterator[None]:
    """Have whatever goes wrong raised as a refusal."""
    try:
        yield
    except Refusal:
        raise
    except EvidentiaError as error:
        raise refusal_of(error) from error
    except Exception as error:
        raise internal(endpoint, error) from error


async def _answered(plane: Plane, endpoint: Endpoint, ask: Callable[[], Asked]) -> Reply:
    if endpoint.is_writing and plane.writer is not None:
        return await plane.writer.forward(endpoint, await _read(endpoint, ask))
    if _is_async(endpoint.answer):
        return await cast("Awaitable[Reply]", endpoint.answer(plane, await _read(endpoint, ask)))
    return cast("Reply", await run_in_threadpool(lambda: endpoint.answer(plane, ask())))


async def _read(endpoint: Endpoint, ask: Callable[[], Asked]) -> Asked:
    """Return what was asked; where it may be large it is read on a thread, since others wait for this one."""
    return ask() if endpoint.most_bytes <= MOST_BYTES else await run_in_threadpool(ask)


@cache
def _is_async(answer: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(answer)


def _place_of(error: Exception) -> str:
    """Return the file and line that raised."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "" if last is None else f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}"
