"""The one evaluator: policies made ready once, and a run followed call by call. Whoever decides about a run decides through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec

from evidentia.contracts.calls import RunCall
from evidentia.contracts.runs import GroundingEntry, RetrievedDocument, RunStatus
from evidentia.policy.calls import check_call
from evidentia.policy.categories import category, position
from evidentia.policy.digests import set_digest
from evidentia.policy.handling import CategoryRun, CompiledCategory, Outcome, TypedPolicy
from evidentia.policy.scope import in_scope
from evidentia.policy.verdicts import Seat, conclude

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evidentia.contracts.decisions import JudgeAsk, Verdict
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.policies import Policy
    from evidentia.contracts.runs import RunEnded, RunFacts

_MAX_SELECTIONS: Final = 1_024
"""How many selections of policies stay compiled; agents come in kinds, so there are few."""
_COUNTING: Final[Mapping[type[RunCall], str]] = {RetrievedDocument: "retrieval", GroundingEntry: "grounding"}
"""Whose count belongs to a call that several categories may listen to."""


class _Group(NamedTuple):
    """The policies of one category."""

    name: str
    policies: tuple[Policy, ...]
    compiled: CompiledCategory


class PolicySet:
    """Policies in the order in which they are asked, compiled. Immutable; one may serve many runs and threads."""

    __slots__ = ("_selections", "digest", "groups", "policies")

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = tuple(policies)
        self.digest: Sha256 = set_digest(self.policies)
        self.groups = _groups(self.policies)
        self._selections: dict[tuple[int, ...], PolicySet] = {}

    @classmethod
    def of(cls, policies: Iterable[Policy]) -> Self:
        """Return the set of those that are enabled, by priority, name and id; the order in which they are given does not matter."""
        enabled = {(each.policy_id, each.version, each.digest): each for each in policies if each.body.enabled}
        return cls(sorted(enabled.values(), key=_order))

    def for_run(self, facts: RunFacts) -> PolicySet:
        """Return the policies in scope for a run; each selection is compiled once."""
        places = tuple(place for place, each in enumerate(self.policies) if in_scope(each, facts))
        if len(places) == len(self.policies):
            return self
        known = self._selections.get(places)
        if known is not None:
            return known
        selection = PolicySet([self.policies[place] for place in places])
        if len(self._selections) < _MAX_SELECTIONS:
            self._selections[places] = selection
        return selection


class RunEvaluator:
    """Decides about one run. Not thread safe; the cost of a call does not grow with the run."""

    __slots__ = ("_counters", "_groups", "_is_enforced", "_last", "_listeners", "_runs", "_seats", "is_stopped")

    def __init__(self, policy_set: PolicySet, *, is_enforced: bool = True) -> None:
        self._is_enforced = is_enforced
        self._groups = policy_set.groups
        self._seats = [[Seat(policy, is_enforced=is_enforced) for policy in group.policies] for group in self._groups]
        self._runs: list[CategoryRun] = [group.compiled.start() for group in self._groups]
        self._listeners, self._counters = _listeners(self._groups, self._runs)
        self._last: type[RunCall] | None = None
        self.is_stopped = False
        """Whether a verdict has stopped the run; later calls are still decided about. What is prevented stops nothing but itself."""

    @property
    def count(self) -> int:
        """Return how many documents the batch of the last call holds, or how many scores the last call gave."""
        counter = self._counters.get(self._last) if self._last is not None else None
        return 0 if counter is None else counter.count

    def begin(self) -> tuple[Verdict, ...]:
        """Return one verdict for each category that has policies: their rules are pinned."""
        return tuple(self._verdict(place, group.compiled.begin(), is_enforced=True) for place, group in enumerate(self._groups))

    def asks(self, call: RunCall) -> tuple[JudgeAsk, ...]:
        """Return the judgements that are wanted in a call before it is recorded."""
        return tuple(ask for group in self._groups for ask in group.compiled.asks(call))

    def record(self, call: RunCall) -> tuple[Verdict, ...]:
        """Decide about a call; empty when it passes everything, or when no policy is about such calls.

        Raises InvalidFieldError, and counts nothing, when a number of the call compares with nothing.
        """
        self._last = kind = call.__class__
        outcomes: dict[int, Outcome] | None = None
        for place, listen in self._listeners.get(kind, ()):
            outcome = listen(call)
            if outcome is not None:
                outcomes = {place: outcome} if outcomes is None else {**outcomes, place: outcome}
        return () if outcomes is None else self._conclude(call, outcomes)

    def finish(self, end: RunEnded) -> tuple[Verdict, ...]:
        """Decide about the whole run, one verdict for each category; nothing is enforced on a run that is stopped or failed."""
        takes_effect = not self.is_stopped and end.status not in {RunStatus.ERROR, RunStatus.BLOCKED}
        self._last = end.__class__
        verdicts = [self._verdict(place, run.finish(end), is_enforced=takes_effect) for place, run in enumerate(self._runs)]
        return self._noted(verdicts)

    def passed(self, call: RunCall, *, count: int) -> tuple[Verdict, ...]:
        """Return what a call stands for that passed with this count; what was recorded before does not matter."""
        outcomes = ((place, group.compiled.passed(call, count=count)) for place, group in enumerate(self._groups))
        return tuple(self._verdict(place, outcome, is_enforced=True) for place, outcome in outcomes if outcome is not None)

    def _conclude(self, call: RunCall, outcomes: dict[int, Outcome]) -> tuple[Verdict, ...]:
        """Return the verdicts of all categories about a call that did not pass in one of them."""
        for place, group in enumerate(self._groups):
            if place not in outcomes:
                passed = group.compiled.passed(call, count=self._runs[place].count)
                if passed is not None:
                    outcomes[place] = passed
        verdicts = [self._verdict(place, outcomes[place], is_enforced=True) for place in sorted(outcomes)]
        return tuple(verdicts) if call.is_ahead else self._noted(verdicts)

    def _verdict(self, place: int, outcome: Outcome, *, is_enforced: bool) -> Verdict:
        return conclude(self._seats[place], outcome, is_enforced=is_enforced and self._is_enforced)

    def _noted(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        self.is_stopped = self.is_stopped or any(verdict.stops for verdict in verdicts)
        return tuple(verdicts)


_Listeners = dict[type[RunCall], tuple[tuple[int, "Callable[[RunCall], Outcome | None]"], ...]]


def _listeners(groups: Sequence[_Group], runs: Sequence[CategoryRun]) -> tuple[_Listeners, dict[type[RunCall], CategoryRun]]:
    """Return who is told of which calls, and whose count belongs to them: that of the category the call is about."""
    listeners: _Listeners = {}
    counters: dict[type[RunCall], CategoryRun] = {}
    for place, (group, run) in enumerate(zip(groups, runs, strict=True)):
        for kind in group.compiled.listens_to:
            listeners[kind] = (*listeners.get(kind, ()), (place, run.record))
            if _COUNTING.get(kind, group.name) == group.name:
                counters[kind] = run
    for kind in _COUNTING:
        listeners.setdefault(kind, ((-1, _only_checked),))
    return listeners, counters


def _only_checked(call: RunCall) -> Outcome | None:
    check_call(call)
    return None


def _groups(policies: Iterable[Policy]) -> tuple[_Group, ...]:
    by_category: dict[str, list[Policy]] = {}
    for policy in policies:
        by_category.setdefault(policy.body.category, []).append(policy)
    return tuple(_group(name, by_category[name]) for name in sorted(by_category, key=position))


def _group(name: str, policies: Sequence[Policy]) -> _Group:
    declared = category(name)
    in_force = [TypedPolicy(policy=each, rules=msgspec.convert(each.body.rules, declared.rules)) for each in policies]
    return _Group(name=name, policies=tuple(policies), compiled=declared.compile(in_force))


def _order(policy: Policy) -> tuple[object, ...]:
    return policy.body.priority, policy.body.name, policy.policy_id, policy.version, policy.digest
