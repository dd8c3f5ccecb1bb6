"""Writes what policies said of an answer into the decision log: one short run for each answer, under its request id."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from evidentia.contracts.decisions import LogEntry
from evidentia.contracts.runs import PoliciesRecorded, RunStarted
from evidentia.governance.expanding import expand, micros
from evidentia.governance.governor import CompiledPolicies
from evidentia.governance.journal import unsealed
from evidentia.policy.evaluator import RunEvaluator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.decisions import PolicyDecision, Verdict
    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.policies import Policy
    from evidentia.contracts.ports import Clock, DecisionLog
    from evidentia.contracts.runs import AnyCall, RunFacts


class LoggedAnswers:
    """Implements `AnswerLog`. Thread safe."""

    def __init__(self, log: DecisionLog, *, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._known: set[Sha256] = set()
        self._compiled = CompiledPolicies()

    def write(
        self, facts: RunFacts, policies: Sequence[Policy], calls: Sequence[tuple[AnyCall, tuple[Verdict, ...], int]], *, is_enforced: bool
    ) -> Iterator[PolicyDecision]:
        """Write who asked, every fragment with its verdicts, and the end; the policies come before their first use.

        What was decided is only spelt out for whoever reads it: most answers just go on.
        """
        in_scope = self._compiled.compiled(policies)
        at_us = micros(self._clock.now(), field="now")
        begun = RunEvaluator(in_scope, is_enforced=is_enforced).begin()
        told = [(RunStarted(facts=facts, is_enforced=is_enforced), begun, 0), *calls]
        entries = [
            LogEntry(at_us=at_us, run_id=facts.run_id, policies=in_scope.digest, call=call, verdicts=verdicts, count=count)
            for call, verdicts, count in told
        ]
        named = LogEntry(at_us=at_us, run_id=facts.run_id, policies=in_scope.digest, call=PoliciesRecorded(policies=in_scope.policies))
        with self._lock:
            self._log.append(entries if in_scope.digest in self._known else [named, *entries])
            self._known.add(in_scope.digest)
        return expand(unsealed(entry) for entry in (named, *entries))
