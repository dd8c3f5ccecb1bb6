"""What policies in shadow would have done, from what the log says of them: they were evaluated with every call, and stopped nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.ids import Sha256
from evidentia.contracts.policies import Enforcement, PolicyId
from evidentia.contracts.protocol import ReplyDrafted, TaskOpened, ToolAnswered, ToolAsked
from evidentia.contracts.runs import (
    BatchClosed,
    GroundingEntry,
    LlmCall,
    PoliciesRecorded,
    RetrievedDocument,
    RunEnded,
    RunStarted,
    StepCall,
    ToolCall,
)
from evidentia.governance.shadow_tally import Decided, Outcome, Place, ShadowChanges, Tally, decided, outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia.contracts.decisions import LogRecord, Verdict
    from evidentia.contracts.policies import Policy
    from evidentia.contracts.runs import RunId

_ANY: Final = (RetrievedDocument, GroundingEntry, BatchClosed, ToolCall, LlmCall, StepCall, RunEnded)
_CALLS: Final[Mapping[str, tuple[type, ...]]] = {
    "retrieval": tuple(each for each in _ANY if each is not GroundingEntry),
    "grounding": (GroundingEntry, RunEnded),
    "protocol": (TaskOpened, ToolAsked, ToolAnswered, ReplyDrafted, RunEnded),
}
"""What a category can say something about; a category of somebody else's may listen to anything."""


class LiveShadow(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a policy in shadow: what it would have changed, had it been in force beside the others."""

    policy_id: PolicyId
    name: str
    version: int
    digest: Sha256
    runs: int
    changes: ShadowChanges


class _Watched:
    """A policy in shadow while the log is read."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.runs = 0
        self.tally = Tally()

    def take(self, record: LogRecord, before: Decided, agent: str) -> None:
        call = record.entry.call
        after = max(before, _own(record.entry.verdicts, self.policy), key=lambda each: each.outcome.rank)
        place = Place(record.log, record.seq, record.entry.run_id)
        self.tally.take(before, after, place, agent=agent, source=call.source if isinstance(call, RetrievedDocument) else None)

    def report(self) -> LiveShadow:
        policy = self.policy
        return LiveShadow(
            policy_id=policy.policy_id,
            name=policy.body.name,
            version=policy.version,
            digest=policy.digest,
            runs=self.runs,
            changes=self.tally.changes(),
        )


def live_shadow(records: Iterable[LogRecord], *, since_us: int | None = None) -> tuple[LiveShadow, ...]:
    """Return what every version of a policy in shadow would have changed in the runs that it was for, by name and version.

    Calls of its category count, and ends.
    """
    watched: dict[Sha256, _Watched] = {}
    in_shadow: dict[Sha256, tuple[_Watched, ...]] = {}
    runs: dict[RunId, tuple[str, tuple[_Watched, ...]]] = {}
    for record in records:
        entry = record.entry
        call = entry.call
        if isinstance(call, PoliciesRecorded):
            in_shadow[entry.policies] = _watch(call.policies, watched)
        elif isinstance(call, RunStarted):
            shadows = in_shadow.get(entry.policies, ())
            if shadows and (since_us is None or entry.at_us >= since_us):
                runs[entry.run_id] = (call.facts.agent_name, shadows)
                for each in shadows:
                    each.runs += 1
        elif not record.is_redacted and (run := runs.get(entry.run_id)) is not None:
            _take(record, *run, watched=watched)
            if isinstance(call, RunEnded):
                del runs[entry.run_id]
    reports = (each.report() for each in watched.values())
    return tuple(sorted((each for each in reports if each.runs), key=lambda each: (each.name, each.version, each.policy_id)))


def _watch(policies: Sequence[Policy], watched: dict[Sha256, _Watched]) -> tuple[_Watched, ...]:
    shadows = [policy for policy in policies if policy.body.enforcement is Enforcement.SHADOW]
    return tuple(watched.setdefault(policy.digest, _Watched(policy)) for policy in shadows)


def _take(record: LogRecord, agent: str, shadows: Sequence[_Watched], *, watched: Mapping[Sha256, _Watched]) -> None:
    call, verdicts = record.entry.call, record.entry.verdicts
    before = decided(verdicts, ignored=watched)
    for each in shadows:
        if isinstance(call, _CALLS.get(each.policy.body.category, _ANY)):
            each.take(record, before, agent)


def _own(verdicts: Iterable[Verdict], policy: Policy) -> Decided:
    """Return the strongest of what one policy said of a call."""
    said = [each for verdict in verdicts for each in verdict.evaluations if each.digest == policy.digest and each.status != "provisional"]
    strongest = max(said, key=lambda each: outcome_of(each.action).rank, default=None)
    return Decided(Outcome.PASSED) if strongest is None else Decided(outcome_of(strongest.action), policy.body.name, strongest.rule)
