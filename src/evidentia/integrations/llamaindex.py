"""LlamaIndex: a base as a retriever of a query engine, and a retriever as a source of a base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidentia.contracts.errors import InvalidFieldError, MissingExtraError
from evidentia.integrations.base_client import Asker, GivenBase, GivenPrincipal, OnAnswer
from evidentia.integrations.fragment_metadata import FOR_PROMPTS, account_of, score_of
from evidentia.integrations.proposals import AsyncSource, BlockingSource, Proposal

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise MissingExtraError("llamaindex", needed_for="evidentia.integrations.llamaindex") from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from llama_index.core.callbacks.base import CallbackManager

    from evidentia.base.answers import EvidenceResponse
    from evidentia.contracts.evidence import EvidenceFragment


class EvidentiaRetriever(BaseRetriever):
    """Retrieves evidence from a base, sync and async.

    `request` takes the other fields of a request, such as `filter`. A base that is given as a path is opened as its owner: name a
    `principal` to answer as somebody else. `on_answer` is told of every answer.
    """

    def __init__(
        self,
        base: GivenBase,
        *,
        limit: int | None = None,
        token_budget: int | None = None,
        principal: GivenPrincipal | None = None,
        request: Mapping[str, object] | None = None,
        on_answer: OnAnswer | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        own = {"limit": limit, "token_budget": token_budget, "principal": principal}
        self._asker = Asker(base)
        self._fields = dict(request or {}) | {name: value for name, value in own.items() if value is not None}
        self._on_answer = on_answer

    def close(self) -> None:
        """Close a base that was given as a path; one that was given open stays open."""
        self._asker.close()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(self._asker.ask(query_bundle.query_str, self._fields))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes(await self._asker.ask_async(query_bundle.query_str, self._fields))

    def _nodes(self, response: EvidenceResponse) -> list[NodeWithScore]:
        if self._on_answer is not None:
            self._on_answer(response)
        return [NodeWithScore(node=_node(fragment, response), score=score_of(fragment)) for fragment in response.fragments]


def as_source(retriever: object, *, on_thread: bool = False) -> AsyncSource | BlockingSource:
    """Return a retriever as what `base.add_source` takes; how many it returns is its own setting, `similarity_top_k`.

    One with an async method of its own is asked on the event loop, unless `on_thread`: some say they are async and block, and some
    belong to the loop they were made on. Others are asked on a thread.
    """
    if not isinstance(retriever, BaseRetriever):
        raise InvalidFieldError("retriever", f"expected a retriever of LlamaIndex, got {type(retriever).__name__}")
    if type(retriever)._aretrieve is BaseRetriever._aretrieve or on_thread:  # noqa: SLF001  the method that subclasses are told to write
        return BlockingSource(lambda query, _: _proposals(retriever.retrieve(query)))

    async def find(query: str, _: int) -> Iterable[Proposal]:
        return _proposals(await retriever.aretrieve(query))

    return AsyncSource(find)


def _node(fragment: EvidenceFragment, response: EvidenceResponse) -> TextNode:
    """Return a fragment as a node; hashes and ids are no text, so neither a model nor an encoder is shown them."""
    account: dict[str, Any] = account_of(fragment, response)  # Any: the metadata of a node
    hidden = [name for name in account if name not in FOR_PROMPTS]
    return TextNode(
        id_=fragment.chunk_id,
        text=fragment.content,
        metadata=account,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=list(account),
    )


def _proposals(nodes: Iterable[NodeWithScore]) -> Iterable[Proposal]:
    for scored in nodes:
        node = scored.node
        content = node.get_content(metadata_mode=MetadataMode.NONE)
        yield Proposal(content=content, own_id=node.node_id, score=scored.score, metadata=node.metadata)
