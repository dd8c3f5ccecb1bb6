"""A trace as proof: calls that were put to the evaluator, and what it said of each. Nothing is claimed that was not executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.policies import Policy, PolicyAction
from evidentia.contracts.runs import AnyCall, RunEnded, RunFacts
from evidentia.policy.evaluator import PolicySet, RunEvaluator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.decisions import Verdict


class WitnessedViolation(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule said of one call of a trace; `call` counts from 1, and one more than there are is the end."""

    call: int
    policy: str
    rule: str
    action: PolicyAction
    reason: str
    is_decisive: bool = False


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """A run under some policies, call by call, with every violation that the evaluator found."""

    policies: tuple[str, ...]
    facts: RunFacts
    calls: tuple[AnyCall, ...] = ()
    end: RunEnded = RunEnded()
    violations: tuple[WitnessedViolation, ...] = ()
    note: str = ""
    """What the trace shows, for people."""

    @property
    def is_stopped(self) -> bool:
        """Tell whether any call of the trace, or its end, is stopped."""
        return any(violation.action.stops for violation in self.violations)

    def strongest(self, policy: str, *, until: int | None = None) -> PolicyAction:
        """Return the strongest action of a policy, over all calls or up to one."""
        said = [each.action for each in self.violations if each.policy == policy and (until is None or each.call <= until)]
        return max(said, key=lambda action: action.rank, default=PolicyAction.ALLOW)

    def fires(self, policy: str, rule: str) -> bool:
        """Tell whether a rule is violated anywhere in the trace."""
        return any(each.policy == policy and each.rule == rule for each in self.violations)


def execute(
    policies: Sequence[Policy], facts: RunFacts, calls: Sequence[AnyCall] = (), *, end: RunEnded | None = None, note: str = ""
) -> Witness:
    """Put a trace to the evaluator, to its end, and return what it said; provisional counts are left out."""
    ending = end or RunEnded()
    in_force = PolicySet.of(policies).for_run(facts)
    evaluator = RunEvaluator(in_force)
    evaluator.begin()
    found = [each for number, call in enumerate(calls, start=1) for each in _violations(number, evaluator.record(call))]
    found.extend(_violations(len(calls) + 1, evaluator.finish(ending)))
    return Witness(
        policies=tuple(policy.body.name for policy in in_force.policies),
        facts=facts,
        calls=tuple(calls),
        end=ending,
        violations=tuple(found),
        note=note,
    )


def said_of(in_force: PolicySet, call: AnyCall) -> tuple[WitnessedViolation, ...]:
    """Return what policies say of the first call of a run, which is all that a rule about one document can depend on."""
    return tuple(_violations(1, RunEvaluator(in_force).record(call)))


def reproduces(witness: Witness, policies: Sequence[Policy]) -> bool:
    """Tell whether the evaluator says the same of a trace again."""
    return execute(policies, witness.facts, witness.calls, end=witness.end, note=witness.note) == witness


def _violations(call: int, verdicts: Sequence[Verdict]) -> Iterator[WitnessedViolation]:
    for verdict in verdicts:
        for each in verdict.evaluations:
            if each.rule and each.action is not PolicyAction.ALLOW and each.status is not DecisionStatus.PROVISIONAL:
                is_decisive = each.rule == verdict.decisive.rule and each.policy_id == verdict.decisive.policy_id
                yield WitnessedViolation(
                    call=call, policy=each.policy_name, rule=each.rule, action=each.action, reason=each.reason, is_decisive=is_decisive
                )
