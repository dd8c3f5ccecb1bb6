"""The contract of the engine: a typed request in, ranked and attributed fragments out.

Ranges that can be checked field by field are on the types; what spans fields is checked by the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from evidentia.contracts.access import Principal
from evidentia.contracts.annotations import Annotation
from evidentia.contracts.confidence_words import NOT_TOLD, POSSIBLE, UNLIKELY, decimals, in_words, likelihood, percent
from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.ids import ChunkId, CorpusVersion, DocumentId, EvidenceState, ReceiptId, RequestId, SessionId, Sha256, SourceId
from evidentia.contracts.layout import FragmentImage
from evidentia.contracts.policies import PolicyAction, PolicyId
from evidentia.contracts.predicates import Predicate
from evidentia.contracts.provenance import CommitRecord, InclusionProof, IngestEvent, ProvenanceEntry, RetrievalContext, TrustMetadata
from evidentia.contracts.sources import SourcePolicy
from evidentia.contracts.vocabulary import (
    AuthorityTier,
    CacheTier,
    CoverageState,
    FusionMethod,
    GovernanceMode,
    OnTimeout,
    QueryCapability,
    QueryStepName,
    RetrievalMode,
)

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1."""
SCORE_ONE = 1 << 32
"""What a signal or a composite score of 1 is as an integer."""
_TITLE_CHARS = 60


class SubQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a decomposed question."""

    text: str
    required_capabilities: tuple[QueryCapability, ...] = ()
    weight: Share = 1.0


class DecomposedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A question as asked, with the parts a caller already split it into (none: the engine decides)."""

    text: str
    subqueries: tuple[SubQuery, ...] = ()


class RankingWeights(msgspec.Struct, frozen=True, kw_only=True):
    """How the composite score is weighted; the four sum to 1."""

    relevance: Share = 0.45
    authority: Share = 0.25
    freshness: Share = 0.15
    utility: Share = 0.15


class TimeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A span of time that evidence has to fall into; an open end is None."""

    start: datetime | None = None
    end: datetime | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier utterance of the conversation."""

    role: str
    text: str


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What the evidence is for."""

    type: str
    text: str = ""


class EvidenceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its limits: who asks, what may answer, how much, and by when."""

    query: DecomposedQuery
    source_policy: SourcePolicy = SourcePolicy()
    token_budget: Annotated[int, msgspec.Meta(ge=1, le=2**32 - 1)] | None = None
    latency_deadline_ms: Annotated[int, msgspec.Meta(ge=1, le=2**32 - 1)] = 500
    ranking_weights: RankingWeights | None = None
    """None: those of the task's type, or the usual ones."""
    diversity_constraint: Share = 0.7
    provenance_required: bool = True
    session_context: SessionId | None = None
    as_of: datetime | None = None
    corpus_version: CorpusVersion | None = None
    evidence_state: EvidenceState | None = None
    principal: Principal | None = None
    agent_name: str | None = None
    turns: tuple[Turn, ...] = ()
    task: Task | None = None
    time_window: TimeWindow | None = None
    filter: Predicate | str | None = None
    facets: tuple[str, ...] = ()
    mode: RetrievalMode = RetrievalMode.HYBRID
    fusion: FusionMethod = FusionMethod.LINEAR
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    """How many fragments at most; unless it says so, 10, and with a `token_budget` as many as that holds of the best 100."""
    cost_budget_micros: Annotated[int, msgspec.Meta(ge=0)] | None = None
    max_staleness_ms: Annotated[int, msgspec.Meta(ge=0)] | None = None
    governance: GovernanceMode = GovernanceMode.ANNOTATE
    explain: bool = False
    without: tuple[QueryStepName, ...] = ()
    """Steps of query understanding that this request leaves out, whatever the settings say."""
    early_stop: bool = False
    """Whether sources that are still out are given up once what has come suffices; the answer then depends on who was first."""
    rerank: bool = True
    """Whether a reranker takes part, where the base has one."""
    tokenizer: str = "o200k_base"
    receipt: bool = True
    """Whether a receipt is written; not part of what is hashed."""
    on_timeout: OnTimeout = OnTimeout.DEGRADE
    """What is done when the base's own search does not finish in time; not part of what is hashed."""


class CoverageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one source did for one request; empty-handed is not the same as not asked."""

    state: CoverageState
    reason: str = ""
    candidates: int = 0
    searched_share: Share = 1.0
    embedded_share: Share | None = None
    """How much of what was searched has a vector; None when vectors took no part."""
    data_age_s: int | None = None
    """How old the newest of its candidates is; None where none has a date."""
    elapsed_ms: float = 0.0
    """How long it was searched; others than the owner are told whole steps of 10 ms for sources outside, and nothing for the base's own."""
    tier: CacheTier | None = None
    """Where candidates came from that were kept; None when it was asked itself."""
    faults: Mapping[str, int] = msgspec.field(default_factory=dict)
    """What was wrong with its reply and how often: what was refused, cut or put right."""


