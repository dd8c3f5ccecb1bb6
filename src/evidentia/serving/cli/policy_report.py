"""Policies, cases, replays and the state of the log as text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.policies import Enforcement, PolicyBody, StoredPolicy
from evidentia.policy.analysis import FindingKind, PolicyAnalysis, PolicyFinding, Severity, Witness
from evidentia.policy.categories import category
from evidentia.serving.cli.output import Figure, counted, facts_of, note, put, put_facts, put_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evidentia.contracts.decisions import LogReport
    from evidentia.contracts.policy_trials import Calibration, HistogramBar, ShadowChanges, ShadowGroup, ShadowReport, TriggerRate
    from evidentia.contracts.runs import AnyCall
    from evidentia.governance.decision_replay import DecisionReplayReport
    from evidentia.governance.policy_tests import CaseResult
    from evidentia.governance.shadow_tally import LiveShadow
    from evidentia.serving.cli.invocation import Invocation


EVERYONE = "all runs"
MAX_SHOWN = 20
"""Mismatches that are printed; `--json` has more."""


def put_policies(stored: Sequence[StoredPolicy]) -> None:
    """Print a table of policies; whom they are for stands last, since it is longest."""
    rows = [
        (
            each.policy.body.priority,
            each.policy.body.name,
            each.policy.body.category,
            _state(each.policy.body),
            each.policy.version,
            f"{each.updated_at:%Y-%m-%d %H:%M:%S}",
            _scope(each.policy.body),
        )
        for each in stored
    ]
    put_table(("priority", "name", "category", "state", "version", "changed", "scope"), rows)


def put_policy(stored: StoredPolicy) -> None:
    """Print a policy: who changed it last, whom it is for, and its rules beside their defaults."""
    policy = stored.policy
    body = policy.body
    postures = ", ".join(f"{rule} {posture.value}" for rule, posture in sorted(body.posture.items()))
    facts = [
        ("name", body.name),
        ("id", policy.policy_id),
        ("category", body.category),
        ("description", body.description),
        ("state", "removed" if stored.is_removed else _state(body)),
        ("scope", _scope(body)),
        ("priority", body.priority),
        ("compat", body.compat.value),
        ("posture", postures),
        ("version", policy.version),
        ("digest", policy.digest),
        ("changed", f"{stored.updated_at:%Y-%m-%d %H:%M:%S} by {stored.updated_by or 'nobody named'}"),
    ]
    put_facts([(name, value) for name, value in facts if value != ""])
    put()
    defaults: Mapping[str, object] = msgspec.json.decode(msgspec.json.encode(category(body.category).rules()))
    rows = [(name, _value(value), "" if value == defaults.get(name) else _value(defaults.get(name))) for name, value in body.rules.items()]
    put_table(("rule", "value", "default"), rows)


def put_cases(results: Sequence[tuple[Path, CaseResult]]) -> None:
    """Print a line for every case, and below one that failed what was expected and what came."""
    shown: Path | None = None
    for path, result in results:
        if path != shown:
            put(str(path))
            shown = path
        put(f"  {'ok  ' if result.passed else 'FAIL'}  {result.name}")
        for each in result.mismatches:
            put(
                f"        {each.where}: {each.field}",
                f"        - expected  {_value(each.expected)}",
                f"        + actual    {_value(each.actual)}",
            )
    failed = sum(not result.passed for _, result in results)
    put("", f"{len(results) - failed} passed, {failed} failed")


def put_replay(report: DecisionReplayReport) -> None:
    """Print how much was decided again, and what came out differently."""
    for each in report.mismatches[:MAX_SHOWN]:
        put(f"{each.log}:{each.seq}  {each.run_id}  {each.what}", f"  - recorded  {each.recorded}", f"  + derived   {each.derived}")
    put_facts(
        [
            ("verdict", "the same" if report.ok else "different"),
            ("records", report.records),
            ("decided again", report.decisions),
            *facts_of(report, "runs", "redacted", "not replayable"),
            ("different", report.mismatch_count),
        ]
    )


def put_log_report(report: LogReport) -> None:
    """Print what verification found, and where every log stands."""
    for fault in report.faults:
        put(f"{fault.log}, line {fault.line}: {fault.problem}")
    verdict = "whole" if report.ok else "not what it was"
    put_facts([("verdict", verdict), *facts_of(report, "logs", "records", "redacted", "retired")])
    if report.heads:
        put()
        put_table(("log", "size", "root"), [(head.log, head.size, head.root) for head in report.heads])


def _state(body: PolicyBody) -> str:
    if not body.enabled:
        return "disabled"
    return "shadow" if body.enforcement is Enforcement.SHADOW else "enforced"


def _scope(body: PolicyBody) -> str:
    facets = msgspec.to_builtins(body.scope)
    return "; ".join(f"{facet.replace('_', ' ')} {', '.join(names)}" for facet, names in facets.items()) or EVERYONE


def _value(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) and value else msgspec.json.encode(value).decode()


# Findings about policies as text, each with the shortest of its traces.

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
    told = ", ".join(counted(count, severity.value) for severity, count in counts.items())
    put(f"{counted(analysis.policies, 'policy', 'policies')}: {told}")


def _put_finding(finding: PolicyFinding) -> None:
    put(f"{finding.severity.value}: {finding.kind.value.replace('_', ' ')}", f"  {finding.message}")
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


# A proposed threshold as text: where it lies among the recorded values, how sure it is, and what it would trigger.

WIDTH = 50
"""Characters of the longest bar."""
_BLOCKS = ("█", "░", "─")
_PLAIN = ("#", ".", "-")


def put_calibration(found: Calibration, *, is_applied: bool) -> None:
    """Print the histogram with the threshold across it, then the figures, then how to apply it."""
    good, other, line = _BLOCKS if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8" else _PLAIN
    for row in histogram(found, good=good, other=other, line=line):
        put(row)
    put(f"{good} good runs  {other} other runs", "")
    facts = [
        ("rule", found.rule),
        ("threshold", _number(found.threshold)),
        ("percentile", f"{found.percentile}th of {found.good_values} values in {found.good_runs} good runs"),
        ("interval", _interval(found)),
        ("would trigger", _rate(found.predicted, found.unit)),
    ]
    if found.current is not None:
        facts.append(("triggers now", f"{_rate(found.current, found.unit)}, at {_number(found.current.threshold)}"))
    put_facts([*facts, *(("note", each) for each in found.notes)])
    if not is_applied:
        put("", f"apply it: {found.command}")


def histogram(found: Calibration, *, good: str, other: str, line: str) -> list[str]:
    """Return the bars, lowest values first, with a line where the threshold lies."""
    bars = _without_empty_ends(found.histogram)
    label = max(len(_number(round(bar.low, 4))) for bar in bars)
    longest = max(1, *(bar.good + bar.other for bar in bars))
    rows: list[str] = []
    place = _threshold_place(bars, found.threshold)
    for number, bar in enumerate(bars):
        if number == place:
            rows.append(f"{line * label} {line * (WIDTH // 2)} {_number(found.threshold)}")
        count = bar.good + bar.other
        drawn = -(-count * WIDTH // longest)
        filled = drawn if not bar.other else bar.good * drawn // count
        rows.append(f"{_number(round(bar.low, 4)):>{label}} {good * filled}{other * (drawn - filled)} {count or ''}".rstrip())
    if place == len(bars):
        rows.append(f"{line * label} {line * (WIDTH // 2)} {_number(found.threshold)}")
    return rows


def _without_empty_ends(bars: Sequence[HistogramBar]) -> Sequence[HistogramBar]:
    """Return the bars from the first that holds something to the last, and one more on either side."""
    held = [number for number, bar in enumerate(bars) if bar.good + bar.other]
    return bars[max(0, held[0] - 1) : held[-1] + 2]


def _threshold_place(bars: Sequence[HistogramBar], threshold: float) -> int:
    """Return before which bar the line stands: the first that begins at the threshold or above it."""
    return next((number for number, bar in enumerate(bars) if bar.low >= threshold), len(bars))


def _interval(found: Calibration) -> str:
    low = "below anything seen" if found.low is None else _number(found.low)
    high = "above anything seen" if found.high is None else _number(found.high)
    alike = (
        ""
        if found.effective_values >= found.good_values
        else f"; values of a run resemble each other and count as {found.effective_values}"
    )
    return f"{low} to {high} ({found.confidence_percent}% sure{alike})"


def _rate(rate: TriggerRate, unit: str) -> str:
    values, runs = max(1, rate.values), max(1, rate.runs)
    return (
        f"{rate.value_triggers} of {rate.values} {unit}s ({100 * rate.value_triggers / values:.1f}%), "
        f"{rate.run_triggers} of {rate.runs} runs ({100 * rate.run_triggers / runs:.1f}%)"
    )


def _number(value: float) -> str:
    return f"{value:g}"


# What candidates, and policies in shadow, would have changed, as text.

MAX_GROUPS = 10
"""Groups that are printed; `--json` has all."""
MAX_EXAMPLES = 3


def put_shadow(report: ShadowReport) -> None:
    """Print how many calls and runs would be decided otherwise, and which."""
    put_changes(report.changes)
    put()
    counts = (
        ("runs", report.runs),
        ("newly blocked runs", report.runs_newly_blocked),
        ("newly allowed runs", report.runs_newly_allowed),
        ("calls after a stop", report.after_stop),
        ("runs cut short then", report.truncated_runs),
        ("unfinished runs", report.unfinished_runs),
        ("runs given up", report.given_up_runs),
        ("runs under unknown policies", report.unknown_runs),
        ("redacted", report.redacted),
        ("not judged", report.unjudged),
    )
    put_facts([(name, count) for name, count in counts if count or name == "runs"])


def put_live(call: Invocation, reports: Sequence[LiveShadow]) -> None:
    """Print every policy in shadow with what it would have changed."""
    for place, each in enumerate(reports):
        if place:
            put()
        put(f"{each.name}, version {each.version}, in {counted(each.runs, 'run')}")
        put_changes(each.changes)
    if not reports:
        note(call, 'no recorded run had a policy in shadow; give a policy "enforcement": "shadow" to try it on live runs')


def put_changes(changes: ShadowChanges) -> None:
    """Print what would change, in all and by rule, agent and source."""
    whole = max(1, changes.calls)
    kinds = (
        ("newly blocked", changes.newly_blocked),
        ("newly allowed", changes.newly_allowed),
        ("newly warned", changes.newly_warned),
        ("no longer warned", changes.no_longer_warned),
        ("unchanged", changes.unchanged),
    )
    put_table(("change", "calls", "share"), [(name, count, Figure(f"{100 * count / whole:.1f}%")) for name, count in kinds])
    logs = sorted({example.log for group in changes.rules for example in group.examples})
    for name, groups in (("rule", changes.rules), ("agent", changes.agents), ("source", changes.sources)):
        if groups:
            put()
            _put_groups(name, groups, has_one_log=len(logs) == 1)
    if len(logs) == 1:
        put("", f"records of {logs[0]}")


def _put_groups(name: str, groups: Sequence[ShadowGroup], *, has_one_log: bool) -> None:
    rows = [
        (
            each.name or "''",
            each.newly_blocked,
            each.newly_allowed,
            each.newly_warned,
            each.no_longer_warned,
            _examples(each, has_one_log=has_one_log),
        )
        for each in groups[:MAX_GROUPS]
    ]
    put_table((name, "blocked", "allowed", "warned", "quiet", "such as"), rows)
    if len(groups) > MAX_GROUPS:
        put(f"and {len(groups) - MAX_GROUPS} more; --json has all")


def _examples(group: ShadowGroup, *, has_one_log: bool) -> str:
    return ", ".join(str(each.seq) if has_one_log else f"{each.log}:{each.seq}" for each in group.examples[:MAX_EXAMPLES])
