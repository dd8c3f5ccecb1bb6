"""A tool as a session has it called: checked before, judged after, sync and async alike."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.agents.protocol.session import ProtocolSession

_FAILED: Final = "Error: the tool failed"


def wrapped(
    session: ProtocolSession, name: str, function: Callable[..., Any]
) -> Callable[..., Any]:  # Any: whatever the tool takes and gives
    """Return a function that checks the call, makes it, and judges the result; what the tool raises goes on to the caller."""
    if not inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        def run(**arguments: Any) -> Any:  # noqa: ANN401 - whatever the tool takes and gives
            call = session.before(name, arguments)
            try:
                result = function(**arguments)
            except BaseException:
                session.answered(call, _FAILED)
                raise
            session.after(call, result)
            return result

        return run

    @functools.wraps(function)
    async def run_async(**arguments: Any) -> Any:  # noqa: ANN401 - whatever the tool takes and gives
        call = session.before(name, arguments)
        try:
            result = await function(**arguments)
        except BaseException:
            session.answered(call, _FAILED)
            raise
        session.after(call, result)
        return result

    return run_async
