"""What was decided about a call, and how it stands in the log. Reasons and metadata keys are public API."""

from __future__ import annotations

from datetime import datetime

import msgspec

from evidentia.contracts.ids import Sha256
from evidentia.contracts.policies import DEFAULT_TENANT, PolicyAction, PolicyId
from evidentia.contracts.protocol import Metadata
from evidentia.contracts.runs import AnyCall, Phase, RunId
from evidentia.contracts.vocabulary import Vocabulary


class DecisionStatus(Vocabulary):
    """How a decision came about."""

    EVALUATED = "evaluated"
    PROVISIONAL = "provisional"
    """A count that later documents may still put right; it never stops anything."""
    BYPASSED = "bypassed"
    """Something was not checked; the reason says what."""
    SHADOW = "shadow"
    """Decided and written down, and not enforced."""


class DecisionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many decisions there are, each counted once by its action; every page and every door counts like this."""

    decisions: int = 0
    allowed: int = 0
    """The call went on."""
    warned: int = 0
    """It went on with a warning, whether the warning was provisional, in shadow, or of a check that was bypassed."""
    stopped: int = 0
    """It did not go on."""
    not_enforced: int = 0
    """It would have been stopped, had the policy or the run been enforced."""
    bypassed: int = 0
    """Of all of these, how many say that something was not checked."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one rule of one policy said of one call; a policy without a violation says `allow` once."""

    policy_id: PolicyId
    policy_name: str
    version: int = 1
    digest: Sha256
    category: str
    rule: str = ""
    """Empty where the policy as a whole passed."""
    action: PolicyAction
    reason: str
    metadata: Metadata = msgspec.field(default_factory=dict)
    status: DecisionStatus = DecisionStatus.EVALUATED


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What all policies of one category in scope say of one call: the strongest action, and the first reason of that strength."""

    phase: Phase
    decisive: Evaluation
    evaluations: tuple[Evaluation, ...]
    is_enforced: bool = True
    """False in shadow, for a provisional count, and where another decision has already stopped the run."""
    abstention_response: str | None = None

    @property
    def stops(self) -> bool:
        """Tell whether the call must not go on."""
        return self.is_enforced and self.decisive.action.stops and self.decisive.status is not DecisionStatus.PROVISIONAL


class JudgeAsk(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement that a policy wants before it can evaluate a call."""

    policy_id: PolicyId
    model: str
    criteria: str
    threshold: float


class LogEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is appended to a log: a call, and what was decided about it. A call that passes everything has no verdicts."""

    at_us: int
    """Microseconds since 1970, UTC."""
    run_id: RunId
    policies: Sha256
    """The digest of the policies in scope."""
    call: AnyCall
    verdicts: tuple[Verdict, ...] = ()
    count: int = 0
    """How many documents the call's batch holds with it, or how many scores it gave; what a passing call is expanded with."""
    overhead_us: float = 0.0


class LogRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry as it stands in a log: numbered from 1, sealed with the one before."""

    log: str
    seq: int
    previous: Sha256
    hash: Sha256
    entry: LogEntry
    is_redacted: bool = False
    """The call, reasons and metadata were taken out; what is left still fits the chain."""


class PolicyDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as the log tells it, expanded: who decided what about which call, why, and where it stands in the chain."""

    seq: int
    part: int = 0
    """One call can be decided by several categories: they share a record, in order."""
    log: str = ""
    previous: Sha256
    hash: Sha256
    at: datetime
    run_id: RunId
    agent_name: str = ""
    tenant: str = DEFAULT_TENANT
    phase: Phase
    kind: str
    """What was recorded: `run`, `retrieval`, `batch`, `grounding`, `tool`, `llm`, `step`, `bypass` or `end`."""
    policy_id: PolicyId
    policy_name: str
    policy_version: int
    policy_digest: Sha256
    policies: Sha256
    """The digest of all policies in scope."""
    category: str
    rule: str
    action: PolicyAction
    reason: str
    metadata: Metadata
    inputs: Metadata
    """The call as it was recorded; empty once it was redacted."""
    evaluations: tuple[Evaluation, ...]
    status: DecisionStatus
    is_enforced: bool = True
    abstention_response: str | None = None
    overhead_us: float = 0.0
    is_redacted: bool = False


class LogHead(msgspec.Struct, frozen=True, kw_only=True):
    """How long a log is, the hash of its last record, and the root of the Merkle tree over all of them."""

    log: str
    size: int
    hash: Sha256
    root: Sha256


class LogFault(msgspec.Struct, frozen=True, kw_only=True):
    """Where a log is not what it was, and how that shows."""

    log: str
    line: int
    """From 1; the first record that does not fit."""
    problem: str


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """What verification found."""

    ok: bool
    logs: int
    records: int
    redacted: int = 0
    retired: int = 0
    """Records that retention removed; the checkpoint that stands for them fits."""
    faults: tuple[LogFault, ...] = ()
    heads: tuple[LogHead, ...] = ()


class RecordProof(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a log, and the hashes beside its way up to the root."""

    log: str
    seq: int
    size: int
    root: Sha256
    line: str
    """The whole line without its end."""
    path: tuple[Sha256, ...]
    """The nearest sibling first, as in RFC 6962."""
