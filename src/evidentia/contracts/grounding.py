"""Whether a claim is supported by passages, and which sentence says so. Scores are thousandths, so that they compare exactly."""

from __future__ import annotations

import msgspec

from evidentia.contracts.vocabulary import Vocabulary


class GroundingReason(Vocabulary):
    """What a scorer saw that spoke for or against a claim."""

    COVERED = "covered"
    """Nearly every word that matters is in the supporting window."""
    WORDS_MISSING = "words_missing"
    NUMBER_MISMATCH = "number_mismatch"
    UNIT_MISMATCH = "unit_mismatch"
    NAME_MISSING = "name_missing"
    NEGATION_MISMATCH = "negation_mismatch"
    DIRECTION_MISMATCH = "direction_mismatch"
    """One says more, up or better where the other says less, down or worse."""
    NO_PASSAGES = "no_passages"
    UNSCORED = "unscored"
    """The scorer could not judge; the score says nothing."""


class SupportingSentence(msgspec.Struct, frozen=True, kw_only=True):
    """A window of sentences in one of the passages, by character offsets, and how well it supports the claim."""

    passage: int
    start: int
    end: int
    text: str
    score_milli: int


class GroundingNote(msgspec.Struct, frozen=True, kw_only=True):
    """One reason with the words, numbers or names it is about."""

    reason: GroundingReason
    about: tuple[str, ...] = ()


class GroundingScore(msgspec.Struct, frozen=True, kw_only=True):
    """How well passages support one claim, 0 to 1,000; `score` is the same between 0 and 1."""

    claim: str
    score_milli: int
    supported: bool
    evidence: tuple[SupportingSentence, ...] = ()
    reasons: tuple[GroundingNote, ...] = ()
    scorer: str
    """Which scorer with which fit, so that a score can be read later."""

    @property
    def score(self) -> float:
        """Return the score between 0 and 1."""
        return self.score_milli / 1_000


class GroundingReport(msgspec.Struct, frozen=True, kw_only=True):
    """An answer claim by claim, with the passages each rests on."""

    claims: tuple[GroundingScore, ...]
    citations: tuple[str, ...] = ()
    """Ids of the evidence that supports at least one claim, in order of first use."""
    unsupported: tuple[str, ...] = ()
    confidence_milli: int = 0
    """The mean over the claims; 0 without claims."""
