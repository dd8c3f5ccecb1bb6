"""Sync and async code decide the same on any trace, call by call, and so does a run whose calls are decided about at its end."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.agents import Context, PolicyViolationError

Step = tuple[str, dict[str, Any]]

SCORES = st.sampled_from([0.0, 0.3, 0.5, 0.69, 0.7, 0.9, 1.0, 1.5, -0.1])
ACTIONS = st.sampled_from(["warn", "block"])
DOCUMENT = st.fixed_dictionaries(
    {
        "relevance_score": SCORES,
        "source": st.sampled_from(["a", "b", "bad"]),
        "collection": st.sampled_from(["kb", "hr", ""]),
        "age_days": st.sampled_from([None, 0, 90, 91, 400]),
        "batch_id": st.sampled_from([None, None, "q1", "q2"]),
    }
)
GROUNDING = st.fixed_dictionaries(
    {
        "grounding_scores": st.lists(SCORES.filter(lambda score: 0 <= score <= 1), max_size=3),
        "citations": st.lists(st.sampled_from(["x", "y"]), max_size=2),
        "unsupported_claims": st.lists(st.just("claim"), max_size=2),
        "output_confidence": st.sampled_from([None, 0.2, 0.5, 0.9]),
    }
)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("record_retrieval_result"), DOCUMENT),
    st.tuples(st.just("record_grounding"), GROUNDING),
    st.tuples(st.just("record_llm_call"), st.just({"model": "m"})),
    st.tuples(st.just("record_tool_call"), st.sampled_from([{"name": "vector_search"}, {"name": "mail"}])),
    st.tuples(st.just("set_tag"), st.just({"key": "k", "value": "v"})),
)
RETRIEVAL = st.fixed_dictionaries(
    {
        "min_chunks": st.integers(0, 2),
        "max_chunks": st.integers(2, 4),
        "allowed_collections": st.sampled_from([[], ["kb", ""]]),
        "blocked_sources": st.sampled_from([[], ["bad"]]),
        "action_on_low_relevance": ACTIONS,
        "action_on_stale_source": ACTIONS,
        "action_on_chunk_violation": ACTIONS,
        "action_on_unknown_age": st.sampled_from(["allow", "warn", "block"]),
        "require_source_diversity": st.booleans(),
    }
)
CLAIMS = st.fixed_dictionaries(
    {
        "min_citations": st.integers(0, 2),
        "max_unsupported_claims": st.sampled_from([None, 0, 1]),
        "abstention_threshold": st.sampled_from([None, 0.5]),
        "action_on_violation": ACTIONS,
    }
)
POLICIES = st.tuples(RETRIEVAL, RETRIEVAL, CLAIMS).map(
    lambda rules: [
        {"name": "First", "category": "retrieval", "rules": rules[0]},
        {"name": "Second", "category": "retrieval", "rules": rules[1], "priority": 50},
        {"name": "Claims", "category": "grounding", "rules": rules[2]},
    ]
)


def _play(ctx: Context, steps: list[Step], heard: list[str]) -> None:
    for name, fields in steps:
        try:
            getattr(ctx, name)(**fields)
        except PolicyViolationError as error:
            heard.append(str(error))
        else:
            heard.append("")


def _account(ctx: Context) -> list[tuple[object, ...]]:
    return [
        (
            each.kind,
            each.phase,
            each.category,
            each.policy_name,
            each.rule,
            each.action,
            each.reason,
            each.metadata,
            each.status,
            each.is_enforced,
        )
        for each in ctx.decisions
    ]


def _told(ctx: Context, heard: list[str]) -> tuple[object, ...]:
    return heard, _account(ctx), ctx.status, [warning.reason for warning in ctx.take_feedback()]


def _sync(steps: list[Step], fields: dict[str, Any]) -> tuple[object, ...]:
    heard: list[str] = []
    ctx = Context("a", **fields)
    try:
        with ctx:
            _play(ctx, steps, heard)
    except PolicyViolationError as error:
        heard.append(str(error))
    return _told(ctx, heard)


def _async(steps: list[Step], fields: dict[str, Any]) -> tuple[object, ...]:
    heard: list[str] = []
    ctx = Context("a", **fields)

    async def run() -> None:
        async with ctx:
            _play(ctx, steps, heard)

    try:
        asyncio.run(run())
    except PolicyViolationError as error:
        heard.append(str(error))
    return _told(ctx, heard)


@settings(max_examples=60)
@given(steps=st.lists(STEPS, max_size=8), policies=POLICIES, enforce=st.booleans())
def test_sync_and_async_decide_the_same(steps: list[Step], policies: list[dict[str, Any]], enforce: bool) -> None:  # noqa: FBT001 - drawn
    fields = {"policies": policies, "enforce_policy": enforce}

    assert _sync(steps, fields) == _async(steps, fields)


@settings(max_examples=40)
@given(steps=st.lists(STEPS, max_size=8), policies=POLICIES)
def test_what_is_decided_at_the_end_is_what_would_have_been_decided_at_the_calls(steps: list[Step], policies: list[dict[str, Any]]) -> None:
    at_the_call = _sync(steps, {"policies": policies})
    at_the_end = _sync(steps, {"policies": policies, "mid_execution_governance": False})

    assert at_the_call[1:3] == at_the_end[1:3]


@settings(max_examples=40)
@given(steps=st.lists(STEPS, max_size=8), policies=POLICIES)
def test_a_run_in_shadow_decides_the_same_actions_and_raises_nothing(steps: list[Step], policies: list[dict[str, Any]]) -> None:
    heard, decisions, status, feedback = _sync(steps, {"policies": policies, "enforce_policy": False})
    _, enforced, *_ = _sync(steps, {"policies": policies})

    assert [""] * len(steps) == heard
    assert ("success", []) == (status, feedback)
    assert [decision[:8] for decision in enforced] == [decision[:8] for decision in decisions]  # type: ignore[attr-defined]  # lists
