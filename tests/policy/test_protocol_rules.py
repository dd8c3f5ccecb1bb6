"""Every rule of both profiles: calls that break it, and its twin that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from evidentia.contracts.ids import Sha256
from evidentia.contracts.protocol import (
    Breadth,
    ProtocolRule,
    QuestionType,
    ReplyDrafted,
    ReplyFinding,
    Shortfall,
    TaskKind,
    TaskOpened,
    ToolAnswered,
    ToolAsked,
    ToolRole,
)
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.protocol_profiles import PROFILES
from evidentia.policy.rules import check_policy

if TYPE_CHECKING:
    from evidentia.contracts.decisions import Evaluation
    from evidentia.contracts.protocol import RunCall

R: Final = ProtocolRule
FIRST: Final = "first_call"
LAST: Final = "thorough"
EMPTY: Final = (Shortfall.EMPTY,)
PARTIAL: Final = (Shortfall.PARTIAL,)
CONCEPT: Final = TaskOpened(task=TaskKind.KNOWLEDGE, question_type=QuestionType.CONCEPT, breadth=Breadth.LOOKUP)
PRICE: Final = TaskOpened(task=TaskKind.KNOWLEDGE, question_type=QuestionType.PRICE, breadth=Breadth.LOOKUP)
MIXED: Final = TaskOpened(task=TaskKind.MIXED, question_type=QuestionType.PRICE, breadth=Breadth.LOOKUP)
SKILLED: Final = TaskOpened(task=TaskKind.KNOWLEDGE, question_type=QuestionType.PRICE, breadth=Breadth.LOOKUP, skills=("crm", "erp"))
BROAD: Final = TaskOpened(task=TaskKind.KNOWLEDGE, question_type=QuestionType.POLICY, breadth=Breadth.BROAD)
UNSURE: Final = TaskOpened(question_type=QuestionType.POLICY)
SUPPLEMENTED: Final = TaskOpened(task=TaskKind.KNOWLEDGE, question_type=QuestionType.PRICE, has_self_knowledge=True)


def text(call: int, top_k: int | None = None, query: str = "", **facts: Any) -> ToolAsked:
    return ToolAsked(call=call, name="rag_retrieve", role=ToolRole.TEXT, top_k=top_k, query_hash=Sha256(query or f"q{call}"), **facts)


def table(call: int, query: str = "", **facts: Any) -> ToolAsked:
    return ToolAsked(call=call, name="table_rag_retrieve", role=ToolRole.TABLE, query_hash=Sha256(query or f"q{call}"), **facts)


def skill(call: int, name: str = "crm", **facts: Any) -> ToolAsked:
    return ToolAsked(call=call, name=name, role=ToolRole.SKILL, query_hash=Sha256(f"q{call}"), **facts)


def local(call: int, **facts: Any) -> ToolAsked:
    return ToolAsked(call=call, name="local_file_retrieve", role=ToolRole.LOCAL, query_hash=Sha256(f"q{call}"), **facts)


def files(call: int, name: str = "Bash", **facts: Any) -> ToolAsked:
    return ToolAsked(call=call, name=name, role=ToolRole.FILESYSTEM, **facts)


def other(call: int, name: str = "web_search", **facts: Any) -> ToolAsked:
    return ToolAsked(call=call, name=name, **facts)


def back(call: int, *shortfalls: Shortfall) -> ToolAnswered:
    return ToolAnswered(call=call, results=3, shortfalls=shortfalls)


REPLY: Final = ReplyDrafted(uses_evidence=True)
NOT_FOUND: Final = ReplyDrafted(says_not_found=True)
PAIR: Final = (PRICE, table(1), back(1, *EMPTY), text(2, 30), back(2, *EMPTY))
"""Both tools, both empty, as the profile `thorough` wants it."""
ASKED: Final = (PRICE, table(1), back(1))


class Case(NamedTuple):
    """Calls that break one rule and nothing else, and calls like them that break none."""

    profile: str
    rule: ProtocolRule
    bad: tuple[RunCall, ...]
    good: tuple[RunCall, ...]


CASES: list[Case] = [
    # tools
    Case(FIRST, R.ALLOWED_TOOLS, (PRICE, other(1)), (PRICE, table(1))),
    Case(FIRST, R.ALLOWED_TOOLS, (TaskOpened(), other(1)), (TaskOpened(task=TaskKind.CODE), other(1))),
    Case(FIRST, R.ALLOWED_TOOLS, (PRICE, local(1)), (PRICE, skill(1))),
    Case(FIRST, R.ALLOWED_TOOLS, (PRICE, other(1, is_knowledge=False)), (MIXED, other(1, is_knowledge=False))),
    Case(FIRST, R.FILESYSTEM_TOOLS, (PRICE, files(1)), (PRICE, files(1, is_explicit_file=True))),
    Case(FIRST, R.FILESYSTEM_TOOLS, (files(1, "Grep"),), (TaskOpened(task=TaskKind.CODE), files(1, "Grep"))),
    Case(FIRST, R.FILESYSTEM_TOOLS, (*ASKED[:2], back(1, *EMPTY), other(2, "gLoB")), (*ASKED[:2], back(1, *EMPTY), table(2))),
    Case(FIRST, R.CODE_PORTION, (MIXED, files(1)), (MIXED, files(1, is_knowledge=False), table(2), back(2), REPLY)),
    Case(FIRST, R.CODE_PORTION, (MIXED, other(1)), (MIXED, other(1, is_knowledge=False))),
    # order
    *(
        case
        for name, k in ((FIRST, 50), (LAST, 30))
        for case in (
            Case(name, R.SKILL_FIRST, (SKILLED, table(1)), (SKILLED, skill(1), back(1), REPLY)),
            Case(name, R.SEQUENTIAL, (PRICE, table(1), text(2, k)), (*ASKED, REPLY)),
            Case(name, R.SEQUENTIAL, (CONCEPT, text(1, k), table(2)), (CONCEPT, text(1, k), back(1), REPLY)),
            Case(name, R.ANSWER_BEFORE_RETRIEVAL, (PRICE, REPLY), (*ASKED, REPLY)),
            Case(name, R.ANSWER_BEFORE_RETRIEVAL, (TaskOpened(), REPLY), (PRICE, files(1, is_explicit_file=True), REPLY)),
            Case(name, R.TOOL_CHOICE, (PRICE, text(1, k)), (PRICE, table(1))),
            Case(name, R.TOOL_CHOICE, (CONCEPT, table(1)), (CONCEPT, text(1, k))),
            # the query
            Case(name, R.RAW_QUERY, (PRICE, table(1, is_raw=True)), (PRICE, table(1, is_raw=True, works_raw=True))),
            Case(name, R.LOST_ENTITY, (PRICE, table(1, containment=0.49)), (PRICE, table(1, containment=0.5))),
            Case(name, R.FOREIGN_TOPIC, (PRICE, table(1, strays=1)), (PRICE, table(1, strays=0))),
            Case(name, R.TOP_K_TOOL, (PRICE, table(1, top_k=50)), (PRICE, table(1))),
            Case(name, R.TOP_K_TOOL, (SKILLED, skill(1, top_k=50)), (SKILLED, skill(1))),
            # the reply
            *(
                Case(
                    name, rule, (*ASKED, ReplyDrafted(uses_evidence=True, findings=(ReplyFinding(rule=rule, reason="x"),))), (*ASKED, REPLY)
                )
                for rule in (
                    R.FILE_NAMES,
                    R.SOURCE_CODES,
                    R.INSTRUCTIONS,
                    R.TRUNCATION_COUNTS,
                    R.CITATION_MISSING,
                    R.CITATION_GRAMMAR,
                    R.CITATION_UNRESOLVED,
                    R.CITATION_PLACEMENT,
                    R.CITATIONS_AT_END,
                )
            ),
            Case(
                name,
                R.CITATION_COUNT,
                (*ASKED, ReplyDrafted(uses_evidence=True, findings=(ReplyFinding(rule=R.CITATION_COUNT, reason="x", block=2, count=3),))),
                (*ASKED, ReplyDrafted(uses_evidence=True, findings=(ReplyFinding(rule=R.CITATION_COUNT, reason="x", block=2, count=2),))),
            ),
        )
    ),
    Case(LAST, R.SOURCE_ORDER, (PRICE, local(1)), (*PAIR, local(3))),
    Case(LAST, R.SOURCE_ORDER, (PRICE, table(1), back(1, *EMPTY), local(2)), (*PAIR, local(3), back(3, *EMPTY), NOT_FOUND)),
    Case(LAST, R.SOURCE_ORDER, (*PAIR[:4], back(2), local(3)), (*PAIR[:4], back(2), REPLY)),
    Case(LAST, R.SOURCE_ORDER, (PRICE, files(1)), (*PAIR, files(3, "Glob"), back(3), files(4, "Read"), files(5, "Read"), back(4), REPLY)),
    # top_k
    Case(FIRST, R.TOP_K_VALUE, (CONCEPT, text(1, 30)), (CONCEPT, text(1, 50))),
    Case(FIRST, R.TOP_K_VALUE, (BROAD, text(1, 50)), (BROAD, text(1, 100))),
    Case(FIRST, R.TOP_K_VALUE, (BROAD, text(1)), (UNSURE, text(1))),
    Case(FIRST, R.TOP_K_VALUE, (UNSURE, text(1, 100)), (UNSURE, text(1, 50))),
    Case(FIRST, R.TOP_K_VALUE, (CONCEPT, text(1, 50), back(1, *EMPTY), text(2, 50)), (CONCEPT, text(1, 50), back(1, *EMPTY), text(2, 100))),
    Case(LAST, R.TOP_K_VALUE, (CONCEPT, text(1, 50)), (CONCEPT, text(1, 30))),
    Case(LAST, R.TOP_K_VALUE, (CONCEPT, text(1)), (UNSURE, text(1))),
    Case(LAST, R.TOP_K_VALUE, (UNSURE, text(1, 50)), (BROAD, text(1, 100))),
    Case(
        LAST,
        R.TOP_K_VALUE,
        (CONCEPT, text(1, 30), back(1, *PARTIAL), text(2, 100)),
        (CONCEPT, text(1, 30), back(1, *PARTIAL), text(2, 50), back(2, *PARTIAL), text(3, 100)),
    ),
    # again
    Case(FIRST, R.NEEDLESS_CALL, (*ASKED, table(2)), (*ASKED, REPLY)),
    Case(
        FIRST,
        R.NEEDLESS_CALL,
        (PRICE, table(1), back(1, *PARTIAL), text(2, 100)),
        (PRICE, table(1), back(1, Shortfall.OFF_TOPIC), table(2)),
    ),
    Case(
        FIRST,
        R.CALL_CAP,
        (PRICE, table(1), back(1, *EMPTY), table(2), back(2, *EMPTY), text(3, 100), back(3, *EMPTY), text(4, 100)),
        (PRICE, table(1), back(1, *EMPTY), table(2), back(2, *EMPTY), text(3, 100), back(3, *EMPTY), NOT_FOUND),
    ),
    Case(
        FIRST,
        R.RETRY_ORDER,
        (PRICE, table(1), back(1, *EMPTY), text(2, 100)),
        (PRICE, table(1), back(1, *EMPTY), table(2), back(2, *EMPTY), text(3, 100)),
    ),
    Case(
        FIRST,
        R.RETRY_ORDER,
        (PRICE, table(1), back(1, *EMPTY), table(2), back(2, *EMPTY), table(3)),
        (CONCEPT, text(1, 50), back(1, Shortfall.ERROR), text(2, 100), back(2, *EMPTY), table(3)),
    ),
    Case(LAST, R.RETRY_ORDER, (PRICE, table(1), back(1, *EMPTY), table(2)), PAIR),
    Case(LAST, R.RETRY_ORDER, (*PAIR, table(3)), (*PAIR, local(3), back(3, *EMPTY), table(4))),
    Case(
        LAST,
        R.RETRY_ORDER,
        (CONCEPT, text(1, 30), back(1, *EMPTY), text(2, 50)),
        (CONCEPT, text(1, 30), back(1, *PARTIAL), text(2, 50)),
    ),
    Case(
        FIRST,
        R.REPEATED_QUERY,
        (CONCEPT, text(1, 50, "same"), back(1, *EMPTY), text(2, 100, "same")),
        (CONCEPT, text(1, 50, "same"), back(1, *EMPTY), text(2, 100, "other")),
    ),
    Case(
        LAST,
        R.REPEATED_QUERY,
        (CONCEPT, text(1, 30, "a"), back(1, *PARTIAL), table(2), back(2, *PARTIAL), local(3), back(3, *PARTIAL), text(4, 30, "a")),
        (CONCEPT, text(1, 30, "a"), back(1, *PARTIAL), table(2, "a"), back(2, *PARTIAL), text(3, 50, "a")),
    ),
    # the end of the search
    Case(FIRST, R.EARLY_NOT_FOUND, (PRICE, NOT_FOUND), (PRICE, table(1), back(1), ReplyDrafted(says_not_found=True, uses_evidence=True))),
    Case(
        FIRST,
        R.EARLY_NOT_FOUND,
        (PRICE, table(1), back(1, *EMPTY), table(2), back(2, *EMPTY), NOT_FOUND),
        (SKILLED, skill(1), back(1, *EMPTY), skill(2), back(2, *EMPTY), table(3), back(3, *EMPTY), NOT_FOUND),
    ),
    Case(LAST, R.EARLY_NOT_FOUND, (*PAIR, NOT_FOUND), (*PAIR, local(3), back(3, *EMPTY), NOT_FOUND)),
    Case(
        LAST,
        R.EARLY_NOT_FOUND,
        (SKILLED, skill(1), back(1, *EMPTY), *PAIR[1:], local(3), back(3, *EMPTY), NOT_FOUND),
        (SKILLED, skill(1), back(1, *EMPTY), skill(4, "erp"), back(4, *EMPTY), *PAIR[1:], local(3), back(3, *EMPTY), NOT_FOUND),
    ),
    Case(FIRST, R.STOPPED_EARLY, (PRICE, table(1), back(1, *EMPTY), REPLY), (PRICE, table(1), back(1, *PARTIAL), REPLY)),
    Case(LAST, R.STOPPED_EARLY, (PRICE, table(1), back(1, *PARTIAL), REPLY), (PRICE, table(1), back(1), REPLY)),
    Case(LAST, R.STOPPED_EARLY, (*PAIR, REPLY), (*PAIR, local(3), back(3, *PARTIAL), REPLY)),
    # images, supplements, the self-check
    *(
        Case(FIRST, rule, (*ASKED, ReplyDrafted(uses_evidence=True, findings=(ReplyFinding(rule=rule, reason="x"),))), (*ASKED, REPLY))
        for rule in (
            R.IMAGE_IGNORED,
            R.IMAGE_MISPLACED,
            R.IMAGES_AT_END,
            R.SELF_KNOWLEDGE_MIXED,
            R.SELF_KNOWLEDGE_SCOPE,
            R.SELF_KNOWLEDGE_CITED,
            R.UNCERTAINTY_UNSTATED,
        )
    ),
    Case(
        FIRST,
        R.SELF_KNOWLEDGE_OFF,
        (*ASKED, ReplyDrafted(uses_evidence=True, has_supplement=True)),
        (SUPPLEMENTED, table(1), back(1, *PARTIAL), ReplyDrafted(uses_evidence=True, has_supplement=True)),
    ),
    Case(
        FIRST,
        R.SELF_KNOWLEDGE_NEEDLESS,
        (SUPPLEMENTED, table(1), back(1), ReplyDrafted(uses_evidence=True, has_supplement=True)),
        (SUPPLEMENTED, table(1), back(1, Shortfall.MISSING_ENTITY), ReplyDrafted(uses_evidence=True, has_supplement=True)),
    ),
    Case(FIRST, R.SELF_CHECK, (*ASKED, ReplyDrafted(uses_evidence=True, is_checked=False)), (*ASKED, REPLY)),
]


def found(calls: tuple[RunCall, ...], **rules: Any) -> list[Evaluation]:
    """Return everything that a policy finds in a run, call by call."""
    evaluator = RunEvaluator(PolicySet.of([check_policy({"name": "protocol", "category": "protocol", "rules": rules})]))
    verdicts = [verdict for call in calls for verdict in evaluator.record(call)]
    return [each for verdict in verdicts for each in verdict.evaluations if each.rule]


@pytest.mark.parametrize("case", CASES)
def test_what_breaks_a_rule_is_found_and_named(case: Case) -> None:
    (only,) = found(case.bad, profile=case.profile)

    assert case.rule == only.rule
    assert PROFILES[case.profile].sections[case.rule] == only.metadata["section"]
    assert "warn" == only.action


@pytest.mark.parametrize("case", CASES)
def test_what_keeps_the_rules_is_not_accused(case: Case) -> None:
    assert [] == found(case.good, profile=case.profile)


@pytest.mark.parametrize("name", [FIRST, LAST])
def test_every_rule_of_a_profile_has_a_case(name: str) -> None:
    assert set(PROFILES[name].sections) == {case.rule for case in CASES if case.profile == name}


@pytest.mark.parametrize("case", [each for each in CASES if each.bad[-1].__class__ is not ReplyDrafted])
def test_a_reason_names_the_tool_in_lower_case_words(case: Case) -> None:
    (only,) = found(case.bad, profile=case.profile)
    asked = case.bad[-1]

    assert isinstance(asked, ToolAsked)
    assert asked.name in only.reason
    assert not only.reason.endswith(".")
    assert (asked.call, asked.name) == (only.metadata["call"], only.metadata["tool"])


REASONS: list[tuple[str, tuple[RunCall, ...], str, dict[str, Any]]] = [
    (
        FIRST,
        (BROAD, text(1)),
        "rag_retrieve leaves top_k out, which stands for 50; for a question of breadth broad after 0 calls use 100",
        {"call": 1, "tool": "rag_retrieve", "top_k": 50, "expected": [100], "breadth": "broad", "omitted": True, "section": "first_call.4"},
    ),
    (
        FIRST,
        (PRICE, table(1), back(1, *EMPTY), text(2, 100)),
        "table_rag_retrieve (call 1) fell short (empty); rewrite the query and ask table_rag_retrieve once more first, not rag_retrieve",
        {"call": 2, "tool": "rag_retrieve", "last_tool": "table_rag_retrieve", "shortfalls": ["empty"], "section": "first_call.6"},
    ),
    (
        LAST,
        (PRICE, table(1), back(1, *EMPTY), table(2)),
        "table_rag_retrieve (call 1) fell short (empty); ask rag_retrieve next, not table_rag_retrieve",
        {"call": 2, "tool": "table_rag_retrieve", "last_tool": "table_rag_retrieve", "shortfalls": ["empty"], "section": "thorough.5"},
    ),
    (
        LAST,
        (*PAIR, NOT_FOUND),
        "the reply says that nothing was found after 2 calls; ask local_file_retrieve before that",
        {"retrieval_calls": 2, "left": ["local_file_retrieve"], "section": "thorough.5"},
    ),
    (
        FIRST,
        (PRICE, table(1, containment=0.25)),
        "the query to table_rag_retrieve keeps 0.25 of the question's entities, least 0.5; name what the question is about",
        {"call": 1, "tool": "table_rag_retrieve", "containment": 0.25, "least": 0.5, "section": "first_call.3"},
    ),
    (
        FIRST,
        (*ASKED, ReplyDrafted(uses_evidence=True, findings=(ReplyFinding(rule=R.CITATION_COUNT, reason="3 citations", block=2, count=3),))),
        "3 citations",
        {"block": 2, "count": 3, "section": "first_call.9"},
    ),
]


@pytest.mark.parametrize(("profile", "calls", "reason", "metadata"), REASONS)
def test_reasons_and_numbers(profile: str, calls: tuple[RunCall, ...], reason: str, metadata: dict[str, Any]) -> None:
    (only,) = found(calls, profile=profile)

    assert reason == only.reason
    assert metadata == dict(only.metadata)


def test_all_violations_of_a_call_are_listed() -> None:
    rules = [each.rule for each in found((SKILLED, text(1, 7, is_raw=True, containment=0.0, strays=2)))]

    assert ["skill_first", "tool_choice", "raw_query", "lost_entity", "foreign_topic", "top_k_value"] == rules


def test_the_cap_counts_all_tools_and_beats_exhausting_the_sources() -> None:
    calls = (SKILLED, skill(1), back(1, *EMPTY), skill(2), back(2, *EMPTY), table(3), back(3, *EMPTY))

    assert [] == found((*calls, NOT_FOUND))
    assert ["call_cap"] == [each.rule for each in found((*calls, text(4, 100)))]


def test_a_tool_that_falls_back_by_itself_is_one_call() -> None:
    calls = (PRICE, table(1), back(1, Shortfall.NO_SPREADSHEET), table(2), back(2, Shortfall.NO_SPREADSHEET), text(3, 100), back(3))

    assert [] == found((*calls, REPLY))


def test_a_type_that_no_list_names_leaves_the_choice_open() -> None:
    task = TaskOpened(task=TaskKind.KNOWLEDGE, question_type=QuestionType.SUMMARY, breadth=Breadth.MODERATE)

    assert [] == found((task, text(1, 50)))
    assert [] == found((task, table(1)))
    assert ["tool_choice"] == [each.rule for each in found((task, text(1, 50)), profile=LAST)]


@pytest.mark.parametrize(
    ("policy", "run", "rules"),
    [
        (None, None, ["self_knowledge_off"]),
        (True, None, []),
        (None, True, []),
        (True, False, ["self_knowledge_off"]),
        (False, True, ["self_knowledge_off"]),
        (False, None, ["self_knowledge_off"]),
    ],
)
def test_who_says_whether_supplements_are_allowed(*, policy: bool | None, run: bool | None, rules: list[str]) -> None:
    task = TaskOpened(question_type=QuestionType.PRICE, has_self_knowledge=run)
    calls = (task, table(1), back(1, *PARTIAL), ReplyDrafted(uses_evidence=True, has_supplement=True))

    assert rules == [each.rule for each in found(calls, self_knowledge=policy)]


def test_a_profile_may_allow_a_kind_of_fact_by_not_naming_it() -> None:
    profile = {"based_on": FIRST, "name": "mine", "self_knowledge": {"is_enabled": True, "forbidden": ["prices"]}}

    def scope(*kinds: str) -> list[str]:
        finding = ReplyFinding(rule=R.SELF_KNOWLEDGE_SCOPE, reason="x", metadata={"kinds": list(kinds)})
        calls = (PRICE, table(1), back(1, *PARTIAL), ReplyDrafted(uses_evidence=True, has_supplement=True, findings=(finding,)))
        return [each.rule for each in found(calls, profile=profile)]

    assert ["self_knowledge_scope"] == scope("prices")
    assert [] == scope("dates", "metrics")
    assert ["self_knowledge_scope"] == scope("dates", "prices")
    assert ["self_knowledge_scope"] == scope()
    assert ["self_knowledge_scope"] == scope("horoscopes")


def test_what_is_decided_here_is_said_once_with_its_place() -> None:
    findings = tuple(ReplyFinding(rule=rule, reason="x", block=4) for rule in (R.SELF_KNOWLEDGE_OFF, R.SELF_KNOWLEDGE_NEEDLESS))
    (only,) = found((*ASKED, ReplyDrafted(uses_evidence=True, has_supplement=True, findings=findings)))

    assert ("self_knowledge_off", 4) == (only.rule, only.metadata["block"])


def test_a_reason_of_a_finding_stays_in_one_line() -> None:
    finding = ReplyFinding(rule=R.CITATION_GRAMMAR, reason="bad tag\n[INSTRUCTION] \x1b[2J")
    (only,) = found((*ASKED, ReplyDrafted(uses_evidence=True, findings=(finding,))))

    assert only.reason.isprintable()


def test_a_tool_that_a_policy_names_counts_as_a_skill() -> None:
    assert ["allowed_tools"] == [each.rule for each in found((PRICE, other(1, "kb")))]
    assert [] == found((PRICE, other(1, "kb"), back(1), REPLY), skill_tools=["kb"])


def test_a_source_that_was_asked_too_early_stays_too_early() -> None:
    assert ["source_order"] * 2 == [each.rule for each in found((PRICE, files(1, "Glob"), back(1), files(2, "Read")), profile=LAST)]


def test_a_derived_order_is_kept() -> None:
    profile = {"based_on": FIRST, "name": "mine", "order": [["text"], ["table"]], "sections": {"source_order": "1"}}

    assert ["source_order"] == [each.rule for each in found((PRICE, table(1)), profile=profile)]
    assert ["allowed_tools"] == [each.rule for each in found((PRICE, skill(1)), profile=profile)]
    assert [] == found((PRICE, text(1, 50), back(1, *EMPTY), text(2, 100), back(2, *EMPTY), table(3)), profile=profile)
