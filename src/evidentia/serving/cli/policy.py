"""`evidentia policy`: put policies in force, look at them, and try them out before they stop anybody."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli import policy_lint, policy_log, policy_prompt, policy_trials
from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.contracts.policies import PolicyBody

group = typer.Typer(rich_markup_mode=None, help="Test, deploy and analyze policies.", no_args_is_help=False)

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="JSON, YAML or TOML with one policy or several; - reads stdin.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The policy's name or id; `policy list` prints the names.")]
PatchArgument = Annotated[
    str, typer.Argument(metavar="PATCH", help='A JSON merge patch such as {"rules": {"min_chunks": 2}}; - reads stdin.')
]
VersionOption = Annotated[
    int | None, typer.Option("--version", metavar="N", min=1, help="An earlier version; default: the newest.", show_default=False)
]
TenantOption = Annotated[str, typer.Option("--tenant", metavar="TENANT", help="Tenant of the policies.")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Print the changes without applying them.")]
TENANT = "default"
BY = "owner"


@group.command("add")
def add(
    context: typer.Context,
    *,
    file: FileArgument,
    dry_run: DryOption = False,
    tenant: TenantOption = TENANT,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Deploy the policies of a file, all or none.

    An existing name gets a new version; an unchanged policy keeps its version.
    """
    from evidentia.governance.policy_tests import policies_in
    from evidentia.serving.cli.output import put_json, put_table
    from evidentia.serving.cli.policy_files import read_document
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    bodies = [_fields(each) for each in policies_in(read_document(file))]
    with open_control(call.base) as control:
        results = control.policies.push(bodies, tenant=tenant, by=BY, is_dry=dry_run)
    if call.is_json:
        put_json(results)
    else:
        put_table(("name", "change", "version"), [(each.name, each.action.value, each.version) for each in results])


@group.command("list")
def list_policies(
    context: typer.Context,
    *,
    tenant: TenantOption = TENANT,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """List the policies in order of evaluation."""
    from evidentia.serving.cli.output import note, put_json
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    with open_control(call.base) as control:
        stored = control.policies.live(tenant=tenant)
    if call.is_json:
        put_json(stored)
        return
    from evidentia.serving.cli.policy_report import put_policies

    put_policies(stored)
    if not stored:
        note(call, "there is no policy yet; `evidentia policy add FILE` puts one in force")


@group.command("show")
def show(
    context: typer.Context,
    *,
    name: NameArgument,
    version: VersionOption = None,
    tenant: TenantOption = TENANT,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Show a policy with all its rules, defaults included."""
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(name=name)
    with open_control(call.base) as control:
        stored = control.policies.find(name, tenant=tenant, version=version)
    if call.is_json:
        put_json(stored)
        return
    from evidentia.serving.cli.policy_report import put_policy

    put_policy(stored)


@group.command("remove")
def remove(
    context: typer.Context,
    *,
    name: NameArgument,
    tenant: TenantOption = TENANT,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Remove a policy; its versions stay readable."""
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put, put_json
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(name=name)
    with open_control(call.base) as control:
        found = control.policies.find(name, tenant=tenant)
        removed = control.policies.remove(found.policy.policy_id, tenant=tenant, by=BY, expected=found.policy.version)
    if call.is_json:
        put_json(removed)
    else:
        put(f"removed {removed.policy.body.name}, version {removed.policy.version}")


@group.command("patch")
def patch(
    context: typer.Context,
    *,
    name: NameArgument,
    patch: PatchArgument,
    tenant: TenantOption = TENANT,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Patch fields of a policy as a new version; null restores the default of a field."""
    from evidentia.contracts.errors import InvalidFieldError
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put, put_json
    from evidentia.serving.cli.policy_patch import parse_patch
    from evidentia.wiring.governance_runtime import open_control

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(name=name, patch=patch)
    changes = parse_patch(patch)
    with open_control(call.base) as control:
        found = control.policies.find(name, tenant=tenant)
        body = _patched(found.policy.body, changes, tenant=tenant)
        if body.name != found.policy.body.name:
            raise InvalidFieldError("name", "a policy keeps its name; add a new policy and remove this one")
        stored = control.policies.put(body, tenant=tenant, by=BY, policy_id=found.policy.policy_id, expected=found.policy.version)
    if call.is_json:
        put_json(stored)
    else:
        put(f"{stored.policy.body.name}: version {stored.policy.version}")


@group.command("validate")
def validate(
    context: typer.Context,
    *,
    file: FileArgument,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Validate the policies of a file without a base; prints every problem, and the exit code is then 2."""
    from evidentia.governance.policy_tests import policies_in
    from evidentia.serving.cli.cli_errors import WRONG_USAGE
    from evidentia.serving.cli.output import put, put_json
    from evidentia.serving.cli.policy_files import read_document
    from evidentia.serving.cli.policy_patch import problems_of

    call = invocation(context, base=base, quiet=quiet, json=json)
    bodies = policies_in(read_document(file))
    problems = [(place, problem) for place, body in enumerate(bodies) for problem in problems_of(body)]
    if call.is_json:
        put_json(
            {
                "ok": not problems,
                "policies": len(bodies),
                "problems": [{"policy": place, **problem._asdict()} for place, problem in problems],
            }
        )
    elif problems:
        for place, problem in problems:
            put(f"{f'policy {place + 1}, ' if len(bodies) > 1 else ''}{problem}")
    else:
        put(f"{len(bodies)} {'policy is' if len(bodies) == 1 else 'policies are'} valid")
    if problems:
        raise typer.Exit(WRONG_USAGE)


group.command("test")(policy_trials.run_cases)
group.command("replay")(policy_trials.replay)
group.command("shadow")(policy_trials.shadow)
group.command("calibrate")(policy_trials.calibrate)
group.command("analyze")(policy_trials.analyze)
group.command("lint-trace")(policy_lint.lint_trace)
group.command("prompt")(policy_prompt.prompt)
group.add_typer(policy_log.group, name="log")


def _fields(body: object) -> dict[str, object]:
    from collections.abc import Mapping

    from evidentia.contracts.errors import InvalidFieldError

    if not isinstance(body, Mapping):
        raise InvalidFieldError("policies", "expected a policy with name, category and rules")
    return dict(body)


def _patched(body: "PolicyBody", changes: dict[str, object], *, tenant: str) -> "PolicyBody":
    from evidentia.policy.rules import check_policy
    from evidentia.serving.cli.policy_patch import with_patch

    return check_policy(with_patch(body, changes), tenant=tenant).body
