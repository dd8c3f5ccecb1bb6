"""What candidates, and policies in shadow, would have changed, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.serving.cli.output import Figure, note, put, put_facts, put_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.policy_trials import ShadowChanges, ShadowGroup, ShadowReport
    from evidentia.governance.shadow_tally import LiveShadow
    from evidentia.serving.cli.invocation import Invocation

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
        put(f"{each.name}, version {each.version}, in {each.runs} {'run' if each.runs == 1 else 'runs'}")
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
        put()
        put(f"records of {logs[0]}")


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
