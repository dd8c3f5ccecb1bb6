"""The profiles of the agent protocol are data: two come with it, others are derived, and what is wrong is named by its path."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.protocol import FirstRetry, Profile, ProtocolRule, QuestionType, Shortfall, ToolRole
from evidentia.policy.protocol_profiles import PROFILES, active_rules, profile_of, profile_problems

FIRST_CALL, THOROUGH = PROFILES["first_call"], PROFILES["thorough"]


def test_there_are_two_profiles() -> None:
    assert ["first_call", "thorough"] == list(PROFILES)


def test_the_lists_of_types_differ_in_three() -> None:
    only_thorough = [each for each in THOROUGH.table_first if each not in FIRST_CALL.table_first]

    assert [QuestionType.INVENTORY, QuestionType.SUMMARY, QuestionType.EXTRACTION] == only_thorough
    assert [] == [each for each in FIRST_CALL.table_first if each not in THOROUGH.table_first]
    assert FIRST_CALL.text_first == THOROUGH.text_first


def test_thorough_names_a_beginning_for_every_type_of_question() -> None:
    assert set(QuestionType) == {*THOROUGH.table_first, *THOROUGH.text_first}


def test_the_profiles_differ_in_their_numbers() -> None:
    first, last = FIRST_CALL.top_k, THOROUGH.top_k

    assert (50, 50, 100, 50, 100, (50, 100)) == (first.lookup, first.moderate, first.broad, first.unsure, first.retry, first.steps)
    assert (30, 50, 100, 100, None, (30, 50, 100)) == (last.lookup, last.moderate, last.broad, last.unsure, last.retry, last.steps)
    assert (3, None) == (FIRST_CALL.call_cap, THOROUGH.call_cap)
    assert (FirstRetry.SAME_TOOL, FirstRetry.NEXT_SOURCE) == (FIRST_CALL.first_retry, THOROUGH.first_retry)


def test_what_is_insufficient_for_one_is_so_for_the_other() -> None:
    assert set(Shortfall) == set(THOROUGH.insufficient)
    assert {Shortfall.EMPTY, Shortfall.ERROR, Shortfall.NO_SPREADSHEET, Shortfall.OFF_TOPIC} == set(FIRST_CALL.insufficient)


def test_local_files_are_the_last_source_of_one_and_none_of_the_other() -> None:
    assert (ToolRole.LOCAL,) == THOROUGH.order[-1]
    assert ToolRole.LOCAL not in [role for step in FIRST_CALL.order for role in step]


def test_every_rule_belongs_to_a_profile() -> None:
    assert set(ProtocolRule) == {*FIRST_CALL.sections, *THOROUGH.sections}
    assert {ProtocolRule.SOURCE_ORDER} == set(THOROUGH.sections) - set(FIRST_CALL.sections)


def test_every_section_with_rules_is_named() -> None:
    numbers = [*range(10), 11, 12]

    assert {f"first_call.{number}" for number in numbers} == set(FIRST_CALL.sections.values())
    assert {f"thorough.{number}" for number in range(1, 8)} == set(THOROUGH.sections.values())


def test_six_questions_are_asked_before_a_reply() -> None:
    assert (6, 0) == (len(set(FIRST_CALL.self_check)), len(THOROUGH.self_check))


def test_a_profile_is_found_by_its_name_and_stays_itself() -> None:
    for profile in PROFILES.values():
        assert profile is profile_of(profile.name)
        assert profile == profile_of(profile)
        assert profile == profile_of(msgspec.json.decode(msgspec.json.encode(profile)))


def test_a_derived_profile_changes_what_it_names_and_nothing_else() -> None:
    mine = profile_of({"based_on": "first_call", "name": "mine", "call_cap": 2, "top_k": {"lookup": 20}})

    assert ("mine", 2, 20, 50) == (mine.name, mine.call_cap, mine.top_k.lookup, mine.top_k.moderate)
    assert FIRST_CALL == msgspec.structs.replace(mine, name="first_call", call_cap=3, top_k=FIRST_CALL.top_k)


def test_a_derived_profile_leaves_rules_out_and_takes_others_in() -> None:
    mine = profile_of({"based_on": "first_call", "name": "mine", "sections": {"raw_query": None, "source_order": "house 3"}})

    assert ProtocolRule.RAW_QUERY not in mine.sections
    assert "house 3" == mine.sections[ProtocolRule.SOURCE_ORDER]
    assert len(FIRST_CALL.sections) == len(mine.sections)


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        ({"rewrites_queries": False}, {ProtocolRule.RAW_QUERY}),
        ({"call_cap": None}, {ProtocolRule.CALL_CAP}),
        ({"states_truncation": False}, {ProtocolRule.TRUNCATION_COUNTS}),
        ({"handles_images": False}, {ProtocolRule.IMAGE_IGNORED, ProtocolRule.IMAGE_MISPLACED, ProtocolRule.IMAGES_AT_END}),
        ({"self_check": []}, {ProtocolRule.SELF_CHECK}),
    ],
)
def test_a_setting_turns_its_rules_off(change: dict[str, Any], rules: set[ProtocolRule]) -> None:
    mine = profile_of({"based_on": "first_call", "name": "mine", **change})

    assert rules == set(active_rules(FIRST_CALL)) - set(active_rules(mine))


BAD: list[tuple[Any, str, str]] = [
    ("first-cal", "profile", "did you mean 'first_call'"),
    ("zzz", "profile", "there are 'first_call' and 'thorough'"),
    (7, "profile", "expected the name of a profile"),
    ({"based_on": "thorow", "name": "x"}, "profile.based_on", "did you mean 'thorough'"),
    ({"based_on": 7, "name": "x"}, "profile.based_on", "expected the name"),
    ({"based_on": "thorough"}, "profile.name", "is required"),
    ({"based_on": "thorough", "name": ""}, "profile.name", "is empty"),
    ({"based_on": "thorough", "name": "x", "callcap": 1}, "profile.callcap", "did you mean 'call_cap'"),
    ({"based_on": "thorough", "name": "x", "call_cap": "many"}, "profile.call_cap", "expected a whole number"),
    ({"based_on": "thorough", "name": "x", "call_cap": 0}, "profile.call_cap", "less than 1"),
    ({"based_on": "thorough", "name": "x", "most_citations": 0}, "profile.most_citations", "less than 1"),
    ({"based_on": "thorough", "name": "x", "least_containment": 1.5}, "profile.least_containment", "not between 0 and 1"),
    ({"based_on": "thorough", "name": "x", "least_containment": float("nan")}, "profile.least_containment", "not a finite number"),
    ({"based_on": "thorough", "name": "x", "top_k": 3}, "profile.top_k", "expected a map"),
    ({"based_on": "thorough", "name": "x", "top_k": {"lokup": 3}}, "profile.top_k.lokup", "did you mean 'lookup'"),
    ({"based_on": "thorough", "name": "x", "top_k": {"lookup": 0}}, "profile.top_k.lookup", "less than 1"),
    ({"based_on": "thorough", "name": "x", "top_k": {"steps": [50, 30]}}, "profile.top_k.steps", "each larger than the one before"),
    ({"based_on": "thorough", "name": "x", "insufficient": ["empt"]}, "profile.insufficient[0]", "did you mean 'empty'"),
    ({"based_on": "thorough", "name": "x", "order": []}, "profile.order", "at least one source"),
    ({"based_on": "thorough", "name": "x", "order": [["text"], []]}, "profile.order", "at least one source"),
    ({"based_on": "thorough", "name": "x", "order": [["other"]]}, "profile.order", "'other' is no source"),
    ({"based_on": "thorough", "name": "x", "order": [["text"], ["text"]]}, "profile.order", "more than once"),
    ({"based_on": "thorough", "name": "x", "text_first": ["price"]}, "profile.text_first", "'price' is in table_first too"),
    ({"based_on": "thorough", "name": "x", "sections": []}, "profile.sections", "expected a map"),
    ({"based_on": "thorough", "name": "x", "sections": {"raw_qury": "1"}}, "profile.sections.raw_qury", "did you mean 'raw_query'"),
    ({"based_on": "thorough", "name": "x", "sections": {"raw_query": ""}}, "profile.sections.raw_query", "where the rule is written"),
    ({"name": "x"}, "profile.sections", "names no rule"),
    ({"based_on": "thorough", "name": "first_call"}, "profile.name", "built-in"),
]


@pytest.mark.parametrize(("given", "path", "problem"), BAD)
def test_a_bad_profile_is_refused_by_its_path(given: Any, path: str, problem: str) -> None:
    with pytest.raises(InvalidFieldError, match=problem) as raised:
        profile_of(given)

    assert path == raised.value.field


def test_every_problem_of_a_profile_is_listed() -> None:
    problems = profile_problems({"based_on": "thorow", "nam": "x", "top_k": {"lookup": "a", "stps": []}})

    assert ["profile.based_on", "profile.nam", "profile.name", "profile.top_k.stps", "profile.top_k.lookup"] == [
        each.path for each in problems
    ]


def test_a_whole_profile_needs_nothing_to_be_based_on() -> None:
    whole = msgspec.structs.replace(THOROUGH, name="ours")

    assert whole == profile_of(msgspec.to_builtins(whole))
    assert isinstance(profile_of(whole), Profile)
