"""The commands of `evidentia policy` that change nothing unless asked: test, replay, shadow, calibrate, analyze, lint-trace, prompt."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.invocation import CommandResult, Invocation, arg, command, flag, opt
from evidentia.serving.cli.output import note, put

if TYPE_CHECKING:
    from evidentia.contracts.policies import Policy, StoredPolicy
    from evidentia.contracts.policy_trials import ShadowReport
    from evidentia.contracts.ports import PolicyStore
    from evidentia.governance.decision_replay import DecisionReplayReport
    from evidentia.governance.shadow_tally import LiveShadow
    from evidentia.policy.analysis import PolicyAnalysis
    from evidentia.wiring.governance_runtime import GovernanceRuntime

commands = typer.Typer()

SinceOption = Annotated[str | None, opt("--since", "WHEN", "Only runs begun since: a date, a time, or a span such as 7d.")]
TenantOption = Annotated[str, opt("--tenant", "TENANT", "Tenant of the policies and runs.")]
TENANT = "default"
BY = "owner"


@command(commands, "test")
def run_cases(
    *, files: Annotated[list[Path], arg("FILE...", "Cases in YAML, JSON or TOML, or directories of such files.")]
) -> CommandResult[object]:
    """Run policy test cases; the exit code is 1 when one fails.

    A case names policies, calls and the expected decision of each call. No base is needed.
    """
    from evidentia.serving.cli.policy_report import put_cases
    from evidentia.serving.cli.policy_suites import run_files

    results = run_files(files)
    message = [{"file": str(path), "name": each.name, "ok": each.passed, "mismatches": each.mismatches} for path, each in results]
    return CommandResult(message, lambda _: put_cases(results), is_failed=not all(each.passed for _, each in results))


@command(commands, "replay")
def replay(
    call: Invocation, control: "GovernanceRuntime", *, run: Annotated[str | None, opt("--run", "ID", "Only this run.")] = None
) -> "CommandResult[DecisionReplayReport]":
    """Replay every decision in the log; the exit code is 1 when one differs."""
    from evidentia.serving.cli.policy_report import put_replay
    from evidentia.serving.cli.policy_suites import replayed

    report = replayed(call, control.log, run=run)
    return CommandResult(report, put_replay, is_failed=not report.ok)


@command(commands, "shadow")
def shadow(
    call: Invocation,
    *,
    file: Annotated[Path | None, arg("FILE", "Candidate policies; default: report on the policies in shadow mode, from the log.")] = None,
    since: SinceOption = None,
    whole: Annotated[bool, flag("--whole", "Evaluate the candidates alone; otherwise the other recorded policies stay in force.")] = False,
    without: Annotated[list[str] | None, opt("--without", "NAME", "Exclude this recorded policy; may be given several times.")] = None,
) -> "CommandResult[tuple[LiveShadow, ...]] | CommandResult[ShadowReport]":
    """Evaluate candidate policies against recorded runs (shadow mode).

    A candidate replaces the policy of the same name. Nothing is enforced or written.
    """
    from evidentia.governance.shadow_tally import live_shadow
    from evidentia.serving.cli.durations import since_us
    from evidentia.serving.cli.policy_report import put_live, put_shadow
    from evidentia.serving.cli.policy_suites import read_policies, recorded, tried

    candidates = [] if file is None else read_policies(file)
    with call.open_control() as control:
        begin = since_us(since, control.clock)
        if file is None and not without:
            return CommandResult(live_shadow(recorded(call, control.log), since_us=begin), partial(put_live, call))
        report = tried(call, control.log, candidates, is_whole=whole, without=without or (), since_us=begin)
    return CommandResult(report, put_shadow)


@command(commands, "calibrate")
def calibrate(
    call: Invocation,
    control: "GovernanceRuntime",
    *,
    rule: Annotated[str, opt("--rule", "RULE", "Rule to calibrate, such as min_relevance_score.")],
    policy: Annotated[str | None, opt("--policy", "NAME", "Policy with the rule; default: the only one of its category.")] = None,
    agent: Annotated[str | None, opt("--agent", "AGENT", "Only runs of this agent; may be a glob.")] = None,
    since: SinceOption = None,
    apply: Annotated[bool, flag("--apply", "Apply the threshold as a new version of the policy.")] = False,
    tenant: TenantOption = TENANT,
) -> CommandResult[object]:
    """Propose a threshold from recorded runs: the 5th percentile of good ones (the 95th for ages).

    Good runs ended with success and nothing in them was blocked; at least 100 are needed.
    """
    from evidentia.governance.calibration import calibrate as propose
    from evidentia.serving.cli.durations import since_us
    from evidentia.serving.cli.policy_report import put_calibration
    from evidentia.serving.cli.policy_suites import recorded

    stored = _policy_with(rule, policy, control.policies, tenant=tenant, is_needed=apply)
    found = propose(
        recorded(call, control.log),
        rule,
        policy=stored.policy if stored else None,
        tenant=tenant,
        agent=agent,
        since_us=since_us(since, control.clock),
    )
    applied = _apply(found.patch, stored, control.policies, tenant=tenant) if apply and stored else None
    if applied is not None:
        note(call, f"'{applied.policy.body.name}' is now at version {applied.policy.version}")
    return CommandResult({"calibration": found, "applied": applied}, lambda _: put_calibration(found, is_applied=applied is not None))


@command(commands, "analyze")
def analyze(
    call: Invocation,
    *,
    files: Annotated[list[Path] | None, arg("FILE...", "Policy files; default: the policies of the base.")] = None,
    beside_base: Annotated[
        bool, flag("--beside-base", "Include the policies of the base; a file overrides the policy of the same name.")
    ] = False,
    strict: Annotated[bool, flag("--strict", "Exit with 1 for warnings too.")] = False,
    tenant: TenantOption = TENANT,
) -> "CommandResult[PolicyAnalysis]":
    """Analyze policies for contradictions, unreachable rules and redundancy.

    Every finding comes with a trace that the evaluator has executed. The exit code is 1 when one is an error.
    """
    from evidentia.policy.analysis import Severity
    from evidentia.policy.analysis import analyze as look
    from evidentia.serving.cli.policy_report import put_analysis
    from evidentia.serving.cli.policy_suites import read_policies

    policies = [policy for file in files or () for policy in read_policies(file)]
    if not files or beside_base:
        with call.open_control() as control:
            named = {policy.body.name for policy in policies}
            policies += [each.policy for each in control.policies.live(tenant=tenant) if each.policy.body.name not in named]
    analysis = look(policies)
    least = Severity.WARNING if strict else Severity.ERROR
    return CommandResult(analysis, put_analysis, is_failed=analysis.worst is not None and analysis.worst.rank >= least.rank)


@command(commands, "lint-trace")
def lint_trace(
    call: Invocation,
    *,
    files: Annotated[list[Path], arg("FILE...", "Traces in JSON, JSONL or YAML: one, a list, or one a line; - reads stdin.")],
    profile: Annotated[
        str | None, opt("--profile", "PROFILE", "first_call, thorough, or a file with one of your own; default: what each trace names.")
    ] = None,
) -> CommandResult[object]:
    """Lint agent traces against the agent protocol; the exit code is 1 when one breaks a rule.

    Each finding names the rule, the section it is written in, the call or the paragraph, and the reason. No base is needed.
    """
    from evidentia.serving.cli.trace_lint import lint_files, put_findings, read_profile

    linted = lint_files(call, files, profile=None if profile is None else read_profile(profile))
    return CommandResult(
        [each.as_json() for each in linted], lambda _: put_findings(linted), is_failed=any(each.findings for each in linted)
    )


@command(commands, "prompt")
def prompt(
    *,
    profile: Annotated[str, opt("--profile", "PROFILE", "first_call, thorough, or a file with one of your own.")] = "first_call",
    skill: Annotated[list[str] | None, opt("--skill", "NAME", "A retrieval tool of a skill; may be given several times.")] = None,
) -> CommandResult[object]:
    """Render a protocol profile as a system prompt; sessions enforce the same data. No base is needed."""
    from evidentia.policy.protocol_prompt import render
    from evidentia.serving.cli.trace_lint import read_profile

    chosen = read_profile(profile)
    text = render(chosen, skills=skill or ())
    return CommandResult({"profile": chosen.name, "text": text}, lambda _: put(*text.splitlines()))


def _policy_with(rule: str, name: str | None, store: "PolicyStore", *, tenant: str, is_needed: bool) -> "StoredPolicy | None":
    """Return the policy that a rule stands in: the one that is named, or the only one of its category."""
    from evidentia.governance.calibration import measure_of

    category = measure_of(rule).category
    if name is not None:
        return store.find(name, tenant=tenant)
    found = [each for each in store.live(tenant=tenant) if each.policy.body.category == category]
    if len(found) == 1:
        return found[0]
    if is_needed:
        names = ", ".join(f"'{each.policy.body.name}'" for each in found) or "none"
        raise UsageError(f"which policy is to be changed? of category '{category}' there are: {names}", hint="name one with --policy")
    return None


def _apply(patch: object, stored: "StoredPolicy", store: "PolicyStore", *, tenant: str) -> "StoredPolicy":
    from evidentia.policy.rules import check_policy
    from evidentia.serving.cli.policy_suites import with_patch

    policy: Policy = stored.policy
    fields = with_patch(policy.body, patch)  # type: ignore[arg-type]  # a patch is an object
    body = check_policy(fields, tenant=tenant).body
    return store.put(body, tenant=tenant, by=BY, policy_id=policy.policy_id, expected=policy.version)
