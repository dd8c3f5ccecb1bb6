"""Which tools retrieve: the one place that says so for tools whose caller does not."""

from __future__ import annotations

from typing import Final

RETRIEVAL_TOOLS: Final = frozenset(
    {
        "vector_search",
        "similarity_search",
        "semantic_search",
        "hybrid_search",
        "keyword_search",
        "document_search",
        "knowledge_search",
        "search",
        "retrieve",
        "retrieval",
        "source_retrieval",
        "retrieve_documents",
        "retrieve_sources",
        "rag_retrieve",
        "table_rag_retrieve",
        "evidence",
    }
)
"""A call of one of these opens no settlement: its documents may still be on their way."""


def retrieves(name: str, retrieval: bool | None) -> bool:  # noqa: FBT001 - the caller's word, or None for none
    """Tell whether a tool retrieves: the caller's word where there is one, else its name, in any case and with any separator."""
    if retrieval is not None:
        return retrieval
    return name.strip().lower().replace("-", "_").replace(" ", "_") in RETRIEVAL_TOOLS
