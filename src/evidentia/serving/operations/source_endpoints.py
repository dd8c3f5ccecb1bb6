"""Sources outside and inside the base: which there are, how they are, and, for the operator's admins, which there shall be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.control import AuditKind
from evidentia.contracts.doors import Count, Done, FreshnessList, SourceList
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.operations import AUDITORS
from evidentia.contracts.sources import OUTBOUND, PUBLIC, REACH, SourceConnection, SourceDescriptor, SourceHealth, SourceStatus
from evidentia.contracts.vocabulary import ConnectionKind
from evidentia.foundation.ssrf_guard import PrivateAddressError, public_addresses
from evidentia.serving.operations.api_errors import bad_field
from evidentia.serving.operations.endpoint import OperationRequest, Reply, endpoint
from evidentia.serving.operations.ownership import Viewer
from evidentia.serving.operations.server_context import ServerContext, write_audit

if TYPE_CHECKING:
    from evidentia.contracts.settings import Settings


@endpoint("list_sources")
async def _list_sources(context: ServerContext, operation: OperationRequest) -> Reply:
    found = await context.served_base.base_for(operation.principal, operation.token).sources()
    is_operator = operation.tenant == DEFAULT_TENANT and bool(set(AUDITORS) & set(operation.token.roles))
    return Reply(SourceList(sources=tuple(found if is_operator else (_as_told(each, tenant=operation.tenant) for each in found))))


@endpoint("list_freshness")
async def _list_freshness(context: ServerContext, operation: OperationRequest) -> Reply:
    return Reply(FreshnessList(sources=tuple(await Viewer(context, operation).base.source_freshness())))


@endpoint("add_source")
async def _add_source(context: ServerContext, operation: OperationRequest) -> Reply:
    descriptor: SourceDescriptor = operation.body
    checked = await reachable(context.served_base.settings, descriptor)
    added = await context.served_base.base_of(operation.tenant).add_source(checked)
    await write_audit(context, operation, AuditKind.SOURCE, "added", subject=added.source_id)
    return Reply(added)


@endpoint("remove_source")
async def _remove_source(context: ServerContext, operation: OperationRequest) -> Reply:
    await context.served_base.base_of(operation.tenant).remove_source(operation.path["id"])
    await write_audit(context, operation, AuditKind.SOURCE, "removed", subject=operation.path["id"])
    return Reply(Done(subject=operation.path["id"]))


@endpoint("source_changed")
async def _source_changed(context: ServerContext, operation: OperationRequest) -> Reply:
    base = context.served_base.base_of(operation.tenant)
    if operation.path["id"] not in {each.descriptor.source_id for each in await base.sources()}:
        raise NotFoundError("source", operation.path["id"])
    count = await base.source_changed(operation.path["id"])
    await write_audit(context, operation, AuditKind.SOURCE, "said to have changed", subject=operation.path["id"])
    return Reply(Count(count=count))


def _as_told(status: SourceStatus, *, tenant: str) -> SourceStatus:
    """Return a source without where it is, which other tenants may ask it, and how often they did."""
    replace, told = msgspec.structs.replace, status.descriptor
    access = replace(told.access_policy, tenants=tuple(each for each in told.access_policy.tenants if each == tenant))
    descriptor = replace(told, connection=SourceConnection(kind=told.connection.kind), access_policy=access)
    return replace(status, descriptor=descriptor, health=SourceHealth(breaker=status.health.breaker))


# --- source addresses ---
# Which addresses a source may have that was registered over the network: none that only this machine or its network can reach.
#
# Whoever registers a source makes the server speak to it, and a server stands where its callers do not. What runs a command or reads a
# directory is for whoever sits at the machine.

OVER_THE_NETWORK: Final = (ConnectionKind.REMOTE, ConnectionKind.MEMORY)
KEY_PREFIX: Final = "EVIDENTIA_SOURCE_"
"""How variables begin that hold keys which may be sent to a source that was registered over the network."""
_FIELD: Final = "connection.address"


async def reachable(settings: Settings, descriptor: SourceDescriptor) -> SourceDescriptor:
    """Return a source as it may be registered over the network, or refuse it.

    One at a public address is bound to such addresses, wherever its name leads later; hosts in `server.source_hosts` are
    allowed as they are.
    """
    connection = descriptor.connection
    if connection.kind not in OVER_THE_NETWORK:
        words = " or ".join(kind.value for kind in OVER_THE_NETWORK)
        raise bad_field("connection.kind", f"a source of kind '{connection.kind.value}' is added at the machine; here write {words}")
    if connection.kind is ConnectionKind.MEMORY:
        return descriptor
    if connection.key_variable and not connection.key_variable.startswith(KEY_PREFIX):
        raise bad_field("connection.key_variable", f"over the network, keys are in variables that begin with {KEY_PREFIX}")
    if any(name.startswith(OUTBOUND) for name in connection.options):
        raise bad_field("connection.options", f"options that begin with '{OUTBOUND}' are given at the machine; leave them out")
    host = _host(connection.address)
    options = {name: value for name, value in connection.options.items() if name != REACH}
    if host not in {each.lower() for each in settings.server.source_hosts}:
        await _require_public(host)
        options[REACH] = PUBLIC
    return msgspec.structs.replace(descriptor, connection=msgspec.structs.replace(connection, options=options))


def _host(address: str) -> str:
    """Return the host of an address that has nothing beside scheme, host, port and path."""
    try:
        parts = urlsplit(address)
        is_plain = parts.scheme in {"http", "https"} and parts.port != 0 and not parts.query and not parts.fragment
    except ValueError:
        is_plain = False
    if not is_plain or not parts.hostname or "@" in parts.netloc or not address.isascii() or not address.isprintable() or " " in address:
        raise bad_field(_FIELD, "it is no plain address; write something like 'https://host:8080/path'")
    return parts.hostname


async def _require_public(host: str) -> None:
    try:
        await public_addresses(host)
    except (OSError, UnicodeError) as error:
        raise bad_field(_FIELD, "the host has no address") from error
    except PrivateAddressError as error:
        problem = "it leads into the server's own network; whoever runs the server can allow the host in 'server.source_hosts'"
        raise bad_field(_FIELD, problem) from error
