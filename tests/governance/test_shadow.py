"""Candidates over recorded traffic: what they would change, by rule, agent and source, and what is not comparable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from test_shadow_records import Traffic, body, document, policy

from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.policy_trials import Change
from evidentia.contracts.runs import GroundingEntry, PoliciesRecorded, RetrievedDocument, RunEnded, RunStarted
from evidentia.governance import shadow as module
from evidentia.governance.log_maintenance import redact
from evidentia.governance.shadow import shadow, shadow_log
from evidentia.governance.shadow_tally import MAX_EXAMPLES, MAX_GROUPS, OTHERS, live_shadow
from evidentia.policy.rules import check_policy
from evidentia.policy.templates import TEMPLATES
from evidentia.testing.determinism import SteppingClock

if TYPE_CHECKING:
    from evidentia.contracts.decisions import LogRecord
    from evidentia.contracts.policies import Policy


def seqs_of(records: list[LogRecord], source: str) -> list[int]:
    calls = ((record.seq, record.entry.call) for record in records)
    return [seq for seq, call in calls if isinstance(call, RetrievedDocument) and call.source == source]


def test_stricter_candidate_newly_blocks_and_says_where() -> None:
    traffic = Traffic()
    traffic.run([document(source="good"), document(0.72, source="weak"), document(source="good")], policies=[body()], agent="a")
    traffic.run([document(source="good")], policies=[body()], agent="b")
    records = traffic.records()
    report = shadow(records, [policy(min_relevance_score=0.8, action_on_low_relevance="block")])

    assert (1, 0, 0, 0) == tuple(getattr(report.changes, each.value) for each in Change if each is not Change.UNCHANGED)
    assert ["guard: min_relevance_score"] == [group.name for group in report.changes.rules]
    assert (["a"], ["weak"]) == ([group.name for group in report.changes.agents], [group.name for group in report.changes.sources])
    assert seqs_of(records, "weak") == [example.seq for example in report.changes.rules[0].examples]
    assert (2, 1, 0) == (report.runs, report.runs_newly_blocked, report.runs_newly_allowed)
    # The document after it and the end of that run would not have happened.
    assert 2 == report.after_stop


def test_laxer_candidate_newly_allows_and_the_end_of_a_stopped_run_is_unknown() -> None:
    traffic = Traffic()
    traffic.run([document(age=50), document(age=400)], policies=[body()])
    report = shadow(traffic.records(), [policy(max_source_age_days=500)])

    assert (1, 0) == (report.changes.newly_allowed, report.changes.newly_blocked)
    assert ["guard: max_source_age_days"] == [group.name for group in report.changes.rules]
    assert (1, 1) == (report.truncated_runs, report.runs_newly_allowed)


def test_warnings_that_come_and_go_are_told_apart() -> None:
    traffic = Traffic()
    traffic.run([document(0.6), document(0.75)], policies=[body()])
    warned = shadow(traffic.records(), [policy(min_relevance_score=0.8)])
    silent = shadow(traffic.records(), [policy(min_relevance_score=0.5)])

    assert (1, 0) == (warned.changes.newly_warned, warned.changes.no_longer_warned)
    assert (0, 1) == (silent.changes.newly_warned, silent.changes.no_longer_warned)


def test_same_policy_changes_nothing() -> None:
    traffic = Traffic()
    traffic.run([document(0.3), document(age=None), document(source="x", age=99)], policies=[body()])
    traffic.run([GroundingEntry(grounding_scores=(0.1,))], policies=[body("g", category="grounding")])
    report = shadow(traffic.records(), [policy()])

    assert report.changes.calls == report.changes.unchanged > 0


def test_candidate_takes_the_place_of_its_namesake_and_others_stay() -> None:
    traffic = Traffic()
    traffic.run([document(collection="hr")], policies=[body(), body("collections", allowed_collections=["kb"])])
    records = traffic.records()

    assert 0 == shadow(records, [policy()]).changes.newly_allowed
    assert 1 == shadow(records, [policy()], without=["collections"]).changes.newly_allowed
    assert 1 == shadow(records, [policy()], is_whole=True).changes.newly_allowed
    assert 1 == shadow(records, [policy("collections", allowed_collections=["hr"])]).changes.newly_allowed


def test_candidate_in_shadow_is_tried_as_if_it_were_enforced() -> None:
    traffic = Traffic()
    traffic.run([document(0.1)])
    candidate = policy(action_on_low_relevance="block", enforcement="shadow")

    assert 1 == shadow(traffic.records(), [candidate]).changes.newly_blocked


def test_policies_that_were_in_shadow_do_not_count_as_blocks_that_happened() -> None:
    traffic = Traffic()
    traffic.run([document(age=400)], policies=[body(enforcement="shadow")])
    report = shadow(traffic.records(), [policy()])

    assert (1, 0) == (report.changes.newly_blocked, report.changes.newly_allowed)


def test_counts_below_the_minimum_are_compared_when_they_settle() -> None:
    traffic = Traffic()
    traffic.run([document()])
    report = shadow(traffic.records(), [policy(min_chunks=2, action_on_chunk_violation="block")])

    assert ["guard: min_chunks"] == [group.name for group in report.changes.rules]
    assert ([], 1) == (list(report.changes.sources), report.runs_newly_blocked)


def test_runs_that_began_earlier_and_agents_out_of_scope_are_left_alone() -> None:
    traffic = Traffic()
    traffic.run([document(0.1)])
    second = traffic.run([document(0.1)])
    records = traffic.records()
    began = next(each.entry.at_us for each in records if isinstance(each.entry.call, RunStarted) and each.entry.run_id == second)
    report = shadow(records, [policy()], since_us=began)

    assert (1, 1) == (report.runs, report.changes.newly_warned)


def test_judgements_that_nobody_recorded_are_counted_as_missing() -> None:
    judged = policy("judged", category="grounding", llm_grounding_check=True)
    said = {judged.policy_id: Judgement(status=JudgeStatus.JUDGED, score=0.1, model="gpt-4o-mini")}
    traffic = Traffic()
    traffic.run([GroundingEntry(citations=("s",)), GroundingEntry(citations=("s",), judgements=said)])
    report = shadow(traffic.records(), [judged])

    assert (1, 1) == (report.unjudged, report.changes.newly_warned)


def test_redacted_records_are_left_out_and_counted() -> None:
    traffic = Traffic()
    traffic.run([document(0.1), document(0.1)])
    records = traffic.records()
    place = next(at for at, each in enumerate(records) if isinstance(each.entry.call, RetrievedDocument))
    records[place] = msgspec.structs.replace(records[place], is_redacted=True)
    report = shadow(records, [policy()])

    assert (1, 1) == (report.redacted, report.changes.newly_warned)


def test_run_whose_policies_are_gone_is_left_out_unless_the_candidates_are_all() -> None:
    traffic = Traffic()
    traffic.run([document(0.1)], policies=[body()])
    records = [record for record in traffic.records() if not isinstance(record.entry.call, PoliciesRecorded)]
    beside, alone = shadow(records, [policy("other")]), shadow(records, [policy("other")], is_whole=True)

    assert (0, 1) == (beside.runs, beside.unknown_runs)
    assert (1, 0) == (alone.runs, alone.unknown_runs)


def test_open_runs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN_RUNS", 2)
    traffic = Traffic()
    for _ in range(4):
        traffic.run([document()], status=None)
    report = shadow(traffic.records(), [policy()])

    assert (4, 2, 2) == (report.runs, report.given_up_runs, report.unfinished_runs)


def test_groups_and_examples_are_bounded() -> None:
    traffic = Traffic()
    for number in range(MAX_GROUPS + 5):
        traffic.run([document(0.1, source=f"s{number:05}")])
    changes = shadow(traffic.records(), [policy()]).changes

    assert MAX_GROUPS + 1 == len(changes.sources)
    assert (OTHERS, 5) == (changes.sources[0].name, changes.sources[0].newly_warned)
    assert MAX_EXAMPLES == len(changes.rules[0].examples)


def test_records_are_read_once() -> None:
    traffic = Traffic()
    traffic.run([document(0.1)])

    assert 1 == shadow(iter(traffic.records()), [policy()]).changes.newly_warned


def test_live_shadow_is_told_from_the_log() -> None:
    traffic = Traffic()
    trial = body("trial", enforcement="shadow", action_on_low_relevance="block")
    traffic.run([document(source="good"), document(0.1, source="weak")], policies=[body(min_relevance_score=0), trial], agent="a")
    traffic.run([document(age=400)], policies=[body(), trial])
    traffic.run([document(0.1)])
    (live,) = live_shadow(traffic.records())

    assert ("trial", 2) == (live.name, live.runs)
    assert (1, 0) == (live.changes.newly_blocked, live.changes.newly_warned)
    assert ["trial: min_relevance_score"] == [group.name for group in live.changes.rules]
    # Two documents and their end, one document that another policy stopped, and its end.
    assert 5 == live.changes.calls
    assert () == live_shadow(traffic.records(), since_us=2**62)


def test_live_shadow_agrees_with_trying_the_same_policy_afterwards() -> None:
    traffic = Traffic()
    trial = body("trial", enforcement="shadow", min_relevance_score=0.8)
    for score in (0.9, 0.75, 0.3):
        traffic.run([document(score)], policies=[body(), trial])
    (live,) = live_shadow(traffic.records())
    tried = shadow(traffic.records(), [policy("trial", min_relevance_score=0.8)])

    assert 1 == live.changes.newly_warned == tried.changes.newly_warned


def test_a_run_that_ends_is_forgotten() -> None:
    traffic = Traffic()
    traffic.run([document()])

    assert 0 == shadow(traffic.records(), [policy()]).unfinished_runs
    assert isinstance(traffic.records()[-1].entry.call, RunEnded)


CANDIDATES = (
    policy(min_relevance_score=0.8),
    policy(blocked_sources=["bad"]),
    policy("judge", category="grounding", llm_grounding_check=True),
)


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("candidate", CANDIDATES, ids=["scores", "sources", "judge"])
def test_reading_the_lines_of_a_log_comes_to_the_same_as_its_records(candidate: Policy, *, is_whole: bool) -> None:
    traffic = Traffic()
    for number in range(30):
        calls = [document(0.5 + place * 0.08 + number * 0.005, source="bad" if place == number % 9 else "a") for place in range(6)]
        grounding = GroundingEntry(grounding_scores=(0.9,), citations=("a",))
        traffic.run([*calls, grounding], policies=[body(max_source_age_days=10), body("grounded", category="grounding")])
    redact(traffic.log, record=(traffic.log.head().log, 40), by="somebody", why="asked to", clock=SteppingClock())
    read = list(traffic.log.records())

    assert shadow(read, [candidate], is_whole=is_whole) == shadow_log(traffic.log, [candidate], is_whole=is_whole)


def test_no_template_as_shipped_blocks_recorded_runs_that_are_right() -> None:
    """Collections, sources and dates are a base's own; ten fragments hold one or two that are relevant, and a filter leaves those."""
    whole, filtered, strict = Traffic(), Traffic(), Traffic()
    said = GroundingEntry(grounding_scores=(0.95, 0.92), citations=("a", "b", "c"), output_confidence=0.9)
    for number in range(24):
        scores = enumerate((0.9, 0.4, 0.1, 0.02))
        tail = [document(score, source=f"d{place}", collection=f"team-{number}", age=200) for place, score in scores]
        whole.run([*tail, said])
        filtered.run([*tail[:2], said])
        strict.run([document(0.9, source="a", collection=f"team-{number}"), document(0.85, source="b"), said])
    recorded = {"Off-topic Gate": filtered, "Strict Compliance Retrieval": strict}
    blocked = {
        name: shadow(recorded.get(name, whole).records(), [check_policy(each)]).runs_newly_blocked for name, each in TEMPLATES.items()
    }

    assert dict.fromkeys(TEMPLATES, 0) == blocked


def test_the_gate_stops_runs_that_are_left_without_evidence() -> None:
    traffic = Traffic()
    traffic.run([document(0.05), document(0.01)])
    traffic.run([])

    assert 2 == shadow(traffic.records(), [check_policy(TEMPLATES["Off-topic Gate"])]).runs_newly_blocked
