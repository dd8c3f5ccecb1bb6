"""What a user would otherwise take for hybrid search, built from the same passages and vectors and asked through one function.

Questions are encoded by the packaged encoder, through each system's own door for that. What is not said here is left at its default.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from hybrid_corpus import as_floats, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from hybrid_corpus import Answer, Handed

RRF_KAPPA = 60


def _tokenise() -> Callable[..., Any]:
    import bm25s
    import Stemmer

    return partial(bm25s.tokenize, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)


def build_bm25s(handed: Handed) -> None:
    """Index the passages' words; both users of it load the same index."""
    import bm25s

    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index(_tokenise()(handed.texts), show_progress=False)
    index.save(handed.own / "bm25s")


def load_bm25s(handed: Handed, *, backend: str) -> Callable[[str, int], list[int]]:
    """Return what finds the rows of the best passages by words; `numba` is a hundred times faster than `numpy`, bm25s' default."""
    import bm25s

    index = bm25s.BM25.load(handed.own / "bm25s")
    if backend == "numba":
        index.backend = "numba"
        index.activate_numba_scorer()
    tokenise = _tokenise()

    def find(question: str, depth: int) -> list[int]:
        rows, scores = index.retrieve(tokenise([question]), k=depth, show_progress=False, n_threads=0)
        return [int(row) for row, score in zip(rows[0], scores[0], strict=True) if score > 0]

    return find


def build_by_hand(handed: Handed) -> None:
    """Index words with bm25s and vectors with FAISS."""
    import faiss

    build_bm25s(handed)
    index = faiss.IndexFlatIP(handed.vectors.shape[1])
    index.add(as_floats(handed.vectors))
    faiss.write_index(index, str(handed.own / "flat.faiss"))


def start_by_hand(handed: Handed, *, backend: str) -> Answer:
    """Fuse the ranks of bm25s and FAISS in a few lines, without any framework."""
    import faiss

    texts, find = handed.texts, load_bm25s(handed, backend=backend)
    index = faiss.read_index(str(handed.own / "flat.faiss"))

    def answer(question: str, *, limit: int, depth: int) -> list[str]:
        near = index.search(encode(question)[np.newaxis], depth)[1][0]
        scores: defaultdict[int, float] = defaultdict(float)
        for found in (find(question, depth), near.tolist()):
            for rank, row in enumerate(found, start=1):
                scores[row] += 1 / (RRF_KAPPA + rank)
        return [texts[row] for row in sorted(scores, key=lambda row: (-scores[row], row))[:limit]]

    return answer


def _langchain_embeddings() -> object:
    from langchain_core.embeddings import Embeddings

    class Packaged(Embeddings):  # type: ignore[misc]  # LangChain is not there when types are checked
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise NotImplementedError(len(texts))

        def embed_query(self, text: str) -> list[float]:
            return list(encode(text).tolist())

    return Packaged()


def build_langchain(handed: Handed) -> None:
    """Give FAISS the vectors through LangChain, and bm25s the words."""
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy

    build_bm25s(handed)
    pairs = zip(handed.texts, as_floats(handed.vectors), strict=True)
    store = FAISS.from_embeddings(list(pairs), _langchain_embeddings(), distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT)
    assert type(store.index).__name__ == "IndexFlatIP"
    store.save_local(str(handed.own / "faiss"))


def start_langchain(handed: Handed, *, backend: str) -> Answer:
    """Make an EnsembleRetriever of a retriever over bm25s and one over FAISS."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Words(BaseRetriever):  # type: ignore[misc]  # LangChain is not there when types are checked
        k: int
        documents: Any
        find: Any

        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[object]:  # noqa: ARG002  # LangChain passes it
            return [self.documents[row] for row in self.find(query, self.k)]

    store = FAISS.load_local(
        str(handed.own / "faiss"),
        _langchain_embeddings(),
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
        allow_dangerous_deserialization=True,  # written above
    )
    documents = [Document(page_content=text) for text in handed.texts]
    find = load_bm25s(handed, backend=backend)
    ensembles: dict[int, Any] = {}

    def answer(question: str, *, limit: int, depth: int) -> list[str]:
        if depth not in ensembles:
            words = Words(k=depth, documents=documents, find=find)
            ensembles[depth] = EnsembleRetriever(retrievers=[words, store.as_retriever(search_kwargs={"k": depth})], weights=[0.5, 0.5])
        return [document.page_content for document in ensembles[depth].invoke(question)[:limit]]

    return answer


def start_haystack(handed: Handed) -> Answer:
    """Make the pipeline of Haystack's tutorial on hybrid retrieval, without its reranker, over a store in memory."""
    from haystack import Document, Pipeline, component
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    class Embedder:
        def run(self, text: str) -> dict[str, list[float]]:
            return {"embedding": encode(text).tolist()}

    Embedder.run.__annotations__["text"] = str  # Haystack reads the types of sockets at run time
    Embedder.run = component.output_types(embedding=list[float])(Embedder.run)  # type: ignore[method-assign]  # the same function, marked
    store = InMemoryDocumentStore()
    vectors = as_floats(handed.vectors)
    store.write_documents([Document(id=str(row), content=text, embedding=vectors[row].tolist()) for row, text in enumerate(handed.texts)])
    pipeline = Pipeline()
    pipeline.add_component("embedder", component(Embedder)())
    pipeline.add_component("vectors", InMemoryEmbeddingRetriever(store))
    pipeline.add_component("words", InMemoryBM25Retriever(store))
    pipeline.add_component("joined", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    pipeline.connect("embedder", "vectors")
    pipeline.connect("words", "joined")
    pipeline.connect("vectors", "joined")

    def answer(question: str, *, limit: int, depth: int) -> list[str]:
        given = {
            "embedder": {"text": question},
            "words": {"query": question, "top_k": depth},
            "vectors": {"top_k": depth},
            "joined": {"top_k": limit},
        }
        return [document.content for document in pipeline.run(given)["joined"]["documents"]]

    return answer


def build_lancedb(handed: Handed) -> None:
    """Make a table with LanceDB's own full-text index and no index of vectors."""
    import lancedb
    import pyarrow as pa

    vectors = as_floats(handed.vectors)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    table = lancedb.connect(str(handed.own)).create_table("passages", pa.table({"text": handed.texts, "vector": column}))
    table.create_fts_index("text")


def start_lancedb(handed: Handed) -> Answer:
    """Search the table with its hybrid query: flat over vectors, its own index over words, ranks fused."""
    import lancedb

    table = lancedb.connect(str(handed.own)).open_table("passages")

    def answer(question: str, *, limit: int, depth: int) -> list[str]:
        query = table.search(query_type="hybrid").vector(encode(question)).text(question)
        found = query.distance_type("dot").select(["text"]).limit(depth).to_list()
        return [row["text"] for row in found[:limit]]

    return answer
