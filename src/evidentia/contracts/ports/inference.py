"""What reads documents, encodes, ranks, rewrites, plans and judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from evidentia.contracts.evidence import Turn
    from evidentia.contracts.grounding import GroundingScore
    from evidentia.contracts.judging import Judgement, JudgeRequest
    from evidentia.contracts.layout import ExtractedText
    from evidentia.contracts.retrieval import Rewriting
    from evidentia.contracts.tables import CellValue, OpenTable, PlanDeclined, TableLimits, TablePlan, TableRows
    from evidentia.contracts.vectors import VectorIdentity


class DocumentReader(Protocol):
    """Turns the bytes of one kind of file into text."""

    def read(self, content: bytes, *, name: str) -> ExtractedText:
        """Return the text, or raise DocumentUnreadableError; never anything else, whatever the bytes."""
        ...


class Encoder(Protocol):
    """Turns a text into a vector, the same vector every time on one machine. Thread safe: texts are encoded in parallel."""

    @property
    def identity(self) -> VectorIdentity:
        """Return the space its vectors live in."""
        ...

    def encode_query(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a question as integers at the identity's scale."""
        ...

    def encode_document(self, text: str) -> NDArray[np.int32]:
        """Return the vector of a passage as integers at the identity's scale."""
        ...


@runtime_checkable
class SupportsBatches(Protocol):
    """Encodes several passages in one call, where a call is what costs."""

    def encode_documents(self, texts: Sequence[str]) -> Sequence[NDArray[np.int32]]:
        """Return one vector per text, in the order given."""
        ...


@runtime_checkable
class SupportsOpening(Protocol):
    """Loads ahead what its first answer would otherwise have to wait for."""

    def open(self) -> None:
        """Load it, once however often this is called; may take seconds."""
        ...


class Reranker(Protocol):
    """Scores candidates against the question by reading both together."""

    @property
    def identity(self) -> str:
        """Return a name that changes whenever its scores may."""
        ...

    def rerank(self, query: str, passages: Sequence[str], *, budget_ms: int) -> Sequence[int]:
        """Return one fixed-point score (2^-16) per passage, best candidates first, for as many as the time allows: a prefix."""
        ...


class Merger(Protocol):
    """Merges what the legs say of a candidate into one score by a fitted model."""

    @property
    def identity(self) -> str:
        """Return a name that changes whenever its scores may."""
        ...

    def merge(self, features: Sequence[Sequence[int]]) -> Sequence[int]:
        """Return one fixed-point score (2^-16) per candidate; the features are those of `ranking.merging`."""
        ...


class QueryRewriter(Protocol):
    """Puts a question into words that are easier to search for; what it returns is recorded in the receipt."""

    def rewrite(self, query: str, turns: Sequence[Turn], *, budget_ms: int) -> Rewriting:
        """Return the question to search for, or the question itself with the reason; never raises for the model's sake."""
        ...


class ClaimScorer(Protocol):
    """Says how well passages support claims. Thread safe."""

    @property
    def identity(self) -> str:
        """Return a name that changes whenever its scores may."""
        ...

    def score(self, claims: Sequence[str], passages: Sequence[str], *, budget_ms: int) -> Sequence[GroundingScore]:
        """Return one score per claim, in order; a claim it could not judge in time is unscored, with the reason."""
        ...


class GroundingJudge(Protocol):
    """Judges whether an output is grounded in its sources, by a model that reads both. Thread safe."""

    def judge(self, request: JudgeRequest, *, budget_ms: int) -> Judgement:
        """Return the judgement, or the status that says why there is none; never raises for the model's sake."""
        ...


class TablePlanner(Protocol):
    """Turns a question about tables into one read-only statement; what it returns passes the guard whoever wrote it."""

    @property
    def identity(self) -> str:
        """Return a name that changes whenever its plans may."""
        ...

    def plan(self, question: str, tables: Sequence[OpenTable], *, budget_ms: int) -> TablePlan | PlanDeclined:
        """Return a plan over some of the tables, or why there is none; never raises for a model's sake."""
        ...


class TableEngine(Protocol):
    """Runs one read-only statement over tables, or refuses it. Thread safe."""

    def run(
        self,
        statement: str,
        parameters: Sequence[CellValue],
        *,
        tables: Sequence[OpenTable],
        limits: TableLimits,
        as_of: datetime | None = None,
    ) -> TableRows:
        """Return the rows, or raise StatementRefusedError; each table also has the column `__src`, and `as_of` is now."""
        ...
