"""`evidentia policy` and `policy log`: put policies in force, look at them, and look after the log of what they decided."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evidentia.contracts.errors import FieldProblem, InvalidFieldError
from evidentia.serving.cli import policy_trials
from evidentia.serving.cli.cli_errors import WRONG_USAGE, UsageError
from evidentia.serving.cli.invocation import CommandResult, Invocation, arg, command, command_group, flag, opt
from evidentia.serving.cli.output import counted, put, put_json, put_table

if TYPE_CHECKING:
    from evidentia.contracts.decisions import LogHead, LogReport
    from evidentia.contracts.policies import StoredPolicy
    from evidentia.wiring.governance_runtime import GovernanceRuntime

group = command_group("Test, deploy and analyze policies.")
log_group = command_group("Verify, redact, prune and export the decision log.")

FileArgument = Annotated[Path, arg("FILE", "JSON, YAML or TOML with one policy or several; - reads stdin.")]
NameArgument = Annotated[str, arg("NAME", "The policy's name or id; `policy list` prints the names.")]
TenantOption = Annotated[str, opt("--tenant", "TENANT", "Tenant of the policies.")]
RunOption = Annotated[str | None, opt("--run", "ID", "Only this run.")]
WhyOption = Annotated[str, opt("--why", "TEXT", "The reason; recorded in the log.")]
ByOption = Annotated[str, opt("--by", "NAME", "The operator's name; recorded in the log.")]
TENANT = "default"
BY = "owner"
NO_POLICY = "there is no policy yet; `evidentia policy add FILE` puts one in force"


@command(group, "add")
def add(
    call: Invocation,
    *,
    file: FileArgument,
    dry_run: Annotated[bool, flag("--dry-run", "Print the changes without applying them.")] = False,
    tenant: TenantOption = TENANT,
) -> CommandResult[object]:
    """Deploy the policies of a file, all or none.

    An existing name gets a new version; an unchanged policy keeps its version.
    """
    from evidentia.governance.policy_tests import policies_in
    from evidentia.serving.cli.input_files import read_document

    bodies = [_fields(each) for each in policies_in(read_document(file))]
    with call.open_control() as control:
        results = control.policies.push(bodies, tenant=tenant, by=BY, is_dry=dry_run)
    rows = [(each.name, each.action.value, each.version) for each in results]
    return CommandResult(results, lambda _: put_table(("name", "change", "version"), rows))


@command(group, "list")
def list_policies(control: "GovernanceRuntime", *, tenant: TenantOption = TENANT) -> "CommandResult[Sequence[StoredPolicy]]":
    """List the policies in order of evaluation."""
    from evidentia.serving.cli.policy_report import put_policies

    stored = control.policies.live(tenant=tenant)
    return CommandResult(stored, put_policies, notes=() if stored else [NO_POLICY])


@command(group, "show")
def show(
    control: "GovernanceRuntime",
    *,
    name: NameArgument,
    version: Annotated[int | None, opt("--version", "N", "An earlier version; default: the newest.", low=1)] = None,
    tenant: TenantOption = TENANT,
) -> "CommandResult[StoredPolicy]":
    """Show a policy with all its rules, defaults included."""
    from evidentia.serving.cli.policy_report import put_policy

    return CommandResult(control.policies.find(name, tenant=tenant, version=version), put_policy)


@command(group, "remove")
def remove(control: "GovernanceRuntime", *, name: NameArgument, tenant: TenantOption = TENANT) -> CommandResult[object]:
    """Remove a policy; its versions stay readable."""
    found = control.policies.find(name, tenant=tenant)
    removed = control.policies.remove(found.policy.policy_id, tenant=tenant, by=BY, expected=found.policy.version)
    return CommandResult(removed, f"removed {removed.policy.body.name}, version {removed.policy.version}")


@command(group, "patch")
def patch(
    call: Invocation,
    *,
    name: NameArgument,
    patch: Annotated[str, arg("PATCH", 'A JSON merge patch such as {"rules": {"min_chunks": 2}}; - reads stdin.')],
    tenant: TenantOption = TENANT,
) -> CommandResult[object]:
    """Patch fields of a policy as a new version; null restores the default of a field."""
    from evidentia.policy.rules import check_policy
    from evidentia.serving.cli.policy_suites import parse_patch, with_patch

    changes = parse_patch(patch)
    with call.open_control() as control:
        policy = control.policies.find(name, tenant=tenant).policy
        body = check_policy(with_patch(policy.body, changes), tenant=tenant).body
        if body.name != policy.body.name:
            raise InvalidFieldError("name", "a policy keeps its name; add a new policy and remove this one")
        stored = control.policies.put(body, tenant=tenant, by=BY, policy_id=policy.policy_id, expected=policy.version)
    return CommandResult(stored, f"{stored.policy.body.name}: version {stored.policy.version}")


@command(group, "validate")
def validate(*, file: FileArgument) -> CommandResult[object]:
    """Validate the policies of a file without a base; prints every problem, and the exit code is then 2."""
    from evidentia.governance.policy_tests import policies_in
    from evidentia.serving.cli.input_files import read_document
    from evidentia.serving.cli.policy_suites import problems_of

    bodies = policies_in(read_document(file))
    problems = [(place, problem) for place, body in enumerate(bodies) for problem in problems_of(body)]
    message = {
        "ok": not problems,
        "policies": len(bodies),
        "problems": [{"policy": place, **problem._asdict()} for place, problem in problems],
    }
    return CommandResult(message, lambda _: _put_problems(problems, count=len(bodies)), is_failed=bool(problems), exit_code=WRONG_USAGE)


group.registered_commands += policy_trials.commands.registered_commands
group.add_typer(log_group, name="log")


@command(log_group, "verify")
def verify(
    call: Invocation,
    *,
    heads: Annotated[Path | None, opt("--heads", "FILE", "Saved heads, as `log verify --json` prints them; detects truncation.")] = None,
) -> "CommandResult[LogReport]":
    """Verify the hash chain of the decision log; the exit code is 1 when a record does not match."""
    from evidentia.governance.log_maintenance import verify as check
    from evidentia.serving.cli.policy_report import put_log_report

    saved = _heads(heads)
    with call.open_control() as control:
        report = check(control.log, heads=saved)
    return CommandResult(report, put_log_report, is_failed=not report.ok)


@command(log_group, "redact")
def redact(
    call: Invocation,
    *,
    why: WhyOption,
    record: Annotated[str | None, opt("--record", "LOG:SEQ", "This record.")] = None,
    run: RunOption = None,
    before: Annotated[str | None, opt("--before", "WHEN", "Records older than this: a date, a time, or a span such as 90d.")] = None,
    by: ByOption = BY,
) -> CommandResult[object]:
    """Redact calls, reasons and metadata of records for good; the hash chain still verifies.

    A record must match all of --record, --run and --before that are given. The log records who redacted it and why.
    """
    from evidentia.contracts.runs import RunId
    from evidentia.governance.log_maintenance import redact as take_out
    from evidentia.serving.cli.durations import moment_of

    place = None if record is None else _place(record)
    with call.open_control() as control:
        limit = None if before is None else moment_of(before, control.clock, field="before")
        report = take_out(
            control.log, by=by, why=why, clock=control.clock, record=place, run_id=None if run is None else RunId(run), before=limit
        )
    return CommandResult(report, f"redacted {counted(report.records, 'record')}")


@command(log_group, "retire")
def retire(
    control: "GovernanceRuntime",
    *,
    before: Annotated[str, opt("--before", "WHEN", "Records older than this: a date, a time, or a span such as 365d.")],
    why: WhyOption,
    by: ByOption = BY,
) -> CommandResult[object]:
    """Remove old records for good behind a checkpoint, so that the rest still verifies (retention)."""
    from evidentia.governance.log_maintenance import retire as take_away
    from evidentia.serving.cli.durations import moment_of

    report = take_away(control.log, before=moment_of(before, control.clock, field="before"), by=by, why=why, clock=control.clock)
    return CommandResult(report, f"retired {counted(report.records, 'record')}")


@command(log_group, "proof")
def proof(
    call: Invocation, *, record: Annotated[str, arg("LOG:SEQ", "Log and sequence number of the record, as decisions show them.")]
) -> CommandResult[object]:
    """Print the inclusion proof of a record as JSON.

    Anyone who has the root of the log can verify it without the log.
    """
    from evidentia.governance.log_maintenance import prove

    log, seq = _place(record)
    with call.open_control() as control:
        return CommandResult(prove(control.log, log, seq), put_json)


@command(log_group, "export")
def export(
    call: Invocation,
    control: "GovernanceRuntime",
    *,
    run: RunOption = None,
    since: Annotated[str | None, opt("--since", "WHEN", "Only records since then.")] = None,
) -> None:
    """Export decisions as JSON lines, oldest first in each log."""
    from evidentia.governance.decision_expansion import expand
    from evidentia.serving.cli.durations import moment_of
    from evidentia.serving.cli.policy_suites import recorded

    begin = None if since is None else moment_of(since, control.clock, field="since")
    for decision in expand(recorded(call._replace(is_quiet=True), control.log)):
        if run in {None, decision.run_id} and (begin is None or decision.at >= begin):
            put_json(decision, is_compact=True)


def _put_problems(problems: "Sequence[tuple[int, FieldProblem]]", *, count: int) -> None:
    if not problems:
        put(f"{counted(count, 'policy is', 'policies are')} valid")
    for place, problem in problems:
        put(f"{f'policy {place + 1}, ' if count > 1 else ''}{problem}")


def _fields(body: object) -> dict[str, object]:
    if not isinstance(body, Mapping):
        raise InvalidFieldError("policies", "expected a policy with name, category and rules")
    return dict(body)


def _place(typed: str) -> tuple[str, int]:
    log, colon, seq = typed.rpartition(":")
    if not colon or not log or not seq.isascii() or not seq.isdigit():
        raise InvalidFieldError("record", f"'{typed[:80]}' is not LOG:SEQ, such as 20260301-4f2a:17")
    return log, int(seq)


def _heads(path: Path | None) -> "tuple[LogHead, ...]":
    if path is None:
        return ()
    import msgspec

    from evidentia.contracts.decisions import LogHead
    from evidentia.contracts.decoding import convert
    from evidentia.serving.cli.input_files import read_document

    document = read_document(path)
    heads = document.get("heads", document) if isinstance(document, dict) else document
    try:
        return convert(heads, tuple[LogHead, ...])
    except msgspec.ValidationError as error:
        raise UsageError(f"'{path}' holds no heads: {error}", hint="keep what `evidentia policy log verify --json` prints") from error
