"""Policies to start from: four for retrieval, seven for grounding, two for the protocol, each with only the rules that matter.

They are bodies as an author writes them; give one a scope and put it in force.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from evidentia.contracts.policies import PolicyBody

if TYPE_CHECKING:
    from collections.abc import Mapping

_RETRIEVAL: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {  # Any: rules as an author writes them
    "Standard RAG Quality Gate": (
        "Warns of weak and old sources of a knowledge base; name collections and sources of your own to block others.",
        {
            "min_relevance_score": 0.2,
            "max_source_age_days": 365,
            "min_chunks": 1,
            "max_chunks": 10,
            "action_on_low_relevance": "warn",
            "action_on_stale_source": "warn",
        },
    ),
    "Off-topic Gate": (
        "Withholds what does not belong to the question, and stops a run that is left without evidence; for governance=filter.",
        {
            "min_relevance_score": 0.3,
            "max_source_age_days": 365,
            "min_chunks": 1,
            "action_on_low_relevance": "block",
            "action_on_stale_source": "warn",
            "action_on_chunk_violation": "block",
        },
    ),
    "Strict Compliance Retrieval": (
        "Blocks on any violation, for places where stale or weak sources cannot be used; add the collections that are allowed.",
        {
            "min_relevance_score": 0.80,
            "max_source_age_days": 30,
            "min_chunks": 2,
            "max_chunks": 5,
            "require_source_diversity": True,
            "max_single_source_ratio": 0.5,
            "action_on_low_relevance": "block",
            "action_on_stale_source": "block",
            "action_on_chunk_violation": "block",
        },
    ),
    "Lenient Monitoring": (
        "Warns and never blocks, to watch retrieval before stricter rules are put in force.",
        {
            "min_relevance_score": 0.5,
            "max_source_age_days": 365,
            "action_on_low_relevance": "warn",
            "action_on_stale_source": "warn",
        },
    ),
}

_GROUNDING: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {  # Any: as above
    "RAG Pipeline": (
        "For scores that are similarities: the tail below the floor is left out.",
        {
            "min_grounding_score": 0.7,
            "score_relevance_floor": 0.5,
            "score_eval_mode": "all",
            "min_citations": 1,
            "action_on_violation": "block",
        },
    ),
    "Lenient Average-Based": (
        "Warns when the mean of the relevant scores is low.",
        {
            "min_grounding_score": 0.7,
            "score_relevance_floor": 0.4,
            "score_eval_mode": "average",
            "action_on_violation": "warn",
        },
    ),
    "Strict Research Assistant": (
        "Blocks low scores, missing citations, unsupported claims and low confidence.",
        {
            "require_source_grounding": True,
            "min_grounding_score": 0.8,
            "min_citations": 2,
            "max_unsupported_claims": 0,
            "abstention_threshold": 0.5,
            "abstention_response": "I don't have sufficient grounded evidence to answer this accurately.",
            "action_on_violation": "block",
        },
    ),
    "Medical Q&A": (
        "High standards: abstain rather than guess.",
        {
            "require_source_grounding": True,
            "min_grounding_score": 0.9,
            "min_citations": 3,
            "max_unsupported_claims": 0,
            "abstention_threshold": 0.7,
            "abstention_response": (
                "I cannot provide a reliable answer based on available evidence. Please consult a qualified professional."
            ),
            "action_on_violation": "block",
        },
    ),
    "Lenient RAG Agent": (
        "Warns during development and never blocks.",
        {
            "require_source_grounding": False,
            "min_grounding_score": 0.6,
            "min_citations": 1,
            "max_unsupported_claims": 3,
            "abstention_threshold": None,
            "action_on_violation": "warn",
        },
    ),
    "Citation-Only Enforcement": (
        "Requires citations, for agents that have no scores.",
        {
            "require_source_grounding": True,
            "min_citations": 1,
            "max_unsupported_claims": 2,
            "action_on_violation": "block",
        },
    ),
    "LLM Grounding Judge": (
        "A model reads the final output and its sources.",
        {
            "require_source_grounding": True,
            "min_grounding_score": 0.7,
            "min_citations": 2,
            "max_unsupported_claims": 0,
            "abstention_threshold": 0.5,
            "action_on_violation": "block",
            "llm_grounding_check": True,
            "llm_grounding_model": "gpt-4o-mini",
            "llm_grounding_threshold": 0.7,
            "llm_grounding_phase": "after_workflow",
        },
    ),
}

_PROTOCOL: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {  # Any: as above
    "First Call": (
        "Expects the first retrieval call to do: at most three calls, no file system, cited replies; warns.",
        {"profile": "first_call", "action_on_violation": "warn"},
    ),
    "Thorough Search": (
        "Asks every source, local files last, before it gives up; warns.",
        {"profile": "thorough", "action_on_violation": "warn"},
    ),
}


def _bodies(category: str, given: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, PolicyBody]:
    return {
        name: PolicyBody(name=name, category=category, description=description, rules=rules) for name, (description, rules) in given.items()
    }


TEMPLATES: Final[Mapping[str, PolicyBody]] = MappingProxyType(
    {**_bodies("retrieval", _RETRIEVAL), **_bodies("grounding", _GROUNDING), **_bodies("protocol", _PROTOCOL)}
)
"""By name."""
