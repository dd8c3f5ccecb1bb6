"""Evidentia in the hybrid benchmark: a base with the passages and vectors everybody gets, asked through its public call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hybrid_corpus import question_encoder

from evidentia import connect
from evidentia.ingest.embedding import embed
from evidentia.wiring import embedded

if TYPE_CHECKING:
    import numpy as np
    from hybrid_corpus import Handed
    from numpy.typing import NDArray

    from evidentia.contracts.vectors import EmbedProgress, VectorIdentity


class KnownVectors:
    """An encoder that looks up the vector of a passage, which was made before."""

    def __init__(self, handed: Handed) -> None:
        self._rows = {text: row for row, text in enumerate(handed.texts)}
        self._vectors = handed.vectors

    @property
    def identity(self) -> VectorIdentity:
        """Return the space of the packaged encoder."""
        return question_encoder().identity

    def encode_document(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a passage."""
        vector: NDArray[np.int32] = self._vectors[self._rows[text]]
        return vector

    def encode_query(self, text: str) -> NDArray[np.int32]:
        """Refuse: questions are encoded for real."""
        raise NotImplementedError(text)


def build_evidentia(handed: Handed) -> None:
    """Take the passages in, and give them their vectors in batches as large and as compact as `Base.embed` makes them."""
    corpus = handed.own / "passages.jsonl"
    with corpus.open("w", encoding="utf-8") as file:
        for number, text in enumerate(handed.texts):
            file.write(json.dumps({"_id": f"p{number}", "text": text}) + "\n")
    with connect(handed.own / "base", init=True) as base:
        base.ingest([corpus], source="bench", embed=False)
    parts = embedded.open_parts(handed.own / "base")
    store = parts.vectors()

    def compact(progress: EmbedProgress) -> None:
        if progress.commit is not None:
            parts.collector().compact()

    report = embed(store, KnownVectors(handed), batch_chunks=parts.settings.embedding.batch_chunks, on_progress=compact)
    parts.collector().compact(full=True)  # as `Base.embed` does at its end
    assert (report.embedded, report.remaining) == (len(handed.texts), 0), report
    store.close()
    parts.close()


class Evidentia:
    """The public call with its defaults; keeps what each answer says about its stages."""

    def __init__(self, handed: Handed, *, receipt: bool) -> None:
        self._base = connect(handed.own / "base")
        self._receipt = receipt
        self.stages: list[dict[str, float]] = []
        self.degraded: list[list[str]] = []

    def __call__(self, question: str, *, limit: int, depth: int) -> list[str]:  # noqa: ARG002  # its depth is a setting
        """Return the texts of the fragments."""
        response = self._base.retrieve(question, limit=limit, receipt=self._receipt)
        assert not response.is_approximate
        self.degraded.append(list(response.degraded))
        self.stages.append(dict(response.stage_latencies_ms))
        return [fragment.content for fragment in response.fragments]
