"""Any Python object that can be asked, as a source: what has a method `retrieve`, or can be called.

It may be written in either style and return a list, an iterator, an asynchronous iterator, something to await, or None for nothing.
A reply that is no collection, such as one text or one mapping, is passed on as one proposal; the intake decides what it is worth.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Final

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ports import BlockingRetriever, Retriever
from evidentia.contracts.retrieval import Candidate, SourceAsk

EXPECTED: Final = "give an object with a method `retrieve(query)`, or a callable that takes the query"

_CONTENT_NAMES: Final = ("page_content", "content", "get_content", "node")
_PAIR: Final = 2
_END: Final = object()


def adapted(thing: object, *, isolate: bool = False) -> Retriever | BlockingRetriever:
    """Return what asks an object: with await where it is asynchronous, else on a thread.

    Its first argument is the text of the question, or a `SourceAsk` where it is annotated so or called `ask`. `limit`, `principal`,
    `budget_ms`, `session`, `agent_name` and `as_of` are passed by name where it has parameters called so. With `isolate`, an
    asynchronous object runs on an event loop of its own, on a thread, so that nothing it does holds up the others.

    Raises:
        InvalidFieldError: It cannot be asked, or wants arguments that nobody can give it.
    """
    if callable(getattr(thing, "retrieve_blocking", None)) and not isinstance(thing, type):
        return thing  # type: ignore[return-value]  # just checked; what it yields is checked by the intake
    calling = calling_of(_question_of(thing))
    version = _version_of(thing)
    if not calling.is_async:
        return BlockingObject(calling, version=version)
    awaited = AsyncObject(calling, version=version)
    return IsolatedObject(awaited, version=version) if isolate else awaited


class Versioned:
    """Has `data_version` only where the object has it, since having it is a promise."""

    data_version: Callable[[], str]

    def __init__(self, version: Callable[[], str] | None) -> None:
        if version is not None:
            self.data_version = version


class AsyncObject(Versioned, Retriever):
    """Implements `Retriever` for an asynchronous object."""

    def __init__(self, calling: Calling, *, version: Callable[[], str] | None) -> None:
        super().__init__(version)
        self._calling = calling

    def retrieve(self, ask: SourceAsk) -> AsyncGenerator[object]:
        """Yield what the object proposes; one that is an asynchronous generator is read as it is."""
        if self._calling.is_generator:
            return self._calling(ask)  # type: ignore[return-value]  # that is what such a function returns
        return self._awaited(ask)

    async def _awaited(self, ask: SourceAsk) -> AsyncGenerator[object]:
        async with aclosing(_stream(self._calling(ask))) as proposals:
            async for proposed in proposals:
                yield proposed


class BlockingObject(Versioned, BlockingRetriever):
    """Implements `BlockingRetriever` for an object that is not asynchronous, or does not say so."""

    def __init__(self, calling: Calling, *, version: Callable[[], str] | None) -> None:
        super().__init__(version)
        self._calling = calling

    def retrieve_blocking(self, ask: SourceAsk) -> Iterator[object]:
        """Yield what the object proposes; a reply that turns out to be asynchronous is awaited on a loop of its own."""
        reply = self._calling(ask)
        if inspect.isawaitable(reply) or isinstance(reply, AsyncIterable):
            yield from _on_own_loop(_stream(reply))
        else:
            yield from proposals_of(reply)


class IsolatedObject(Versioned, BlockingRetriever):
    """Implements `BlockingRetriever` for an asynchronous object, on an event loop of its own."""

    def __init__(self, inner: AsyncObject, *, version: Callable[[], str] | None) -> None:
        super().__init__(version)
        self._inner = inner

    def retrieve_blocking(self, ask: SourceAsk) -> Iterator[object]:
        """Yield what the object proposes."""
        yield from _on_own_loop(self._inner.retrieve(ask))


def proposals_of(reply: object) -> Iterator[object]:
    """Yield what is in a reply; one that is no collection is one proposal. A set has no order and so is no collection."""
    if reply is None:
        return
    if _is_collection(reply):
        yield from reply  # type: ignore[misc]  # just checked
    else:
        yield reply


def _is_collection(reply: object) -> bool:
    if isinstance(reply, (str, bytes, bytearray, Mapping, Candidate, set, frozenset)) or not isinstance(reply, Iterable):
        return False
    if isinstance(reply, tuple) and len(reply) == _PAIR:
        return not isinstance(reply[1], (int, float))
    # Documents of frameworks can be iterated, over their fields.
    return isinstance(reply, (list, tuple, Iterator)) or not any(hasattr(reply, name) for name in _CONTENT_NAMES)


async def _stream(reply: object) -> AsyncGenerator[object]:
    if inspect.isawaitable(reply):
        reply = await reply
    if isinstance(reply, AsyncIterable):
        async with aclosing(_closing(aiter(reply))) as proposals:
            async for proposed in proposals:
                yield proposed
        return
    for proposed in proposals_of(reply):
        yield proposed
        if isinstance(reply, Iterator):
            await asyncio.sleep(0)  # whoever makes them one by one may take long over each


async def _closing(stream: AsyncIterator[object]) -> AsyncGenerator[object]:
    """Yield from an asynchronous iterator and close it, if it can be closed, however the reading ends."""
    try:
        async for proposed in stream:
            yield proposed
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


def _on_own_loop(proposals: AsyncGenerator[object]) -> Iterator[object]:
    with asyncio.Runner() as runner:
        try:
            while (proposed := runner.run(_next(proposals))) is not _END:
                yield proposed
        finally:
            runner.run(proposals.aclose())


async def _next(proposals: AsyncIterator[object]) -> object:
    return await anext(proposals, _END)


def _question_of(thing: object) -> Callable[..., object]:
    if isinstance(thing, type):
        raise InvalidFieldError("retriever", f"'{thing.__name__}' is a class; {EXPECTED}, not its class")
    retrieve = getattr(thing, "retrieve", None)
    if callable(retrieve):
        return retrieve  # type: ignore[no-any-return]  # callable, and whatever it returns is looked at
    if callable(thing):
        return thing
    raise InvalidFieldError("retriever", f"'{type(thing).__name__}' cannot be asked; {EXPECTED}")


def _version_of(thing: object) -> Callable[[], str] | None:
    version = getattr(thing, "data_version", None)
    if version is None:
        return None
    if not callable(version) or inspect.iscoroutinefunction(version):
        raise InvalidFieldError("retriever", "its 'data_version' is no plain method; write `def data_version(self) -> str`")
    return version  # type: ignore[no-any-return]  # a word, by its contract; whoever compares it can compare anything


# --- object calls ---
# How an object wants to be asked: read from its signature once, then repeated for every question.

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
