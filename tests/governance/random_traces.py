"""Random policies and random runs under them, from a seed. Values come from small pools, so that limits are met exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

Fields = dict[str, Any]  # JSON: a policy's body, or a call

SCORES = (0.0, 0.1, 0.29, 0.3, 0.42, 0.5, 0.55, 0.6, 0.65, 0.69, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
RELEVANCES = (*SCORES, -0.2, 1.5, 0.123456)
THRESHOLDS = (0.0, 0.3, 0.5, 0.6, 0.7, 0.7, 0.8, 0.9, 1.0)
AGES = (None, 0, 1, 30, 31, 89.5, 90, 91, 400)
SOURCES = ("a.pdf", "b.pdf", "c.pdf", "bad", "old", "")
COLLECTIONS = ("kb", "kb", "docs", "hr", "")
BATCHES = (None, None, None, "q1", "q2")
ACTIONS = ("warn", "block")
AGENTS = ("rag-agent", "rag-agent-2", "writer")
SCOPES: tuple[Fields, ...] = (
    {},
    {},
    {},
    {"agents": ["rag-agent"]},
    {"agents": ["rag-*"]},
    {"agents": ["writer", "rag-agent-?"]},
    {"exclude_agents": ["writer"]},
    {"agents": ["rag-*"], "exclude_agents": ["rag-agent-2"]},
    {"users": ["u1"]},
    {"users": ["u*"], "exclude_users": ["u2"]},
)
USERS = ("", "u1", "u2")
MODELS = ("gpt-4o-mini", "claude-sonnet-4-20250514", "llama-3.1-8b-instant", "local:lexical")
FAULTS = ("unparseable", "no_key", "unavailable", "timed_out", "source_unavailable", "not_configured")


@dataclass(frozen=True, kw_only=True)
class World:
    """A run under policies."""

    policies: tuple[Fields, ...]
    facts: Fields
    trace: tuple[Fields, ...]
    """It ends with the end."""
    is_enforced: bool


def world_of(seed: int) -> World:
    """Return the run of a seed."""
    random = Random(seed)
    count = random.choice((1, 1, 1, 2, 2, 3, 4))
    policies = tuple(_policy(random, place) for place in range(count))
    facts = {"agent_name": random.choice(AGENTS), "user_id": random.choice(USERS)}
    calls = [_call(random, policies) for _ in range(random.choice((0, 1, 3, 5, 8, 13)))]
    status = random.choice(("success", "success", "success", "error"))
    end = {"kind": "end", "status": status, "judgements": _judgements(random, policies)}
    return World(policies=policies, facts=facts, trace=(*calls, end), is_enforced=random.random() > 0.15)


def as_agents_see_it(world: World) -> World:
    """Return the run as an agent can record it: only batches with a name are closed, and before a model has spoken nothing is judged."""
    seen, has_spoken = [], False
    for call in world.trace:
        if call["kind"] == "batch" and call["batch"] is None:
            continue
        has_spoken = has_spoken or call["kind"] == "llm"
        is_mute = call["kind"] == "grounding" and not has_spoken
        mute = {name: {"status": "source_unavailable", "score": None} for name in call.get("judgements", {})}
        seen.append({**call, "judgements": mute} if is_mute else call)
    return replace(world, trace=tuple(seen))


def _policy(random: Random, place: int) -> Fields:
    category = random.choice(("retrieval", "grounding"))
    rules = _retrieval(random) if category == "retrieval" else _grounding(random, place)
    kept = {name: value for name, value in rules.items() if random.random() < 0.6}
    if kept.get("min_chunks", 1) > kept.get("max_chunks", 10):
        kept["min_chunks"] = kept.get("max_chunks", 10)
    return {
        "name": f"{random.choice('ABC')}{place}",
        "category": category,
        "rules": kept,
        "scope": random.choice(SCOPES),
        "enabled": random.random() > 0.1,
        "priority": random.choice((10, 100, 100, 200)),
        "compat": random.choice(("resolved", "resolved", "resolved", "literal")),
        "posture": random.choice(
            ({}, {}, {"*": "degrade"}, {"llm_grounding_check": "closed"}, {"*": "closed", "llm_grounding_check": "open"})
        )
        if category == "grounding"
        else {},
        "enforcement": random.choice(("enforce", "enforce", "enforce", "shadow")),
    }


def _retrieval(random: Random) -> Fields:
    return {
        "min_relevance_score": random.choice(THRESHOLDS),
        "max_source_age_days": random.choice((0, 30, 90, 365)),
        "min_chunks": random.choice((0, 1, 2, 3)),
        "max_chunks": random.choice((1, 2, 3, 5, 10)),
        "allowed_collections": random.choice(([], [], ["kb"], ["kb", "docs"])),
        "blocked_sources": random.choice(([], ["bad"], ["old", "bad"], [""])),
        "require_source_diversity": random.random() < 0.7,
        "max_single_source_ratio": random.choice((0.0, 0.125, 0.25, 0.3, 0.5, 0.6, 0.75, 1.0)),
        "action_on_low_relevance": random.choice(ACTIONS),
        "action_on_stale_source": random.choice(ACTIONS),
        "action_on_chunk_violation": random.choice(ACTIONS),
        "action_on_unknown_age": random.choice(("allow", *ACTIONS)),
    }


def _grounding(random: Random, place: int) -> Fields:
    return {
        "require_source_grounding": random.random() < 0.5,
        "min_grounding_score": random.choice(THRESHOLDS),
        "min_citations": random.choice((0, 1, 2, 3)),
        "max_unsupported_claims": random.choice((None, 0, 1, 3)),
        "factual_consistency_check": random.random() < 0.2,
        "abstention_threshold": random.choice((None, 0.5, 0.7)),
        "abstention_response": random.choice((None, "I do not know.")),
        "action_on_violation": random.choice(ACTIONS),
        "score_relevance_floor": random.choice((None, 0.0, 0.3, 0.5)),
        "score_eval_mode": random.choice(("all", "average", "top_n")),
        "score_top_n": random.choice((1, 2, 3)),
        "llm_grounding_check": random.random() < 0.6,
        "llm_grounding_model": MODELS[place % len(MODELS)],
        "llm_grounding_threshold": random.choice((0.3, 0.5, 0.7, 0.9)),
        "llm_grounding_criteria": random.choice(("", "quote the law")),
        "llm_grounding_phase": random.choice(("mid_execution", "after_workflow", "both")),
        "unique_citations": random.random() < 0.3,
        "confidence_mode": random.choice(("last", "min")),
    }


def _call(random: Random, policies: tuple[Fields, ...]) -> Fields:
    kind = random.choice(("retrieval",) * 6 + ("grounding",) * 3 + ("batch", "tool", "llm", "step"))
    if kind == "retrieval":
        return {
            "kind": kind,
            "score": random.choice(RELEVANCES),
            "source": random.choice(SOURCES),
            "collection": random.choice(COLLECTIONS),
            "age": random.choice(AGES),
            "batch": random.choice(BATCHES),
        }
    if kind == "grounding":
        return {
            "kind": kind,
            "scores": [random.choice(SCORES) for _ in range(random.choice((0, 1, 2, 3, 5)))],
            "citations": [random.choice("abc") for _ in range(random.choice((0, 0, 1, 2)))],
            "unsupported": [random.choice("xyz") for _ in range(random.choice((0, 0, 1, 2)))],
            "confidence": random.choice((None, 0.0, 0.42, 0.5, 0.69, 0.9)),
            "judgements": _judgements(random, policies),
        }
    if kind == "batch":
        return {"kind": kind, "batch": random.choice(BATCHES)}
    return {"kind": kind, "name": random.choice(("plan", "calculator")), "is_retrieval": kind == "tool" and random.random() < 0.4}


def _judgements(random: Random, policies: tuple[Fields, ...]) -> dict[str, Fields]:
    """Return what the judge would say for each policy, should it be asked; policies with one model hear the same."""
    by_model: dict[str, Fields] = {}
    for policy in policies:
        status = random.choice(("judged",) * 6 + FAULTS)
        scores: dict[str, Any] = {"judged": random.choice(SCORES), "unparseable": 0.5}
        by_model.setdefault(_model_of(policy), {"status": status, "score": scores.get(status)})
    return {policy["name"]: by_model[_model_of(policy)] for policy in policies}


def _model_of(policy: Fields) -> str:
    return str(policy["rules"].get("llm_grounding_model", MODELS[0]))
