"""A profile in words: every rule is said, every number and list comes from the data, and it is short."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evidentia.contracts.protocol import ProtocolRule, SkillTool
from evidentia.policy.protocol_profiles import PROFILES, profile_of
from evidentia.policy.protocol_prompt import render
from evidentia.text.counting import count_tokens

RULES = [(name, rule) for name, profile in PROFILES.items() for rule in profile.sections]
MAX_TOKENS = 1_100


def changed(base: str, **changes: Any) -> str:
    return render(profile_of({"based_on": base, "name": "mine", **changes}))


@pytest.mark.parametrize(("name", "rule"), RULES)
def test_every_rule_is_said_in_a_line_of_its_own(name: str, rule: ProtocolRule) -> None:
    profile = PROFILES[name]
    without = msgspec.structs.replace(profile, sections={each: where for each, where in profile.sections.items() if each is not rule})

    gone = [line for line in render(profile).splitlines() if line not in render(without).splitlines()]
    assert 1 <= sum(line.startswith("- ") for line in gone)
    assert [] == [line for line in render(without).splitlines() if line not in render(profile).splitlines()]


CHANGES: list[tuple[str, dict[str, Any], str]] = [
    ("first_call", {"call_cap": 7}, "At most 7 retrieval calls"),
    ("first_call", {"call_cap": 7}, "or after call 7"),
    ("first_call", {"top_k": {"lookup": 11}}, "11 to look up"),
    ("first_call", {"top_k": {"moderate": 12}}, "12 to combine"),
    ("first_call", {"top_k": {"broad": 13}}, "13 for lists"),
    ("first_call", {"top_k": {"unsure": 14}}, "left out: 14"),
    ("first_call", {"top_k": {"retry": 15}}, "On a retry use 15"),
    ("thorough", {"top_k": {"steps": [5, 10, 20]}}, "5 → 10 → 20"),
    ("first_call", {"most_citations": 4}, "At most 4 to a paragraph"),
    ("first_call", {"least_containment": 0.8}, "80% of the names"),
    ("first_call", {"table_first": ["price", "inventory"]}, "kinds price and inventory;"),
    ("first_call", {"text_first": ["definition"]}, "pure definition questions"),
    ("first_call", {"variants": ["spellings", "nicknames"]}, "spellings and nicknames"),
    ("first_call", {"expanded_more": ["glossary"]}, "Widen glossary queries"),
    ("first_call", {"forbidden_tools": ["Peek", "Poke"]}, "Peek or Poke"),
    ("first_call", {"insufficient": ["empty", "partial"]}, "empty or only part of what was asked;"),
    ("first_call", {"first_retry": "next_source"}, "ask the next source at once"),
    ("first_call", {"order": [["text"], ["table"]]}, "rag_retrieve → table_rag_retrieve"),
    ("first_call", {"self_knowledge": {"forbidden": ["birthdays"]}}, "Never supply birthdays of your own"),
    ("first_call", {"self_knowledge": {"is_enabled": True}}, "You may add general knowledge"),
    ("first_call", {"self_check": ["Is it short?"]}, "- Is it short?"),
    ("first_call", {"title": "Ours"}, "# Retrieval protocol: Ours"),
]


@pytest.mark.parametrize(("base", "change", "said"), CHANGES)
def test_what_is_said_comes_from_the_data(base: str, change: dict[str, Any], said: str) -> None:
    assert said in changed(base, **change)
    assert said not in render(PROFILES[base])


def test_tasks_are_told_apart_where_the_profile_does() -> None:
    assert "Work on code is free" in render(PROFILES["first_call"])
    assert "Work on code is free" not in render(PROFILES["thorough"])
    assert "read that file" not in changed("first_call", allows_explicit_file=False)


def test_skills_are_named_in_one_line_each() -> None:
    text = render(PROFILES["thorough"], skills=("hr", SkillTool(name="crm", description="customers\n## and orders", topics=("x",))))

    assert "- Skill tool `hr`\n- Skill tool `crm`: customers ## and orders\n" in text


@pytest.mark.parametrize("name", list(PROFILES))
def test_a_prompt_is_short(name: str) -> None:
    assert count_tokens(render(PROFILES[name])) <= MAX_TOKENS


@pytest.mark.parametrize("name", list(PROFILES))
def test_the_same_profile_gives_the_same_text(name: str) -> None:
    assert render(PROFILES[name]) == render(profile_of(msgspec.to_builtins(PROFILES[name])))
