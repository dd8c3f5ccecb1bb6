"""How an object wants to be asked: read from its signature once, then repeated for every question."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.retrieval import SourceAsk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KEYWORDS: Final = ("agent_name", "as_of", "budget_ms", "limit", "principal", "session")
"""The fields of a `SourceAsk` that are passed by name where a parameter is called so."""

_ASYNC_REPLIES: Final = frozenset({"AsyncIterator", "AsyncIterable", "AsyncGenerator", "Awaitable", "Coroutine"})
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Calling:
    """One callable and the arguments that it takes."""

    def __init__(self, question: Callable[..., object], *, takes_ask: bool, names: tuple[str, ...], is_async: bool) -> None:
        self._question = question
        self.is_generator = inspect.isasyncgenfunction(question)
        """Whether calling it runs none of its code yet, and gives something that can be read and closed."""
        self._takes_ask = takes_ask
        self._names = names
        self.is_async = is_async

    def __call__(self, ask: SourceAsk) -> object:
        """Return whatever it replies."""
        first = ask if self._takes_ask else ask.query.text
        return self._question(first, **{name: getattr(ask, name) for name in self._names})


def calling_of(question: Callable[..., object]) -> Calling:
    """Return how a callable is asked, or raise InvalidFieldError when it wants what nobody can give it."""
    try:
        signature = inspect.signature(question)
    except (TypeError, ValueError):  # some callables that are not written in Python do not say
        return Calling(question, takes_ask=False, names=(), is_async=_is_async(question, replies=""))
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind not in _POSITIONAL:
        raise InvalidFieldError("retriever", "it takes no question; its first parameter has to take the text of the query")
    first, others = parameters[0], parameters[1:]
    names = tuple(each.name for each in others if each.kind in _NAMED and each.name in KEYWORDS)
    _refuse_more(others)
    replies = _kind_of(signature.return_annotation)
    return Calling(question, takes_ask=_takes_ask(first), names=names, is_async=_is_async(question, replies=replies))


def _refuse_more(others: Iterable[inspect.Parameter]) -> None:
    for each in others:
        is_needed = each.default is inspect.Parameter.empty and each.kind in (*_NAMED, inspect.Parameter.POSITIONAL_ONLY)
        if is_needed and (each.name not in KEYWORDS or each.kind not in _NAMED):
            known = ", ".join(f"'{name}'" for name in KEYWORDS)
            raise InvalidFieldError(
                "retriever", f"nothing is known to pass as its parameter '{each.name}'; after the query, name only {known}"
            )


def _takes_ask(first: inspect.Parameter) -> bool:
    kind = _kind_of(first.annotation)
    return kind == SourceAsk.__name__ or (first.name == "ask" and kind != str.__name__)


def _kind_of(annotation: object) -> str:
    """Return the bare name of an annotation, written out or not; empty without one."""
    if annotation is inspect.Parameter.empty:
        return ""
    written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return str(written).strip("\"'").partition("[")[0].rpartition(".")[2]


def _is_async(question: Callable[..., object], *, replies: str) -> bool:
    """Tell whether a callable is asynchronous, by how it is written or what it says it returns."""
    for each in (question, getattr(question, "__call__", None)):  # noqa: B004  # an object with an asynchronous __call__ is asked for that
        if inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each):
            return True
    return replies in _ASYNC_REPLIES
