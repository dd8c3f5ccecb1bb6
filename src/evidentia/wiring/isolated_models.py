"""Models in a process of their own: one that holds the interpreter's lock or crashes holds up no answer."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from evidentia.contracts.ports import Encoder, Reranker, SupportsOpening
from evidentia.foundation.object_process import HUNG_S, ObjectProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.vectors import VectorIdentity


class IsolatedEncoder(Encoder, SupportsOpening):
    """Implements `Encoder` by one that `make` makes in another process. It is made here as well, for its identity alone."""

    def __init__(self, make: Callable[[], Encoder | None], *, hung_s: float = HUNG_S) -> None:
        self._make = make
        self._there = ObjectProcess(make, hung_s=hung_s)

    @cached_property
    def identity(self) -> VectorIdentity:
        """Return the space its vectors live in."""
        made = self._make()
        if made is None:
            raise AssertionError  # whoever isolates an encoder has one
        return made.identity

    def open(self) -> None:
        """Start the process and load the model there."""
        self._there.call("encode_query", "")

    def encode_query(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a question."""
        return self._there.call("encode_query", text)  # type: ignore[no-any-return]  # that is what an encoder returns

    def encode_document(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a passage."""
        return self._there.call("encode_document", text)  # type: ignore[no-any-return]  # likewise

    def close(self) -> None:
        """End the process."""
        self._there.close()


class IsolatedReranker(Reranker, SupportsOpening):
    """Implements `Reranker` likewise."""

    def __init__(self, make: Callable[[], Reranker], *, hung_s: float = HUNG_S) -> None:
        self._make = make
        self._there = ObjectProcess(make, hung_s=hung_s)

    @cached_property
    def identity(self) -> str:
        """Return a name that changes whenever its scores may."""
        return self._make().identity

    def open(self) -> None:
        """Start the process and load the model there."""
        self._there.open()

    def rerank(self, query: str, passages: Sequence[str], *, budget_ms: int) -> Sequence[int]:
        """Return one fixed-point score per passage, for as many as the time allows."""
        return self._there.call("rerank", query, list(passages), budget_ms=budget_ms)  # type: ignore[no-any-return]  # likewise

    def close(self) -> None:
        """End the process."""
        self._there.close()
