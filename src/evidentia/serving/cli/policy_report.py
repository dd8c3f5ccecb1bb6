"""Policies, cases, replays and the state of the log as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.policies import Enforcement
from evidentia.policy.categories import category
from evidentia.serving.cli.output import put, put_facts, put_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evidentia.contracts.decisions import LogReport
    from evidentia.contracts.policies import PolicyBody, StoredPolicy
    from evidentia.governance.decision_replay import DecisionReplayReport
    from evidentia.governance.policy_tests import CaseResult

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
            put(f"        {each.where}: {each.field}")
            put(f"        - expected  {_value(each.expected)}")
            put(f"        + actual    {_value(each.actual)}")
    failed = sum(not result.passed for _, result in results)
    put()
    put(f"{len(results) - failed} passed, {failed} failed")


def put_replay(report: DecisionReplayReport) -> None:
    """Print how much was decided again, and what came out differently."""
    for each in report.mismatches[:MAX_SHOWN]:
        put(f"{each.log}:{each.seq}  {each.run_id}  {each.what}")
        put(f"  - recorded  {each.recorded}")
        put(f"  + derived   {each.derived}")
    put_facts(
        [
            ("verdict", "the same" if report.ok else "different"),
            ("records", report.records),
            ("decided again", report.decisions),
            ("runs", report.runs),
            ("redacted", report.redacted),
            ("not replayable", report.not_replayable),
            ("different", report.mismatch_count),
        ]
    )


def put_log_report(report: LogReport) -> None:
    """Print what verification found, and where every log stands."""
    for fault in report.faults:
        put(f"{fault.log}, line {fault.line}: {fault.problem}")
    put_facts(
        [
            ("verdict", "whole" if report.ok else "not what it was"),
            ("logs", report.logs),
            ("records", report.records),
            ("redacted", report.redacted),
            ("retired", report.retired),
        ]
    )
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
