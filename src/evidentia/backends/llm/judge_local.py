"""A scorer in this process as a judge: the mean over the claims of an output. Nothing leaves the machine and nothing is paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.grounding import GroundingReason
from evidentia.contracts.judging import NEUTRAL_SCORE, Judgement, JudgeStatus
from evidentia.text.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.grounding import GroundingScore
    from evidentia.contracts.judging import JudgeRequest
    from evidentia.contracts.ports import ClaimScorer

_FULL_MILLI: Final = 1_000


def says_something(text: str) -> bool:
    """Tell whether a text holds a letter or a digit; without one it claims nothing."""
    return any(char.isalnum() for char in text)


def sentences_as_claims(output: str) -> Sequence[str]:
    """Return the sentences of an output that say something."""
    sentences = (output[start:end] for start, end in split_sentences(output))
    return [sentence for sentence in sentences if says_something(sentence)]


def judge_by_scorer(request: JudgeRequest, scorer: ClaimScorer, *, claims: Sequence[str], remaining_ms: Callable[[], int]) -> Judgement:
    """Return the mean of the claims' scores, rounded down to a thousandth; a single claim that was not scored leaves no judgement."""
    passages = [source.text or "" for source in request.sources]
    try:
        scores = scorer.score(claims, passages, budget_ms=remaining_ms())
    except Exception as error:  # noqa: BLE001 - a scorer is anybody's code, and no judge may stop an agent
        return _verdict(request, JudgeStatus.UNAVAILABLE, problem=f"the scorer raised {type(error).__name__}")
    if len(scores) != len(claims) or any(not 0 <= score.score_milli <= _FULL_MILLI for score in scores):
        problem = "the scorer gave no score between 0 and 1,000 for each claim"
        return _verdict(request, JudgeStatus.UNPARSEABLE, problem=problem, score=NEUTRAL_SCORE)
    unscored = sum(map(_is_unscored, scores))
    if unscored:
        status = JudgeStatus.UNAVAILABLE if remaining_ms() > 0 else JudgeStatus.TIMED_OUT
        return _verdict(request, status, problem=f"{unscored} of {len(scores)} claims were not scored")
    mean_milli = sum(score.score_milli for score in scores) // len(scores)
    notes = ("a local scorer does not read criteria",) if request.criteria.strip() else ()
    return Judgement(status=JudgeStatus.JUDGED, score=mean_milli / _FULL_MILLI, model=request.model, notes=notes)


def _is_unscored(score: GroundingScore) -> bool:
    return any(note.reason is GroundingReason.UNSCORED for note in score.reasons)


def _verdict(request: JudgeRequest, status: JudgeStatus, *, problem: str, score: float | None = None) -> Judgement:
    return Judgement(status=status, score=score, model=request.model, problem=problem)
