"""LangChain: a base as a retriever of a chain, and a retriever or vector store as a source of a base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidentia.contracts.errors import InvalidFieldError, MissingExtraError
from evidentia.integrations.base_client import Asker, GivenBase, GivenPrincipal, OnAnswer
from evidentia.integrations.fragment_metadata import account_of
from evidentia.integrations.proposals import AsyncSource, BlockingSource, Proposal

try:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable
    from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
except ImportError as error:
    raise MissingExtraError("langchain", needed_for="evidentia.integrations.langchain") from error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun

    from evidentia.base.answers import EvidenceResponse

SCORE_KEYS = ("relevance_score", "score")
"""Where rerankers and retrievers leave a score."""


class EvidentiaRetriever(BaseRetriever):
    """Retrieves evidence from a base, sync and async.

    `request` takes the other fields of a request, such as `filter`; keywords of `invoke` hold for one call. A base that is given
    as a path is opened as its owner: name a `principal` to answer as somebody else. `on_answer` is told of every answer.
    """

    base: GivenBase
    limit: int | None = None
    token_budget: int | None = None
    principal: GivenPrincipal | None = None
    request: dict[str, Any] | None = None  # Any: the values of a request's fields
    on_answer: OnAnswer | None = None
    _asker: Asker | None = None

    def model_post_init(self, context: object) -> None:
        """Make what asks at once, since threads of one batch may be the first to ask."""
        super().model_post_init(context)
        self._asker = Asker(self.base)

    def close(self) -> None:
        """Close a base that was given as a path; one that was given open stays open."""
        if self._asker is not None:
            self._asker.close()

    def __repr_args__(self) -> list[tuple[str | None, Any]]:  # Any: pydantic's own signature
        """Return what may be shown: who asks is nobody's business."""
        return [("limit", self.limit), ("token_budget", self.token_budget)]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun | None = None, **fields: object
    ) -> list[Document]:
        del run_manager
        return self._documents(self._asking().ask(query, self._fields(fields)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun | None = None, **fields: object
    ) -> list[Document]:
        del run_manager
        return self._documents(await self._asking().ask_async(query, self._fields(fields)))

    def _asking(self) -> Asker:
        """Return what asks; a copy of the model may have been given another base."""
        if self._asker is None or self._asker.given is not self.base:
            self._asker = Asker(self.base)
        return self._asker

    def _fields(self, fields: dict[str, object]) -> dict[str, object]:
        """Return the fields of one request; None says nothing, so that it cannot take the principal away."""
        own = {"limit": self.limit, "token_budget": self.token_budget, "principal": self.principal}
        said = [{name: value for name, value in each.items() if value is not None} for each in (own, fields)]
        return (self.request or {}) | said[0] | said[1]

    def _documents(self, response: EvidenceResponse) -> list[Document]:
        if self.on_answer is not None:
            self.on_answer(response)
        return [
            Document(page_content=fragment.content, id=fragment.chunk_id, metadata=account_of(fragment, response))
            for fragment in response.fragments
        ]


def as_source(retriever: object, *, on_thread: bool = False) -> AsyncSource | BlockingSource:
    """Return a retriever, a vector store or a runnable that gives documents as what `base.add_source` takes.

    One with async methods of its own is asked on the event loop, unless `on_thread`: some say they are async and block, and some
    belong to the loop they were made on. Others are asked on a thread.
    """
    if isinstance(retriever, VectorStore):
        retriever = retriever.as_retriever()
    if not isinstance(retriever, Runnable):
        raise InvalidFieldError("retriever", f"expected a retriever or vector store of LangChain, got {type(retriever).__name__}")
    if _is_async(retriever) and not on_thread:
        return _on_loop(retriever)
    return BlockingSource(lambda query, limit: _proposals(retriever.invoke(query, **_limits(retriever, limit))))


def _on_loop(retriever: Runnable[str, list[Document]]) -> AsyncSource:
    async def find(query: str, limit: int) -> Iterable[Proposal]:
        return _proposals(await retriever.ainvoke(query, **_limits(retriever, limit)))

    return AsyncSource(find)


def _is_async(retriever: Runnable[str, list[Document]]) -> bool:
    """Tell whether a retriever brings an async method of its own; what LangChain puts there by itself only goes to a thread."""
    method = getattr(type(retriever), "_aget_relevant_documents", None)
    return method is not None and not method.__module__.startswith("langchain_core.retrievers")


def _limits(retriever: Runnable[str, list[Document]], limit: int) -> dict[str, Any]:  # Any: keywords of whatever runs
    """Return how many a vector store is asked for: as many as are wanted, but no more than it was set up for."""
    if not isinstance(retriever, VectorStoreRetriever):
        return {}
    return {"k": min(limit, int(retriever.search_kwargs.get("k", limit)))}


def _proposals(documents: Iterable[Document]) -> Iterable[Proposal]:
    for document in documents:
        metadata = document.metadata
        score = next((metadata[key] for key in SCORE_KEYS if key in metadata), None)
        yield Proposal(content=document.page_content, own_id=document.id or "", score=score, metadata=metadata)
