"""The commands of `evidentia policy` that change nothing unless asked: test, replay, shadow, calibrate, analyze."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.contracts.policies import Policy, StoredPolicy
    from evidentia.contracts.ports import PolicyStore

SuitesArgument = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Cases in YAML, JSON or TOML, or directories of such files.")]
CandidatesArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE", help="Candidate policies; default: report on the policies in shadow mode, from the log.", show_default=False
    ),
]
PoliciesArgument = Annotated[
    list[Path] | None, typer.Argument(metavar="FILE...", help="Policy files; default: the policies of the base.", show_default=False)
]
RunOption = Annotated[str | None, typer.Option("--run", metavar="ID", help="Only this run.", show_default=False)]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="WHEN", help="Only runs begun since: a date, a time, or a span such as 7d.", show_default=False),
]
AgentOption = Annotated[
    str | None, typer.Option("--agent", metavar="AGENT", help="Only runs of this agent; may be a glob.", show_default=False)
]
RuleOption = Annotated[str, typer.Option("--rule", metavar="RULE", help="Rule to calibrate, such as min_relevance_score.")]
PolicyOption = Annotated[
    str | None,
    typer.Option("--policy", metavar="NAME", help="Policy with the rule; default: the only one of its category.", show_default=False),
]
ApplyOption = Annotated[bool, typer.Option("--apply", help="Apply the threshold as a new version of the policy.")]
WholeOption = Annotated[
    bool, typer.Option("--whole", help="Evaluate the candidates alone; otherwise the other recorded policies stay in force.")
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option("--without", metavar="NAME", help="Exclude this recorded policy; may be given several times.", show_default=False),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too.")]
BesideOption = Annotated[
    bool, typer.Option("--beside-base", help="Include the policies of the base; a file overrides the policy of the same name.")
]
TenantOption = Annotated[str, typer.Option("--tenant", metavar="TENANT", help="Tenant of the policies and runs.")]

CHECK_FAILED = 1
TENANT = "default"
BY = "owner"


def run_cases(
    context: typer.Context, *, files: SuitesArgument, base: BaseOption = None, quiet: QuietOption = False, json: JsonOption = False
) -> None:
    """Run policy test cases; the exit code is 1 when one fails.

    A case names policies, calls and the expected decision of each call. No base is needed.
    """
    from evidentia.serving.cli.output import put_json
    from evidentia.serving.cli.policy_suites import run_files

    call = invocation(context, base=base, quiet=quiet, json=json)
    results = run_files(files)
    if call.is_json:
        put_json([{"file": str(path), "name": each.name, "ok": each.passed, "mismatches": each.mismatches} for path, each in results])
    else:
        from evidentia.serving.cli.policy_report import put_cases

        put_cases(results)
    if not all(each.passed for _, each in results):
        raise typer.Exit(CHECK_FAILED)


def replay(
    context: typer.Context, *, run: RunOption = None, base: BaseOption = None, quiet: QuietOption = False, json: JsonOption = False
) -> None:
    """Replay every decision in the log; the exit code is 1 when one differs."""
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json
    from evidentia.serving.cli.policy_suites import replayed
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(run=run)
    with open_control(call.base) as control:
        report = replayed(call, control.log, run=run)
    if call.is_json:
        put_json(report)
    else:
        from evidentia.serving.cli.policy_report import put_replay

        put_replay(report)
    if not report.ok:
        raise typer.Exit(CHECK_FAILED)


def shadow(
    context: typer.Context,
    *,
    file: CandidatesArgument = None,
    since: SinceOption = None,
    whole: WholeOption = False,
    without: WithoutOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Evaluate candidate policies against recorded runs (shadow mode).

    A candidate replaces the policy of the same name. Nothing is enforced or written.
    """
    from evidentia.governance.shadow_tally import live_shadow
    from evidentia.serving.cli.output import put_json
    from evidentia.serving.cli.policy_moments import since_us
    from evidentia.serving.cli.policy_shadow_report import put_live, put_shadow
    from evidentia.serving.cli.policy_suites import read_policies, recorded, tried
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    candidates = [] if file is None else read_policies(file)
    with open_control(call.base) as control:
        begin = since_us(since, control.clock)
        if file is None and not without:
            live = live_shadow(recorded(call, control.log), since_us=begin)
            put_json(live) if call.is_json else put_live(call, live)
            return
        report = tried(call, control.log, candidates, is_whole=whole, without=without or (), since_us=begin)
    if call.is_json:
        put_json(report)
    else:
        put_shadow(report)


def calibrate(
    context: typer.Context,
    *,
    rule: RuleOption,
    policy: PolicyOption = None,
    agent: AgentOption = None,
    since: SinceOption = None,
    apply: ApplyOption = False,
    tenant: TenantOption = TENANT,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Propose a threshold from recorded runs: the 5th percentile of good ones (the 95th for ages).

    Good runs ended with success and nothing in them was blocked; at least 100 are needed.
    """
    from evidentia.governance.calibration import calibrate as propose
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import note, put_json
    from evidentia.serving.cli.policy_moments import since_us
    from evidentia.serving.cli.policy_suites import recorded
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(rule=rule, policy=policy, agent=agent)
    with open_control(call.base) as control:
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
    if call.is_json:
        put_json({"calibration": found, "applied": applied})
    else:
        from evidentia.serving.cli.policy_calibrate_report import put_calibration

        put_calibration(found, is_applied=applied is not None)
    if applied is not None:
        note(call, f"'{applied.policy.body.name}' is now at version {applied.policy.version}")


def analyze(
    context: typer.Context,
    *,
    files: PoliciesArgument = None,
    beside_base: BesideOption = False,
    strict: StrictOption = False,
    tenant: TenantOption = TENANT,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Analyze policies for contradictions, unreachable rules and redundancy.

    Every finding comes with a trace that the evaluator has executed. The exit code is 1 when one is an error.
    """
    from evidentia.policy.analysis import Severity
    from evidentia.policy.analysis import analyze as look
    from evidentia.serving.cli.output import put_json
    from evidentia.serving.cli.policy_suites import read_policies
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    policies = [policy for file in files or () for policy in read_policies(file)]
    if not files or beside_base:
        with open_control(call.base) as control:
            named = {policy.body.name for policy in policies}
            policies += [each.policy for each in control.policies.live(tenant=tenant) if each.policy.body.name not in named]
    analysis = look(policies)
    if call.is_json:
        put_json(analysis)
    else:
        from evidentia.serving.cli.policy_analysis_report import put_analysis

        put_analysis(analysis)
    least = Severity.WARNING if strict else Severity.ERROR
    if analysis.worst is not None and analysis.worst.rank >= least.rank:
        raise typer.Exit(CHECK_FAILED)


def _policy_with(rule: str, name: str | None, store: "PolicyStore", *, tenant: str, is_needed: bool) -> "StoredPolicy | None":
    """Return the policy that a rule stands in: the one that is named, or the only one of its category."""
    from evidentia.governance.calibration import measure_of
    from evidentia.serving.cli.cli_errors import UsageError

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
    from evidentia.serving.cli.policy_patch import with_patch

    policy: Policy = stored.policy
    fields = with_patch(policy.body, patch)  # type: ignore[arg-type]  # a patch is an object
    body = check_policy(fields, tenant=tenant).body
    return store.put(body, tenant=tenant, by=BY, policy_id=policy.policy_id, expected=policy.version)
