"""Asks the judge what policies want judged; whatever keeps it from judging becomes a status, so that a run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.errors import EvidentiaError
from evidentia.contracts.judging import JudgedSource, Judgement, JudgeRequest, JudgeStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.decisions import JudgeAsk
    from evidentia.contracts.policies import PolicyId
    from evidentia.contracts.ports import GroundingJudge, SourceTexts

JUDGE_BUDGET_MS: Final = 20_000
"""How long one judgement may take unless somebody says otherwise."""

_NO_OUTPUT: Final = "the text of the output is not at hand: give it to record_llm_call, set_output_text or set_result"
_NO_JUDGE: Final = "no judge is configured"
_NAMED_MISSING: Final = 3


class Judging:
    """The judge of a governor with the texts it needs. Thread safe as long as its parts are."""

    def __init__(self, judge: GroundingJudge | None, texts: SourceTexts | None, *, budget_ms: int = JUDGE_BUDGET_MS) -> None:
        self._judge = judge
        self._texts = texts
        self._budget_ms = budget_ms

    def judgements(self, asks: Sequence[JudgeAsk], *, output: str, citations: Sequence[str]) -> Mapping[PolicyId, Judgement]:
        """Return a judgement for each policy that asks; policies that ask the same are answered by one."""
        sources = tuple(JudgedSource(citation=citation, text=self._text_of(citation)) for citation in dict.fromkeys(citations))
        said: dict[tuple[str, str], Judgement] = {}
        for ask in asks:
            question = (ask.model, ask.criteria)
            if question not in said:
                request = JudgeRequest(output=output, sources=sources, model=ask.model, criteria=ask.criteria)
                said[question] = self._judged(request)
        return {ask.policy_id: said[ask.model, ask.criteria] for ask in asks}

    def _judged(self, request: JudgeRequest) -> Judgement:
        if self._judge is None:
            return _without(request, JudgeStatus.NOT_CONFIGURED, _NO_JUDGE)
        if not request.output:
            return _without(request, JudgeStatus.SOURCE_UNAVAILABLE, _NO_OUTPUT)
        missing = [source.citation for source in request.sources if source.text is None]
        if missing:
            return _without(request, JudgeStatus.SOURCE_UNAVAILABLE, _missing_texts(missing))
        try:
            return self._judge.judge(request, budget_ms=self._budget_ms)
        except (EvidentiaError, OSError) as error:
            return _without(request, JudgeStatus.UNAVAILABLE, type(error).__name__)

    def _text_of(self, citation: str) -> str | None:
        if self._texts is None:
            return None
        try:
            return self._texts.text_of(citation)
        except (EvidentiaError, OSError):
            # A store that cannot be read is as good as one that does not hold the text: both are recorded as a bypass.
            return None


def _without(request: JudgeRequest, status: JudgeStatus, problem: str) -> Judgement:
    return Judgement(status=status, model=request.model, problem=problem)


def _missing_texts(missing: Sequence[str]) -> str:
    named = ", ".join(f"'{citation}'" for citation in missing[:_NAMED_MISSING])
    more = len(missing) - _NAMED_MISSING
    return f"no text is at hand for {named}" + (f" and {more} more" if more > 0 else "")
