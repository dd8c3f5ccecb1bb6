"""`evidentia tokens`: who may ask the control plane of a base, and as what."""

from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from evidentia.contracts.control import TokenInfo

group = typer.Typer(rich_markup_mode=None, help="Create, list and revoke API tokens.", no_args_is_help=False)

NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the holder, as the audit log shows it.")]
RoleOption = Annotated[
    list[str], typer.Option("--role", metavar="ROLE", help="reader, agent, auditor or admin; may be given several times.")
]
TenantOption = Annotated[str | None, typer.Option("--tenant", metavar="TENANT", help="The tenant; default: default.", show_default=False)]
ExpiresOption = Annotated[
    str | None, typer.Option("--expires", metavar="SPAN", help="Lifetime: 12h, 30d; default: no expiry.", show_default=False)
]
ClearanceOption = Annotated[
    str | None,
    typer.Option("--clearance", metavar="LEVEL", help="Clearance of the holder; default: internal.", show_default=False),
]
GroupOption = Annotated[list[str] | None, typer.Option("--group", metavar="GROUP", help="Group of the holder; may be given several times.")]
AttributeOption = Annotated[
    list[str] | None,
    typer.Option("--attribute", metavar="NAME=VALUE", help="Attribute of the holder for ABAC rules; may be given several times."),
]
DelegateOption = Annotated[
    bool, typer.Option("--delegate", help="Allow delegation: requests on behalf of others in the tenant, up to its own clearance.")
]
RateOption = Annotated[
    int | None,
    typer.Option("--rate", metavar="N", help="Rate limit, requests per minute; default: server.requests_per_minute.", show_default=False),
]
QuotaOption = Annotated[
    int | None,
    typer.Option("--quota", metavar="N", help="Quota, requests per day (UTC); default: server.requests_per_day.", show_default=False),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The token's id; `tokens list` prints the ids.")]

BY = "evidentia tokens"


@group.command("add")
def add(
    context: typer.Context,
    *,
    name: NameOption,
    role: RoleOption,
    tenant: TenantOption = None,
    expires: ExpiresOption = None,
    clearance: ClearanceOption = None,
    group: GroupOption = None,
    attribute: AttributeOption = None,
    delegate: DelegateOption = False,
    rate: RateOption = None,
    quota: QuotaOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Create a token and print it once; it cannot be read again."""
    from datetime import timedelta

    from evidentia.contracts.policies import DEFAULT_TENANT
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.durations import seconds_of
    from evidentia.serving.cli.output import note, put, put_json
    from evidentia.serving.cli.tokens_facts import checked_name, checked_tenant, facts_from, roles_from
    from evidentia.wiring.governance_runtime import open_tokens

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(name=name, tenant=tenant, group=group, attribute=attribute)
    checked = checked_tenant(tenant or DEFAULT_TENANT)
    roles = roles_from(role)
    facts = facts_from(clearance=clearance, groups=group or (), attributes=attribute or (), is_delegate=delegate, rate=rate, quota=quota)
    span = None if expires is None else timedelta(seconds=seconds_of(expires, field="expires"))
    with open_tokens(call.base) as (tokens, clock):
        expires_at = None if span is None else clock.now() + span
        issued = tokens.issue(name=checked_name(name), roles=roles, tenant=checked, by=BY, expires_at=expires_at, facts=facts)
    if call.is_json:
        put_json(issued)
        return
    put(issued.token)
    note(call, f"the id of this token is {issued.info.token_id}; it is not shown again")


@group.command("list")
def list_tokens(
    context: typer.Context, *, tenant: TenantOption = None, base: BaseOption = None, quiet: QuietOption = False, json: JsonOption = False
) -> None:
    """List the tokens of one tenant or of all, without their secrets."""
    from evidentia.serving.cli.output import note, put_json
    from evidentia.wiring.governance_runtime import open_tokens

    call = invocation(context, base=base, quiet=quiet, json=json)
    with open_tokens(call.base) as (tokens, clock):
        found, now = tokens.tokens(tenant=tenant), clock.now()
    if call.is_json:
        put_json(found)
        return
    from evidentia.serving.cli.tokens_report import put_tokens

    put_tokens(found, now=now)
    if not found:
        note(call, "there is no token yet; `evidentia tokens add` makes one")


@group.command("revoke")
def revoke(
    context: typer.Context, *, token: IdArgument, base: BaseOption = None, quiet: QuietOption = False, json: JsonOption = False
) -> None:
    """Revoke a token; running servers notice within seconds."""
    from evidentia.contracts.control import TokenId
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put, put_json
    from evidentia.wiring.governance_runtime import open_tokens

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(token=token)
    with open_tokens(call.base) as (tokens, _):
        revoked: TokenInfo = tokens.revoke(TokenId(token), tenant=None, by=BY)
    if call.is_json:
        put_json(revoked)
    else:
        put(f"revoked {revoked.token_id}")
