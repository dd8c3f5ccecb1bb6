"""The systems of `deadline.py`: each asks the same sources through its own parallel retriever and says what came of it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from deadline_sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from deadline_sources import Source

    from evidentia.contracts.evidence import CoverageReport


class Account(NamedTuple):
    """What an answer holds, and of which sources it says that something was wrong, and what."""

    fragments: int
    declared: dict[int, str]


if TYPE_CHECKING:
    Ask = Callable[[str, int], Awaitable[Account]]
    Open = Callable[[Sequence[Source], Path], AbstractAsyncContextManager[Ask]]


@asynccontextmanager
async def open_evidentia(sources: Sequence[Source], home: Path, *, receipt: bool = True) -> AsyncIterator[Ask]:
    """Register the sources with an empty base; the settings are those it comes with."""
    from evidentia import aconnect
    from evidentia.contracts.retrieval import Candidate

    def asked_of(source: Source) -> Callable[[str], AsyncIterator[Candidate]]:
        async def retrieve(query: str) -> AsyncIterator[Candidate]:
            async for each in source.propose(query):
                yield Candidate(content=each.text, own_id=each.name, score=each.score, origin=f"bench://{source.name}/{each.name}")

        return retrieve

    async with await aconnect(home / "base", init=True) as base:
        for source in sources:
            await base.add_source({"source_id": source.name, "source_type": "api", "latency_tier": "hot"}, asked_of(source))

        async def ask(asked: str, deadline_ms: int) -> Account:
            response = await base.retrieve(asked, latency_deadline_ms=deadline_ms, source_policy={"most_sources": SOURCES}, receipt=receipt)
            reports = ((source.place, response.source_coverage.get(source.name)) for source in sources)  # type: ignore[call-overload]  # a plain name
            told = {
                place: _said(report) for place, report in reports if report is not None and (report.state != "searched" or report.faults)
            }
            return Account(len(response.fragments), told)

        yield ask


def _said(report: CoverageReport) -> str:
    """Return what a report says, with its numbers left out, so that alike ones can be counted."""
    said = f"{report.state.value}, {', '.join(sorted(report.faults))}" if report.faults else f"{report.state.value}: {report.reason}"
    return re.sub(r"\d+", "N", said)


@asynccontextmanager
async def open_langchain(sources: Sequence[Source], _home: Path) -> AsyncIterator[Ask]:
    """Make an EnsembleRetriever, which gathers its retrievers."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Asked(BaseRetriever):  # type: ignore[misc]  # LangChain is not there when types are checked
        source: Any

        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[object]:
            raise NotImplementedError(query, run_manager)

        async def _aget_relevant_documents(self, query: str, *, run_manager: object) -> list[object]:  # noqa: ARG002  # LangChain passes it
            return [Document(page_content=each.text, metadata={"score": each.score}) async for each in self.source.propose(query)]

    ensemble = EnsembleRetriever(retrievers=[Asked(source=source) for source in sources])

    async def ask(asked: str, _deadline_ms: int) -> Account:
        return Account(len(await ensemble.ainvoke(asked)), {})

    yield ask


@asynccontextmanager
async def open_haystack(sources: Sequence[Source], _home: Path) -> AsyncIterator[Ask]:
    """Make a MultiRetriever with a worker for every source; by default it has four."""
    from haystack import Document, component
    from haystack.components.retrievers import MultiRetriever

    def component_of(source: Source) -> object:
        class Asked:
            def run(self, query: str) -> dict[str, Any]:
                raise NotImplementedError(query)

            async def run_async(self, query: str) -> dict[str, Any]:
                return {"documents": [Document(id=each.name, content=each.text, score=each.score) async for each in source.propose(query)]}

        Asked.run.__annotations__["query"] = Asked.run_async.__annotations__["query"] = (
            str  # Haystack reads the types of sockets at run time
        )
        sockets = component.output_types(documents=list[Document])
        Asked.run, Asked.run_async = sockets(Asked.run), sockets(Asked.run_async)  # type: ignore[method-assign]  # the same functions, marked
        return component(Asked)()

    retriever = MultiRetriever(retrievers={source.name: component_of(source) for source in sources}, max_workers=SOURCES, top_k=10)

    async def ask(asked: str, _deadline_ms: int) -> Account:
        return Account(len((await retriever.run_async(query=asked))["documents"]), {})

    yield ask


@asynccontextmanager
async def open_llamaindex(sources: Sequence[Source], _home: Path) -> AsyncIterator[Ask]:
    """Make a QueryFusionRetriever that asks the question itself and no variants of it."""
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    class Asked(BaseRetriever):  # type: ignore[misc]  # LlamaIndex is not there when types are checked
        def __init__(self, source: Source) -> None:
            super().__init__()
            self._source = source

        def _retrieve(self, query_bundle: object) -> list[object]:
            raise NotImplementedError(query_bundle)

        async def _aretrieve(self, query_bundle: QueryBundle) -> list[object]:
            proposed = self._source.propose(query_bundle.query_str)
            return [NodeWithScore(node=TextNode(text=each.text), score=each.score) async for each in proposed]

    fusing = QueryFusionRetriever(
        [Asked(source) for source in sources], llm=MockLLM(), num_queries=1, use_async=True, mode="reciprocal_rerank", similarity_top_k=10
    )

    async def ask(asked: str, _deadline_ms: int) -> Account:
        return Account(len(await fusing.aretrieve(asked)), {})

    yield ask


@asynccontextmanager
async def open_timer(_sources: Sequence[Source], _home: Path) -> AsyncIterator[Ask]:
    """Ask nobody and wait for the deadline: what the machine itself does to one."""

    async def ask(_asked: str, deadline_ms: int) -> Account:
        await asyncio.sleep(deadline_ms / 1_000)
        return Account(0, {})

    yield ask


def within(opened: Open) -> Open:
    """Return a system that is given up at the deadline, as its user would do it: all of it, with whatever had come."""

    @asynccontextmanager
    async def open_within(sources: Sequence[Source], home: Path) -> AsyncIterator[Ask]:
        async with opened(sources, home) as unbounded:

            async def ask(asked: str, deadline_ms: int) -> Account:
                return await asyncio.wait_for(unbounded(asked, deadline_ms), timeout=deadline_ms / 1_000)

            yield ask

    return open_within


def counted(told: Sequence[str]) -> dict[str, int]:
    """Return how often each was told, in the order of their names."""
    return dict(sorted(Counter(told).items()))
