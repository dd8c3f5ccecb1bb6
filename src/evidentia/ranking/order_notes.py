"""Why rows are not in the order of their confidence: what the composite score weighs besides the match, and what moved a row after it.

Confidence judges each fragment by itself; the order also weighs authority, freshness and utility, lets near-copies step back, and puts
successors before what they replace. Each reason is read off the scores and flags of the fragments, and where those do not tell, none is
given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.confidence_words import NOT_TOLD, UNLIKELY, percent
from evidentia.contracts.vocabulary import DeprecationStatus
from evidentia.ranking.fusion import ONE
from evidentia.ranking.signals import MILLION, STATED_WEIGHTS, composites, weights_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.evidence import EvidenceFragment

_UNDATED: Final = "freshness_unknown"
_OUTDATED: Final = frozenset({DeprecationStatus.DEPRECATED.value, DeprecationStatus.ARCHIVED.value})
_UNSEEN: Final = ONE // 200
"""What is not seen in two decimals."""


def order_notes(fragments: Sequence[EvidenceFragment]) -> tuple[str, ...]:
    """Return for each fragment in the order of an answer why it stands behind one with less confidence; empty where it does not.

    In what order the unlikely stand needs no reason.
    """
    weights = _weights(fragments)
    shown = [percent(fragment.confidence) for fragment in fragments]
    notes = []
    for place, fragment in enumerate(fragments):
        above = next((other for other in reversed(range(place)) if shown[other] < shown[place]), None)
        if above is None or fragment.likelihood in (UNLIKELY, NOT_TOLD):
            notes.append("")
        elif fragments[above].score < fragment.score:
            notes.append(f"behind {above + 1}: {_moved(fragments, above, place)}")
        else:
            notes.append(f"behind {above + 1}: {_outweighed(fragments[above], fragment, weights)}")
    return tuple(notes)


def _weights(fragments: Sequence[EvidenceFragment]) -> tuple[int, int, int, int] | None:
    """Return the weights that give the fragments their scores; None where a request had its own, which an answer does not tell."""
    signals = [_signals(fragment) for fragment in fragments]
    scores = [fragment.score for fragment in fragments]
    return next((weights for each in STATED_WEIGHTS if composites(signals, weights := weights_of(each)) == scores), None)


def _signals(fragment: EvidenceFragment) -> tuple[int, int, int, int]:
    scores = fragment.scores
    return scores.relevance, scores.authority, scores.freshness, scores.utility


def _moved(fragments: Sequence[EvidenceFragment], above: int, place: int) -> str:
    """Return what put a row behind one with a lower score: only successors and diversity do."""
    if not _OUTDATED.isdisjoint(fragments[place].flags):
        return "no longer current"
    if _OUTDATED.isdisjoint(fragments[above].flags):
        replaced = next((row for row in range(above + 1, place) if not _OUTDATED.isdisjoint(fragments[row].flags)), None)
        if replaced is not None:
            return f"{above + 1} replaces {replaced + 1}, so it stands before it"
    return "much like a row above"


def _outweighed(above: EvidenceFragment, below: EvidenceFragment, weights: tuple[int, int, int, int] | None) -> str:
    """Return the signals without which the row above would not be ahead, the one that gives most first."""
    if above.score == below.score:
        return "the same score"
    if weights is None:
        return "the weights of the request"
    gains = [weight * (more - less) // MILLION for weight, more, less in zip(weights, _signals(above), _signals(below), strict=True)]
    words = (_relevance(above, below), "lower authority", _freshness(above, below), "less to act on")
    lead = sum(gains)
    reasons: list[str] = []
    for gain, word in sorted(zip(gains, words, strict=True), reverse=True):
        if gain <= 0 or (reasons and lead < _UNSEEN):
            break
        reasons.append(word)
        lead -= gain
    return ", ".join(reasons)


def _relevance(above: EvidenceFragment, below: EvidenceFragment) -> str:
    read, other = above.scores.reranked, below.scores.reranked
    return "lower by the reranker" if read is not None and (other is None or other < read) else "lower relevance"


def _freshness(above: EvidenceFragment, below: EvidenceFragment) -> str:
    if _UNDATED in below.flags:
        return "no date"
    return "old" if _UNDATED in above.flags else "older"
