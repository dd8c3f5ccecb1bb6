"""LangChain: the retriever inside chains, and LangChain's retrievers as sources."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from word_vectors import vector_of

from evidentia.base.async_base import aconnect
from evidentia.contracts.access import Principal
from evidentia.contracts.errors import BaseMissingError, InvalidFieldError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.vocabulary import Classification
from evidentia.integrations.langchain import EvidentiaRetriever, as_source
from evidentia.integrations.proposals import AsyncSource, BlockingSource

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.prompt_values import PromptValue

    from evidentia.base.answers import EvidenceResponse
    from evidentia.base.sync_base import Base

STAFF = Principal(principal_id=PrincipalId("alice"), clearance=Classification.INTERNAL)


class WordEmbeddings(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return vector_of(text)


class Fixed(BaseRetriever):
    """Returns what it was given, and has no async method."""

    documents: list[Document]

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        del query
        return self.documents


class Broken(BaseRetriever):
    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        problem = f"no answer to {query}"
        raise ConnectionError(problem)


def pilot_store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(
        [
            Document(
                id="pilot-1",
                page_content="A pilot boards every ship at the lock.",
                metadata={
                    "source": "https://pilots.example/boarding",
                    "title": "Boarding",
                    "updated_at": "2024-05-01T08:00:00Z",
                    "page": 3,
                },
            ),
            Document(id="pilot-2", page_content="The crane is not the business of a pilot."),
        ]
    )
    return store


# --- a base as a retriever ---


def test_documents_carry_the_account_of_their_evidence(base: Base) -> None:
    found = EvidentiaRetriever(base=base, limit=2).invoke("when does the harbour gate open?")
    fragment = base.retrieve("when does the harbour gate open?", limit=2).fragments[0]

    assert 2 == len(found)
    assert fragment.content == found[0].page_content
    assert fragment.chunk_id == found[0].id
    assert {
        "source": fragment.document_id,
        "source_id": "handbook",
        "document_id": fragment.document_id,
        "chunk_id": fragment.chunk_id,
        "confidence": fragment.confidence,
        "authority_tier": "curated",
        "content_hash": fragment.content_hash,
        "provenance": [entry.hash for entry in fragment.provenance_chain],
        "title": "The gate",
        "degraded": [],
    }.items() <= found[0].metadata.items()
    assert 0 < found[0].metadata["score"] <= 1


def test_the_receipt_of_a_document_can_be_replayed(base: Base) -> None:
    document = EvidentiaRetriever(base=base).invoke("crane")[0]
    report = base.replay(document.metadata["receipt_id"])

    assert report.is_same
    assert document.metadata["result_hash"] == report.result_hash


def test_sync_async_batch_and_stream_find_the_same(base: Base) -> None:
    retriever = EvidentiaRetriever(base=base, limit=3)
    found = [document.id for document in retriever.invoke("morning tide")]

    assert found
    assert found == [document.id for document in asyncio.run(retriever.ainvoke("morning tide"))]
    assert [found, found] == [[document.id for document in each] for each in retriever.batch(["morning tide", "morning tide"])]
    assert [found] == [[document.id for document in each] for each in retriever.stream("morning tide")]


def test_a_path_is_opened_when_asked_and_again_after_it_was_closed(base_path: Path) -> None:
    retriever = EvidentiaRetriever(base=base_path)
    first = retriever.invoke("crane")
    retriever.close()

    assert first[0].id == retriever.invoke("crane")[0].id
    retriever.close()


def test_a_batch_opens_a_path_once(base_path: Path) -> None:
    retriever = EvidentiaRetriever(base=base_path)
    found = retriever.batch(["crane"] * 8)
    retriever.close()

    assert [found[0][0].id] * 8 == [documents[0].id for documents in found]


def test_an_async_base_answers_both_ways(base_path: Path) -> None:
    async def ask() -> tuple[list[Document], list[Document]]:
        async with await aconnect(base_path) as base:
            retriever = EvidentiaRetriever(base=base)
            both = await retriever.ainvoke("crane"), await asyncio.to_thread(retriever.invoke, "crane")
            retriever.close()
            return both

    asked_async, asked_sync = asyncio.run(ask())

    assert asked_async[0].id == asked_sync[0].id


def test_whoever_asks_sees_what_he_may(base: Base) -> None:
    question = "harbour gate code"

    assert "security" in {each.metadata["source_id"] for each in EvidentiaRetriever(base=base).invoke(question)}
    assert {"handbook"} == {each.metadata["source_id"] for each in EvidentiaRetriever(base=base, principal=STAFF).invoke(question)}


def test_a_principal_is_not_taken_away_by_naming_none(base: Base) -> None:
    found = EvidentiaRetriever(base=base, principal=STAFF).invoke("harbour gate code", principal=None)

    assert {"handbook"} == {each.metadata["source_id"] for each in found}


def test_keywords_hold_for_one_call(base: Base) -> None:
    retriever = EvidentiaRetriever(base=base, request={"filter": 'source_id = "security"'})

    assert {"security"} == {each.metadata["source_id"] for each in retriever.invoke("harbour gate")}
    assert {"handbook"} == {each.metadata["source_id"] for each in retriever.invoke("harbour gate", filter='source_id = "handbook"')}
    assert 1 == len(retriever.bind(limit=1).invoke("harbour gate"))
    assert {"security"} == {each.metadata["source_id"] for each in retriever.invoke("harbour gate")}


def test_a_copy_with_another_base_asks_that_one(base: Base, tmp_path: Path) -> None:
    retriever = EvidentiaRetriever(base=base)
    retriever.invoke("crane")
    copy = retriever.model_copy(update={"base": tmp_path / "none"})

    with pytest.raises(BaseMissingError):
        copy.invoke("crane")


def test_who_asks_is_not_shown(base: Base) -> None:
    shown = repr(EvidentiaRetriever(base=base, principal=STAFF, limit=4))

    assert "limit=4" in shown
    assert "alice" not in shown


def test_an_empty_answer_is_told_of_too(base: Base) -> None:
    told: list[EvidenceResponse] = []
    retriever = EvidentiaRetriever(base=base, request={"filter": 'source_id = "nobody"'}, on_answer=told.append)

    assert [] == retriever.invoke("crane")
    assert [()] == [answer.fragments for answer in told]


def test_an_unknown_field_is_refused_by_name(base: Base) -> None:
    with pytest.raises(InvalidFieldError, match="limits"):
        EvidentiaRetriever(base=base, request={"limits": 3}).invoke("crane")


def test_a_chain_answers_from_evidence(base: Base) -> None:
    seen: list[str] = []

    def show(prompt: PromptValue) -> PromptValue:
        seen.append(prompt.to_string())
        return prompt

    prompt = ChatPromptTemplate.from_template("Answer from:\n{context}\nQuestion: {question}")
    context = EvidentiaRetriever(base=base, limit=2) | (lambda found: "\n".join(each.page_content for each in found))
    model = FakeListChatModel(responses=["At six."])
    chain = {"context": context, "question": RunnablePassthrough()} | prompt | RunnableLambda(show) | model | StrOutputParser()

    assert "At six." == chain.invoke("when does the harbour gate open?")
    assert "At six." == asyncio.run(chain.ainvoke("when does the harbour gate open?"))
    assert "opens at six in the morning" in seen[0]
    assert seen[0] == seen[1]


def test_it_runs_beside_another_retriever(base: Base) -> None:
    both = RunnableParallel(ours=EvidentiaRetriever(base=base, limit=1), theirs=pilot_store().as_retriever(search_kwargs={"k": 1}))
    merged = (both | RunnableLambda(lambda found: [*found["ours"], *found["theirs"]])).invoke("does a pilot pass the lock?")

    assert 2 == len(merged)
    assert "receipt_id" in merged[0].metadata
    assert "pilot-1" == merged[1].id


def test_an_agent_uses_it_as_a_tool(base: Base) -> None:
    tool = create_retriever_tool(EvidentiaRetriever(base=base, limit=1), "evidence", "Looks up evidence.")

    assert "opens at six in the morning" in tool.invoke({"query": "when does the harbour gate open?"})


# --- a retriever as a source ---


def test_a_vector_store_proposes_candidates() -> None:
    source = as_source(pilot_store())

    assert isinstance(source, AsyncSource)
    first, second = asyncio.run(source.retrieve("pilot at the lock", limit=5))
    assert ("pilot-1", "A pilot boards every ship at the lock.") == (first.own_id, first.content)
    assert ("https://pilots.example/boarding", "Boarding") == (first.origin, first.title)
    assert "2024-05-01T08:00:00+00:00" == (first.updated_at.isoformat() if first.updated_at else "")
    assert "3" == first.metadata["page"]
    assert (None, "", None) == (second.score, second.origin, second.updated_at)


def test_a_vector_store_is_asked_for_as_many_as_are_wanted() -> None:
    store = pilot_store()
    few = as_source(store.as_retriever(search_kwargs={"k": 1}))
    wanted = as_source(store, on_thread=True)

    assert isinstance(wanted, BlockingSource)
    assert isinstance(few, AsyncSource)
    assert 1 == len(wanted.retrieve("pilot", limit=1))
    assert 2 == len(wanted.retrieve("pilot", limit=2))
    assert 1 == len(asyncio.run(few.retrieve("pilot", limit=2)))


def test_a_retriever_without_async_methods_is_asked_on_a_thread() -> None:
    source = as_source(Fixed(documents=[Document(page_content="one", metadata={"relevance_score": 0.9})]))

    assert isinstance(source, BlockingSource)
    assert [("one", 0.9)] == [(each.content, each.score) for each in source.retrieve("any", limit=1)]


def test_a_chain_that_gives_documents_is_a_source() -> None:
    chain = Fixed(documents=[Document(page_content="one"), Document(page_content="two")]) | (lambda found: found[::-1])
    source = as_source(chain)

    assert isinstance(source, BlockingSource)
    assert ["two", "one"] == [each.content for each in source.retrieve("any", limit=2)]


def test_what_a_retriever_raises_is_raised() -> None:
    source = as_source(Broken())

    assert isinstance(source, BlockingSource)
    with pytest.raises(ConnectionError, match="no answer to crane"):
        source.retrieve("crane", limit=1)


def test_what_is_no_retriever_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="got list"):
        as_source([])


def test_evidence_survives_the_way_out_and_in_again(base: Base) -> None:
    retriever = EvidentiaRetriever(base=base, limit=2)
    source = as_source(retriever)
    documents = retriever.invoke("harbour gate")

    assert isinstance(source, AsyncSource)
    for candidate, document in zip(asyncio.run(source.retrieve("harbour gate", limit=2)), documents, strict=True):
        assert (document.page_content, document.id) == (candidate.content, candidate.own_id)
        assert document.metadata["document_id"] == candidate.origin
        assert document.metadata["content_hash"] == candidate.metadata["content_hash"]
