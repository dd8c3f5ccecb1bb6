"""Claims scored against passages by words alone: how well the best passage supports each, which sentences do, and what is against it.

No model of a language, no input or output, no clock. The score of a claim is that of its best passage, so a further passage never
lowers it. Linear in the length of the passages.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.grounding import GroundingReason, GroundingReport, GroundingScore, SupportingSentence
from evidentia.grounding.claims import split_claims
from evidentia.grounding.features import find
from evidentia.grounding.model import GroundingModel, predict, shipped_models
from evidentia.grounding.notes import notes_of
from evidentia.grounding.outcome import checked_pairs, checked_texts, outcome, unscored
from evidentia.grounding.reading import read_claim, read_passage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.ports import ClaimScorer
    from evidentia.grounding.features import Finding
    from evidentia.grounding.reading import Claim, Passage

    Similarity = Callable[[str, str], int]
    """Says how near a claim and a window are, in thousandths."""

UNLIMITED_MS: Final = 3_600_000


class _Judged(NamedTuple):
    sentence: SupportingSentence
    """Empty where the passage has no word of the claim."""
    finding: Finding


class WordScorer:
    """Implements `ClaimScorer` with words alone. Thread safe; the same input gives the same score on every machine."""

    def __init__(self, model: GroundingModel | None = None) -> None:
        self._model = shipped_models().words if model is None else model
        self._identity = f"evidentia-words@{self._model.identity}"

    @property
    def identity(self) -> str:
        """Return the name and the hash of the model."""
        return self._identity

    def score(self, claims: Sequence[str], passages: Sequence[str], *, budget_ms: int) -> Sequence[GroundingScore]:
        """Return one score per claim, in order. The work is bounded by the texts and needs no clock, so the budget is not looked at."""
        del budget_ms
        return score_claims(claims, passages, model=self._model, identity=self._identity)


def ground(claim: str, passages: Sequence[str]) -> GroundingScore:
    """Return how well passages support a claim, which sentences do so, and what speaks against it."""
    if not isinstance(claim, str):
        raise InvalidFieldError("claim", f"it is a {type(claim).__name__}; pass the claim as text")
    return _shipped_scorer().score([claim], passages, budget_ms=UNLIMITED_MS)[0]


def ground_answer(answer: str, passages: Sequence[tuple[str, str]], *, scorer: ClaimScorer | None = None) -> GroundingReport:
    """Return an answer claim by claim; `passages` are pairs of an id and a text, and the citations name those ids."""
    claims = [claim.text for claim in split_claims(answer)]
    pairs = checked_pairs("passages", passages)
    scores = tuple((scorer or _shipped_scorer()).score(claims, [text for _, text in pairs], budget_ms=UNLIMITED_MS)) if claims else ()
    cited = [pairs[sentence.passage][0] for score in scores if score.supported for sentence in score.evidence]
    return GroundingReport(
        claims=scores,
        citations=tuple(dict.fromkeys(cited)),
        unsupported=tuple(score.claim for score in scores if not score.supported),
        confidence_milli=sum(score.score_milli for score in scores) // len(scores) if scores else 0,
    )


def score_claims(
    claims: Sequence[str], passages: Sequence[str], *, model: GroundingModel, identity: str, similarity: Similarity | None = None
) -> tuple[GroundingScore, ...]:
    """Return one score per claim by a given model; passages are read once for all claims."""
    texts = checked_texts("claims", claims)
    sources = checked_texts("passages", passages)
    read = [read_passage(text) for text in sources]
    return tuple(_score(text, sources, read, model=model, identity=identity, similarity=similarity) for text in texts)


@cache
def _shipped_scorer() -> WordScorer:
    return WordScorer()


def _score(
    text: str,
    texts: Sequence[str],
    read: Sequence[Passage],
    *,
    model: GroundingModel,
    identity: str,
    similarity: Similarity | None,
) -> GroundingScore:
    claim = read_claim(text)
    if not any(passage.spans for passage in read):
        return unscored(text, identity=identity, reason=GroundingReason.NO_PASSAGES)
    if not claim.weights:
        return unscored(text, identity=identity, about=("no words with content",))
    judged = [
        _judge(place, text, claim, texts[place], passage, model=model, similarity=similarity)
        for place, passage in enumerate(read)
        if passage.spans
    ]
    best = max(judged, key=lambda each: (each.sentence.score_milli, -each.sentence.passage))
    place = best.sentence.passage
    return outcome(
        text,
        [each.sentence for each in judged],
        threshold_milli=model.threshold_milli,
        identity=identity,
        reasons=notes_of(claim, best.finding, text=texts[place], passage=read[place]),
    )


def _judge(
    place: int, text: str, claim: Claim, source: str, passage: Passage, *, model: GroundingModel, similarity: Similarity | None
) -> _Judged:
    finding = find(claim, passage)
    window = finding.window
    start, end = passage.spans[window.first].start, passage.spans[window.last - 1].end
    near = 0 if similarity is None else similarity(text, source[start:end])
    score_milli = predict(model, finding.features, similarity_milli=near)
    if not window.coverage:
        start = end = 0
    sentence = SupportingSentence(passage=place, start=start, end=end, text=source[start:end], score_milli=score_milli)
    return _Judged(sentence, finding)
