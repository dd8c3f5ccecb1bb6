"""Receipts: what an answer was made from, and what a receipt can be asked."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from evidentia.contracts.evidence import Decision, EvidenceRequest, EvidenceResponse, SignalScores, TermScore
from evidentia.contracts.ids import ChunkId, CorpusVersion, EvidenceState, ReceiptId, Sha256
from evidentia.contracts.policies import Policy
from evidentia.contracts.retrieval import SourceReply
from evidentia.contracts.settings import AccessSettings, QuerySettings, RankingSettings, SearchSettings, SourceSettings, TextSettings

LeftOut = Literal["understand", "merge"]


class ConfidenceCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """What judged questions of a base say about its confidence: on the logistic curve, scale * point + shift, both at 2^-16."""

    basis: str
    """What it was fitted on; stands in every fragment's metadata."""
    scale: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 1 << 16
    shift: Annotated[int, msgspec.Meta(ge=-(1 << 21), le=1 << 21)] = 0


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that shape an answer, with the versions of the arithmetic behind them."""

    engine: str
    text: TextSettings
    search: SearchSettings
    access: AccessSettings
    query: QuerySettings
    ranking: RankingSettings
    sources: SourceSettings = SourceSettings()
    synonyms: str = ""
    """Hash of the synonyms in force; empty without any."""
    reranker: str = ""
    """Identity of the reranker; empty without one."""
    merger: str = ""
    """Identity of the model that merges the legs; empty without one."""
    calibration: ConfidenceCalibration | None = None
    """The base's own calibration of the confidence; what has none is hashed as before there were any."""


class RecordedInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What came from models during an answer; replay takes it from here and asks no model."""

    query_vectors: tuple[bytes, ...] = ()
    """One vector per part of the question that was searched, as in `DenseQuery`."""
    rewritten: str | None = None
    reranked: tuple[int, ...] | None = None
    """The reranker's scores of the first candidates, for as many as it had time."""
    replies: tuple[SourceReply, ...] = ()
    """What every source outside the base said that was asked, or why it was not."""
    reads_replies: bool = False
    """Whether what sources said was scored by the words of the question; in receipts from before it was not, and so it is again."""
    hides_conflicts: bool = False
    """Whether a conflict with what policies withhold was left out; in receipts from before it was told, and so it is again."""
    own_missing: str = ""
    """Why the base's own evidence took no part; empty when it did."""
    policies: tuple[Policy, ...] = ()
    """The policies that were in scope for whoever asked."""
    left_out: tuple[LeftOut, ...] = ()
    """Stages that were late or failed, and so take no part in a replay either."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in the form in which it can be made again."""

    request: EvidenceRequest
    principal_fingerprint: Sha256
    corpus_version: CorpusVersion
    evidence_state: EvidenceState
    access_state: EvidenceState
    config: EngineConfig
    config_hash: Sha256
    decisions: tuple[Decision, ...]
    fragments: tuple[ChunkId, ...]
    inputs: RecordedInputs
    result_hash: Sha256
    answered_at: datetime
    custody_format: int = 1
    """By which rules its answer is hashed; receipts of older releases do not say and follow the first."""
    response_hash: str = ""
    """The hash of the whole answer as it was handed out; empty in the first format."""


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt answered again: whether the result is the same, and the part of it the asker may see today."""

    receipt_id: ReceiptId
    is_same: bool
    recorded_hash: Sha256
    result_hash: Sha256
    hidden: int
    """How many fragments of the answer the asker may not see today."""
    response: EvidenceResponse


class WhyReport(msgspec.Struct, frozen=True, kw_only=True):
    """Why a chunk is, or is not, in an answer."""

    receipt_id: ReceiptId
    chunk_id: ChunkId
    stage: str
    """The stage at which it left, or `answered`."""
    rank: int | None
    """Its place in the answer, or among all matches when it is not in the answer; None when it does not match."""
    score: int
    """Its composite score at 2^-32 when it came as far as ranking, else 0."""
    scores: SignalScores | None
    """What that score is made of."""
    confidence: float | None
    """The calibrated probability that it is relevant, when it came as far as ranking."""
    terms: tuple[TermScore, ...]
    reason: str
    smallest_change: str
    """The smallest change of the request that would have let it in; empty when it is in."""
