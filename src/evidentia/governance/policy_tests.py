"""Tests of policies: cases in a file, run by the evaluator that decides live runs, with what differs from what was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.decisions import DecisionStatus
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import RunStatus
from evidentia.governance.policy_tests_shape import Expectation, PolicyCase, parse_suite, policies_in
from evidentia.policy.evaluator import PolicySet, RunEvaluator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evidentia.contracts.decisions import Verdict

__all__ = ["CaseResult", "Mismatch", "PolicyCase", "parse_suite", "policies_in", "run_case", "run_suite"]


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """Where a case came to something else: the call, the field, and both values."""

    where: str
    field: str
    expected: object
    actual: object


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one case; it passed when nothing differs."""

    name: str
    mismatches: tuple[Mismatch, ...] = ()

    @property
    def passed(self) -> bool:
        """Tell whether everything was as expected."""
        return not self.mismatches


def run_suite(cases: Iterable[PolicyCase]) -> tuple[CaseResult, ...]:
    """Return what became of every case, in order."""
    return tuple(run_case(case) for case in cases)


def run_case(case: PolicyCase) -> CaseResult:
    """Record the calls of a case one by one and compare.

    A call that is stopped does not end the case: later calls are decided as they are in an agent that catches the error.
    """
    policies = PolicySet.of(case.policies).for_run(case.facts)
    evaluator = RunEvaluator(policies, is_enforced=case.is_enforced)
    found = list(_differences("before the run", case.begin_expected, evaluator.begin()))
    is_stopped = False
    for number, given in enumerate(case.calls):
        verdicts: Sequence[Verdict] = ()
        for _ in range(given.times):
            verdicts = evaluator.record(given.call) or evaluator.passed(given.call, count=evaluator.count)
            is_stopped = is_stopped or (not given.call.is_ahead and any(verdict.stops for verdict in verdicts))
        expected = case.calls_expected[number] if number < len(case.calls_expected) else None
        found.extend(_differences(f"call {number + 1}, {given.kind}", expected, verdicts))
    verdicts = evaluator.finish(case.end)
    is_stopped = is_stopped or any(verdict.stops for verdict in verdicts)
    found.extend(_differences("at the end", case.end_expected, verdicts))
    status = RunStatus.BLOCKED if is_stopped else case.end.status
    if case.run_expected not in {None, status}:
        found.append(Mismatch(where="the run", field="status", expected=case.run_expected, actual=status))
    return CaseResult(name=case.name, mismatches=tuple(found))


def _differences(where: str, expected: Expectation | None, verdicts: Sequence[Verdict]) -> Iterator[Mismatch]:
    if expected is None:
        return
    actual = _facts(_chosen(expected, verdicts))
    for name, wanted in _wanted(expected).items():
        if name == "reason_contains":
            if str(wanted) not in str(actual["reason"]):
                yield Mismatch(where=where, field="reason", expected=f"… {wanted} …", actual=actual["reason"])
        elif name == "metadata":
            yield from _metadata_differences(where, expected.metadata, actual["metadata"])
        elif wanted != actual[name]:
            yield Mismatch(where=where, field=name, expected=wanted, actual=actual[name])


def _metadata_differences(where: str, expected: Mapping[str, object], actual: object) -> Iterator[Mismatch]:
    held = actual if isinstance(actual, dict) else {}
    for key, wanted in sorted(expected.items()):
        if key not in held or _plain(held[key]) != _plain(wanted):
            yield Mismatch(where=where, field=f"metadata.{key}", expected=wanted, actual=held.get(key))


def _chosen(expected: Expectation, verdicts: Sequence[Verdict]) -> Verdict | None:
    """Return the verdict that is meant: of the category that is named, else the strongest, the first of equals."""
    meant = [verdict for verdict in verdicts if expected.category in {None, verdict.decisive.category}]
    return max(meant, key=lambda verdict: verdict.decisive.action.rank, default=None)


def _wanted(expected: Expectation) -> dict[str, object]:
    named = {name: getattr(expected, name) for name in Expectation.__struct_fields__}
    return {name: value for name, value in named.items() if value is not None and value != {}}


def _facts(verdict: Verdict | None) -> dict[str, object]:
    """Return what a call came to; one that no policy looks at is allowed, and says nothing else."""
    if verdict is None:
        return {
            "action": PolicyAction.ALLOW,
            "reason": "",
            "rule": "",
            "status": DecisionStatus.EVALUATED,
            "policy": "",
            "category": "",
            "stops": False,
            "metadata": {},
            "abstention_response": None,
        }
    decisive = verdict.decisive
    return {
        "action": decisive.action,
        "reason": decisive.reason,
        "rule": decisive.rule,
        "status": decisive.status,
        "policy": decisive.policy_name,
        "category": decisive.category,
        "stops": verdict.stops,
        "metadata": dict(decisive.metadata),
        "abstention_response": verdict.abstention_response,
    }


def _plain(value: object) -> object:
    """Return a value as JSON has it, so that a tuple and a list of the same are equal."""
    return msgspec.to_builtins(value)
