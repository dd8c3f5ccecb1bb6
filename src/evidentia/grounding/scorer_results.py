"""What all claim scorers share: checked input, the score of a claim that was not judged, and the choice of its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.grounding import GroundingNote, GroundingReason, GroundingScore, SupportingSentence

MAX_EVIDENCE: Final = 3
"""Windows that are named for one claim, each in a passage of its own."""


def checked_texts(field: str, texts: object) -> tuple[str, ...]:
    """Return texts as they are, or refuse what is no sequence of texts."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
        raise InvalidFieldError(field, f"it is a {type(texts).__name__}; pass a list of texts")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidFieldError(field, f"number {place} is a {type(text).__name__}; pass texts only")
    return tuple(texts)


def checked_pairs(field: str, pairs: object) -> tuple[tuple[str, str], ...]:
    """Return pairs of an id and a text, or refuse what is no sequence of them."""
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Sequence):
        raise InvalidFieldError(field, f"it is a {type(pairs).__name__}; pass a list of pairs of an id and a text")
    checked: list[tuple[str, str]] = []
    for place, pair in enumerate(pairs):
        match pair:
            case (str(identifier), str(text)):
                checked.append((identifier, text))
            case _:
                raise InvalidFieldError(field, f"number {place} is no pair of an id and a text")
    return tuple(checked)


def outcome(
    claim: str,
    judged: Sequence[SupportingSentence],
    *,
    threshold_milli: int,
    identity: str,
    reasons: tuple[GroundingNote, ...] = (),
) -> GroundingScore:
    """Return the score of the best of at least one window; it and what else supports the claim are named, best first, then in order."""
    ranked = sorted(judged, key=lambda each: (-each.score_milli, each.passage, each.start))
    best = ranked[0]
    named = [each for each in ranked[:MAX_EVIDENCE] if each.score_milli >= threshold_milli] or [best]
    return GroundingScore(
        claim=claim,
        score_milli=best.score_milli,
        supported=best.score_milli >= threshold_milli,
        evidence=tuple(each for each in named if each.text),
        reasons=reasons,
        scorer=identity,
    )


def unscored(
    claim: str, *, identity: str, reason: GroundingReason = GroundingReason.UNSCORED, about: tuple[str, ...] = ()
) -> GroundingScore:
    """Return the score of a claim that was not judged: 0 and not supported, with the reason."""
    note = GroundingNote(reason=reason, about=about)
    return GroundingScore(claim=claim, score_milli=0, supported=False, reasons=(note,), scorer=identity)
