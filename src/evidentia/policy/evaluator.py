"""The one evaluator: policies compiled once, a run followed call by call. Live runs, replay, shadow and tests decide through it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from evidentia.contracts.decisions import DecisionStatus, Evaluation, JudgeAsk, Verdict
from evidentia.contracts.decoding import convert
from evidentia.contracts.policies import DEFAULT_TENANT, Enforcement, Policy, PolicyAction, PolicyScope
from evidentia.contracts.protocol import RunCall
from evidentia.contracts.runs import GroundingEntry, Phase, RetrievedDocument, RunEnded, RunFacts, RunStatus
from evidentia.policy.handlers import (
    Category,
    CategoryOutcome,
    CategoryRun,
    CompiledCategory,
    TypedPolicy,
    Violation,
    check_call,
    set_digest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.policies import PolicyId


EDITION: Final = 1
"""What runs that begin now are decided by. Since 1 a count over its maximum and a call after a block are not told as within policy, and a
judge that let an entry pass is told with its score; earlier runs are replayed in the words of their time."""
_MAX_SELECTIONS: Final = 1_024
"""How many selections of policies stay compiled; agents come in kinds, so there are few."""
_COUNTING: Final[Mapping[type[RunCall], str]] = {RetrievedDocument: "retrieval", GroundingEntry: "grounding"}
"""Whose count belongs to a call that several categories may listen to."""


class _CategoryGroup(NamedTuple):
    """The policies of one category."""

    name: str
    policies: tuple[Policy, ...]
    compiled: CompiledCategory


@dataclass(frozen=True, eq=False)
class PolicySet:
    """Policies in the order in which they are asked, compiled. Immutable; one may serve many runs and threads."""

    policies: tuple[Policy, ...] = ()
    groups: tuple[_CategoryGroup, ...] = ()
    _selections: dict[tuple[int, ...], PolicySet] = field(default_factory=dict)

    @staticmethod
    def of(policies: Iterable[Policy]) -> PolicySet:
        """Return the set of those that are enabled, by priority, name and id; the order in which they are given does not matter."""
        enabled = {(each.policy_id, each.version, each.digest): each for each in policies if each.body.enabled}
        return _compiled(sorted(enabled.values(), key=_order))

    @cached_property
    def digest(self) -> Sha256:
        """Return what stands for these policies in their order."""
        return set_digest(self.policies)

    @cached_property
    def enforceable(self) -> frozenset[PolicyId]:
        """Return those whose actions take effect where a run is enforced."""
        return frozenset(each.policy_id for each in self.policies if each.body.enforcement is Enforcement.ENFORCE)

    @cached_property
    def asks_judge(self) -> bool:
        """Tell whether a policy may ask a judge about a run."""
        return any(group.compiled.asks(call) for group in self.groups for call in (GroundingEntry(), RunEnded()))

    def for_run(self, facts: RunFacts) -> PolicySet:
        """Return the policies in scope for a run; each selection is compiled once."""
        places = tuple(place for place, each in enumerate(self.policies) if in_scope(each, facts))
        if len(places) == len(self.policies):
            return self
        known = self._selections.get(places)
        if known is not None:
            return known
        selection = _compiled([self.policies[place] for place in places])
        if len(self._selections) < _MAX_SELECTIONS:
            self._selections[places] = selection
        return selection


class RunEvaluator:
    """Decides about one run. Not thread safe; the cost of a call does not grow with the run."""

    __slots__ = (
        "_counters",
        "_edition",
        "_enforceable",
        "_groups",
        "_has_blocked",
        "_is_enforced",
        "_last",
        "_listeners",
        "_runs",
        "_seats",
        "is_stopped",
    )

    def __init__(self, policy_set: PolicySet, *, is_enforced: bool = True, edition: int = EDITION) -> None:
        self._is_enforced = is_enforced
        self._edition = edition
        self._enforceable = policy_set.enforceable
        self._has_blocked = False
        """Whether a policy has said block, also where the run is not enforced or somebody approved; nothing is within policy then."""
        self._groups = policy_set.groups
        self._seats = [[SeatedPolicy(policy, is_enforced=is_enforced) for policy in group.policies] for group in self._groups]
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
        outcomes: dict[int, CategoryOutcome] | None = None
        for place, listen in self._listeners.get(kind, ()):
            outcome = listen(call)
            if outcome is not None:
                outcomes = {place: outcome} if outcomes is None else {**outcomes, place: outcome}
        if outcomes is None:
            # What passes is told by its place in the log alone, except after a block: there the words differ.
            return () if not (self._has_blocked and self._edition) else self._conclude(call, {})
        return self._conclude(call, outcomes)

    def finish(self, end: RunEnded) -> tuple[Verdict, ...]:
        """Decide about the whole run, one verdict for each category; nothing is enforced on a run that is stopped or failed."""
        takes_effect = not self.is_stopped and end.status not in {RunStatus.ERROR, RunStatus.BLOCKED}
        self._last = end.__class__
        verdicts = [self._verdict(place, run.finish(end), is_enforced=takes_effect) for place, run in enumerate(self._runs)]
        return self._noted(verdicts)

    def passed(self, call: RunCall, *, count: int) -> tuple[Verdict, ...]:
        """Return what a call stands for that passed with this count; what was recorded before does not matter."""
        outcomes = ((place, group.compiled.passed(call, count=count)) for place, group in enumerate(self._groups))
        return tuple(
            self._verdict(place, outcome, is_enforced=True, after_block=False) for place, outcome in outcomes if outcome is not None
        )

    def _conclude(self, call: RunCall, outcomes: dict[int, CategoryOutcome]) -> tuple[Verdict, ...]:
        """Return the verdicts of all categories about a call that did not pass in one of them, or came after a block."""
        for place, group in enumerate(self._groups):
            if place not in outcomes:
                passed = group.compiled.passed(call, count=self._runs[place].count)
                if passed is not None:
                    outcomes[place] = passed
        verdicts = [self._verdict(place, outcomes[place], is_enforced=True) for place in sorted(outcomes)]
        return tuple(verdicts) if call.is_announced else self._noted(verdicts)

    def _verdict(self, place: int, outcome: CategoryOutcome, *, is_enforced: bool, after_block: bool | None = None) -> Verdict:
        if self._edition:
            outcome = outcome.in_full(after_block=self._has_blocked if after_block is None else after_block)
        return conclude(self._seats[place], outcome, is_enforced=is_enforced and self._is_enforced)

    def _noted(self, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        self.is_stopped = self.is_stopped or any(verdict.stops for verdict in verdicts)
        self._has_blocked = self._has_blocked or self.is_stopped or (not self._is_enforced and any(map(self._would_stop, verdicts)))
        return tuple(verdicts)

    def _would_stop(self, verdict: Verdict) -> bool:
        """Tell whether a verdict would have stopped the run if that were enforced; a policy in shadow stops none either way."""
        return verdict.decisive.action.stops and any(
            each.action.stops and each.status is not _PROVISIONAL and each.policy_id in self._enforceable for each in verdict.evaluations
        )


_Listeners = dict[type[RunCall], tuple[tuple[int, "Callable[[RunCall], CategoryOutcome | None]"], ...]]


def _listeners(groups: Sequence[_CategoryGroup], runs: Sequence[CategoryRun]) -> tuple[_Listeners, dict[type[RunCall], CategoryRun]]:
    """Return which categories listen to which calls, and whose count belongs to them: that of the category the call is about."""
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


def _only_checked(call: RunCall) -> CategoryOutcome | None:
    check_call(call)
    return None


def _compiled(policies: Sequence[Policy]) -> PolicySet:
    if not policies:
        return PolicySet()
    # Imported here: most bases have no policies, and a search of one need not load the rules of every category.
    from evidentia.policy.categories import category, position

    by_category: dict[str, list[Policy]] = {}
    for policy in policies:
        by_category.setdefault(policy.body.category, []).append(policy)
    groups = [_group(category(name), by_category[name]) for name in sorted(by_category, key=position)]
    return PolicySet(tuple(policies), tuple(groups))


def _group(declared: Category, policies: Sequence[Policy]) -> _CategoryGroup:
    in_force = [TypedPolicy(policy=each, rules=convert(each.body.rules, declared.rules)) for each in policies]
    return _CategoryGroup(name=declared.name, policies=tuple(policies), compiled=declared.compile(in_force))


def _order(policy: Policy) -> tuple[object, ...]:
    return policy.body.priority, policy.body.name, policy.policy_id, policy.version, policy.digest


# --- verdicts ---
# From what policies found to one verdict: every evaluation is kept, the strongest action decides, enforced policies before others.

# Asking an enumeration for a member costs more than a comparison, and these are compared at every call.
_ALLOW: Final = PolicyAction.ALLOW
_BLOCK: Final = PolicyAction.BLOCK
_EVALUATED: Final = DecisionStatus.EVALUATED
_BYPASSED: Final = DecisionStatus.BYPASSED
_PROVISIONAL: Final = DecisionStatus.PROVISIONAL
_SHADOW: Final = DecisionStatus.SHADOW


class SeatedPolicy:
    """A policy among those of its category, and what its evaluations have in common."""

    __slots__ = ("allowing", "is_enforced", "status")

    def __init__(self, policy: Policy, *, is_enforced: bool) -> None:
        self.is_enforced = is_enforced and policy.body.enforcement is Enforcement.ENFORCE
        self.status = _EVALUATED if self.is_enforced else _SHADOW
        self.allowing = Evaluation(
            policy_id=policy.policy_id,
            policy_name=policy.body.name,
            version=policy.version,
            digest=policy.digest,
            category=policy.body.category,
            action=_ALLOW,
            reason="",
            status=self.status,
        )

    def evaluation_of(self, violation: Violation) -> Evaluation:
        """Return the evaluation of a violation; a bypass and a provisional count stay so in shadow."""
        return replace(
            self.allowing,
            rule=violation.rule,
            action=violation.action,
            reason=violation.reason,
            metadata=violation.metadata,
            status=self.status if violation.status is _EVALUATED else violation.status,
        )

    def allows(self, outcome: CategoryOutcome, place: int) -> Evaluation:
        """Return the evaluation of a policy without a violation."""
        own = outcome.own.get(place)
        if own is not None:
            return replace(self.allowing, reason=own[0], metadata=own[1])
        return replace(self.allowing, reason=outcome.reason, metadata=outcome.metadata)


def conclude(seats: Sequence[SeatedPolicy], outcome: CategoryOutcome, *, is_enforced: bool) -> Verdict:
    """Return the verdict of one category: what every policy said, in their order, and which of it decides.

    Violations decide before provisional counts, both of enforced policies before those in shadow, all before notices, and those
    before policies that passed; among equals the strongest action, then the first.
    """
    evaluations: list[Evaluation] = []
    best: _DecidingViolation | None = None
    best_action: PolicyAction | None = None
    best_status, is_best_enforced = _EVALUATED, False
    found, reason, metadata, own = outcome.found, outcome.reason, outcome.metadata, outcome.own
    for place, seat in enumerate(seats):
        if place not in found:
            evaluations.append(seat.allows(outcome, place) if own else replace(seat.allowing, reason=reason, metadata=metadata))
            continue
        is_quiet = True
        for violation in found[place]:
            action, status = violation.action, violation.status
            evaluations.append(
                replace(
                    seat.allowing,
                    rule=violation.rule,
                    action=action,
                    reason=violation.reason,
                    metadata=violation.metadata,
                    status=seat.status if status is _EVALUATED else status,
                )
            )
            is_quiet = is_quiet and action is _ALLOW
            # Most violations of a call weigh no more than the best so far, and comparing what they are is cheaper than weighing them.
            if not ((action is best_action or best_action is _BLOCK) and status is best_status and seat.is_enforced is is_best_enforced):
                best = _better(best, _DecidingViolation(place, seat, violation))
                best_action, best_status, is_best_enforced = best.violation.action, best.violation.status, best.seat.is_enforced
        if is_quiet:
            evaluations.append(seat.allows(outcome, place))
    return _verdict(seats, outcome, tuple(evaluations), best, is_enforced=is_enforced)


class _DecidingViolation(NamedTuple):
    """A violation that may decide."""

    place: int
    seat: SeatedPolicy
    violation: Violation

    @property
    def weight(self) -> tuple[int, int]:
        """Return how early it decides, greatest first."""
        rank = self.violation.action.rank
        if not rank:
            return 0, int(self.seat.is_enforced)
        certainty = 0 if self.violation.status is _PROVISIONAL else 1
        return (3 + certainty if self.seat.is_enforced else 1 + certainty), rank


def _better(best: _DecidingViolation | None, other: _DecidingViolation) -> _DecidingViolation:
    return other if best is None or other.weight > best.weight else best


def _verdict(
    seats: Sequence[SeatedPolicy],
    outcome: CategoryOutcome,
    evaluations: tuple[Evaluation, ...],
    best: _DecidingViolation | None,
    *,
    is_enforced: bool,
) -> Verdict:
    if best is None or outcome.phase is Phase.BEFORE_WORKFLOW:
        place = next((place for place, seat in enumerate(seats) if seat.is_enforced), 0)
        decisive, takes_effect = seats[place].allows(outcome, place), seats[place].is_enforced
        return Verdict(phase=outcome.phase, decisive=decisive, evaluations=evaluations, is_enforced=is_enforced and takes_effect)
    violation, takes_effect = best.violation, best.seat.is_enforced
    if violation.action is not _ALLOW and violation.status is not _BYPASSED:
        violation = outcome.joined.get(best.place, violation)
    return Verdict(
        phase=outcome.phase,
        decisive=best.seat.evaluation_of(violation),
        evaluations=evaluations,
        is_enforced=is_enforced and takes_effect and violation.status is not _PROVISIONAL,
        abstention_response=_abstention(seats, outcome, is_enforced=takes_effect) if outcome.joined else None,
    )


def _abstention(seats: Sequence[SeatedPolicy], outcome: CategoryOutcome, *, is_enforced: bool) -> str | None:
    """Return what the first policy that wants an abstention wants said; policies in shadow are heard only among themselves."""
    wanted = (
        violation.abstention_response
        for place, seat in enumerate(seats)
        if seat.is_enforced is is_enforced
        for violation in outcome.found.get(place, ())
    )
    return next((response for response in wanted if response is not None), None)


# --- scope ---
# Is a policy for this run? Facets with glob characters are matched, others are equal; exclusions win, and an empty scope is for all.

_FACETS: Final = (
    ("agents", "agent_name"),
    ("agent_ids", "agent_id"),
    ("agent_groups", "agent_group"),
    ("agent_types", "agent_type"),
    ("workflows", "workflow_name"),
    ("users", "user_id"),
    ("user_groups", "user_group"),
    ("teams", "team"),
    ("tools", "tool"),
    ("models", "model"),
)
_EXCLUSIONS: Final = (
    ("exclude_agents", "agent_name"),
    ("exclude_users", "user_id"),
    ("exclude_tools", "tool"),
    ("exclude_models", "model"),
)
_GLOB_CHARACTERS: Final = frozenset("*?[")
_EVERYONE: Final = PolicyScope()


def in_scope(policy: Policy, facts: RunFacts) -> bool:
    """Tell whether a policy is for a run; upper and lower case differ."""
    scope = policy.body.scope
    if not _in_tenant(policy, facts.tenant):
        return False
    if scope == _EVERYONE:
        return True
    if any(_matches(getattr(scope, facet), getattr(facts, fact)) for facet, fact in _EXCLUSIONS):
        return False
    return all(not (wanted := getattr(scope, facet)) or _matches(wanted, getattr(facts, fact)) for facet, fact in _FACETS)


def _in_tenant(policy: Policy, tenant: str) -> bool:
    """Tell whether a policy reaches a tenant: only one of the default tenant may name others."""
    wanted = policy.body.scope.tenants
    if wanted and not _matches(wanted, tenant):
        return False
    return tenant == policy.tenant or (bool(wanted) and policy.tenant == DEFAULT_TENANT)


def _matches(patterns: Sequence[str], value: str) -> bool:
    return any(_match(pattern, value) for pattern in patterns)


def _match(pattern: str, value: str) -> bool:
    if _GLOB_CHARACTERS.isdisjoint(pattern):
        return pattern == value
    return fnmatchcase(value, pattern)
