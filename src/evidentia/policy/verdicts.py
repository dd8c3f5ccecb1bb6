"""From what policies found to one verdict: every evaluation is kept, the strongest action decides, enforced policies before others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from evidentia.contracts.decisions import DecisionStatus, Evaluation, Verdict
from evidentia.contracts.policies import Enforcement, PolicyAction
from evidentia.contracts.runs import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.policies import Policy
    from evidentia.policy.handling import Outcome, Violation


# Asking an enumeration for a member costs more than a comparison, and these are compared at every call.
_ALLOW: Final = PolicyAction.ALLOW
_BLOCK: Final = PolicyAction.BLOCK
_EVALUATED: Final = DecisionStatus.EVALUATED
_BYPASSED: Final = DecisionStatus.BYPASSED
_PROVISIONAL: Final = DecisionStatus.PROVISIONAL
_SHADOW: Final = DecisionStatus.SHADOW


class Seat:
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

    def says(self, violation: Violation) -> Evaluation:
        """Return the evaluation of a violation; a bypass and a provisional count stay so in shadow."""
        return replace(
            self.allowing,
            rule=violation.rule,
            action=violation.action,
            reason=violation.reason,
            metadata=violation.metadata,
            status=self.status if violation.status is _EVALUATED else violation.status,
        )

    def allows(self, outcome: Outcome, place: int) -> Evaluation:
        """Return the evaluation of a policy without a violation."""
        own = outcome.own.get(place)
        if own is not None:
            return replace(self.allowing, reason=own[0], metadata=own[1])
        return replace(self.allowing, reason=outcome.reason, metadata=outcome.metadata)


def conclude(seats: Sequence[Seat], outcome: Outcome, *, is_enforced: bool) -> Verdict:
    """Return the verdict of one category: what every policy said, in their order, and which of it decides.

    Violations decide before provisional counts, both of enforced policies before those in shadow, all before notices, and those
    before policies that passed; among equals the strongest action, then the first.
    """
    evaluations: list[Evaluation] = []
    best: _Claim | None = None
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
                best = _better(best, _Claim(place, seat, violation))
                best_action, best_status, is_best_enforced = best.violation.action, best.violation.status, best.seat.is_enforced
        if is_quiet:
            evaluations.append(seat.allows(outcome, place))
    return _verdict(seats, outcome, tuple(evaluations), best, is_enforced=is_enforced)


class _Claim(NamedTuple):
    """A violation that may decide."""

    place: int
    seat: Seat
    violation: Violation

    @property
    def weight(self) -> tuple[int, int]:
        """Return how early it decides, greatest first."""
        rank = self.violation.action.rank
        if not rank:
            return 0, int(self.seat.is_enforced)
        certainty = 0 if self.violation.status is _PROVISIONAL else 1
        return (3 + certainty if self.seat.is_enforced else 1 + certainty), rank


def _better(best: _Claim | None, other: _Claim) -> _Claim:
    return other if best is None or other.weight > best.weight else best


def _verdict(
    seats: Sequence[Seat], outcome: Outcome, evaluations: tuple[Evaluation, ...], best: _Claim | None, *, is_enforced: bool
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
        decisive=best.seat.says(violation),
        evaluations=evaluations,
        is_enforced=is_enforced and takes_effect and violation.status is not _PROVISIONAL,
        abstention_response=_abstention(seats, outcome, is_enforced=takes_effect) if outcome.joined else None,
    )


def _abstention(seats: Sequence[Seat], outcome: Outcome, *, is_enforced: bool) -> str | None:
    """Return what the first policy that wants an abstention wants said; policies in shadow are heard only among themselves."""
    wanted = (
        violation.abstention_response
        for place, seat in enumerate(seats)
        if seat.is_enforced is is_enforced
        for violation in outcome.found.get(place, ())
    )
    return next((response for response in wanted if response is not None), None)
