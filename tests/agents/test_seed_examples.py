"""The examples of the two written policies run as they stand, with another import and another class name."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import evidentia.agents as waxell
from evidentia.agents.errors import PolicyViolationError

RAG_QUALITY_GUARD: dict[str, Any] = {
    "name": "RAG Quality Guard",
    "category": "retrieval",
    "rules": {
        "min_relevance_score": 0.75,
        "max_source_age_days": 90,
        "min_chunks": 1,
        "max_chunks": 8,
        "allowed_collections": ["knowledge_base"],
        "blocked_sources": ["deprecated-kb"],
        "action_on_low_relevance": "warn",
        "action_on_stale_source": "block",
    },
    "scope": {"agents": ["rag-agent"]},
    "enabled": True,
}
STRICT_RESEARCH_GROUNDING: dict[str, Any] = {
    "name": "Strict Research Grounding",
    "category": "grounding",
    "rules": {
        "require_source_grounding": True,
        "min_grounding_score": 0.8,
        "min_citations": 2,
        "max_unsupported_claims": 0,
        "abstention_threshold": 0.5,
        "action_on_violation": "block",
    },
    "scope": {"agents": ["research-agent"]},
    "enabled": True,
}
query = "How long is the warranty?"
context_docs = ["product-manual.pdf", "faq.pdf"]
abstention_message = "I cannot say."


class Doc(NamedTuple):
    """A document as a vector store gives it."""

    id: str
    score: float
    collection: str
    age_days: int


def synthesize_answer(docs: list[str], question: str) -> str:
    return f"{question} Two years, say {len(docs)} documents."


def synthesize(docs: list[Any], question: str) -> str:
    return f"{question} Two years, say {len(docs)} documents."


def fallback_response(question: str) -> str:
    return f"no answer to {question}"


async def retrieve_sources(question: str) -> list[str]:
    return [f"Source {letter} on {question}" for letter in "ABC"]


async def synthesize_with_grounding(question: str, sources: list[str]) -> tuple[str, list[float]]:
    return f"{question} {len(sources)}", [0.9, 0.85, 0.92]


async def record_retrieval_results() -> waxell.Context:
    async with waxell.Context(
        agent_name="rag-agent",
        enforce_policy=True,
        policies=[RAG_QUALITY_GUARD],
    ) as ctx:
        # Record each retrieved document
        ctx.record_retrieval_result(
            relevance_score=0.92,
            source="product-manual.pdf",
            collection="knowledge_base",
            age_days=14,
        )
        ctx.record_retrieval_result(
            relevance_score=0.85,
            source="faq.pdf",
            collection="knowledge_base",
            age_days=30,
        )
        # Governance fires here
        answer = synthesize_answer(context_docs, query)
        ctx.set_result({"answer": answer})
    return ctx


async def catch_policy_violations(retrieved_docs: list[Doc]) -> str:
    try:
        async with waxell.Context(
            agent_name="rag-agent",
            enforce_policy=True,
            policies=[RAG_QUALITY_GUARD],
        ) as ctx:
            for doc in retrieved_docs:
                ctx.record_retrieval_result(
                    relevance_score=doc.score,
                    source=doc.id,
                    collection=doc.collection,
                    age_days=doc.age_days,
                )
            answer = synthesize(retrieved_docs, query)
            ctx.set_result({"answer": answer})
    except PolicyViolationError as e:
        return f"{fallback_response(query)}: {e}"
    return answer


@waxell.observe(
    agent_name="rag-agent",
    enforce_policy=True,
    policies=[RAG_QUALITY_GUARD],
)
async def run_rag(query: str, docs: list[dict[str, Any]]) -> str:
    ctx = waxell.get_current_context()
    assert ctx is not None
    for doc in docs:
        ctx.record_retrieval_result(
            relevance_score=doc["score"],
            source=doc["source"],
            collection=doc["collection"],
            age_days=doc["age_days"],
        )
    return synthesize(docs, query)


async def record_grounding_data(scores_given: list[float] | None = None) -> str:
    try:
        async with waxell.Context(
            agent_name="research-agent",
            enforce_policy=True,
            policies=[STRICT_RESEARCH_GROUNDING],
        ) as ctx:
            # Retrieve sources and generate answer
            sources = await retrieve_sources(query)
            answer, scores = await synthesize_with_grounding(query, sources)
            ctx.record_grounding(
                grounding_scores=scores_given or scores,
                citations=sources,
                unsupported_claims=[],
                output_confidence=0.88,
            )
            ctx.set_result({"answer": answer, "citations": sources})
    except PolicyViolationError as e:
        return f"Grounding policy blocked: {e}; {abstention_message}"
    return ctx.decisions[-1].reason


async def accumulate() -> waxell.Context:
    async with waxell.Context(agent_name="research-agent", policies=[STRICT_RESEARCH_GROUNDING]) as ctx:
        # Step 1: Retrieve financial sources
        ctx.record_grounding(
            grounding_scores=[0.92, 0.87],
            citations=["Federal Reserve Report", "IMF Analysis"],
            output_confidence=0.89,
        )
        # Step 2: Retrieve legal sources
        ctx.record_grounding(
            grounding_scores=[0.85, 0.91],
            citations=["SEC Filing 2023", "Legal Review"],
            output_confidence=0.88,
        )
    return ctx


def test_recording_retrieval_results() -> None:
    ctx = asyncio.run(record_retrieval_results())

    assert "success" == ctx.status
    mid = [(decision.action, decision.reason, decision.metadata) for decision in ctx.decisions if decision.phase == "mid_execution"]
    assert [
        ("allow", "Retrieval quality within policy (1 chunks)", {"chunk_count": 1}),
        ("allow", "Retrieval quality within policy (2 chunks)", {"chunk_count": 2}),
    ] == mid


def test_catching_policy_violations() -> None:
    good = Doc("faq.pdf", 0.9, "knowledge_base", 5)
    reasons = [
        asyncio.run(catch_policy_violations([good, bad])).partition(": ")[2]
        for bad in (
            Doc("deprecated-kb", 0.99, "knowledge_base", 5),
            Doc("faq.pdf", 0.9, "knowledge_base", 400),
            Doc("faq.pdf", 0.9, "internal-hr", 5),
        )
    ]

    assert [
        "Retrieved from blocked source 'deprecated-kb'",
        "Source age (400 days) exceeds max (90 days)",
        "Collection 'internal-hr' not in allowed list",
    ] == reasons
    assert synthesize([good], query) == asyncio.run(catch_policy_violations([good]))


def test_using_the_decorator() -> None:
    document = {"score": 0.9, "source": "faq.pdf", "collection": "knowledge_base", "age_days": 3}

    assert synthesize([document], query) == asyncio.run(run_rag(query, [document]))
    try:
        asyncio.run(run_rag(query, [document | {"collection": "internal-hr"}]))
    except PolicyViolationError as e:
        reason, decision = str(e), e.decision
    assert "Collection 'internal-hr' not in allowed list" == reason
    assert {"collection": "internal-hr", "allowed": ["knowledge_base"]} == decision.metadata


def test_recording_grounding_data_and_handling_violations() -> None:
    assert "Grounding audit passed (3 citations)" == asyncio.run(record_grounding_data())
    expected = "Grounding policy blocked: Grounding score (0.42) below threshold (0.8); I cannot say."
    assert expected == asyncio.run(record_grounding_data([0.9, 0.42]))


def test_grounding_data_accumulates() -> None:
    ctx = asyncio.run(accumulate())

    assert ["Grounding scores within policy (2 scores)"] * 2 == [each.reason for each in ctx.decisions if each.phase == "mid_execution"]
    assert {"citation_count": 4} == ctx.decisions[-1].metadata
