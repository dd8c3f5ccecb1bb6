"""Models that misbehave on purpose, each in one way, so that whatever asks them can be shown to bear it; and a disk that is slow.

All can travel to another process, as models do that are kept apart.
"""

from __future__ import annotations

import ctypes
import threading
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from evidentia.contracts.canonical import hash_record
from evidentia.contracts.ports import Encoder, Merger, QueryRewriter, ReceiptLog, Reranker
from evidentia.contracts.retrieval import Rewriting
from evidentia.contracts.vectors import SCALE_BITS, VectorIdentity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evidentia.contracts.evidence import Turn
    from evidentia.contracts.ids import ReceiptId
    from evidentia.contracts.receipts import Receipt

DIMENSION: Final = 8
_HANG_S: Final = 3_600.0
_MICROSECONDS: Final = 1_000_000
SPACE: Final = VectorIdentity(model=hash_record({"model": "faulty"}), dimension=DIMENSION, normalisation="unit", name="faulty")
"""The space of a faulty encoder's vectors."""


class ModelFault(StrEnum):
    """What is wrong with a model."""

    NONE = "none"
    """Nothing."""
    SLOW = "slow"
    """It answers after its pause."""
    HANG = "hang"
    """It never answers."""
    ERROR = "error"
    """It raises."""
    SYSTEM_EXIT = "system_exit"
    """It tries to end the process."""
    HOLDS_LOCK = "holds_lock"
    """It answers after its pause, in which no other thread of its interpreter runs."""
    NONSENSE = "nonsense"
    """What it returns is no answer."""


class _Faulty:
    """Does what is wrong, before an answer."""

    def __init__(self, fault: ModelFault = ModelFault.NONE, *, pause_s: float = 0.8) -> None:
        self.fault = fault
        self._pause_s = pause_s
        self.calls = 0

    def _misbehave(self) -> None:
        self.calls += 1
        if self.fault is ModelFault.SLOW:
            time.sleep(self._pause_s)
        elif self.fault is ModelFault.HANG:
            threading.Event().wait(_HANG_S)
        elif self.fault is ModelFault.ERROR:
            raise RuntimeError("a secret of the model")
        elif self.fault is ModelFault.SYSTEM_EXIT:
            raise SystemExit(1)
        elif self.fault is ModelFault.HOLDS_LOCK:
            ctypes.PyDLL(None).usleep(int(self._pause_s * _MICROSECONDS))  # a PyDLL keeps the lock, as a badly written model does


class FaultyEncoder(_Faulty, Encoder):
    """Implements `Encoder` with one fault; its vectors count characters."""

    @property
    def identity(self) -> VectorIdentity:
        """Return the space of all faulty encoders."""
        return SPACE

    def encode_query(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a question, unless something is wrong."""
        self._misbehave()
        return self.encode_document(text)[: 1 if self.fault is ModelFault.NONSENSE else None]

    def encode_document(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a passage; nothing is ever wrong with it, so that a base can be made."""
        counts = np.array([1 + sum(ord(character) % DIMENSION == place for character in text) for place in range(DIMENSION)])
        vector: NDArray[np.int32] = np.rint(counts / np.linalg.norm(counts) * (1 << SCALE_BITS[SPACE.normalisation])).astype(np.int32)
        return vector


class FaultyReranker(_Faulty, Reranker):
    """Implements `Reranker` with one fault; the longest passage is the best."""

    @property
    def identity(self) -> str:
        """Return one name for all of them."""
        return "faulty"

    def rerank(self, query: str, passages: Sequence[str], *, budget_ms: int) -> Sequence[int]:
        """Return one score per passage, unless something is wrong."""
        del query, budget_ms
        self._misbehave()
        return ["no score"] if self.fault is ModelFault.NONSENSE else [len(passage) for passage in passages]  # type: ignore[list-item]  # nonsense


class FaultyRewriter(_Faulty, QueryRewriter):
    """Implements `QueryRewriter` with one fault; the question is good as it is."""

    def rewrite(self, query: str, turns: Sequence[Turn], *, budget_ms: int) -> Rewriting:
        """Return the question, unless something is wrong."""
        del turns, budget_ms
        self._misbehave()
        return Rewriting(query=7 if self.fault is ModelFault.NONSENSE else query)  # type: ignore[arg-type]  # nonsense


class FaultyMerger(_Faulty, Merger):
    """Implements `Merger` with one fault; the sum of the features decides."""

    @property
    def identity(self) -> str:
        """Return one name for all of them."""
        return "faulty"

    def merge(self, features: Sequence[Sequence[int]]) -> Sequence[int]:
        """Return one score per row, unless something is wrong."""
        self._misbehave()
        return [sum(row) for row in features][: 0 if self.fault is ModelFault.NONSENSE else None]


class SlowReceipts(ReceiptLog):
    """Implements `ReceiptLog` by another one, whose disk takes its time to write."""

    def __init__(self, inner: ReceiptLog, *, pause_s: float) -> None:
        self._inner = inner
        self._pause_s = pause_s

    def append(self, receipt: Receipt) -> ReceiptId:
        """Store a receipt, later."""
        time.sleep(self._pause_s)
        return self._inner.append(receipt)

    def read(self, receipt_id: ReceiptId) -> Receipt:
        """Return a receipt."""
        return self._inner.read(receipt_id)

    def close(self) -> None:
        """Close the other one."""
        close = getattr(self._inner, "close", None)
        if close is not None:
            close()
