"""Where a session's calls are decided about: by its own evaluator of the profile, and by the policies of the run it belongs to."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decisions import LogEntry
from evidentia.contracts.errors import PolicyViolationError
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.protocol import Profile, ProtocolRule, TraceFinding
from evidentia.contracts.runs import RunId
from evidentia.governance.expanding import expand, micros
from evidentia.governance.journal import unsealed
from evidentia.policy.evaluator import PolicySet, RunEvaluator
from evidentia.policy.protocol_profiles import PROFILES
from evidentia.policy.rules import check_policy
from evidentia.wiring.system import SystemClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.agents.context import Context
    from evidentia.contracts.decisions import Verdict
    from evidentia.contracts.runs import AnyCall

_RULES: Final = {rule.value: rule for rule in ProtocolRule}
_PLACES: Final = frozenset(("section", "call", "block"))
_RUN: Final = RunId("protocol-session")


class Ledger:
    """Takes the calls of one question. Not thread safe.

    Without a context the profile's own policy decides, with one action for every rule; with one, its policies do, and the profile's only
    finds. A call that was stopped never ran, so it is forgotten.
    """

    __slots__ = ("_calls", "_context", "_evaluator", "_policies")

    def __init__(self, profile: Profile, *, action: str, context: Context | None) -> None:
        self._policies = _policies_of(profile, action="warn" if context is not None else action)
        self._context = context
        self._evaluator = RunEvaluator(self._policies)
        self._calls: list[AnyCall] = []

    def record(self, call: AnyCall) -> tuple[TraceFinding, ...]:
        """Decide about a call and return what it breaks; raises PolicyViolationError where a policy stops it."""
        verdicts = self._evaluator.record(call)
        if self._context is not None:
            try:
                self._context.record_call(call)
            except PolicyViolationError:
                self._forget_last()
                raise
            self._calls.append(call)
        elif verdicts:
            self._raise(call, verdicts)
        return findings_of(verdicts) if verdicts else ()

    def draft(self, call: AnyCall) -> tuple[TraceFinding, ...]:
        """Return what a call breaks under the profile; it stops nothing, and the run is not told."""
        return findings_of(self._evaluator.record(call))

    def tell(self, call: AnyCall) -> None:
        """Tell the run of a call that was decided about here before; raises PolicyViolationError where a policy stops it."""
        if self._context is not None:
            self._context.record_call(call)

    def _forget_last(self) -> None:
        self._evaluator = RunEvaluator(self._policies)
        for call in self._calls:
            self._evaluator.record(call)

    def _raise(self, call: AnyCall, verdicts: Sequence[Verdict]) -> None:
        stopping = next((verdict for verdict in verdicts if verdict.stops), None)
        if stopping is None:
            return
        at_us = micros(SystemClock().now(), field="at")
        entry = LogEntry(at_us=at_us, run_id=_RUN, policies=self._policies.digest, call=call, verdicts=(stopping,))
        raise PolicyViolationError(stopping.decisive.reason, next(expand([unsealed(entry)])))


def findings_of(verdicts: Sequence[Verdict]) -> tuple[TraceFinding, ...]:
    """Return what the rules of a protocol found, in their order."""
    return tuple(
        TraceFinding(
            rule=_RULES[said.rule],
            section=said.metadata.get("section", ""),
            reason=said.reason,
            call=said.metadata.get("call"),
            block=said.metadata.get("block"),
            metadata={name: value for name, value in said.metadata.items() if name not in _PLACES},
        )
        for verdict in verdicts
        for said in verdict.evaluations
        if said.action is not PolicyAction.ALLOW and said.rule in _RULES
    )


def _policies_of(profile: Profile, *, action: str) -> PolicySet:
    """Return the profile as a policy, compiled once."""
    if PROFILES.get(profile.name) is profile:
        return _compiled(profile.name, action)
    return _compiled(msgspec.json.encode(profile, order="sorted").decode(), action)


@lru_cache(maxsize=64)
def _compiled(profile: str, action: str) -> PolicySet:
    given: object = profile if profile in PROFILES else msgspec.json.decode(profile)
    body = {"name": "Protocol", "category": "protocol", "rules": {"profile": given, "action_on_violation": action}}
    return PolicySet.of([check_policy(body)])
