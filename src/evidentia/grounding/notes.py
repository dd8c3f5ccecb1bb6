"""Why a claim has its score, in the words of the claim and of the passage."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from evidentia.contracts.grounding import GroundingNote, GroundingReason
from evidentia.grounding.reading import terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evidentia.grounding.features import Finding
    from evidentia.grounding.reading import Claim, Passage

MAX_NAMED: Final = 8
"""Words, numbers or names that one reason is about, at most."""
COVERED_MILLI: Final = 850


def notes_of(claim: Claim, finding: Finding, *, text: str, passage: Passage) -> tuple[GroundingNote, ...]:
    """Return the reasons in a fixed order: what is covered or missing, then numbers, units, names, negation and direction."""
    return tuple(_notes(claim, finding, text=text, passage=passage))


def _notes(claim: Claim, finding: Finding, *, text: str, passage: Passage) -> Iterator[GroundingNote]:
    if finding.window.coverage >= COVERED_MILLI:
        yield GroundingNote(reason=GroundingReason.COVERED)
    else:
        heaviest = sorted(finding.missing, key=lambda term: (-claim.weights[term], term))
        yield _note(GroundingReason.WORDS_MISSING, (claim.surfaces[term] for term in heaviest))
    if finding.numbers:
        yield _note(GroundingReason.NUMBER_MISMATCH, finding.numbers)
    if finding.units:
        yield _note(GroundingReason.UNIT_MISMATCH, finding.units)
    if finding.names:
        yield _note(GroundingReason.NAME_MISSING, finding.names)
    if finding.features.negation_lost:
        yield _note(GroundingReason.NEGATION_MISMATCH, (claim.surfaces[term] for term in claim.negations))
    elif finding.features.negation_added:
        yield _note(GroundingReason.NEGATION_MISMATCH, (_surface(term, text, passage, sentence) for term, sentence in finding.denials))
    if _is_turned(finding):
        yield _note(GroundingReason.DIRECTION_MISMATCH, _directions(claim, finding, text=text, passage=passage))


def _is_turned(finding: Finding) -> bool:
    features = finding.features
    against, along = features.direction_against, features.direction_with
    return (against > 0 and against >= along) or (features.direction_turned > 0 and not along)


def _directions(claim: Claim, finding: Finding, *, text: str, passage: Passage) -> Iterator[str]:
    for word, opposite, sentence in finding.turns:
        yield f"{claim.surfaces[word]} / {_surface(opposite, text, passage, sentence)}"
    if not finding.turns:
        yield from (claim.surfaces[direction.word] for direction in claim.directions)


def _surface(term: str, text: str, passage: Passage, sentence: int) -> str:
    """Return how a sentence writes a term."""
    span = passage.spans[sentence]
    for piece in text[span.start : span.end].split():
        if term in terms_of(piece):
            return piece.strip(".,;:!?()[]{}\"'")
    return term


def _note(reason: GroundingReason, about: Iterable[str]) -> GroundingNote:
    return GroundingNote(reason=reason, about=tuple(dict.fromkeys(islice(about, MAX_NAMED))))
