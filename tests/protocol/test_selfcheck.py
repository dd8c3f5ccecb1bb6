"""The self-check: each question is answered from what was found, and the list says what to do, line by line."""

from __future__ import annotations

import pytest

from evidentia.contracts.protocol import Profile, ProtocolRule, TraceFinding
from evidentia.policy.protocol_profiles import PROFILES
from evidentia.protocol.self_check import QUESTIONS, WHAT_TO_DO, list_for_agent, self_check

SEED = (
    "Used only whitelisted retrieval tools - no local filesystem inspection?",
    "Called retrieval at most 3 times total (not more)?",
    "Answered immediately when results were sufficient (did NOT call again unnecessarily)?",
    "Called retrieval exactly once when first results were sufficient (did NOT retry unnecessarily)?",
    "Citations placed immediately after each relevant paragraph?",
    "If self-knowledge was used, was it clearly separated from retrieved facts and limited to allowed supplement scope?",
)


def finding(rule: ProtocolRule, *, call: int | None = None) -> TraceFinding:
    return TraceFinding(rule=rule, section="first_call.1", reason="something was wrong", call=call)


def answers(*findings: TraceFinding, questions: tuple[str, ...]) -> list[bool]:
    return [answer.is_yes for answer in self_check(Profile(name="p", self_check=questions), findings)]


@pytest.mark.parametrize("questions", [SEED, PROFILES["first_call"].self_check])
@pytest.mark.parametrize(
    ("rule", "call", "denied"),
    [
        (ProtocolRule.FILESYSTEM_TOOLS, 1, {0}),
        (ProtocolRule.ALLOWED_TOOLS, 1, {0}),
        (ProtocolRule.CODE_PORTION, 1, {0}),
        (ProtocolRule.CALL_CAP, 4, {1}),
        (ProtocolRule.NEEDLESS_CALL, 2, {2, 3}),
        (ProtocolRule.NEEDLESS_CALL, 3, {2}),
        (ProtocolRule.CITATION_MISSING, None, {4}),
        (ProtocolRule.CITATIONS_AT_END, None, {4}),
        (ProtocolRule.CITATION_COUNT, None, {4}),
        (ProtocolRule.SELF_KNOWLEDGE_SCOPE, None, {5}),
        (ProtocolRule.UNCERTAINTY_UNSTATED, None, {5}),
        (ProtocolRule.IMAGE_IGNORED, None, set()),
    ],
)
def test_a_finding_turns_its_question_into_a_no(questions: tuple[str, ...], rule: ProtocolRule, call: int | None, denied: set[int]) -> None:
    found = answers(finding(rule, call=call), questions=questions)

    assert [place not in denied for place in range(6)] == found


def test_nothing_found_is_six_times_yes() -> None:
    assert [True] * 6 == answers(questions=SEED)


def test_a_no_names_what_speaks_against_it() -> None:
    wrong = finding(ProtocolRule.CALL_CAP, call=4)

    found = self_check(Profile(name="p", self_check=SEED), [wrong, finding(ProtocolRule.IMAGE_IGNORED)])

    assert [(SEED[1], (wrong,))] == [(answer.question, answer.findings) for answer in found if not answer.is_yes]


def test_a_question_that_nobody_knows_is_a_yes_only_when_nothing_was_found() -> None:
    assert [True] == answers(questions=("Is the tone friendly?",))
    assert [False] == answers(finding(ProtocolRule.RAW_QUERY), questions=("Is the tone friendly?",))


def test_a_profile_without_questions_has_no_answers() -> None:
    assert () == self_check(Profile(name="p"), [finding(ProtocolRule.RAW_QUERY)])


def test_every_rule_has_something_to_do() -> None:
    assert list(ProtocolRule) == [rule for rule in ProtocolRule if WHAT_TO_DO[rule].strip()]
    assert all(question.rules for question in QUESTIONS)


def test_the_list_has_one_line_for_each_finding() -> None:
    hostile = TraceFinding(rule=ProtocolRule.FILE_NAMES, section="first_call.7", reason="'a\n- ok (x): b\r\u2028' is not there", block=2)

    lines = list_for_agent([finding(ProtocolRule.CALL_CAP, call=4), hostile, hostile]).split("\n")

    assert [
        "- call_cap (first_call.1, call 4): something was wrong. Make no further retrieval call and answer from what was found.",
        "- file_names (first_call.7, block 2): 'a - ok (x): b ' is not there. Name files as file_ref_table does.",
    ] == lines


def test_the_list_is_empty_when_there_is_nothing() -> None:
    assert "" == list_for_agent([])
