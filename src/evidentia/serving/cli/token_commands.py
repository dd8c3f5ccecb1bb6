"""`evidentia tokens`: who may ask the control plane of a base, and as what."""

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated

from evidentia.serving.cli.invocation import CommandResult, Invocation, arg, command, command_group, flag, opt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.control import TokenInfo

group = command_group("Create, list and revoke API tokens.")

TenantOption = Annotated[str | None, opt("--tenant", "TENANT", "The tenant; default: default.")]
BY = "evidentia tokens"
NO_TOKEN = "there is no token yet; `evidentia tokens add` makes one"  # noqa: S105 - a sentence


@command(group, "add")
def add(
    call: Invocation,
    *,
    name: Annotated[str, opt("--name", "NAME", "Name of the holder, as the audit log shows it.")],
    role: Annotated[list[str], opt("--role", "ROLE", "reader, agent, auditor or admin; may be given several times.")],
    tenant: TenantOption = None,
    expires: Annotated[str | None, opt("--expires", "SPAN", "Lifetime: 12h, 30d; default: no expiry.")] = None,
    clearance: Annotated[str | None, opt("--clearance", "LEVEL", "Clearance of the holder; default: internal.")] = None,
    group: Annotated[list[str] | None, opt("--group", "GROUP", "Group of the holder; may be given several times.")] = None,
    attribute: Annotated[
        list[str] | None, opt("--attribute", "NAME=VALUE", "Attribute of the holder for ABAC rules; may be given several times.")
    ] = None,
    delegate: Annotated[
        bool, flag("--delegate", "Allow delegation: requests on behalf of others in the tenant, up to its own clearance.")
    ] = False,
    rate: Annotated[int | None, opt("--rate", "N", "Rate limit, requests per minute; default: server.requests_per_minute.")] = None,
    quota: Annotated[int | None, opt("--quota", "N", "Quota, requests per day (UTC); default: server.requests_per_day.")] = None,
    floor: Annotated[
        str | None, opt("--floor", "MODE", "Governance floor: off, annotate, filter or enforce; default: those of [governance].")
    ] = None,
    agent: Annotated[
        list[str] | None, opt("--agent", "NAME", "Agent that the holder may ask and run as; may be given several times.")
    ] = None,
) -> CommandResult[object]:
    """Create a token and print it once; it cannot be read again."""
    from evidentia.contracts.policies import DEFAULT_TENANT
    from evidentia.serving.cli.durations import seconds_of
    from evidentia.serving.cli.token_facts import checked_name, checked_tenant, facts_from, roles_from
    from evidentia.wiring.governance_runtime import open_tokens

    checked = checked_tenant(tenant or DEFAULT_TENANT)
    roles = roles_from(role)
    facts = facts_from(
        clearance=clearance,
        groups=group or (),
        attributes=attribute or (),
        is_delegate=delegate,
        rate=rate,
        quota=quota,
        floor=floor,
        agents=agent or (),
    )
    span = None if expires is None else timedelta(seconds=seconds_of(expires, field="expires"))
    with open_tokens(call.base) as (tokens, clock):
        expires_at = None if span is None else clock.now() + span
        issued = tokens.issue(name=checked_name(name), roles=roles, tenant=checked, by=BY, expires_at=expires_at, facts=facts)
    return CommandResult(issued, issued.token, notes=[f"the id of this token is {issued.info.token_id}; it is not shown again"])


@command(group, "list")
def list_tokens(call: Invocation, *, tenant: TenantOption = None) -> "CommandResult[Sequence[TokenInfo]]":
    """List the tokens of one tenant or of all, without their secrets."""
    from evidentia.serving.cli.token_facts import put_tokens
    from evidentia.wiring.governance_runtime import open_tokens

    with open_tokens(call.base) as (tokens, clock):
        found, now = tokens.tokens(tenant=tenant), clock.now()
    return CommandResult(found, partial(put_tokens, now=now), notes=() if found else [NO_TOKEN])


@command(group, "revoke")
def revoke(call: Invocation, *, token: Annotated[str, arg("ID", "The token's id; `tokens list` prints the ids.")]) -> CommandResult[object]:
    """Revoke a token; running servers notice within seconds."""
    from evidentia.contracts.control import TokenId
    from evidentia.wiring.governance_runtime import open_tokens

    with open_tokens(call.base) as (tokens, _):
        revoked = tokens.revoke(TokenId(token), tenant=None, by=BY)
    return CommandResult(revoked, f"revoked {revoked.token_id}")
