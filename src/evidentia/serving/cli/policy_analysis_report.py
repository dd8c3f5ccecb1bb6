"""Findings about policies as text, each with the shortest of its traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.policy.analysis import FindingKind, Severity
from evidentia.serving.cli.output import put

if TYPE_CHECKING:
    from evidentia.contracts.runs import AnyCall
    from evidentia.policy.analysis import PolicyAnalysis, PolicyFinding, Witness

MAX_CALLS = 4
"""Calls of a trace that are printed; `--json` has all."""
MAX_TRACES = {FindingKind.CONTRADICTION: 2}
"""Traces that are printed of a finding; others are proved by one."""
_HIDDEN = ("kind", "judgements", "span")


def put_analysis(analysis: PolicyAnalysis) -> None:
    """Print the findings, the gravest first, and how many there are."""
    for finding in analysis.findings:
        _put_finding(finding)
        put()
    for question in analysis.undecided:
        put(f"undecided: {question}")
    counts = {severity: sum(finding.severity is severity for finding in analysis.findings) for severity in reversed(Severity)}
    told = ", ".join(f"{count} {severity.value}{'' if count == 1 else 's'}" for severity, count in counts.items())
    put(f"{analysis.policies} {'policy' if analysis.policies == 1 else 'policies'}: {told}")


def _put_finding(finding: PolicyFinding) -> None:
    put(f"{finding.severity.value}: {finding.kind.value.replace('_', ' ')}")
    put(f"  {finding.message}")
    if finding.assumes:
        put(f"  if {finding.assumes}")
    put(f"  proof: {finding.proof}")
    for witness in sorted(finding.witnesses, key=lambda each: (not each.calls, len(each.calls)))[: MAX_TRACES.get(finding.kind, 1)]:
        _put_witness(witness)


def _put_witness(witness: Witness) -> None:
    put(f"  trace: agent '{witness.facts.agent_name}'{_other_facts(witness)}{f' ({witness.note})' if witness.note else ''}")
    for number, call in enumerate(witness.calls[:MAX_CALLS], start=1):
        put(f"    {number}. {_call(call)}")
        _put_said(witness, number)
    if len(witness.calls) > MAX_CALLS:
        put(f"    … {len(witness.calls)} calls in all")
        for number in range(MAX_CALLS + 1, len(witness.calls) + 1):
            _put_said(witness, number)
    put("    end")
    _put_said(witness, len(witness.calls) + 1)


def _put_said(witness: Witness, call: int) -> None:
    for each in witness.violations:
        if each.call == call:
            put(f"       {each.action.value} by '{each.policy}', {each.rule}: {each.reason}")


def _call(call: AnyCall) -> str:
    fields: dict[str, object] = {name: value for name, value in msgspec.to_builtins(call).items() if name not in _HIDDEN}
    kind = msgspec.to_builtins(call)["kind"]
    return f"{kind} {', '.join(f'{name} {msgspec.json.encode(value).decode()}' for name, value in fields.items())}".rstrip()


def _other_facts(witness: Witness) -> str:
    facts: dict[str, object] = msgspec.to_builtins(witness.facts)
    return "".join(f", {name} '{value}'" for name, value in facts.items() if name not in {"run_id", "agent_name"})
