"""Cross-encoders: a question and a passage are read together and become one score, one pair per call.

A folder of the user's own: `model.onnx` and `tokenizer.json`, and `reranker.json` where the defaults do not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import numpy as np

from evidentia.backends.onnx.model_folder import MODEL, TOKENIZER, ScorerFolder, read_file
from evidentia.backends.onnx.text_model import open_model
from evidentia.contracts.canonical import hash_record, sha256_hex
from evidentia.contracts.ports import Clock, Reranker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evidentia.backends.onnx.text_model import States

SETTINGS: Final = "reranker.json"
SCORE_BITS: Final = 16
LARGEST_LOGIT: Final = 1 << 15
"""Logits beyond this are counted as this, so that a score has 32 bits at most."""

_FORM: Final = 1
"""Raised when the same files would give other scores."""
_NS_PER_MS: Final = 1_000_000


class RerankerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `reranker.json` says of a cross-encoder; every field has a default."""

    name: str = ""
    """For people; the folder's name by default."""
    max_tokens: Annotated[int, msgspec.Meta(ge=8, le=8192)] = 512
    """Of question and passage together; the longer of the two is cut first."""


class OnnxReranker(Reranker):
    """Implements `Reranker` with a folder's model, which is opened at once so that mistakes show here. Thread safe."""

    def __init__(self, folder: Path, *, clock: Clock) -> None:
        self._folder = ScorerFolder(folder.resolve(), "reranker")
        self._clock = clock
        settings = self._folder.settings(SETTINGS, RerankerSettings)
        hashes = {name: sha256_hex(read_file(self._folder.path, name)) for name in (MODEL, TOKENIZER)}
        self._model = open_model(
            self._folder.path, model_hash=hashes[MODEL], tokenizer_hash=hashes[TOKENIZER], max_tokens=settings.max_tokens
        )
        self._output = self._folder.output_of(self._model)
        deciding = hash_record({"form": _FORM, "files": hashes, "max_tokens": settings.max_tokens})
        self._identity = f"{settings.name or self._folder.path.name}@{deciding}"

    @property
    def identity(self) -> str:
        """Return the name and a hash; any changed byte of the model or setting is another hash."""
        return self._identity

    def rerank(self, query: str, passages: Sequence[str], *, budget_ms: int) -> Sequence[int]:
        """Return logits at 2^-16 for a prefix of the passages.

        The first passage is always scored; each further one only while a call as slow as the slowest so far still fits.
        """
        started = before = self._clock.elapsed_ns()
        slowest = 0
        scores: list[int] = []
        for passage in passages:
            if scores and before - started + slowest > budget_ms * _NS_PER_MS:
                break
            scores.append(self._score(query, passage))
            after = self._clock.elapsed_ns()
            slowest = max(slowest, after - before)
            before = after
        return tuple(scores)

    def _score(self, query: str, passage: str) -> int:
        logits = self._model.run(self._model.fields(self._model.tokens(query, pair=passage)), output=self._output)
        return _fixed_point(logits, folder=self._folder)


def _fixed_point(logits: States, *, folder: ScorerFolder) -> int:
    """Return the only logit, or by how much the second of two exceeds the first, rounded half to even."""
    if logits.shape not in {(), (1,), (2,)}:
        raise folder.unusable(f"its '{MODEL}' gives the shape {(1, *logits.shape)} for one pair, where one or two logits are read")
    exact = np.atleast_1d(logits.astype(np.float64))
    if not np.isfinite(exact).all():
        raise folder.unusable(f"its '{MODEL}' gives logits that are no finite numbers")
    logit = float(exact[-1] - exact[0]) if len(exact) > 1 else float(exact[0])
    return round(min(max(logit, -LARGEST_LOGIT), LARGEST_LOGIT) * (1 << SCORE_BITS))
