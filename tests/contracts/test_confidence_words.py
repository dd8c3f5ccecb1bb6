"""Confidence in words: on fixed bounds, never against the number beside it, and of an answer as a whole."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answer_samples import answer_of, fragment_of
from evidentia.contracts.confidence_words import BOUNDS, decimals, in_words, likelihood
from evidentia.contracts.evidence import CoverageReport, EvidenceResponse, WithheldFragment
from evidentia.contracts.ids import ChunkId, SourceId
from evidentia.contracts.vocabulary import CoverageState

CONFIDENCES = st.integers(min_value=0, max_value=1_000_000).map(lambda millionths: millionths / 1_000_000)
ORDER = [word for _, word in reversed(BOUNDS)]


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [
        (1.0, "1.00 very likely"),
        (0.8, "0.80 very likely"),
        (0.794, "0.79 likely"),
        (0.5, "0.50 likely"),
        (0.49, "0.49 possible"),
        (0.2, "0.20 possible"),
        (0.194, "0.19 unlikely"),
        (0.0, "0.00 unlikely"),
        (None, "-"),
    ],
)
def test_words_begin_at_fixed_bounds(confidence: float | None, expected: str) -> None:
    assert expected == in_words(confidence)


@given(CONFIDENCES, CONFIDENCES)
def test_the_word_follows_from_the_number_that_is_shown(one: float, other: float) -> None:
    assert decimals(one) != decimals(other) or likelihood(one) == likelihood(other)
    low, high = sorted((one, other))
    assert ORDER.index(likelihood(low)) <= ORDER.index(likelihood(high))


def test_the_verdict_is_that_of_the_likeliest_fragment_wherever_it_stands() -> None:
    assert "the best match is very likely relevant (0.91)" == answer_of(0.3, 0.91, 0.1).verdict
    assert "the best match is likely relevant (0.60)" == answer_of(0.6).verdict
    assert "the best match is possibly relevant (0.30)" == answer_of(0.1, 0.3).verdict
    assert not answer_of(0.1, 0.3).is_doubtful


def test_an_answer_of_unlikely_fragments_says_that_there_is_probably_nothing() -> None:
    answer = answer_of(0.07, 0.14)

    assert answer.is_doubtful
    assert "probably nothing here: the best match is unlikely to be relevant (0.14)" == answer.verdict


def test_empty_withheld_late_and_unheard_are_told_apart() -> None:
    empty = answer_of()
    withheld = msgspec.structs.replace(empty, withheld=(WithheldFragment(chunk_id=ChunkId("a:b#1"), reason="policy"),))
    verdicts = [
        empty.verdict,
        withheld.verdict,
        _with(empty, CoverageState.TIMED_OUT).verdict,
        _with(answer_of(0.1), CoverageState.TIMED_OUT).verdict,
        _with(answer_of(0.1), CoverageState.FAILED).verdict,
    ]

    assert "nothing that you may see matches" == verdicts[0]
    assert "everything that matches was withheld" == verdicts[1]
    assert verdicts[2].startswith("the search did not finish in time (wiki)")
    assert verdicts[3].startswith("nothing likely so far: the best match is unlikely to be relevant (0.10), and the search did not finish")
    assert verdicts[4].startswith("probably nothing in what was searched: ")
    assert verdicts[4].endswith("wiki did not answer")
    assert not any(each.is_doubtful for each in (empty, withheld, _with(empty, CoverageState.TIMED_OUT)))


def test_numbers_that_are_not_told_are_neither_shown_nor_judged() -> None:
    stripped = msgspec.structs.replace(fragment_of(0.0), score=0, relevance_score=0.0, scores=fragment_of(0.0, 0, 0, 0, 0).scores)
    answer = msgspec.structs.replace(answer_of(), fragments=(stripped,))

    assert ("-", "-", False) == (stripped.rating, stripped.likelihood, answer.is_doubtful)
    assert "confidence" not in repr(stripped)
    assert "the numbers of this answer are for its first caller" == answer.verdict


def test_a_printed_fragment_leads_with_confidence_and_keeps_its_wire_form() -> None:
    fragment = fragment_of(0.8712345, 0.734567891)
    shown = repr(fragment)

    assert shown.startswith("EvidenceFragment(confidence=0.87, likelihood='very likely', relevance_score=")
    assert str(fragment.score) not in shown
    assert set(fragment.__struct_fields__) == set(msgspec.to_builtins(fragment))
    assert fragment.score == msgspec.to_builtins(fragment)["score"]


def _with(answer: EvidenceResponse, state: CoverageState) -> EvidenceResponse:
    return msgspec.structs.replace(answer, source_coverage={SourceId("wiki"): CoverageReport(state=state)})
