"""Scores out of replies, prices, and scorers in this process as judges."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.backends.llm.judge import PRICES, ModelJudge, Price, cost_micro, price_of, sentences_as_claims
from evidentia.backends.llm.judge_messages import read_reply, read_score
from evidentia.contracts.grounding import GroundingNote, GroundingReason, GroundingScore
from evidentia.contracts.judging import NEUTRAL_SCORE, JudgedSource, Judgement, JudgeProvider, JudgeRequest, JudgeStatus, known_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

blanks = st.text(alphabet=" \t\r\n", max_size=3)
scores = st.floats(min_value=0, max_value=1)


# --- the score in a reply ---


@given(scores, blanks, blanks, st.booleans())
def test_a_score_alone_is_read_exactly(score: float, before: str, after: str, bare: bool) -> None:  # noqa: FBT001 - one of two forms
    said = json.dumps(score) if bare else json.dumps({"score": score})

    assert score == read_score(before + said + after)


@given(st.floats().filter(lambda score: not 0 <= score <= 1))
def test_a_score_out_of_range_is_none(score: float) -> None:
    assert read_score(json.dumps(score)) is None
    assert read_score(json.dumps({"score": score})) is None


@given(scores, st.text(min_size=1, max_size=20), st.booleans())
def test_words_around_a_score_make_it_nobodys(score: float, words: str, before: bool) -> None:  # noqa: FBT001 - on which side
    said = json.dumps({"score": score})
    mixed = f"{words}{said}" if before else f"{said}{words}"

    assert (score if not words.strip(" \t\r\n") else None) == read_score(mixed)


@given(
    scores,
    scores,
    st.sampled_from(["{} {}", '{{"score": {}, "score": {}}}', '{{"score": [{}, {}]}}', "[{},{}]", '{{"a": {}, "score": {}}}', "{}\n{}"]),
)
def test_two_numbers_are_none(first: float, second: float, form: str) -> None:
    assert read_score(form.format(json.dumps(first), json.dumps(second))) is None


@given(st.text())
def test_any_text_gives_a_score_within_range_or_none(said: str) -> None:
    found = read_score(said)

    assert found is None or 0 <= found <= 1


@given(
    scores,
    st.sampled_from(
        ['"{}"', '"{{\\"score\\": {}}}"', "`{}`", '{{"score": "{}"}}', "Source 1 says {}", '{{"quote": "{{\\"score\\": {}}}"}}']
    ),
)
def test_a_quoted_score_does_not_count(score: float, form: str) -> None:
    assert read_score(form.format(json.dumps(score))) is None


@pytest.mark.parametrize(
    "said",
    [
        "",
        "NaN",
        "Infinity",
        "-Infinity",
        "null",
        "true",
        "x",
        '{"score": x}',
        "{}",
        "[]",
        '{"score": null}',
        '{"score": true}',
        '{"Score": 0.5}',
        ".5",
        "0.5.",
        "5.",
        "01",
        "0,5",
        "50%",
        "+0.5",
        "1e999",
        "0x1",
        "\u0660",
        "0.5\x00",
        "\u00a00.5",
        "\ufeff0.5",
        '{"\\u0073core": 0.5}',
        '{"score": 0.5',
        '{"score": 0.5}}',
        "0." + "0" * 10_000,
        "[" * 5_000,
    ],
)
def test_everything_else_is_none(said: str) -> None:
    assert read_score(said) is None


@pytest.mark.parametrize(
    ("said", "score"), [("0", 0.0), ("1", 1.0), ("-0.0", 0.0), ("1.0", 1.0), ("4.2e-1", 0.42), ("1E-400", 0.0), ('{"score":1}', 1.0)]
)
def test_numbers_are_read_as_json_writes_them(said: str, score: float) -> None:
    found = read_score(said)

    assert found is not None
    assert (score, 1.0) == (found, math.copysign(1, found))


@given(st.sampled_from([JudgeProvider.OPENAI, JudgeProvider.ANTHROPIC, JudgeProvider.GROQ]), st.binary(max_size=200))
def test_bytes_never_raise(provider: JudgeProvider, content: bytes) -> None:
    found = read_reply(content, provider=provider)

    assert found is None or found.usage is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "content", "message", "usage", "type", "text", "prompt_tokens", "stop_reason"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from([JudgeProvider.OPENAI, JudgeProvider.ANTHROPIC]), JSON)
def test_json_of_any_shape_never_raises(provider: JudgeProvider, value: Any) -> None:
    found = read_reply(json.dumps(value).encode(), provider=provider)

    assert found is None or found.said is None or isinstance(found.said, str)


# --- prices ---


@pytest.mark.parametrize(
    ("model", "priced_as"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
    ],
)
def test_a_release_costs_what_its_model_costs(model: str, priced_as: str) -> None:
    assert PRICES[priced_as] == price_of(model, prices=PRICES)


@pytest.mark.parametrize("model", ["gpt-4o-audio-preview", "gpt-4o-mini-x", "gpt-4", "claude-sonnet-4-5", "llama-3.1-8b", "local:overlap"])
def test_a_model_that_is_only_called_alike_has_no_price(model: str) -> None:
    assert price_of(model, prices=PRICES) is None


def test_every_price_is_that_of_a_known_model() -> None:
    assert [] == [model for model in PRICES if not known_model(model)]


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_costs_are_integers_rounded_up(into: int, out: int, price_in: int, price_out: int) -> None:
    prices = {"m": Price(input_micro=price_in, output_micro=price_out)}
    cost = cost_micro("m", input_tokens=into, output_tokens=out, prices=prices)
    exact = into * price_in + out * price_out

    assert exact <= cost * 1_000_000 < exact + 1_000_000


# --- scorers in this process ---


class TableScorer:
    """Gives each claim the score of a table; a claim that is not in it is unscored."""

    identity = "table"

    def __init__(self, table: dict[str, int]) -> None:
        self._table = table
        self.asked: list[tuple[list[str], list[str], int]] = []

    def score(self, claims: Sequence[str], passages: Sequence[str], *, budget_ms: int) -> Sequence[GroundingScore]:
        self.asked.append((list(claims), list(passages), budget_ms))
        return [self._scored(claim) for claim in claims]

    def _scored(self, claim: str) -> GroundingScore:
        unscored = () if claim in self._table else (GroundingNote(reason=GroundingReason.UNSCORED),)
        return GroundingScore(claim=claim, score_milli=self._table.get(claim, 0), supported=False, reasons=unscored, scorer="table")


class RaisingScorer(TableScorer):
    def score(self, claims: Sequence[str], passages: Sequence[str], *, budget_ms: int) -> Sequence[GroundingScore]:  # noqa: ARG002 - the port's names
        raise ArithmeticError("secret text of a claim")


class ForgetfulScorer(TableScorer):
    def score(self, claims: Sequence[str], passages: Sequence[str], *, budget_ms: int) -> Sequence[GroundingScore]:
        return super().score(claims, passages, budget_ms=budget_ms)[1:]


REQUEST = JudgeRequest(
    output="One holds. Two fails. Three!",
    sources=(JudgedSource(citation="a", text="One."), JudgedSource(citation="b", text="")),
    model="local:table",
)
TABLE = {"One holds.": 1_000, "Two fails.": 0, "Three!": 999}


def judged(scorer: TableScorer, request: JudgeRequest = REQUEST, *, elapsed_ns: Callable[[], int] = lambda: 0, **changes: Any) -> Judgement:
    def no_key(name: str) -> str | None:
        raise AssertionError(name)

    judge = ModelJudge(key_for=no_key, scorers={"table": scorer}, elapsed_ns=elapsed_ns, **changes)
    return judge.judge(request, budget_ms=700)


def test_a_local_judge_gives_the_mean_of_the_claims() -> None:
    scorer = TableScorer(TABLE)

    assert Judgement(status=JudgeStatus.JUDGED, score=0.666, model="local:table") == judged(scorer)
    assert [(list(TABLE), ["One.", ""], 700)] == scorer.asked


def test_a_local_judge_says_that_it_does_not_read_criteria() -> None:
    found = judged(TableScorer(TABLE), msgspec.structs.replace(REQUEST, criteria="Be kind."))

    assert ("a local scorer does not read criteria",) == found.notes


def test_a_local_judge_may_split_claims_otherwise() -> None:
    found = judged(TableScorer({REQUEST.output: 250}), split_claims=lambda output: [output])
    none = judged(TableScorer(TABLE), split_claims=lambda _: [])

    assert (0.25, JudgeStatus.NOTHING_TO_JUDGE) == (found.score, none.status)


def test_one_unscored_claim_leaves_no_judgement() -> None:
    scorer = TableScorer({"One holds.": 1_000, "Two fails.": 0})
    ticks = iter([0, 0, 0, 10**12, 10**12])

    in_time = judged(scorer)
    late = judged(scorer, elapsed_ns=lambda: next(ticks))

    assert (JudgeStatus.UNAVAILABLE, None, "1 of 3 claims were not scored") == (in_time.status, in_time.score, in_time.problem)
    assert (JudgeStatus.TIMED_OUT, None) == (late.status, late.score)


@pytest.mark.parametrize("scorer", [TableScorer({**TABLE, "Three!": 1_001}), TableScorer({**TABLE, "Three!": -1}), ForgetfulScorer(TABLE)])
def test_a_lying_scorer_is_not_believed(scorer: TableScorer) -> None:
    found = judged(scorer)

    assert (JudgeStatus.UNPARSEABLE, NEUTRAL_SCORE) == (found.status, found.score)


def test_a_scorer_that_raises_is_unavailable_and_keeps_its_words() -> None:
    found = judged(RaisingScorer({}))

    assert (JudgeStatus.UNAVAILABLE, None, "the scorer raised ArithmeticError") == (found.status, found.score, found.problem)


def test_a_scorer_that_is_not_there_is_named() -> None:
    found = judged(TableScorer(TABLE), msgspec.structs.replace(REQUEST, model="local:other"))

    assert (JudgeStatus.NOT_CONFIGURED, "there is no local scorer 'other'; known are: table") == (found.status, found.problem)


def test_a_missing_text_is_missing_for_a_local_judge_too() -> None:
    scorer = TableScorer(TABLE)
    found = judged(scorer, msgspec.structs.replace(REQUEST, sources=(JudgedSource(citation="gone"),)))

    assert JudgeStatus.SOURCE_UNAVAILABLE == found.status
    assert [] == scorer.asked


def test_claims_are_sentences_that_say_something() -> None:
    assert ["A b.", "C 4!"] == sentences_as_claims("A b. ... C 4!\n\n***\n")
