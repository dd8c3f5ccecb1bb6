"""Haystack: the component inside pipelines and their files, and Haystack's retrievers as sources."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.core.errors import DeserializationError
from haystack.dataclasses import ByteStream
from haystack.document_stores.in_memory import InMemoryDocumentStore

from evidentia.contracts.access import Principal
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.predicates import Compare
from evidentia.contracts.vocabulary import Classification
from evidentia.integrations.haystack import EvidentiaRetriever, as_source
from evidentia.integrations.proposals import AsyncSource, BlockingSource

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.base.sync_base import Base

STAFF = Principal(principal_id=PrincipalId("alice"), clearance=Classification.INTERNAL)
TEMPLATE = "{% for document in documents %}{{ document.content }}\n{% endfor %}Question: {{ question }}"
OURS = ["evidentia.integrations.haystack"]


@component
class Fixed:
    """Returns what it was given, however many are asked for, once it is warm."""

    def __init__(self, *documents: Document) -> None:
        self.documents = list(documents)
        self.is_warm = False

    def warm_up(self) -> None:
        self.is_warm = True

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        assert query
        assert self.is_warm
        return {"documents": self.documents}


@component
class Broken:
    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int = 1) -> dict[str, Any]:
        problem = f"no answer to {query}, not even {top_k}"
        raise ConnectionError(problem)


def pilot_retriever() -> InMemoryBM25Retriever:
    store = InMemoryDocumentStore()
    store.write_documents(
        [
            Document(
                id="pilot-1",
                content="A pilot boards every ship at the lock.",
                meta={"url": "https://pilots.example/boarding", "updated_at": "2024-05-01T08:00:00+02:00", "pages": [3, 4]},
            ),
            Document(id="pilot-2", content="The crane is not the business of a pilot."),
        ]
    )
    return InMemoryBM25Retriever(store)


def prompt_pipeline(retriever: EvidentiaRetriever) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    pipeline.add_component("prompt", PromptBuilder(TEMPLATE, required_variables=["documents", "question"]))
    pipeline.connect("retriever.documents", "prompt.documents")
    return pipeline


def asked(question: str) -> dict[str, Any]:
    return {"retriever": {"query": question}, "prompt": {"question": question}}


# --- a base as a component ---


def test_documents_carry_the_account_of_their_evidence(base: Base) -> None:
    outputs = EvidentiaRetriever(base, top_k=2).run("when does the harbour gate open?")
    fragment = base.retrieve("when does the harbour gate open?", limit=2).fragments[0]
    found = outputs["documents"]

    assert 2 == len(found)
    assert (fragment.chunk_id, fragment.content) == (found[0].id, found[0].content)
    assert {
        "source_id": "handbook",
        "document_id": fragment.document_id,
        "chunk_id": fragment.chunk_id,
        "confidence": fragment.confidence,
        "authority_tier": "curated",
        "content_hash": fragment.content_hash,
        "provenance": [entry.hash for entry in fragment.provenance_chain],
        "receipt_id": outputs["receipt_id"],
    }.items() <= found[0].meta.items()
    assert found[0].meta["score"] == found[0].score
    assert base.replay(outputs["receipt_id"]).is_same
    assert [] == outputs["degraded"]


def test_an_empty_answer_has_a_receipt_too(base: Base) -> None:
    outputs = EvidentiaRetriever(base, request={"filter": 'source_id = "nobody"'}).run("crane")

    assert [] == outputs["documents"]
    assert base.replay(outputs["receipt_id"]).is_same


def test_top_k_of_a_run_holds_for_that_run(base: Base) -> None:
    retriever = EvidentiaRetriever(base, top_k=2)

    assert 1 == len(retriever.run("harbour gate", top_k=1)["documents"])
    assert 2 == len(retriever.run("harbour gate")["documents"])


def test_whoever_asks_sees_what_he_may(base: Base) -> None:
    found = EvidentiaRetriever(base, principal=STAFF).run("harbour gate code")["documents"]

    assert {"handbook"} == {each.meta["source_id"] for each in found}


def test_filters_narrow_the_filter_of_the_request(base: Base) -> None:
    security = {"field": "meta.source_id", "operator": "==", "value": "security"}
    handbook = {"field": "meta.source_id", "operator": "==", "value": "handbook"}
    free, bound = EvidentiaRetriever(base), EvidentiaRetriever(base, request={"filter": 'source_id = "handbook"'})

    assert {"security"} == {each.meta["source_id"] for each in free.run("harbour gate", filters=security)["documents"]}
    assert {"handbook"} == {each.meta["source_id"] for each in bound.run("harbour gate", filters=handbook)["documents"]}
    assert [] == bound.run("harbour gate", filters=security)["documents"]


@pytest.mark.parametrize("own", ['source_id = "handbook"', Compare("source_id", "=", "handbook")], ids=["text", "tree"])
def test_a_filter_that_was_read_from_a_file_is_narrowed_as_well(base_path: Path, own: object) -> None:
    read = EvidentiaRetriever.from_dict(EvidentiaRetriever(base_path, request={"filter": own}).to_dict())
    found = read.run("harbour gate crane", filters={"field": "title", "operator": "!=", "value": "The crane"})["documents"]
    read.close()

    assert found
    assert {"handbook"} == {each.meta["source_id"] for each in found}
    assert "The crane" not in {each.meta["title"] for each in found}


def test_a_pipeline_builds_a_prompt_from_evidence(base: Base) -> None:
    outputs = prompt_pipeline(EvidentiaRetriever(base, top_k=2)).run(asked("when does the harbour gate open?"))

    assert "opens at six in the morning" in outputs["prompt"]["prompt"]
    assert outputs["retriever"]["receipt_id"]


def test_an_async_pipeline_builds_the_same_prompt(base: Base) -> None:
    pipeline = prompt_pipeline(EvidentiaRetriever(base, top_k=2))
    outputs = asyncio.run(pipeline.run_async(asked("when does the harbour gate open?")))

    assert pipeline.run(asked("when does the harbour gate open?"))["prompt"] == outputs["prompt"]


def test_its_documents_are_joined_with_those_of_another_retriever(base: Base) -> None:
    pipeline = Pipeline()
    pipeline.add_component("ours", EvidentiaRetriever(base, top_k=2))
    pipeline.add_component("theirs", pilot_retriever())
    pipeline.add_component("join", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.connect("ours.documents", "join.documents")
    pipeline.connect("theirs.documents", "join.documents")
    joined = pipeline.run({name: {"query": "does a pilot pass the crane?"} for name in ("ours", "theirs")})["join"]["documents"]

    assert 4 == len(joined)
    assert {"pilot-1", "pilot-2"} < {each.id for each in joined}


def test_a_pipeline_comes_back_from_its_file(base_path: Path) -> None:
    retriever = EvidentiaRetriever(base_path, top_k=3, token_budget=500, principal=STAFF, request={"task": {"type": "answer"}})
    written = prompt_pipeline(retriever)
    read = Pipeline.loads(written.dumps(), allowed_modules=OURS)
    before, after = (
        pipeline.run(asked("harbour gate code"), include_outputs_from={"retriever"})["retriever"]["documents"]
        for pipeline in (written, read)
    )
    written.close()
    read.close()

    assert written.dumps() == read.dumps()
    assert [each.id for each in before] == [each.id for each in after]
    assert {"handbook"} == {each.meta["source_id"] for each in after}


def test_haystack_asks_to_be_told_whose_components_a_file_may_name(base_path: Path) -> None:
    written = prompt_pipeline(EvidentiaRetriever(base_path)).dumps()

    with pytest.raises(DeserializationError):
        Pipeline.loads(written)


def test_an_open_base_is_not_written_to_a_file(base: Base) -> None:
    with pytest.raises(InvalidFieldError, match="give its path, and the principal it answers as"):
        EvidentiaRetriever(base).to_dict()


# --- a retriever as a source ---


def test_a_retriever_proposes_candidates() -> None:
    source = as_source(pilot_retriever())

    assert isinstance(source, AsyncSource)
    first, second = asyncio.run(source.retrieve("pilot at the lock", limit=5))
    assert ("pilot-1", "A pilot boards every ship at the lock.") == (first.own_id, first.content)
    assert "https://pilots.example/boarding" == first.origin
    assert "2024-05-01T08:00:00+02:00" == (first.updated_at.isoformat() if first.updated_at else "")
    assert "pages" not in first.metadata
    assert [None, None] == [first.score, second.score], "the scores of BM25 are not from 0 to 1"


def test_scores_that_are_scaled_are_kept() -> None:
    retriever = pilot_retriever()
    retriever.scale_score = True
    source = as_source(retriever, on_thread=True)

    assert isinstance(source, BlockingSource)
    first, second = source.retrieve("pilot at the lock", limit=2)
    assert 1 >= (first.score or 0) > (second.score or 0) > 0
    assert 1 == len(source.retrieve("pilot at the lock", limit=1))


def test_a_component_without_an_async_method_is_warmed_up_and_asked_on_a_thread() -> None:
    picture = Document(blob=ByteStream(data=b"png"))
    source = as_source(Fixed(Document(content="one", score=0.5), picture))

    assert isinstance(source, BlockingSource)
    assert [("one", None), ("", None)] == [(each.content, each.score) for each in source.retrieve("any", limit=1)]


def test_what_a_component_raises_is_raised() -> None:
    source = as_source(Broken())

    assert isinstance(source, BlockingSource)
    with pytest.raises(ConnectionError, match="no answer to crane, not even 7"):
        source.retrieve("crane", limit=7)


@pytest.mark.parametrize("thing", [Pipeline(), InMemoryEmbeddingRetriever(InMemoryDocumentStore()), None])
def test_what_is_not_run_with_a_query_is_refused(thing: object) -> None:
    with pytest.raises(InvalidFieldError, match=type(thing).__name__):
        as_source(thing)


def test_evidence_survives_the_way_out_and_in_again(base: Base) -> None:
    retriever = EvidentiaRetriever(base, top_k=2)
    source = as_source(retriever)
    documents = retriever.run("harbour gate")["documents"]

    assert isinstance(source, AsyncSource)
    for candidate, document in zip(asyncio.run(source.retrieve("harbour gate", limit=2)), documents, strict=True):
        assert (document.content, document.id) == (candidate.content, candidate.own_id)
        assert document.meta["content_hash"] == candidate.metadata["content_hash"]
