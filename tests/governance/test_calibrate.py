"""Thresholds from good runs: which values count, where the percentile lies, how sure it is, and when it is refused."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_shadow_records import Traffic, body, document, policy

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.judging import Judgement, JudgeStatus
from evidentia.contracts.runs import GroundingEntry, RetrievedDocument, RunEnded, RunStarted, RunStatus
from evidentia.governance.calibration import LEAST_GOOD_RUNS, MEASURES, calibrate, effective_size, interval_of, nearest_rank

if TYPE_CHECKING:
    from evidentia.contracts.decisions import LogRecord


def hundred(traffic: Traffic | None = None, **fields: object) -> Traffic:
    """Return 100 good runs of one document each, with scores 0.00 to 0.99 and ages 0 to 99."""
    traffic = traffic or Traffic()
    for number in range(100):
        traffic.run([document(number / 100, age=number)], **fields)  # type: ignore[arg-type]  # the arguments of a run
    return traffic


def test_threshold_is_the_nearest_rank_of_good_runs() -> None:
    found = calibrate(hundred().records(), "min_relevance_score")

    # The fifth of a hundred in order; four lie strictly below.
    assert (0.04, 5, 100, 100) == (found.threshold, found.percentile, found.good_runs, found.good_values)
    assert (4, 100, 4, 100) == (
        found.predicted.value_triggers,
        found.predicted.values,
        found.predicted.run_triggers,
        found.predicted.runs,
    )
    assert (0.0, 0.1) == (found.low, found.high)


def test_ages_take_the_other_end_in_whole_days() -> None:
    traffic = hundred()
    traffic.run([document(age=94.5)])
    found = calibrate(traffic.records(), "max_source_age_days")

    assert (95, 95) == (found.percentile, found.threshold)
    assert (94.5, 4) == (found.observed, found.predicted.value_triggers)


def test_refusal_names_how_many_good_runs_there_are() -> None:
    traffic = Traffic()
    for _ in range(LEAST_GOOD_RUNS - 1):
        traffic.run([document()])
    traffic.run([document()], status=RunStatus.ERROR)
    traffic.run([])

    with pytest.raises(InvalidFieldError, match=r"99 good runs recorded a value.*100 are needed \(101 runs were read, 100 of them good\)"):
        calibrate(traffic.records(), "min_relevance_score")


def test_failed_blocked_and_open_runs_are_traffic_but_not_good() -> None:
    traffic = hundred()
    traffic.run([document(-5.0)], status=RunStatus.ERROR)
    traffic.run([document(-5.0)], policies=[body(action_on_low_relevance="block")])
    traffic.run([document(-5.0)], status=None)
    found = calibrate(traffic.records(), "min_relevance_score")

    assert (0.04, 100, 103, 7) == (found.threshold, found.good_runs, found.predicted.runs, found.predicted.run_triggers)
    assert ("runs that have not ended: 1; they count as traffic, never as good",) == found.notes


def test_only_blocks_that_took_effect_make_a_run_bad() -> None:
    strict = body(action_on_low_relevance="block", min_relevance_score=1)

    assert 100 == calibrate(hundred(policies=[strict], is_enforced=False).records(), "min_relevance_score").good_runs


def test_filters_choose_runs_by_agent_and_beginning() -> None:
    traffic = hundred(agent="rag-1")
    hundred(traffic, agent="other")
    records = traffic.records()
    began = [record.entry.at_us for record in records if isinstance(record.entry.call, RunStarted)]

    assert [100, 100, 100] == [
        calibrate(records, "min_relevance_score", agent="rag-1").predicted.runs,
        calibrate(records, "min_relevance_score", agent="rag-*").predicted.runs,
        calibrate(records, "min_relevance_score", since_us=began[100]).predicted.runs,
    ]


def test_current_threshold_is_rated_and_a_block_on_the_rule_is_noted() -> None:
    found = calibrate(hundred().records(), "min_relevance_score", policy=policy(min_relevance_score=0.5, action_on_low_relevance="block"))

    assert found.current is not None
    assert (0.5, 50) == (found.current.threshold, found.current.value_triggers)
    assert ["'guard' blocks on this rule"] == [note.partition(",")[0] for note in found.notes]


def test_patch_and_command_say_the_same() -> None:
    found = calibrate(hundred().records(), "min_relevance_score", policy=policy("RAG Guard"))
    words = shlex.split(found.command)

    assert ["evidentia", "policy", "patch", "RAG Guard"] == words[:4]
    assert {"rules": {"min_relevance_score": 0.04}} == found.patch == json.loads(words[4])


def test_threshold_is_rounded_so_that_it_lets_more_pass() -> None:
    traffic = Traffic()
    for _ in range(100):
        traffic.run([document(0.123_456)])

    assert (0.1234, 0.123_456) == ((found := calibrate(traffic.records(), "min_relevance_score")).threshold, found.observed)


def entries(*calls: GroundingEntry, judged: float | None = None) -> list[LogRecord]:
    traffic = Traffic()
    for _ in range(100):
        traffic.run(calls)
    records = traffic.records()
    if judged is None:
        return records
    said = {policy("g", category="grounding").policy_id: Judgement(status=JudgeStatus.JUDGED, score=judged, model="gpt-4o-mini")}
    return [_with_judgements(record, said) for record in records]


def _with_judgements(record: LogRecord, said: object) -> LogRecord:
    if not isinstance(record.entry.call, RunEnded):
        return record
    call = msgspec.structs.replace(record.entry.call, judgements=said)
    return msgspec.structs.replace(record, entry=msgspec.structs.replace(record.entry, call=call))


@pytest.mark.parametrize(
    ("rule", "rules", "threshold", "values"),
    [
        ("min_grounding_score", {}, 0.2, 300),
        ("min_grounding_score", {"score_relevance_floor": 0.5}, 0.6, 200),
        ("min_grounding_score", {"score_eval_mode": "average"}, 0.5666, 100),
        ("min_grounding_score", {"score_eval_mode": "top_n", "score_top_n": 1}, 0.9, 100),
        ("score_relevance_floor", {}, 0.9, 100),
        ("abstention_threshold", {}, 0.8, 100),
        ("abstention_threshold", {"confidence_mode": "min"}, 0.3, 100),
    ],
)
def test_grounding_rules_are_calibrated_on_what_they_look_at(rule: str, rules: dict[str, Any], threshold: float, values: int) -> None:
    first = GroundingEntry(grounding_scores=(0.9, 0.2, 0.6), output_confidence=0.3)
    records = entries(first, GroundingEntry(output_confidence=0.8))
    found = calibrate(records, rule, policy=policy("g", category="grounding", **rules))

    assert (threshold, values) == (found.threshold, found.good_values)


def test_judge_is_calibrated_on_what_it_said_for_the_policy() -> None:
    records = entries(judged=0.4)

    assert 0.4 == calibrate(records, "llm_grounding_threshold", policy=policy("g", category="grounding")).threshold
    with pytest.raises(InvalidFieldError, match="0 good runs"):
        calibrate(records, "llm_grounding_threshold", policy=policy("other", category="grounding"))


def test_rule_without_a_threshold_and_policy_of_another_category_are_refused() -> None:
    with pytest.raises(InvalidFieldError, match="'max_chunks' has no threshold to calibrate; name one of abstention_threshold"):
        calibrate([], "max_chunks")
    with pytest.raises(InvalidFieldError, match="'guard' is of category 'retrieval'"):
        calibrate([], "min_grounding_score", policy=policy())


def test_histogram_holds_every_value_once() -> None:
    traffic = hundred()
    traffic.run([document(-0.5), document(3.0)], status=RunStatus.ERROR)
    found = calibrate(traffic.records(), "min_relevance_score")
    ages = calibrate(traffic.records(), "max_source_age_days")

    assert (100, 2) == (sum(bar.good for bar in found.histogram), sum(bar.other for bar in found.histogram))
    assert (-0.5, 3.0) == (found.histogram[0].low, found.histogram[-1].high)
    # The threshold is an edge, so the bars on its far side are exactly what it would trigger.
    assert found.predicted.value_triggers == sum(bar.good + bar.other for bar in found.histogram if bar.high <= found.threshold)
    assert ages.predicted.value_triggers == sum(bar.good + bar.other for bar in ages.histogram if bar.low >= ages.threshold)
    assert 100 == sum(bar.good for bar in ages.histogram)


def test_redacted_records_are_left_out() -> None:
    traffic = hundred()
    traffic.run([document(-9)])
    records = [
        msgspec.structs.replace(record, is_redacted=isinstance(call := record.entry.call, RetrievedDocument) and call.relevance_score < 0)
        for record in traffic.records()
    ]
    found = calibrate(records, "min_relevance_score")

    assert (0.0, ("redacted records that were left out: 1",)) == (found.low, found.notes)


def test_every_measure_names_a_rule_that_exists() -> None:
    rules = {**policy().body.rules, **policy("g", category="grounding").body.rules}

    assert [] == [each.rule for each in MEASURES.values() if not {each.rule, each.action} <= set(rules)]


@given(st.integers(100, 5_000), st.sampled_from([5, 95]))
def test_interval_encloses_the_percentile(size: int, percent: int) -> None:
    values = [float(number) for number in range(size)]
    low, high = interval_of(values, percent, effective=size)

    assert low is not None
    assert high is not None
    assert low <= values[nearest_rank(size, percent) - 1] <= high


@pytest.mark.parametrize("size", [72, 100, 1_000, 20_000])
def test_interval_of_the_other_end_is_the_mirror_image(size: int) -> None:
    values = [float(number) for number in range(size)]
    low, high = interval_of(values, 5, effective=size)
    mirrored = interval_of(values, 95, effective=size)

    assert low is not None
    assert high is not None
    assert (size - 1 - high, size - 1 - low) == mirrored


def test_too_few_independent_values_leave_the_interval_open() -> None:
    assert None is interval_of([float(number) for number in range(1_000)], 5, effective=50).low


def test_values_that_repeat_within_a_run_count_once() -> None:
    # Ten values a run, all hits or none: as good as one value a run.
    assert 20 == round(effective_size([10] * 2 + [0] * 18, [10] * 20), -1)
    assert 200 == effective_size([1] * 10 + [0] * 10, [10] * 20)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=50))
def test_effective_size_is_never_more_than_there_is(clusters: list[tuple[int, int]]) -> None:
    sizes = [hits + rest for hits, rest in clusters if hits + rest]
    hits = [hits for hits, rest in clusters if hits + rest]

    assert 0 <= effective_size(hits, sizes) <= sum(sizes)
