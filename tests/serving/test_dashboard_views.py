"""What pages show, computed: scores as what they are made of, sources in words, values of facets in order, times and counts."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.evidence import SCORE_ONE, RankingWeights, SignalScores
from evidentia.contracts.ids import SourceId
from evidentia.contracts.sources import FreshnessReport, SourceDescriptor, SourceHealth, SourceStatus
from evidentia.contracts.vocabulary import BreakerState
from evidentia.ranking.signals import composites, weights_of
from evidentia.serving.dashboard.answer_view import BAR_WIDTH, bar_of
from evidentia.serving.dashboard.dashboard_app import address, count, moment, sentence
from evidentia.serving.dashboard.pages.evidence_page import view_sources

EARLIER, LATER = datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 6, 2, tzinfo=UTC)
SIGNALS = st.integers(min_value=0, max_value=SCORE_ONE)


def _status(*, is_attached: bool = True, **health: Any) -> SourceStatus:
    return SourceStatus(descriptor=SourceDescriptor(source_id=SourceId("archive")), health=SourceHealth(**health), is_attached=is_attached)


def _report(age_s: int | None, sla_s: int | None, *, is_fresh: bool | None) -> FreshnessReport:
    return FreshnessReport(source_id=SourceId("archive"), freshness_sla_s=sla_s, age_s=age_s, is_fresh=is_fresh)


@given(st.tuples(SIGNALS, SIGNALS, SIGNALS, SIGNALS))
def test_the_parts_of_a_bar_are_side_by_side_and_make_up_the_score(signals: tuple[int, int, int, int]) -> None:
    weights = RankingWeights()
    relevance, authority, freshness, utility = signals
    scores = SignalScores(relevance=relevance, authority=authority, freshness=freshness, utility=utility, fused=0)
    bar = bar_of(scores, weights)
    (score,) = composites([signals], weights_of(weights))

    assert abs(sum(each.gives for each in bar) - score / SCORE_ONE) < 1e-6
    assert abs(sum(each.width for each in bar) / BAR_WIDTH - score / SCORE_ONE) < 1e-3
    for before, after in pairwise(bar):
        assert abs(before.x + before.width - after.x) < 0.02


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, ("ready", "good")),
        ({"last_success_at": LATER, "last_failure_at": EARLIER}, ("ready", "good")),
        ({"last_success_at": EARLIER, "last_failure_at": LATER}, ("failing", "warn")),
        ({"last_failure_at": EARLIER}, ("failing", "warn")),
        ({"is_attached": False}, ("not attached", "bad")),
        ({"breaker": BreakerState.OPEN}, ("breaker open", "bad")),
        ({"breaker": BreakerState.HALF_OPEN}, ("breaker half open", "warn")),
    ],
)
def test_the_state_of_a_source_is_a_word(facts: dict[str, Any], expected: tuple[str, str]) -> None:
    (view,) = view_sources([_status(**facts)], [])

    assert expected == (view.state, view.kind)


@pytest.mark.parametrize(
    ("report", "verdict", "width"),
    [
        (_report(50, 100, is_fresh=True), "fresh", 50.0),
        (_report(500, 100, is_fresh=False), "too old", 100.0),
        (_report(0, 0, is_fresh=True), "fresh", 0.0),
        (_report(None, 100, is_fresh=None), "age unknown", None),
        (_report(50, None, is_fresh=None), "promises nothing", None),
    ],
)
def test_an_age_is_drawn_beside_the_promise(report: FreshnessReport, verdict: str, width: float | None) -> None:
    (view,) = view_sources([_status()], [report])

    assert (verdict, width) == (view.verdict, view.age_width)


def test_words_for_people() -> None:
    assert "1 chunk" == count(1, "chunk")
    assert "1,200 chunks" == count(1_200, "chunk")
    assert "2026-06-01 10:00:00 UTC" == moment("2026-06-01T12:00:00+02:00")
    assert "2026-06-01 12:00:00 UTC" == moment(datetime(2026, 6, 1, 12, tzinfo=UTC))
    assert "-" == moment(None)
    assert "It is gone." == sentence("it is gone")
    assert "Did you mean 'title'?" == sentence("did you mean 'title'?")
    assert "/a?id=x%26y&f=1&f=2" == address("/a", id="x&y", f=[1, 2], none=None, empty="")
