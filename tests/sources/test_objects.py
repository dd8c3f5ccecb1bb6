"""Any object as a source: both styles, every kind of reply, arguments by name, and plain words where it cannot work."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec
import pytest
from intake_samples import ASK, taken_from

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import SessionId
from evidentia.contracts.ports import SupportsDataVersion
from evidentia.contracts.retrieval import Candidate, SourceAsk
from evidentia.sources.objects import AsyncObject, BlockingObject, IsolatedObject, adapted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

PAIR = [Candidate(content="first"), Candidate(content="second")]


def replies(thing: object, *, isolate: bool = False) -> list[object]:
    """Ask an adapted object the way the fan-out does, whichever kind it has become."""
    retriever = adapted(thing, isolate=isolate)
    if isinstance(retriever, AsyncObject):
        return asyncio.run(_drained(retriever))
    assert isinstance(retriever, BlockingObject | IsolatedObject)
    return list(retriever.retrieve_blocking(ASK))


async def _drained(retriever: AsyncObject) -> list[object]:
    return [each async for each in retriever.retrieve(ASK)]


class _Plain:
    def retrieve(self, query: str) -> list[Candidate]:
        assert ASK.query.text == query
        return PAIR


class _Generating:
    def retrieve(self, query: str) -> Iterator[Candidate]:
        assert ASK.query.text == query
        yield from PAIR


class _Awaiting:
    async def retrieve(self, query: str) -> list[Candidate]:
        assert ASK.query.text == query
        await asyncio.sleep(0)
        return PAIR


class _AsyncGenerating:
    async def retrieve(self, query: str) -> AsyncIterator[Candidate]:
        assert ASK.query.text == query
        for each in PAIR:
            await asyncio.sleep(0)
            yield each


class _ReturningStream:
    def retrieve(self, query: str) -> AsyncIterator[Candidate]:
        return _AsyncGenerating().retrieve(query)


class _ReturningStreamUnsaid:
    def retrieve(self, query: str):  # type: ignore[no-untyped-def]  # noqa: ANN202  # many objects say nothing of what they return
        return _AsyncGenerating().retrieve(query)


class _AwaitableOfStream:
    async def retrieve(self, query: str) -> AsyncIterator[Candidate]:
        return _AsyncGenerating().retrieve(query)


class _AsyncCallable:
    async def __call__(self, query: str) -> list[Candidate]:
        return await _Awaiting().retrieve(query)


class _SaysAwaitable:
    def retrieve(self, query: str) -> Awaitable[list[Candidate]]:
        return _Awaiting().retrieve(query)


SYNCHRONOUS = [_Plain(), _Generating(), _ReturningStreamUnsaid(), lambda query: PAIR if query else None, _Plain().retrieve]
ASYNCHRONOUS = [_Awaiting(), _AsyncGenerating(), _ReturningStream(), _AwaitableOfStream(), _AsyncCallable(), _SaysAwaitable()]


@pytest.mark.parametrize("thing", SYNCHRONOUS)
def test_what_is_not_asynchronous_is_asked_on_a_thread(thing: object) -> None:
    assert isinstance(adapted(thing), BlockingObject)
    assert PAIR == replies(thing)


@pytest.mark.parametrize("thing", ASYNCHRONOUS)
def test_what_is_asynchronous_is_awaited(thing: object) -> None:
    assert isinstance(adapted(thing), AsyncObject)
    assert PAIR == replies(thing)


@pytest.mark.parametrize("thing", ASYNCHRONOUS)
def test_isolated_it_runs_on_a_loop_of_its_own(thing: object) -> None:
    assert isinstance(adapted(thing, isolate=True), IsolatedObject)
    assert PAIR == replies(thing, isolate=True)


def test_an_isolated_object_does_not_hold_up_the_loop_of_the_others() -> None:
    go_on = threading.Event()

    class Blocking:
        async def retrieve(self, query: str) -> list[str]:
            assert go_on.wait(10)
            return [query]

    async def scene() -> list[object]:
        retriever = adapted(Blocking(), isolate=True)
        assert isinstance(retriever, IsolatedObject)
        asked = asyncio.create_task(asyncio.to_thread(lambda: list(retriever.retrieve_blocking(ASK))))
        await asyncio.sleep(0)
        go_on.set()  # only a free loop comes this far
        return await asked

    assert [ASK.query.text] == asyncio.run(scene())


# --- replies ---


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (None, []),
        ([], []),
        ((), []),
        ("one text", ["one text"]),
        (b"bytes", [b"bytes"]),
        ({"content": "x"}, [{"content": "x"}]),
        (PAIR[0], [PAIR[0]]),
        (("text", 0.5), [("text", 0.5)]),
        (("text", "other"), ["text", "other"]),
        (SimpleNamespace(content="x"), [SimpleNamespace(content="x")]),
        (7, [7]),
        ({"a", "b"}, [{"a", "b"}]),
        ({"x": 1}.values(), [1]),
    ],
)
def test_a_reply_that_is_no_collection_is_one_proposal(reply: object, expected: list[object]) -> None:
    async def later(_: str) -> object:
        return reply

    assert expected == replies(lambda _: reply) == replies(later)


def test_a_document_that_can_be_iterated_is_still_one_proposal() -> None:
    class Model:
        content = "text"

        def __iter__(self) -> Iterator[tuple[str, str]]:
            yield "content", self.content

    found = taken_from(replies(lambda _: Model()))

    assert ["text"] == [each.content for each in found.candidates]


def test_a_set_has_no_order_and_is_refused() -> None:
    assert {"not_a_candidate": 1} == taken_from(replies(lambda _: {"a", "b"})).faults


def test_a_stream_is_closed_when_nobody_reads_on() -> None:
    closed: list[str] = []

    async def retrieve(_: str) -> AsyncIterator[str]:
        try:
            while True:
                yield "more"
        finally:
            closed.append("yes")

    async def read_one() -> None:
        retriever = adapted(retrieve)
        assert isinstance(retriever, AsyncObject)
        async with aclosing(retriever.retrieve(ASK)) as proposals:
            assert "more" == await anext(proposals)
        closed.append("at once")

    asyncio.run(read_one())
    isolated = adapted(retrieve, isolate=True)
    assert isinstance(isolated, IsolatedObject)
    reading = isolated.retrieve_blocking(ASK)
    assert "more" == next(reading)
    reading.close()  # type: ignore[attr-defined]  # it is a generator

    assert ["yes", "at once", "yes"] == closed


def test_what_an_object_raises_is_raised_while_it_is_read() -> None:
    def broken(_: str) -> list[str]:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        replies(broken)


# --- arguments ---


def _by_ask(ask) -> list[object]:  # type: ignore[no-untyped-def]  # noqa: ANN001  # named, not annotated
    return [ask]


def _by_annotation(question: SourceAsk) -> list[object]:
    return [question]


def _by_text(ask: str) -> list[object]:
    return [ask]


@pytest.mark.parametrize(("thing", "expected"), [(_by_ask, ASK), (_by_annotation, ASK), (_by_text, ASK.query.text)])
def test_the_first_argument_is_the_ask_or_its_text(thing: Callable[..., object], expected: object) -> None:
    assert [expected] == replies(thing)


def test_arguments_are_passed_by_name_where_there_are_parameters_for_them() -> None:
    def retrieve(query: str, limit: int, *, session: str | None, principal: object, as_of: object = None, k: int = 4) -> list[object]:
        return [query, limit, session, principal, as_of, k]

    asked = msgspec.structs.replace(ASK, session=SessionId("s-1"))
    retriever = adapted(retrieve)
    assert isinstance(retriever, BlockingObject)

    assert [ASK.query.text, 10, "s-1", ASK.principal, ASK.as_of, 4] == list(retriever.retrieve_blocking(asked))


def test_other_keywords_are_not_guessed_at() -> None:
    assert [{}] == replies(lambda _query, **others: [others])


# --- what cannot work ---


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (7, "'int' cannot be asked; give an object with a method `retrieve"),
        (SimpleNamespace(retrieve="no"), "'SimpleNamespace' cannot be asked"),
        (_Plain, "'_Plain' is a class"),
        (lambda: PAIR, "it takes no question"),
        (lambda *, query: [query], "it takes no question"),
        (lambda query, collection: [query, collection], "its parameter 'collection'"),
        (lambda query, limit, /: [query, limit], "its parameter 'limit'"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(thing: object, words: str) -> None:
    with pytest.raises(InvalidFieldError, match="retriever") as refused:
        adapted(thing)

    assert words in str(refused.value)


# --- versions ---


def test_a_data_version_is_passed_through_and_none_is_invented() -> None:
    class Versioned(_Plain):
        version = "1"

        def data_version(self) -> str:
            return self.version

    thing = Versioned()
    retriever = adapted(thing)

    assert isinstance(retriever, SupportsDataVersion)
    assert "1" == retriever.data_version()
    thing.version = "2"
    assert "2" == retriever.data_version()
    assert not isinstance(adapted(_Plain()), SupportsDataVersion)
    assert not isinstance(adapted(_Awaiting(), isolate=True), SupportsDataVersion)


def test_an_asynchronous_data_version_is_refused() -> None:
    async def data_version() -> str:
        return "1"

    with pytest.raises(InvalidFieldError, match="data_version"):
        adapted(SimpleNamespace(retrieve=lambda query: [query], data_version=data_version))


def test_what_is_a_blocking_retriever_already_stays_itself() -> None:
    class Ready:
        def retrieve_blocking(self, ask: SourceAsk) -> Iterator[object]:
            yield ask

    ready = Ready()

    assert ready is adapted(ready)
