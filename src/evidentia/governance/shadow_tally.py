"""How two sets of policies differ over the same calls, counted by rule, agent and source with examples. Bounded, whatever is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.decisions import DecisionStatus, LogRecord, Verdict
from evidentia.contracts.ids import Sha256
from evidentia.contracts.policies import Enforcement, Policy, PolicyAction, PolicyId
from evidentia.contracts.policy_trials import Change, ShadowChanges, ShadowExample, ShadowGroup
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
from evidentia.contracts.vocabulary import RankedVocabulary

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from evidentia.contracts.runs import RunId


MAX_EXAMPLES: Final = 3
MAX_GROUPS: Final = 1_000
OTHERS: Final = "(others)"
"""Where the rest is counted when there are more names than are kept."""


class ShadowOutcome(RankedVocabulary):
    """What a call came to, weakest first."""

    PASSED = "passed"
    WARNED = "warned"
    BLOCKED = "blocked"


_CHANGES: Final = {
    (ShadowOutcome.PASSED, ShadowOutcome.WARNED): Change.NEWLY_WARNED,
    (ShadowOutcome.PASSED, ShadowOutcome.BLOCKED): Change.NEWLY_BLOCKED,
    (ShadowOutcome.WARNED, ShadowOutcome.PASSED): Change.NO_LONGER_WARNED,
    (ShadowOutcome.WARNED, ShadowOutcome.BLOCKED): Change.NEWLY_BLOCKED,
    (ShadowOutcome.BLOCKED, ShadowOutcome.PASSED): Change.NEWLY_ALLOWED,
    (ShadowOutcome.BLOCKED, ShadowOutcome.WARNED): Change.NEWLY_ALLOWED,
}


class RecordPlace(NamedTuple):
    """Where a call stands."""

    log: str
    seq: int
    run_id: RunId


class Decided(NamedTuple):
    """What a call came to, and the policy and rule that decided it; both empty where nothing was violated."""

    outcome: ShadowOutcome
    policy: str = ""
    rule: str = ""


NOTHING: Final = Decided(ShadowOutcome.PASSED)


def decided(verdicts: Iterable[Verdict], *, ignored: Container[Sha256] = frozenset()) -> Decided:
    """Return the strongest of what was decided, enforced or not; counts that may still be put right are left out.

    Policies whose digest is in `ignored` do not count.
    """
    strongest = NOTHING
    for verdict in verdicts:
        for each in verdict.evaluations:
            if each.status is DecisionStatus.PROVISIONAL or each.digest in ignored:
                continue
            outcome = outcome_of(each.action)
            if outcome.rank > strongest.outcome.rank:
                strongest = Decided(outcome, each.policy_name, each.rule)
    return strongest


def outcome_of(action: PolicyAction) -> ShadowOutcome:
    """Return what an action means for the call."""
    if action.stops:
        return ShadowOutcome.BLOCKED
    return ShadowOutcome.PASSED if action is PolicyAction.ALLOW else ShadowOutcome.WARNED


class ShadowTally:
    """Counts changes; passing calls cost one addition."""

    def __init__(self) -> None:
        self.unchanged = 0
        self._totals = dict.fromkeys(Change, 0)
        self._groups: tuple[dict[str, _ChangeGroup], ...] = ({}, {}, {})

    def take(self, before: Decided, after: Decided, place: RecordPlace, *, agent: str, source: str | None) -> Change:
        """Count one call; `source` is None for a call that is no document."""
        change = _CHANGES.get((before.outcome, after.outcome), Change.UNCHANGED)
        if change is Change.UNCHANGED:
            self.unchanged += 1
            return change
        self._totals[change] += 1
        decisive = after if change in {Change.NEWLY_BLOCKED, Change.NEWLY_WARNED} else before
        names = (f"{decisive.policy}: {decisive.rule}", agent, source)
        for groups, name in zip(self._groups, names, strict=True):
            if name is not None:
                _group(groups, name).take(change, place)
        return change

    def changes(self) -> ShadowChanges:
        """Return what was counted so far."""
        rules, agents, sources = (_ordered(groups) for groups in self._groups)
        counts = _counts(self._totals)
        calls = self.unchanged + sum(counts.values())
        return ShadowChanges(calls=calls, unchanged=self.unchanged, rules=rules, agents=agents, sources=sources, **counts)


class _ChangeGroup:
    __slots__ = ("counts", "examples")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Change, 0)
        self.examples: list[ShadowExample] = []

    def take(self, change: Change, place: RecordPlace) -> None:
        if self.counts[change] < MAX_EXAMPLES:
            self.examples.append(ShadowExample(log=place.log, seq=place.seq, run_id=place.run_id, change=change))
        self.counts[change] += 1


def _group(groups: dict[str, _ChangeGroup], name: str) -> _ChangeGroup:
    found = groups.get(name)
    if found is None:
        kept = name if len(groups) < MAX_GROUPS else OTHERS
        found = groups.setdefault(kept, _ChangeGroup())
    return found


def _ordered(groups: Mapping[str, _ChangeGroup]) -> tuple[ShadowGroup, ...]:
    """Return the groups with most changes first, then by name."""
    told = [ShadowGroup(name=name, examples=tuple(group.examples), **_counts(group.counts)) for name, group in groups.items()]
    return tuple(sorted(told, key=lambda group: (-_total(group), group.name)))


def _total(group: ShadowGroup) -> int:
    return group.newly_blocked + group.newly_allowed + group.newly_warned + group.no_longer_warned


def _counts(totals: Mapping[Change, int]) -> dict[str, int]:
    return {change.value: totals[change] for change in Change if change is not Change.UNCHANGED}


# --- live shadow ---
# What policies in shadow would have done, from what the log says of them: they were evaluated with every call, and stopped nothing.

_ANY: Final = (RetrievedDocument, GroundingEntry, BatchClosed, ToolCall, LlmCall, StepCall, RunEnded)
_CALLS: Final[Mapping[str, tuple[type, ...]]] = {
    "retrieval": tuple(each for each in _ANY if each is not GroundingEntry),
    "grounding": (GroundingEntry, RunEnded),
    "protocol": (TaskOpened, ToolAsked, ToolAnswered, ReplyDrafted, RunEnded),
}
"""What a category can say something about; a registered category may listen to anything."""


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
        self.tally = ShadowTally()

    def take(self, record: LogRecord, before: Decided, agent: str) -> None:
        call = record.entry.call
        after = max(before, _own(record.entry.verdicts, self.policy), key=lambda each: each.outcome.rank)
        place = RecordPlace(record.log, record.seq, record.entry.run_id)
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
    return Decided(ShadowOutcome.PASSED) if strongest is None else Decided(outcome_of(strongest.action), policy.body.name, strongest.rule)
