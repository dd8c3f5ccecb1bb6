"""Asking a judge: who is asked what, once, and what becomes of a judge that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from governed_parts import KnownTexts, SayingJudge

from evidentia.contracts.access import local_owner
from evidentia.contracts.decisions import JudgeAsk
from evidentia.contracts.errors import ServiceUnavailableError
from evidentia.contracts.policies import PolicyId
from evidentia.governance.governed_runs import ConfiguredJudge

if TYPE_CHECKING:
    from evidentia.contracts.access import Principal
    from evidentia.contracts.judging import Judgement, JudgeRequest


def _ask(policy: str, model: str = "gpt-4o-mini", criteria: str = "") -> JudgeAsk:
    return JudgeAsk(policy_id=PolicyId(policy), model=model, criteria=criteria, threshold=0.7)


class FailingJudge:
    """A judge that breaks its promise."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def judge(self, request: JudgeRequest, *, budget_ms: int) -> Judgement:
        """Raise."""
        assert request.output
        assert budget_ms > 0
        raise self._error


class FailingTexts:
    """Texts that cannot be read."""

    def text_of(self, citation: str, *, principal: Principal) -> str | None:
        """Raise."""
        assert principal.principal_id
        raise OSError(citation)


def test_policies_that_ask_the_same_share_an_answer() -> None:
    judge = SayingJudge()
    asks = [_ask("p-1"), _ask("p-2"), _ask("p-3", criteria="Be strict.")]

    judgements = ConfiguredJudge(judge, KnownTexts({"a": "A."})).judgements(
        asks, output="said", citations=["a", "a"], principal=local_owner()
    )

    assert ["p-1", "p-2", "p-3"] == list(judgements)
    assert ["", "Be strict."] == [request.criteria for request in judge.asked]
    assert [("a", "A.")] == [(source.citation, source.text) for source in judge.asked[0].sources]


@pytest.mark.parametrize("error", [ServiceUnavailableError("down"), TimeoutError()])
def test_a_judge_that_raises_is_unavailable(error: Exception) -> None:
    judging = ConfiguredJudge(FailingJudge(error), KnownTexts({}))

    (judgement,) = judging.judgements([_ask("p-1")], output="said", citations=(), principal=local_owner()).values()

    assert ("unavailable", type(error).__name__) == (judgement.status.value, judgement.problem)


def test_texts_that_cannot_be_read_are_missing_and_named() -> None:
    judge = SayingJudge()

    judging = ConfiguredJudge(judge, FailingTexts())
    (judgement,) = judging.judgements([_ask("p-1")], output="said", citations=list("abcde"), principal=local_owner()).values()

    assert "source_unavailable" == judgement.status.value
    assert "no text is at hand for 'a', 'b', 'c' and 2 more" == judgement.problem
    assert [] == judge.asked
