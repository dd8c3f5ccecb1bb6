"""How two sets of policies differ over the same calls, counted by rule, agent and source with examples. Bounded, whatever is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.vocabulary import RankedVocabulary, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.runs import RunId

MAX_EXAMPLES: Final = 3
MAX_GROUPS: Final = 1_000
OTHERS: Final = "(others)"
"""Where the rest is counted when there are more names than are kept."""


class Outcome(RankedVocabulary):
    """What a call came to, weakest first."""

    PASSED = "passed"
    WARNED = "warned"
    BLOCKED = "blocked"


class Change(Vocabulary):
    """What a candidate would change about a call."""

    NEWLY_BLOCKED = "newly_blocked"
    """It went on, and would be stopped."""
    NEWLY_ALLOWED = "newly_allowed"
    """It was stopped, and would go on, with a warning or without."""
    NEWLY_WARNED = "newly_warned"
    NO_LONGER_WARNED = "no_longer_warned"
    UNCHANGED = "unchanged"


_CHANGES: Final = {
    (Outcome.PASSED, Outcome.WARNED): Change.NEWLY_WARNED,
    (Outcome.PASSED, Outcome.BLOCKED): Change.NEWLY_BLOCKED,
    (Outcome.WARNED, Outcome.PASSED): Change.NO_LONGER_WARNED,
    (Outcome.WARNED, Outcome.BLOCKED): Change.NEWLY_BLOCKED,
    (Outcome.BLOCKED, Outcome.PASSED): Change.NEWLY_ALLOWED,
    (Outcome.BLOCKED, Outcome.WARNED): Change.NEWLY_ALLOWED,
}


class Place(NamedTuple):
    """Where a call stands."""

    log: str
    seq: int
    run_id: RunId


class Decided(NamedTuple):
    """What a call came to, and the policy and rule that decided it; both empty where nothing was violated."""

    outcome: Outcome
    policy: str = ""
    rule: str = ""


class ShadowExample(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call that would be decided otherwise."""

    log: str
    seq: int
    run_id: str
    change: Change


class ShadowGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of one rule, agent or source."""

    name: str
    newly_blocked: int = 0
    newly_allowed: int = 0
    newly_warned: int = 0
    no_longer_warned: int = 0
    examples: tuple[ShadowExample, ...] = ()
    """The first of each kind of change, in the order of the log."""


class ShadowChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What would change, in all and by rule (`policy: rule`), agent and source; groups with most changes first."""

    calls: int = 0
    newly_blocked: int = 0
    newly_allowed: int = 0
    newly_warned: int = 0
    no_longer_warned: int = 0
    unchanged: int = 0
    rules: tuple[ShadowGroup, ...] = ()
    agents: tuple[ShadowGroup, ...] = ()
    sources: tuple[ShadowGroup, ...] = ()


NOTHING: Final = Decided(Outcome.PASSED)


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


def outcome_of(action: PolicyAction) -> Outcome:
    """Return what an action means for the call."""
    if action.stops:
        return Outcome.BLOCKED
    return Outcome.PASSED if action is PolicyAction.ALLOW else Outcome.WARNED


class Tally:
    """Counts changes; passing calls cost one addition."""

    def __init__(self) -> None:
        self.unchanged = 0
        self._totals = dict.fromkeys(Change, 0)
        self._groups: tuple[dict[str, _Group], ...] = ({}, {}, {})

    def take(self, before: Decided, after: Decided, place: Place, *, agent: str, source: str | None) -> Change:
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


class _Group:
    __slots__ = ("counts", "examples")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Change, 0)
        self.examples: list[ShadowExample] = []

    def take(self, change: Change, place: Place) -> None:
        if self.counts[change] < MAX_EXAMPLES:
            self.examples.append(ShadowExample(log=place.log, seq=place.seq, run_id=place.run_id, change=change))
        self.counts[change] += 1


def _group(groups: dict[str, _Group], name: str) -> _Group:
    found = groups.get(name)
    if found is None:
        kept = name if len(groups) < MAX_GROUPS else OTHERS
        found = groups.setdefault(kept, _Group())
    return found


def _ordered(groups: Mapping[str, _Group]) -> tuple[ShadowGroup, ...]:
    """Return the groups with most changes first, then by name."""
    told = [ShadowGroup(name=name, examples=tuple(group.examples), **_counts(group.counts)) for name, group in groups.items()]
    return tuple(sorted(told, key=lambda group: (-_total(group), group.name)))


def _total(group: ShadowGroup) -> int:
    return group.newly_blocked + group.newly_allowed + group.newly_warned + group.no_longer_warned


def _counts(totals: Mapping[Change, int]) -> dict[str, int]:
    return {change.value: totals[change] for change in Change if change is not Change.UNCHANGED}
