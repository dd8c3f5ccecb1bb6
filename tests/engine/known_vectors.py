"""Real vectors without the cost of making them again: an encoder that remembers, and vectors handed from base to base."""

from __future__ import annotations

from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING

from evidentia.backends.onnx.encoder import packaged_encoder

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.ports import Encoder
    from evidentia.contracts.vectors import PendingChunk, VectorIdentity
    from evidentia.wiring.embedded import EmbeddedComponents

    Vector = NDArray[np.int32]

EVERYTHING = 1_000_000


class RememberingEncoder:
    """Implements `Encoder` by another one, which is asked once per text."""

    def __init__(self, inner: Encoder) -> None:
        self._inner = inner
        self._queries: dict[str, Vector] = {}
        self._documents: dict[str, Vector] = {}

    @property
    def identity(self) -> VectorIdentity:
        """Return the space of the other encoder."""
        return self._inner.identity

    def encode_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        if text not in self._queries:
            self._queries[text] = self._inner.encode_query(text)
        return self._queries[text]

    def encode_document(self, text: str) -> Vector:
        """Return the vector of a passage."""
        if text not in self._documents:
            self._documents[text] = self._inner.encode_document(text)
        return self._documents[text]


@cache
def remembering_encoder() -> RememberingEncoder:
    """Return the packaged encoder with a memory, one per process."""
    return RememberingEncoder(packaged_encoder())


def give_vectors(
    parts: EmbeddedComponents, identity: VectorIdentity, vector_of: Callable[[PendingChunk], Vector | None], *, batch: int = EVERYTHING
) -> int:
    """Give each chunk that lacks one the vector that `vector_of` knows, so many in one commit; return how many were given."""
    with closing(parts.vectors()) as store:
        known = ((chunk.key, vector_of(chunk)) for chunk in store.pending(identity, limit=EVERYTHING))
        found = {key: vector for key, vector in known if vector is not None}
        keys = sorted(found)
        for start in range(0, len(keys), batch):
            store.add(identity, {key: found[key] for key in keys[start : start + batch]})
    return len(found)
