"""Traces checked after the fact: correct ones are clean, each break is found and named, with its section and place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_traces import KEYS, KEYS_REPLY, KEYS_RESULT, NOTHING, PRICE, PRICE_REPLY, PRICES, ask, keys_trace, price_trace, text_result

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.protocol import AgentTrace, SkillTool, TracedCall, TraceFinding
from evidentia.protocol import lint_trace

NOT_FOUND = "No relevant information was found."
FAILED = ask("table_rag_retrieve", "Falcon plan price per month", NOTHING)
FOUND = ask("table_rag_retrieve", "Falcon plan price per month", PRICES)
SKILL = SkillTool(name="plan_lookup", topics=("plan",))
STRAYING = "Falcon plan gardening tomatoes fertiliser pruning roses seeds"


def rules(trace: AgentTrace, **options: Any) -> list[str]:
    return [found.rule.value for found in lint_trace(trace, **options)]


@pytest.mark.parametrize("profile", ["first_call", "thorough"])
def test_correct_traces_are_clean(profile: str) -> None:
    retried = (
        ask("rag_retrieve", "signing key rotation steps", NOTHING, top_k=50),
        ask("rag_retrieve", "rotate signing keys procedure", KEYS_RESULT, top_k=100),
    )
    switched = (
        ask("rag_retrieve", "signing key rotation steps", NOTHING, top_k=50),
        ask("table_rag_retrieve", "signing key rotation schedule", "no excel files found\n" + KEYS_RESULT),
    )

    assert [] == rules(price_trace(profile=profile))
    assert [] == rules(keys_trace(profile=profile))
    assert [] == rules(keys_trace(profile=profile, calls=retried if profile == "first_call" else switched))
    assert [] == rules(price_trace(profile=profile, skills=(SKILL,), calls=(ask("plan_lookup", "Falcon plan price", PRICES),)))


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("filesystem_tools", {"calls": (TracedCall(name="Grep", arguments={"pattern": "Falcon"}), FOUND)}),
        ("allowed_tools", {"calls": (TracedCall(name="web_search", arguments={"query": "Falcon plan price"}), FOUND)}),
        ("skill_first", {"skills": (SKILL,)}),
        ("answer_before_retrieval", {"calls": ()}),
        (
            "tool_choice",
            {"calls": (ask("rag_retrieve", "Falcon plan price per month", text_result("The Falcon plan costs 20 EUR."), top_k=50),)},
        ),
        ("raw_query", {"calls": (ask("table_rag_retrieve", PRICE.upper(), PRICES),)}),
        ("lost_entity", {"calls": (ask("table_rag_retrieve", "monthly plan price", PRICES),)}),
        ("foreign_topic", {"calls": (ask("table_rag_retrieve", STRAYING, PRICES),)}),
        ("top_k_tool", {"calls": (ask("table_rag_retrieve", "Falcon plan price per month", PRICES, top_k=50),)}),
        ("needless_call", {"calls": (FOUND, ask("table_rag_retrieve", "Falcon price monthly fee", PRICES))}),
        ("stopped_early", {"calls": (FAILED,)}),
        ("retry_order", {"calls": (FAILED, ask("rag_retrieve", "Falcon plan price", text_result("Falcon: 20 EUR per month."), top_k=100))}),
        ("repeated_query", {"calls": (FAILED, FOUND)}),
        ("early_not_found", {"calls": (FAILED,), "reply": NOT_FOUND}),
        ("citation_missing", {"reply": "The Falcon plan costs 20 EUR per month."}),
        ("self_check", {"is_self_checked": False}),
    ],
)
def test_each_break_is_found_and_named(rule: str, changes: dict[str, Any]) -> None:
    found = lint_trace(price_trace(**changes))

    assert rule in [each.rule.value for each in found]
    assert all(each.section.startswith("first_call.") and each.reason for each in found)


def test_top_k_and_cap_are_judged() -> None:
    wide = keys_trace(calls=(ask("rag_retrieve", "signing key rotation steps", KEYS_RESULT, top_k=100),))
    queries = ("signing key rotation steps", "rotate signing keys", "signing keys renewal", "key rotation of signing keys")
    four = keys_trace(
        calls=tuple(ask("rag_retrieve", query, NOTHING, top_k=100 if place else 50) for place, query in enumerate(queries)), reply=NOT_FOUND
    )

    assert ["top_k_value"] == rules(wide)
    assert "call_cap" in rules(four)
    assert [4] == [found.call for found in lint_trace(four) if found.rule.value == "call_cap"]


def test_calls_at_the_same_time_are_found_and_their_order_is_that_of_their_beginnings() -> None:
    late = TracedCall(name="table_rag_retrieve", arguments={"query": "Falcon price list"}, result=PRICES, start=1.0, end=3.0)
    early = TracedCall(name="table_rag_retrieve", arguments={"query": "Falcon plan price per month"}, result=NOTHING, start=0.0, end=2.0)
    apart = msgspec.structs.replace(late, start=2.0, end=3.0)

    assert [("sequential", 2)] == [
        (found.rule.value, found.call) for found in lint_trace(price_trace(calls=(late, early))) if found.rule.value == "sequential"
    ]
    assert [] == rules(price_trace(calls=(apart, early)))


def test_impossible_times_are_refused_by_name() -> None:
    backwards = TracedCall(name="rag_retrieve", start=2.0, end=1.0)

    with pytest.raises(InvalidFieldError, match=r"calls\[1\].end"):
        lint_trace(price_trace(calls=(FOUND, backwards)))
    with pytest.raises(InvalidFieldError, match=r"calls\[0\].start"):
        lint_trace(price_trace(calls=(TracedCall(name="rag_retrieve", start=float("nan")),)))


def test_profile_is_the_traces_own_unless_another_is_given() -> None:
    trace = price_trace(calls=(FOUND, ask("table_rag_retrieve", "Falcon price monthly fee", PRICES)))

    assert "needless_call" in rules(trace)
    assert "needless_call" not in rules(trace, profile="thorough")
    assert "call_cap" in rules(trace, profile={"based_on": "first_call", "name": "single", "call_cap": 1})


def test_code_task_is_free_and_labels_win() -> None:
    read = TracedCall(name="Read", arguments={"file_path": "src/app.py"}, result="x = 1")
    trace = AgentTrace(question="Fix the failing test in tests/test_parser.py.", calls=(read,), reply="Done.")

    assert [] == rules(trace)
    assert "filesystem_tools" in rules(msgspec.structs.replace(trace, task="knowledge"))


def test_portion_of_a_mixed_task_is_taken_from_the_trace() -> None:
    question = "Look up the refund policy and implement the matching check in refunds.py."
    read = TracedCall(name="Read", arguments={"file_path": "src/refunds.py"}, result="x = 1")

    assert "code_portion" not in rules(AgentTrace(question=question, calls=(read,)))
    assert "code_portion" in rules(AgentTrace(question=question, calls=(msgspec.structs.replace(read, portion="knowledge"),)))


def test_linting_twice_gives_the_same_findings() -> None:
    trace = price_trace(calls=(FAILED, FOUND), reply="The Falcon plan costs 20 EUR.", is_self_checked=False)
    first = lint_trace(trace)

    assert first == lint_trace(trace)
    assert all(isinstance(found, TraceFinding) for found in first)


def test_traces_survive_their_json() -> None:
    trace = keys_trace(reply=KEYS_REPLY)
    again = msgspec.json.decode(msgspec.json.encode(trace), type=AgentTrace)

    assert trace == again
    assert KEYS == again.question
    assert PRICE_REPLY not in again.reply


_TEXTS = st.one_of(st.text(max_size=80), st.sampled_from([PRICE, PRICES, KEYS_RESULT, NOTHING, "no excel files found", PRICE_REPLY]))
_CALLS = st.builds(
    TracedCall,
    name=st.one_of(_TEXTS, st.sampled_from(["rag_retrieve", "table_rag_retrieve", "local_file_retrieve", "Bash", "Read"])),
    arguments=st.dictionaries(st.sampled_from(["query", "top_k", "command", "file_path"]), st.one_of(_TEXTS, st.integers(), st.none())),
    result=_TEXTS,
)


@given(question=_TEXTS, calls=st.lists(_CALLS, max_size=4), reply=_TEXTS, profile=st.sampled_from(["first_call", "thorough"]))
def test_any_trace_is_linted_the_same_twice(question: str, calls: list[TracedCall], reply: str, profile: str) -> None:
    trace = AgentTrace(question=question, calls=tuple(calls), reply=reply, profile=profile)

    assert lint_trace(trace) == lint_trace(trace)
