"""What a run records: who runs, every document, grounding, tool and model call, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NewType

import msgspec

from evidentia.contracts.ids import Sha256
from evidentia.contracts.judging import Judgement
from evidentia.contracts.policies import DEFAULT_TENANT, Policy, PolicyId, Posture
from evidentia.contracts.protocol import Metadata, ReplyDrafted, RunCall, SpanId, TaskOpened, ToolAnswered, ToolAsked
from evidentia.contracts.vocabulary import Vocabulary

RunId = NewType("RunId", str)
BatchId = NewType("BatchId", str)


class Phase(Vocabulary):
    """When in a run something is decided; `pre_`, `mid_` and `post_execution` are read as well."""

    BEFORE_WORKFLOW = "before_workflow"
    MID_EXECUTION = "mid_execution"
    AFTER_WORKFLOW = "after_workflow"

    @classmethod
    def _missing_(cls, value: object) -> Phase | None:
        alias = {"pre_execution": cls.BEFORE_WORKFLOW, "post_execution": cls.AFTER_WORKFLOW}.get(str(value).strip().lower())
        return alias or super()._missing_(value)


class RunStatus(Vocabulary):
    """What became of a run."""

    RUNNING = "running"
    SUCCESS = "success"
    BLOCKED = "blocked"
    ERROR = "error"


class RunFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who runs, for whom, and in what: everything a scope can ask for."""

    run_id: RunId
    agent_name: str
    workflow_name: str = "default"
    agent_id: str = ""
    agent_type: str = ""
    agent_group: str = ""
    user_id: str = ""
    user_group: str = ""
    end_user_id: str = ""
    team: str = ""
    tenant: str = DEFAULT_TENANT
    session_id: str = ""
    model: str = ""
    tool: str = ""
    parent_run_id: RunId | None = None
    metadata: Metadata = msgspec.field(default_factory=dict)


class RunStarted(RunCall, frozen=True, kw_only=True, tag="run"):
    """The first record of a run: who runs, and whether decisions take effect. The policies in scope stay those of this moment."""

    facts: RunFacts
    is_enforced: bool = True
    edition: int = 0
    """By which edition of the evaluator the run is decided; what it says in words may differ, so that replay has to know."""


class PoliciesRecorded(RunCall, frozen=True, kw_only=True, tag="policies"):
    """The policies a digest stands for; stands in a log before the first run under them."""

    policies: tuple[Policy, ...] = ()


class RetrievedDocument(RunCall, frozen=True, kw_only=True, tag="retrieval"):
    """One document that reached the agent's context. A score may lie outside 0 to 1, and is then flagged; never NaN or infinite."""

    relevance_score: float = 0.0
    source: str = ""
    collection: str = ""
    age_days: int | float | None = None
    """None when nobody knows."""
    batch: BatchId | None = None
    """Counts are per batch where one is named, else per run."""
    chunk_id: str = ""
    judged_by: str = ""
    """The digest of the policies that judged it in the answer it came with; these count it and do not judge it again."""


class BatchClosed(RunCall, frozen=True, kw_only=True, tag="batch"):
    """No more documents come in this batch; its count is settled."""

    batch: BatchId | None = None


class GroundingEntry(RunCall, frozen=True, kw_only=True, tag="grounding"):
    """What an agent says its output rests on; several add up."""

    grounding_scores: tuple[float, ...] = ()
    citations: tuple[str, ...] = ()
    unsupported_claims: tuple[str, ...] = ()
    output_confidence: float | None = None
    judgements: Mapping[PolicyId, Judgement] = msgspec.field(default_factory=dict)
    """What the judge said, by the policy that asked; filled in before it is evaluated."""


class ToolCall(RunCall, frozen=True, kw_only=True, tag="tool"):
    """A tool that was called; one that retrieves opens no settlement."""

    name: str = ""
    is_retrieval: bool = False
    duration_ms: float = 0.0
    sources: int | None = None
    """How many sources it found."""
    error: str = ""
    attributes: Metadata = msgspec.field(default_factory=dict)


class LlmCall(RunCall, frozen=True, kw_only=True, tag="llm"):
    """A model that was called; its words are kept as a hash unless content is captured."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micro: int = 0
    duration_ms: float = 0.0
    response_hash: Sha256 | None = None
    attributes: Metadata = msgspec.field(default_factory=dict)


class StepCall(RunCall, frozen=True, kw_only=True, tag="step"):
    """Any other step, a score or a tag that belongs to the run."""

    name: str = ""
    attributes: Metadata = msgspec.field(default_factory=dict)


class SpanOpened(RunCall, frozen=True, kw_only=True, tag="span"):
    """A span that later calls belong under until it is closed."""

    opened: SpanId = SpanId("")
    name: str = ""
    is_retrieval: bool = False


class SpanClosed(RunCall, frozen=True, kw_only=True, tag="span_end"):
    """The end of a span."""

    closed: SpanId = SpanId("")
    sources: int | None = None
    error: str = ""


class CheckBypassed(RunCall, frozen=True, kw_only=True, tag="bypass"):
    """A check that could not be made, outside any rule: the control plane or the log was out of reach."""

    what: str = ""
    problem: str = ""
    posture: Posture = Posture.OPEN


class RunEnded(RunCall, frozen=True, kw_only=True, tag="end"):
    """The end of a run; `judgements` as in a grounding entry."""

    status: RunStatus = RunStatus.SUCCESS
    error_type: str = ""
    result_hash: Sha256 | None = None
    judgements: Mapping[PolicyId, Judgement] = msgspec.field(default_factory=dict)


RecordableCall = (
    RetrievedDocument
    | BatchClosed
    | GroundingEntry
    | ToolCall
    | LlmCall
    | StepCall
    | SpanOpened
    | SpanClosed
    | CheckBypassed
    | TaskOpened
    | ToolAsked
    | ToolAnswered
    | ReplyDrafted
)
"""What an agent may record; beginning and end are told otherwise."""
AnyCall = RunStarted | PoliciesRecorded | RecordableCall | RunEnded


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a line of a list."""

    facts: RunFacts
    status: RunStatus
    started_at: datetime
    ended_at: datetime | None = None
    calls: int = 0
    documents: int = 0
    warnings: int = 0
    blocks: int = 0
    bypasses: int = 0
    policies: Sha256


class RunSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a run's trace: a tool, a document under it, a model call, a step, a decision."""

    span_id: SpanId
    parent: SpanId | None
    name: str
    kind: str
    start_us: int
    """Since the run began."""
    duration_us: int
    attributes: Metadata = msgspec.field(default_factory=dict)
    decisions: tuple[int, ...] = ()
    """The seq of every decision that was taken at this span."""


class RunTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its spans, in the order in which they began."""

    summary: RunSummary
    spans: tuple[RunSpan, ...]
