"""Cross-encoders and NLI models that judge claims: passage and claim are read together, one pair per call.

A folder of the user's own: `model.onnx` and `tokenizer.json`, and `claims.json` where the defaults do not fit. One logit is read as
the log-odds of support, two as (not, supported), three or more as classes, of which `entailment` says which one is support.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import numpy as np

from evidentia.backends.onnx.model_folder import MODEL, TOKENIZER, ScorerFolder, read_file
from evidentia.backends.onnx.text_model import open_model
from evidentia.contracts.canonical import hash_record, sha256_hex
from evidentia.contracts.grounding import GroundingReason, GroundingScore, SupportingSentence
from evidentia.contracts.ports import ClaimScorer, Clock
from evidentia.grounding.scorer_results import checked_texts, outcome, unscored

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evidentia.backends.onnx.text_model import States

SETTINGS: Final = "claims.json"

_FORM: Final = 1
"""Raised when the same files would give other scores."""
_ONE: Final = 1_000
_TWO_CLASSES: Final = 2
_LARGEST_LOGIT: Final = 30.0
_NS_PER_MS: Final = 1_000_000
_NO_TIME: Final = "no time"


class ClaimModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `claims.json` says of a model; every field has a default."""

    name: str = ""
    """For people; the folder's name by default."""
    max_tokens: Annotated[int, msgspec.Meta(ge=8, le=8192)] = 512
    """Of passage and claim together; the longer of the two is cut first."""
    entailment: Annotated[int, msgspec.Meta(ge=0, le=1_000)] | None = None
    """Which class means that the passage supports the claim; needed with three classes or more."""
    threshold_milli: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 500
    """The least score of a claim that is supported."""


class OnnxClaimScorer(ClaimScorer):
    """Implements `ClaimScorer` with a folder's model, which is opened at once so that mistakes show here. Thread safe."""

    def __init__(self, folder: Path, *, clock: Clock) -> None:
        self._folder = ScorerFolder(folder.resolve(), "claim_scorer")
        self._clock = clock
        self._settings = self._folder.settings(SETTINGS, ClaimModelSettings)
        hashes = {name: sha256_hex(read_file(self._folder.path, name)) for name in (MODEL, TOKENIZER)}
        self._model = open_model(
            self._folder.path, model_hash=hashes[MODEL], tokenizer_hash=hashes[TOKENIZER], max_tokens=self._settings.max_tokens
        )
        self._output = self._folder.output_of(self._model)
        nameless = msgspec.structs.replace(self._settings, name="")
        deciding = hash_record({"form": _FORM, "files": hashes, "settings": msgspec.structs.asdict(nameless)})
        self._identity = f"{self._settings.name or self._folder.path.name}@{deciding}"

    @property
    def identity(self) -> str:
        """Return the name and a hash; any changed byte of the model or setting is another hash."""
        return self._identity

    def score(self, claims: Sequence[str], passages: Sequence[str], *, budget_ms: int) -> Sequence[GroundingScore]:
        """Return one score per claim: that of the passage that supports it best.

        The first claim is always judged if there is any time; each further one only while one as slow as the slowest so far still fits.
        """
        texts, sources = checked_texts("claims", claims), checked_texts("passages", passages)
        started = before = self._clock.elapsed_ns()
        slowest = 0
        scores: list[GroundingScore] = []
        for text in texts:
            if budget_ms <= 0 or before - started + slowest > budget_ms * _NS_PER_MS:
                scores.append(unscored(text, identity=self._identity, about=(_NO_TIME,)))
                continue
            scores.append(self._score(text, sources))
            after = self._clock.elapsed_ns()
            slowest = max(slowest, after - before)
            before = after
        return tuple(scores)

    def _score(self, claim: str, passages: Sequence[str]) -> GroundingScore:
        judged = [
            SupportingSentence(passage=place, start=0, end=len(passage), text=passage, score_milli=self._judge(claim, passage))
            for place, passage in enumerate(passages)
            if passage.strip()
        ]
        if not judged:
            return unscored(claim, identity=self._identity, reason=GroundingReason.NO_PASSAGES)
        return outcome(claim, judged, threshold_milli=self._settings.threshold_milli, identity=self._identity)

    def _judge(self, claim: str, passage: str) -> int:
        logits = self._model.run(self._model.fields(self._model.tokens(passage, pair=claim)), output=self._output)
        return _support_milli(logits, entailment=self._settings.entailment, folder=self._folder)


def _support_milli(logits: States, *, entailment: int | None, folder: ScorerFolder) -> int:
    """Return the probability of support in thousandths, rounded half to even."""
    exact = np.atleast_1d(logits.astype(np.float64))
    if exact.ndim != 1 or not np.isfinite(exact).all():
        raise folder.unusable(f"its '{MODEL}' gives the shape {(1, *logits.shape)} for one pair, or numbers that are not finite")
    if len(exact) == 1:
        log_odds = min(max(float(exact[0]), -_LARGEST_LOGIT), _LARGEST_LOGIT)
        return round(_ONE / (1 + math.exp(-log_odds)))
    chosen = 1 if entailment is None and len(exact) == _TWO_CLASSES else entailment
    if chosen is None or chosen >= len(exact):
        raise folder.unusable(f"its '{MODEL}' gives {len(exact)} classes; say in '{SETTINGS}' which one is 'entailment', counted from 0")
    shares = np.exp(exact - exact.max())
    return round(float(_ONE * shares[chosen] / shares.sum()))
