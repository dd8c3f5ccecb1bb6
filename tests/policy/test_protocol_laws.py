"""Laws of the agent protocol: runs written by its rules are never accused, and what is decided follows from what was recorded.

The simulator knows the two documents and none of the code: it walks through a question as they say, with chance where they leave a choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

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
from evidentia.contracts.runs import RunEnded
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.protocol_profiles import PROFILES
from evidentia.policy.rules import check_policy
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.protocol import RunCall

FIRST: Final = "first_call"
LAST: Final = "thorough"
USELESS: Final = (Shortfall.EMPTY, Shortfall.ERROR, Shortfall.NO_SPREADSHEET, Shortfall.OFF_TOPIC)
CURED_BY_MORE: Final = (Shortfall.PARTIAL, Shortfall.TRUNCATED, Shortfall.MISSING_ENTITY)
TEXT_TYPES: Final = ("concept", "definition", "workflow", "policy", "explanation")
UNLISTED: Final = ("inventory", "summary", "extraction")
STEPS: Final = {30: 50, 50: 100, 100: 100}
TOP_K: Final = {
    FIRST: {"lookup": 50, "moderate": 50, "broad": 100, "unsure": 50},
    LAST: {"lookup": 30, "moderate": 50, "broad": 100, "unsure": 100},
}


class Simulator:
    """Writes the calls of an agent that obeys."""

    def __init__(self, profile: str, draw: Callable[..., Any]) -> None:
        self.profile = profile
        self.draw = draw
        self.calls: list[RunCall] = []
        self.number = 0

    def question(self) -> None:
        """Put a question, search, reply."""
        skills = self.draw(st.sampled_from([(), (), ("crm",), ("crm", "erp")]))
        task = TaskOpened(
            task=self.draw(st.sampled_from([TaskKind.KNOWLEDGE, TaskKind.MIXED, TaskKind.UNCERTAIN])),
            question_type=self.draw(st.sampled_from(list(QuestionType))),
            breadth=self.draw(st.sampled_from(list(Breadth))),
            question_hash=Sha256(f"question-{self.number}"),
            skills=skills,
        )
        self.calls.append(task)
        self._code(task)
        found = self._one_good_call(task) if self.profile == FIRST else self._every_source(task)
        self._code(task)
        self.calls.append(ReplyDrafted(uses_evidence=True) if found else ReplyDrafted(says_not_found=True))

    def _one_good_call(self, task: TaskOpened) -> bool:
        sources = [*task.skills[:1], *self._rag(task)]
        planned = [sources[0], sources[0], sources[1]]
        has_rag_before = False
        for place, tool in enumerate(planned):
            top_k: int | None = None
            if tool == "text":
                usual = TOP_K[FIRST][task.breadth.value]
                top_k = 100 if has_rag_before else self.draw(st.sampled_from([usual, 100])) if place else usual
            has_rag_before = has_rag_before or tool in {"text", "table"}
            shortfalls = self.draw(st.sampled_from([(), (Shortfall.PARTIAL,), (Shortfall.NO_EVIDENCE,), *((each,) for each in USELESS)]))
            self._call(tool, top_k, shortfalls)
            if not any(each in USELESS for each in shortfalls):
                return True
        return False

    def _every_source(self, task: TaskOpened) -> bool:
        found = False
        for tool in [*task.skills, *self._rag(task), "local"]:
            top_k = TOP_K[LAST][task.breadth.value] if tool == "text" else None
            query = f"query-{self.number}"
            while True:
                shortfalls = self.draw(st.sampled_from([(), (), *((each,) for each in Shortfall)]))
                self._call(tool, top_k, shortfalls, query=query)
                found = found or Shortfall.PARTIAL in shortfalls
                if not shortfalls:
                    return True
                if tool != "text" or shortfalls[0] not in CURED_BY_MORE or top_k == 100 or not self.draw(st.booleans()):
                    break
                top_k = STEPS[top_k or 0]
        return found

    def _rag(self, task: TaskOpened) -> list[str]:
        kind = task.question_type.value
        if kind in TEXT_TYPES or (self.profile == FIRST and kind in UNLISTED and self.draw(st.booleans())):
            return ["text", "table"]
        return ["table", "text"]

    def _call(self, tool: str, top_k: int | None, shortfalls: tuple[Shortfall, ...], query: str = "") -> None:
        self.number += 1
        role = ToolRole(tool) if tool in {"text", "table", "local"} else ToolRole.SKILL
        is_unsure = top_k == PROFILES[self.profile].top_k.unsure
        self.calls.append(
            ToolAsked(
                call=self.number,
                name=tool,
                role=role,
                top_k=None if is_unsure and self.draw(st.booleans()) else top_k,
                query_hash=Sha256(query or f"query-{self.number}"),
                containment=self.draw(st.sampled_from([0.5, 0.75, 1.0])),
            )
        )
        self.calls.append(ToolAnswered(call=self.number, results=1, shortfalls=shortfalls))

    def _code(self, task: TaskOpened) -> None:
        """Work on the code portion of a mixed task, and read the file that the user asked for."""
        if task.task is TaskKind.MIXED and self.draw(st.booleans()):
            self.number += 1
            self.calls.append(ToolAsked(call=self.number, name="Bash", role=ToolRole.FILESYSTEM, is_knowledge=False))
        if self.draw(st.sampled_from([False, False, False, True])):
            self.number += 1
            self.calls.append(ToolAsked(call=self.number, name="Read", role=ToolRole.FILESYSTEM, is_explicit_file=True))


@st.composite
def obedient_runs(draw: Callable[..., Any], profile: str) -> list[RunCall]:
    """Runs of one to three questions that keep every rule."""
    simulator = Simulator(profile, draw)
    for _ in range(draw(st.integers(1, 3))):
        simulator.question()
    return simulator.calls


SHARES = st.sampled_from([0.0, 0.3, 0.5, 1.0])
ANY_CALL = st.one_of(
    st.builds(
        TaskOpened,
        task=st.sampled_from(list(TaskKind)),
        question_type=st.sampled_from(list(QuestionType)),
        breadth=st.sampled_from(list(Breadth)),
        question_hash=st.sampled_from([None, "a", "b"]),
        skills=st.sampled_from([(), ("crm",)]),
        has_self_knowledge=st.sampled_from([None, True, False]),
    ),
    st.builds(
        ToolAsked,
        call=st.integers(0, 5),
        name=st.sampled_from(["crm", "Bash", "x"]),
        role=st.sampled_from(list(ToolRole)),
        is_knowledge=st.booleans(),
        top_k=st.sampled_from([None, 30, 50, 100]),
        query_hash=st.sampled_from([None, "q", "r", "s"]),
        is_raw=st.booleans(),
        works_raw=st.booleans(),
        containment=SHARES,
        strays=st.integers(0, 1),
        is_explicit_file=st.booleans(),
    ),
    st.builds(
        ToolAnswered, call=st.integers(0, 5), shortfalls=st.lists(st.sampled_from(list(Shortfall)), max_size=2, unique=True).map(tuple)
    ),
    st.builds(
        ReplyDrafted,
        says_not_found=st.booleans(),
        uses_evidence=st.booleans(),
        has_supplement=st.booleans(),
        is_checked=st.booleans(),
        findings=st.lists(
            st.builds(ReplyFinding, rule=st.sampled_from(list(ProtocolRule)), reason=st.just("x"), count=st.sampled_from([None, 2, 3])),
            max_size=2,
        ).map(tuple),
    ),
)
ANY_RUN = st.lists(ANY_CALL, max_size=15)


def said(calls: Sequence[RunCall], *, is_enforced: bool = True, **rules: Any) -> list[tuple[int, str, str]]:
    """Return every violation of a run: at which call, which rule, and the reason."""
    evaluator = RunEvaluator(PolicySet.of([check_policy({"name": "p", "category": "protocol", "rules": rules})]), is_enforced=is_enforced)
    verdicts = [(place, verdict) for place, call in enumerate(calls) for verdict in evaluator.record(call)]
    verdicts += [(len(calls), verdict) for verdict in evaluator.finish(RunEnded())]
    return [(place, each.rule, each.reason) for place, verdict in verdicts for each in verdict.evaluations if each.rule]


def derived(base: str, **changes: Any) -> dict[str, Any]:
    return {"based_on": base, "name": "derived", **changes}


@given(st.data())
@settings(max_examples=cases(100, of=300))
def test_one_who_expects_the_first_call_to_do_is_not_accused(data: st.DataObject) -> None:
    assert [] == said(data.draw(obedient_runs(FIRST)), profile=FIRST)


@given(st.data())
@settings(max_examples=cases(100, of=300))
def test_one_who_asks_every_source_is_not_accused(data: st.DataObject) -> None:
    assert [] == said(data.draw(obedient_runs(LAST)), profile=LAST)


@given(st.data())
def test_blocking_accuses_nobody_who_warning_does_not(data: st.DataObject) -> None:
    profile = data.draw(st.sampled_from([FIRST, LAST]))

    assert [] == said(data.draw(obedient_runs(profile)), profile=profile, action_on_violation="block")


@given(ANY_RUN, st.sampled_from([FIRST, LAST]), st.sampled_from(["warn", "block"]))
def test_the_same_calls_are_decided_the_same(calls: list[RunCall], profile: str, action: str) -> None:
    again = msgspec.json.decode(msgspec.json.encode(calls), type=list[TaskOpened | ToolAsked | ToolAnswered | ReplyDrafted])

    assert said(calls, profile=profile, action_on_violation=action) == said(again, profile=profile, action_on_violation=action)


@given(ANY_RUN, st.sampled_from([FIRST, LAST]))
def test_a_profile_in_full_decides_as_its_name_does(calls: list[RunCall], profile: str) -> None:
    assert said(calls, profile=profile) == said(calls, profile=msgspec.to_builtins(PROFILES[profile]))


@given(ANY_RUN, st.sets(st.sampled_from([each.value for each in Shortfall]), max_size=4))
def test_the_more_is_insufficient_the_fewer_calls_are_needless_and_the_more_replies_early(calls: list[RunCall], more: set[str]) -> None:
    strict = derived(FIRST, insufficient=sorted({*(each.value for each in PROFILES[FIRST].insufficient), *more}))

    def of(rule: str, profile: Any) -> set[int]:
        return {place for place, each, _ in said(calls, profile=profile) if each == rule}

    assert of("needless_call", strict) <= of("needless_call", FIRST)
    assert of("stopped_early", strict) >= of("stopped_early", FIRST)
    assert of("early_not_found", strict) == of("early_not_found", FIRST)


@given(ANY_RUN, st.integers(1, 6), st.integers(0, 3))
def test_a_lower_cap_is_broken_wherever_a_higher_one_is(calls: list[RunCall], low: int, more: int) -> None:
    def beyond(cap: int) -> set[int]:
        return {place for place, each, _ in said(calls, profile=derived(FIRST, call_cap=cap)) if each == "call_cap"}

    assert beyond(low) >= beyond(low + more)


INDEPENDENT: Final = sorted(
    rule.value for rule in PROFILES[FIRST].sections if rule not in {ProtocolRule.CODE_PORTION, ProtocolRule.FILESYSTEM_TOOLS}
)


@given(ANY_RUN, st.sampled_from(INDEPENDENT))
def test_a_rule_that_is_left_out_takes_its_own_violations_along_and_no_others(calls: list[RunCall], rule: str) -> None:
    """Two rules pass what they do not say on to another: a tool that is not named is still not allowed. The end depends on replies."""

    def mid(profile: Any) -> list[tuple[int, str, str]]:
        return [each for each in said(calls, profile=profile) if each[0] < len(calls)]

    assert [each for each in mid(FIRST) if each[1] != rule] == mid(derived(FIRST, sections={rule: None}))


@given(ANY_RUN, st.sampled_from([FIRST, LAST]))
def test_what_is_only_written_down_is_found_all_the_same(calls: list[RunCall], profile: str) -> None:
    actions = {rule.value: "allow" for rule in ProtocolRule}

    def mid(**rules: Any) -> list[tuple[int, str, str]]:
        return [each for each in said(calls, profile=profile, **rules) if each[0] < len(calls)]

    assert mid() == mid(actions=actions)


@given(ANY_RUN, st.sampled_from([FIRST, LAST]))
def test_a_task_about_code_is_free(calls: list[RunCall], profile: str) -> None:
    code = [TaskOpened(task=TaskKind.CODE), *(call for call in calls if not isinstance(call, TaskOpened))]

    assert [] == said(code, profile=profile)
