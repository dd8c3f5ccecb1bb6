"""LlamaIndex: the retriever inside query engines, and LlamaIndex's retrievers as sources."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from word_vectors import vector_of

from evidentia.contracts.access import Principal
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.vocabulary import Classification
from evidentia.integrations.llamaindex import EvidentiaRetriever, as_source
from evidentia.integrations.proposals import AsyncSource, BlockingSource

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.base.answers import EvidenceResponse
    from evidentia.base.sync_base import Base

STAFF = Principal(principal_id=PrincipalId("alice"), clearance=Classification.INTERNAL)


class WordEmbedding(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return vector_of(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector_of(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector_of(query)


class Fixed(BaseRetriever):
    """Returns texts with scores, and has no async method."""

    def __init__(self, *found: tuple[str, float | None]) -> None:
        super().__init__()
        self._found = found

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        del query_bundle
        return [NodeWithScore(node=TextNode(text=text), score=score) for text, score in self._found]


class Broken(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        problem = f"no answer to {query_bundle.query_str}"
        raise ConnectionError(problem)


def pilot_index() -> VectorStoreIndex:
    return VectorStoreIndex(
        nodes=[
            TextNode(
                id_="pilot-1",
                text="A pilot boards every ship at the lock.",
                metadata={"file_path": "pilots/boarding.txt", "file_name": "boarding.txt", "last_modified_date": "2024-05-01"},
            ),
            TextNode(id_="pilot-2", text="The crane is not the business of a pilot."),
        ],
        embed_model=WordEmbedding(),
    )


# --- a base as a retriever ---


def test_nodes_carry_the_account_of_their_evidence(base: Base) -> None:
    found = EvidentiaRetriever(base, limit=2).retrieve("when does the harbour gate open?")
    fragment = base.retrieve("when does the harbour gate open?", limit=2).fragments[0]

    assert 2 == len(found)
    assert (fragment.chunk_id, fragment.content) == (found[0].node_id, found[0].text)
    assert {
        "source_id": "handbook",
        "document_id": fragment.document_id,
        "chunk_id": fragment.chunk_id,
        "confidence": fragment.confidence,
        "authority_tier": "curated",
        "content_hash": fragment.content_hash,
        "provenance": [entry.hash for entry in fragment.provenance_chain],
    }.items() <= found[0].metadata.items()
    assert found[0].metadata["score"] == found[0].score
    assert base.replay(found[0].metadata["receipt_id"]).is_same


def test_a_model_is_shown_the_source_and_no_hashes(base: Base) -> None:
    node = EvidentiaRetriever(base, limit=1).retrieve("crane")[0].node

    assert "authority_tier: curated" in node.get_content(metadata_mode=MetadataMode.LLM)
    assert node.metadata["content_hash"] not in node.get_content(metadata_mode=MetadataMode.LLM)
    assert node.get_content(metadata_mode=MetadataMode.NONE) == node.get_content(metadata_mode=MetadataMode.EMBED)


def test_sync_and_async_find_the_same(base: Base) -> None:
    retriever = EvidentiaRetriever(base)
    found = [each.node_id for each in retriever.retrieve("morning tide")]

    assert found
    assert found == [each.node_id for each in asyncio.run(retriever.aretrieve("morning tide"))]


def test_a_path_is_opened_when_asked_and_again_after_it_was_closed(base_path: Path) -> None:
    retriever = EvidentiaRetriever(str(base_path))
    first = retriever.retrieve("crane")
    retriever.close()

    assert first[0].node_id == retriever.retrieve("crane")[0].node_id
    retriever.close()


def test_whoever_asks_sees_what_he_may(base: Base) -> None:
    found = EvidentiaRetriever(base, principal=STAFF).retrieve("harbour gate code")

    assert {"handbook"} == {each.metadata["source_id"] for each in found}


def test_an_empty_answer_is_told_of_too(base: Base) -> None:
    told: list[EvidenceResponse] = []
    retriever = EvidentiaRetriever(base, request={"filter": 'source_id = "nobody"'}, on_answer=told.append)

    assert [] == retriever.retrieve("crane")
    assert [()] == [answer.fragments for answer in told]


def test_a_query_engine_answers_from_evidence(base: Base) -> None:
    model = MockLLM()
    engine = RetrieverQueryEngine(EvidentiaRetriever(base, limit=2), get_response_synthesizer(llm=model))
    answer = engine.query("when does the harbour gate open?")

    assert "opens at six in the morning" in str(answer)
    assert {"handbook", "security"} == {each.metadata["source_id"] for each in answer.source_nodes}


@pytest.mark.parametrize("mode", [FUSION_MODES.RECIPROCAL_RANK, FUSION_MODES.RELATIVE_SCORE, FUSION_MODES.SIMPLE])
def test_it_is_fused_with_another_retriever(base: Base, mode: FUSION_MODES) -> None:
    fused = QueryFusionRetriever(
        [EvidentiaRetriever(base, limit=2), pilot_index().as_retriever(similarity_top_k=1)],
        llm=MockLLM(),
        mode=mode,
        num_queries=1,
        similarity_top_k=3,
    )

    found = {each.node_id for each in fused.retrieve("does a pilot pass the crane?")}

    assert 3 == len(found)
    assert found & {"pilot-1", "pilot-2"}
    assert any("crane.md" in node_id for node_id in found)


# --- a retriever as a source ---


def test_an_index_proposes_candidates_with_scores() -> None:
    source = as_source(pilot_index().as_retriever(similarity_top_k=2))

    assert isinstance(source, AsyncSource)
    first, second = asyncio.run(source.retrieve("pilot at the lock", limit=5))
    assert ("pilot-1", "A pilot boards every ship at the lock.") == (first.own_id, first.content)
    assert ("pilots/boarding.txt", "boarding.txt") == (first.origin, first.title)
    assert first.updated_at is None, "a day without a time zone is not a moment"
    assert 1 >= (first.score or 0) > (second.score or 0) > 0


def test_a_retriever_without_an_async_method_is_asked_on_a_thread() -> None:
    source = as_source(Fixed(("one", 0.9), ("two", None)))

    assert isinstance(source, BlockingSource)
    assert [("one", None), ("two", None)] == [(each.content, each.score) for each in source.retrieve("any", limit=2)]


def test_a_retriever_can_be_asked_on_a_thread_all_the_same() -> None:
    source = as_source(pilot_index().as_retriever(similarity_top_k=1), on_thread=True)

    assert isinstance(source, BlockingSource)
    assert ["pilot-1"] == [each.own_id for each in source.retrieve("pilot at the lock", limit=1)]


def test_what_a_retriever_raises_is_raised() -> None:
    source = as_source(Broken())

    assert isinstance(source, BlockingSource)
    with pytest.raises(ConnectionError, match="no answer to crane"):
        source.retrieve("crane", limit=1)


def test_what_is_no_retriever_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="got VectorStoreIndex"):
        as_source(pilot_index())


def test_evidence_survives_the_way_out_and_in_again(base: Base) -> None:
    retriever = EvidentiaRetriever(base, limit=2)
    source = as_source(retriever)
    nodes = retriever.retrieve("harbour gate")

    assert isinstance(source, AsyncSource)
    for candidate, node in zip(asyncio.run(source.retrieve("harbour gate", limit=2)), nodes, strict=True):
        assert (node.text, node.node_id) == (candidate.content, candidate.own_id)
        assert node.metadata["content_hash"] == candidate.metadata["content_hash"]