class WithheldFragment(msgspec.Struct, frozen=True, kw_only=True):
    """A fragment the caller may know of but did not get, with the reason."""

    chunk_id: ChunkId
    reason: str


class GovernedFragment(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy said of a fragment that was given, or of one that was withheld."""

    chunk_id: ChunkId
    action: PolicyAction
    policy_id: PolicyId
    policy_name: str
    policy_digest: Sha256
    rule: str
    reason: str
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)  # Any: what the rule compared, always JSON
    status: DecisionStatus


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Fragments that disagree about one attribute of one subject, and the one the rule prefers."""

    subject: str
    attribute: str
    winner: ChunkId
    value: str
    losers: tuple[ChunkId, ...]
    losing_values: tuple[str, ...]
    decided_by: str
    """The first criterion that told the winner from the best of the losers: annotation, authority, updated_at, chain or id."""


class TermScore(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What one query term gave to one chunk, and why; `documents` and `containing` count what the caller may see."""

    term: str
    score: int
    frequency: int
    containing: int
    documents: int
    length: int
    idf: int
    in_context: int = 0
    """How many of `frequency` stand in the chunk's context: its document's title and path, and the headings that it stands under."""


class QueryStep(msgspec.Struct, frozen=True, kw_only=True):
    """What one step of understanding made of a question."""

    step: QueryStepName
    note: str
    added: tuple[str, ...] = ()


class SignalScores(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a fragment's place is made of: the four signals and what they come from, each at 2^-32 except the legs' own scores."""

    relevance: int
    authority: int
    freshness: int
    utility: int
    fused: int
    reranked: int | None = None
    lexical: int = 0
    """The words' own score, at 2^-16."""
    dense: int | None = None
    """The vectors' own score, at the scale of their space."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the signals from 0 to 1; the legs' own scores, which have scales of their own, are left to explanations."""
        signals = {name: getattr(self, name) for name in ("relevance", "authority", "freshness", "utility", "fused", "reranked")}
        return [(name, round(value / SCORE_ONE, 3)) for name, value in signals.items() if value is not None]

    def __repr__(self) -> str:
        """Return the signals from 0 to 1."""
        return _described(self)


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one stage did, in one line; a stage that passes everything through says so."""

    stage: str
    note: str
    remaining: int


class EvidenceFragment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stretch of evidence with its custody and its standing in this answer."""

    content: str
    source_id: SourceId
    document_id: DocumentId
    chunk_id: ChunkId
    content_hash: Sha256
    position: int
    start: int
    end: int
    score: int
    """The composite score as an integer, at 2^-32, for programs that compare or verify; people read `confidence`."""
    scores: SignalScores
    extraction_timestamp: datetime
    confidence: Share
    """How likely it is relevant; `likelihood` says it in a word."""
    authority_tier: AuthorityTier
    relevance_score: float
    """The composite score as a number from 0 to 1; `scores.relevance` is the part of it that comes from the match alone."""
    provenance_chain: tuple[ProvenanceEntry, ...]
    retrieval_context: RetrievalContext | None = None
    trust_metadata: TrustMetadata | None = None
    annotations: tuple[Annotation, ...] = ()
    metadata: Mapping[str, str] = msgspec.field(default_factory=dict)
    event: IngestEvent | None = None
    """The entry of the event log by which it came in; None for what a source outside the base said during this request."""
    inclusion: InclusionProof | None = None
    is_live: bool = True
    explanation: tuple[TermScore, ...] = ()
    token_count: int = 0
    """The tokens of `content`; its tag in a prompt takes more."""
    is_truncated: bool = False
    cut_off: str = ""
    """What the token budget cut off; `content` and this together are the chunk that custody speaks of."""
    flags: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()
    """The pages of the document that it stands on, from 0; empty where the document has none."""
    images: tuple[FragmentImage, ...] = ()
    """The images of the document that belong to its text."""

    @property
    def is_rated(self) -> bool:
        """Tell whether its numbers are told; an answer to somebody else, asked again, has none."""
        scores = self.scores
        return bool(self.confidence or scores.relevance or scores.authority or scores.freshness or scores.utility)

    @property
    def likelihood(self) -> str:
        """Return its confidence in a word: `very likely`, `likely`, `possible` or `unlikely`; a dash where it is not told."""
        return likelihood(self.confidence) if self.is_rated else NOT_TOLD

    @property
    def rating(self) -> str:
        """Return its confidence with two decimals and in a word, as it is shown to people and models."""
        return in_words(self.confidence if self.is_rated else None)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return what a person wants to know first: how likely it is relevant, where it stands, and how it begins."""
        score = round(self.relevance_score, 3)
        rated = [("confidence", round(self.confidence, 2)), ("likelihood", self.likelihood), ("relevance_score", score)]
        named = [("document_id", self.document_id), ("title", self.metadata.get("title", "")), ("content", _first_line(self.content))]
        return [*(rated if self.is_rated else ()), *named]

    def __repr__(self) -> str:
        """Return the same in one line."""
        return _described(self)


class EvidenceResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer: fragments in order, an honest account of every source, and what makes it repeatable."""

    request_id: RequestId
    fragments: tuple[EvidenceFragment, ...]
    total_candidates: int
    latency_ms: float
    source_coverage: Mapping[SourceId, CoverageReport]
    truncation_applied: bool
    cache_hit_ratio: Share
    corpus_version: CorpusVersion
    evidence_state: EvidenceState
    config_hash: Sha256
    result_hash: Sha256
    receipt_id: ReceiptId | None
    request_hash: Sha256
    as_of: datetime
    commit: CommitRecord
    commit_hash: Sha256
    decisions: tuple[Decision, ...] = ()
    understanding: tuple[QueryStep, ...] = ()
    facets: Mapping[str, Mapping[str, int]] = msgspec.field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    withheld: tuple[WithheldFragment, ...] = ()
    policies: str = ""
    """The digest of the policies that governed the answer; empty when none was in scope."""
    governance: tuple[GovernedFragment, ...] = ()
    """What they said, where it was more than that a fragment passes."""
    degraded: tuple[str, ...] = ()
    is_approximate: bool = False
    """Whether an approximate index took part, so that a better fragment may have been missed."""
    stage_latencies_ms: Mapping[str, float] = msgspec.field(default_factory=dict)
    """What each stage took; told to the owner alone, for others it stands in traces."""
    tokens_used: int = 0
    """With a `token_budget` what `to_context` takes of it, tags included; without one an estimate of the contents alone."""
    custody_format: int = 1
    """By which rules it is checked; answers of older releases do not say and follow the first."""
    response_hash: str = ""
    """The hash of everything in this answer but what was measured after it was made; empty in the first format."""

    @property
    def unfinished(self) -> tuple[SourceId, ...]:
        """Return the sources whose search did not finish in time; what they hold is not known, which is not the same as nothing."""
        return tuple(source for source, report in self.source_coverage.items() if report.state is CoverageState.TIMED_OUT)

    @property
    def unfinished_note(self) -> str:
        """Return a sentence that says which searches did not finish in time; empty when all did."""
        if not self.unfinished:
            return ""
        return f"the search did not finish in time ({', '.join(self.unfinished)}), so there may be more; ask again, or allow more time"

    @property
    def is_doubtful(self) -> bool:
        """Tell whether there are fragments and even the likeliest of them is unlikely to be relevant."""
        return bool(self.fragments) and all(fragment.likelihood == UNLIKELY for fragment in self.fragments)

    @property
    def verdict(self) -> str:
        """Return what the answer is worth in one sentence: how likely its best match is relevant, or why there is none.

        Searched and empty is not the same as not searched in time, and neither is the same as withheld.
        """
        if not self.fragments:
            return "everything that matches was withheld" if self.withheld else self.unfinished_note or "nothing that you may see matches"
        best = max(self.fragments, key=lambda fragment: percent(fragment.confidence))
        if not best.is_rated:
            return "the numbers of this answer are for its first caller"
        if not self.is_doubtful:
            adverb = "possibly" if best.likelihood == POSSIBLE else best.likelihood
            return f"the best match is {adverb} relevant ({decimals(best.confidence)})"
        said = f"the best match is unlikely to be relevant ({decimals(best.confidence)})"
        if self.unfinished:
            return f"nothing likely so far: {said}, and {self.unfinished_note}"
        lost = [source for source, report in self.source_coverage.items() if report.state in _UNHEARD]
        if lost:
            return f"probably nothing in what was searched: {said}, and {', '.join(lost)} did not answer"
        return f"probably nothing here: {said}"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the verdict, the fragments and what the answer is found by."""
        names = ("verdict", "fragments", "total_candidates", "degraded", "receipt_id", "result_hash")
        return [(name, getattr(self, name)) for name in names]

    def __repr__(self) -> str:
        """Return the same in one line."""
        return _described(self)


_UNHEARD = (CoverageState.FAILED, CoverageState.BREAKER_OPEN)


def _first_line(content: str) -> str:
    line = content.lstrip()[: 4 * _TITLE_CHARS].partition("\n")[0].strip()
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"


def _described(message: msgspec.Struct) -> str:
    return f"{type(message).__name__}({', '.join(f'{name}={value!r}' for name, value in message.__rich_repr__())})"


# --- streaming ---
# What `retrieve_stream` yields, in the order in which it happens; the last event is the answer.


class SourceFinished(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="source_finished"):
    """A source has answered, or will not."""

    source_id: SourceId
    report: CoverageReport


class ProvisionalFragments(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="provisional_fragments"):
    """What the answer would be if nothing more came; not sealed, without a receipt, and replaced by whatever comes next."""

    fragments: tuple[EvidenceFragment, ...]
    sources: tuple[SourceId, ...]
    """The sources that had answered by then."""


class FinalResponse(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="final_response"):
    """The answer, the same as `retrieve` gives."""

    response: EvidenceResponse


StreamEvent = SourceFinished | ProvisionalFragments | FinalResponse
