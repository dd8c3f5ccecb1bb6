"""Retrieved documents in the shapes of other libraries are read with their source, or refused with what was expected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from evidentia.agents import Context, InvalidRecordError, PolicyViolationError, retrieval

GUARD = {
    "name": "guard",
    "category": "retrieval",
    "rules": {"blocked_sources": ["deprecated-kb"], "min_relevance_score": 0.5, "min_chunks": 0},
}
BAD, GOOD = "deprecated-kb", "manual.pdf"


@dataclass
class LangChainDocument:
    """As LangChain's `Document`: the source is in its metadata."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass
class TextNode:
    """As LlamaIndex's `TextNode`."""

    text: str
    metadata: dict[str, Any]
    node_id: str = "node-1"

    def get_content(self) -> str:
        return self.text


@dataclass
class NodeWithScore:
    """As LlamaIndex's `NodeWithScore`."""

    node: TextNode
    score: float | None = None


@dataclass
class HaystackDocument:
    """As Haystack's `Document`."""

    content: str
    meta: dict[str, Any]
    score: float | None = None
    id: str = "5f1d"


def chroma(*sources: str) -> dict[str, Any]:
    """Return what Chroma's `query` returns for one question."""
    return {
        "ids": [[f"id-{place}" for place in range(len(sources))]],
        "embeddings": None,
        "documents": [[f"text of {source}" for source in sources]],
        "metadatas": [[{"source": source} for source in sources]],
        "distances": [[0.2] * len(sources)],
    }


SHAPES: dict[str, Any] = {
    "LangChain": lambda source: LangChainDocument("text", {"source": source, "score": 0.9}, id="uuid"),
    "LangChain with a score": lambda source: (LangChainDocument("text", {"source": source}), 0.9),
    "LlamaIndex": lambda source: NodeWithScore(TextNode("text", {"file_path": source}), score=0.9),
    "LlamaIndex, the source by name": lambda source: NodeWithScore(TextNode("text", {"source": source}), score=0.9),
    "Haystack": lambda source: HaystackDocument("text", {"url": source}, score=0.9),
    "a mapping with metadata": lambda source: {"content": "text", "metadata": {"source": source}, "score": 0.9, "id": "x"},
    "a mapping and a score": lambda source: ({"source": source}, 0.9),
    "a name and a score": lambda source: (source, 0.9),
    "an id alone": lambda source: {"id": source, "score": 0.9},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_source_of_a_known_shape_is_matched_by_blocked_sources(shape: str) -> None:
    make = SHAPES[shape]
    with Context("a", policies=[GUARD]) as ctx:
        ctx.record_retrieval_results([make(GOOD)])
        with pytest.raises(PolicyViolationError, match="blocked source 'deprecated-kb'"):
            ctx.record_retrieval(documents=[make(BAD)])
        found = [each.inputs for each in ctx.decisions if each.kind == "retrieval"]

    assert [(GOOD, 0.9), (BAD, 0.9)] == [(each["source"], each["relevance_score"]) for each in found]


def test_what_chroma_returns_is_read_with_scores() -> None:
    with Context("a", policies=[GUARD]) as ctx:
        ctx.record_retrieval_results(chroma(GOOD, "faq.pdf"), scores=[0.9, 0.8])
        with pytest.raises(PolicyViolationError, match="blocked source"):
            ctx.record_retrieval(documents=chroma(BAD), scores=[0.9])
        found = [each.inputs for each in ctx.decisions if each.kind == "retrieval"]

    assert [(GOOD, 0.9, "id-0"), ("faq.pdf", 0.8, "id-1"), (BAD, 0.9, "id-0")] == [
        (each["source"], each["relevance_score"], each["chunk_id"]) for each in found
    ]


REFUSED: dict[str, tuple[Any, str, str]] = {
    "a document without a source": ([LangChainDocument("text")], r"documents\[0\]", "names no source"),
    "a pair of one without a source": ([(LangChainDocument("text"), 0.9)], r"documents\[0\]", "names no source"),
    "a node without a source": ([NodeWithScore(TextNode("text", {}, node_id=""), 0.9)], r"documents\[0\]", "names no source"),
    "a mapping without a source": ([{"source": "a"}, {"score": 0.9}], r"documents\[1\]", "names no source"),
    "an empty name": ([""], r"documents\[0\]", "names no source"),
    "a number": ([0.9], r"documents\[0\]", "this is a float"),
    "an object of nobody's": ([object()], r"documents\[0\]", "a document of LangChain"),
    "distances without scores": (chroma("a"), "scores", "distances, which are no relevance"),
    "another mapping": ({"results": ["a"]}, "documents", "not a mapping"),
    "a text": ("a.pdf", "documents", "expected a list, not str"),
    "one document": (LangChainDocument("text", {"source": "a"}), "documents", "expected a list of documents, not one LangChainDocument"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_unknown_shape_is_refused_with_what_was_expected_and_nothing_is_recorded(case: str) -> None:
    documents, where, what = REFUSED[case]
    with Context("a", policies=[GUARD]) as ctx:
        for record in (ctx.record_retrieval_results, lambda given: ctx.record_retrieval(documents=given)):
            with pytest.raises(InvalidRecordError, match=f"{where}.*{what}"):
                record(documents)
        kinds = {each.kind for each in ctx.decisions}

    assert {"run"} == kinds


def test_documents_may_be_given_in_the_place_of_an_answer() -> None:
    with Context("a", policies=[GUARD]) as ctx, pytest.raises(PolicyViolationError, match="blocked source"):
        ctx.record_retrieval([LangChainDocument("text", {"source": BAD})])


def test_a_source_for_all_stands_in_for_those_that_name_none() -> None:
    with Context("a", policies=[GUARD]) as ctx:
        ctx.record_retrieval(documents=[LangChainDocument("text"), {"source": "b", "score": 0.9}], source="index", scores=[0.9, 0.9])
        found = [each.inputs["source"] for each in ctx.decisions if each.kind == "retrieval"]

    assert ["index", "b"] == found


def test_a_decorated_function_that_returns_another_shape_is_refused() -> None:
    @retrieval()
    def search(query: str) -> Any:
        return f"one text about {query}"

    with Context("a", policies=[GUARD]), pytest.raises(InvalidRecordError, match="expected a list, not str"):
        search("keys")
