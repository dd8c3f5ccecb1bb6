"""What admins and auditors ask: who changed what, which secrets are kept, who holds a token, and the upkeep of the base."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from evidentia.contracts.control import (
    NAME_PATTERN,
    SIGNED_PREFIX,
    AuditKind,
    AuditPage,
    SecretNames,
    SecretValue,
    TokenFacts,
    TokenId,
    TokenLimits,
    TokenList,
    TokenRequest,
)
from evidentia.contracts.doors import Count, FlushRequest, GcRequest, TraceList, encode_cursor
from evidentia.contracts.errors import BelowFloorError, InvalidFieldError, MissingExtraError, NotFoundError
from evidentia.serving.operations.api_errors import CONFLICT, FORBIDDEN, ApiError, bad_field
from evidentia.serving.operations.endpoint import OperationRequest, Reply, decode_cursor, endpoint
from evidentia.serving.operations.ownership import Viewer
from evidentia.serving.operations.server_context import ServerContext, write_audit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from evidentia.contracts.settings import ServerSettings


@endpoint("list_changes")
def _list_changes(context: ServerContext, operation: OperationRequest) -> Reply:
    place = decode_cursor(operation.query["cursor"], (int,))
    limit = operation.query["limit"]
    found = context.parts.policies.audit(tenant=operation.tenant, after=0 if place is None else place[0], limit=limit + 1)
    page = Viewer(context, operation).changes(found[:limit])
    return Reply(AuditPage(changes=tuple(page), next_cursor=encode_cursor((page[-1].seq,)) if len(found) > limit else None))


@endpoint("list_secrets")
def _list_secrets(context: ServerContext, operation: OperationRequest) -> Reply:
    return Reply(SecretNames(names=tuple(context.parts.secrets.names(tenant=operation.tenant))))


@endpoint("show_secret")
def _show_secret(context: ServerContext, operation: OperationRequest) -> Reply:
    return Reply(context.parts.secrets.kept(operation.path["name"], tenant=operation.tenant))


@endpoint("put_secret")
def _put_secret(context: ServerContext, operation: OperationRequest) -> Reply:
    name = operation.path["name"]
    if not re.fullmatch(NAME_PATTERN, name):
        raise bad_field("name", "use at most 128 letters, digits and . _ : -, beginning with a letter or digit")
    value: SecretValue = operation.body
    try:
        return Reply(context.parts.secrets.put(name, value.value, tenant=operation.tenant, by=operation.by))
    except (InvalidFieldError, MissingExtraError) as error:
        hint = "whoever runs the plane sets EVIDENTIA_SECRET_KEY to a long random text and starts it again"
        raise ApiError(CONFLICT, "secrets_unavailable", str(error), hint=hint) from error


@endpoint("remove_secret")
def _remove_secret(context: ServerContext, operation: OperationRequest) -> Reply:
    kept = context.parts.secrets.kept(operation.path["name"], tenant=operation.tenant)
    context.parts.secrets.remove(kept.name, tenant=operation.tenant, by=operation.by)
    return Reply(kept)


@endpoint("list_tokens")
def _list_tokens(context: ServerContext, operation: OperationRequest) -> Reply:
    return Reply(TokenList(tokens=tuple(context.parts.tokens.tokens(tenant=operation.tenant))))


@endpoint("issue_token")
def _issue_token(context: ServerContext, operation: OperationRequest) -> Reply:
    request: TokenRequest = operation.body
    if request.facts.floor.rank < operation.token.facts.floor.rank:
        raise BelowFloorError("facts.floor", f"a token with the floor '{operation.token.facts.floor}' makes none with a lower one")
    issued = context.parts.tokens.issue(
        name=request.name,
        roles=request.roles,
        tenant=operation.tenant,
        by=operation.by,
        expires_at=_granted_until(operation, request.expires_at),
        facts=_granted(operation, request.facts, context.served_base.settings.server),
    )
    return Reply(issued)


@endpoint("revoke_token")
def _revoke_token(context: ServerContext, operation: OperationRequest) -> Reply:
    return Reply(context.parts.tokens.revoke(TokenId(operation.path["id"]), tenant=operation.tenant, by=operation.by))


# --- what an admin may give ---
# No more than the admin has: whoever could give more could give it to themselves.

_WITHIN: Final[Mapping[str, Callable[[Any, Any], bool]]] = {  # Any: the values of one field, the new one and the admin's own
    "clearance": lambda new, own: new.rank <= own.rank,
    "groups": lambda new, own: set(new) <= set(own),
    "attributes": lambda new, own: new.items() <= own.items(),
    "is_delegate": lambda new, own: own or not new,
    "floor": lambda new, own: new.rank >= own.rank,
    "agents": lambda new, own: not own or (bool(new) and set(new) <= set(own)),
    "limits": lambda _, __: True,
}
"""What is within the admin's own; limits are counted below, and of any other fact only the very same is."""


def _granted(operation: OperationRequest, facts: TokenFacts, server: ServerSettings) -> TokenFacts:
    """Return the facts of a new token, or refuse what the admin does not have; limits that are left out are the admin's own."""
    own, principal = operation.token.facts, operation.principal
    had = {**structs.asdict(own), "clearance": principal.clearance, "groups": principal.groups, "attributes": principal.attributes}
    for name, value in had.items():
        if not _WITHIN.get(name, _is_same)(getattr(facts, name), value):
            raise _not_granted(f"facts.{name}")
    limits = structs.asdict(facts.limits)
    for name, wanted in limits.items():
        most = getattr(own.limits, name) or getattr(server, name, None)
        if wanted is not None and most and wanted > most:
            raise _not_granted(f"facts.limits.{name}")
    inherited = {name: wanted if wanted is not None else getattr(own.limits, name) for name, wanted in limits.items()}
    return structs.replace(facts, limits=TokenLimits(**inherited))


def _is_same(new: object, own: object) -> bool:
    return new == own


def _granted_until(operation: OperationRequest, expires_at: datetime | None) -> datetime | None:
    """Return when a new token expires: not after the admin's own, unless an identity provider says anew who is one."""
    own = None if operation.token.token_id.startswith(SIGNED_PREFIX) else operation.token.expires_at
    if own is not None and expires_at is not None and expires_at > own:
        raise _not_granted("expires_at")
    return expires_at or own


def _not_granted(field: str) -> ApiError:
    message = f"field '{field}': it is more than your own token has, so it is not yours to give"
    return ApiError(
        FORBIDDEN, "not_yours_to_give", message, hint="ask for less, or make the token at the machine with `evidentia tokens add`"
    )


@endpoint("flush_cache")
async def _flush_cache(context: ServerContext, operation: OperationRequest) -> Reply:
    request: FlushRequest = operation.body
    count = await context.served_base.base_of(operation.tenant).flush_cache(request.source_id)
    await write_audit(context, operation, AuditKind.BASE, "flushed", subject=request.source_id or "cache")
    return Reply(Count(count=count))


@endpoint("list_traces")
async def _list_traces(context: ServerContext, operation: OperationRequest) -> Reply:
    found = await context.served_base.base_of(operation.tenant).traces(limit=operation.query["limit"])
    viewer = Viewer(context, operation)
    shown = [each for each in found if viewer.sees_whole_base or each.tenant == operation.tenant]
    return Reply(TraceList(traces=tuple(map(viewer.request, shown))))


@endpoint("show_request")
async def _show_request(context: ServerContext, operation: OperationRequest) -> Reply:
    trace = await context.served_base.base_of(operation.tenant).trace(operation.path["id"])
    viewer = Viewer(context, operation)
    if not viewer.sees_whole_base and trace.tenant != operation.tenant:
        raise NotFoundError("request", operation.path["id"])
    return Reply(viewer.request(trace))


@endpoint("show_head")
async def _show_head(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the newest version; whoever sees to the whole base sees its hashes as the owner does."""
    return Reply(await Viewer(context, operation).base.head())


@endpoint("embed")
async def _embed(context: ServerContext, operation: OperationRequest) -> Reply:
    report = await context.served_base.base_of(operation.tenant).embed()
    await write_audit(context, operation, AuditKind.BASE, "embedded", subject="vectors")
    return Reply(Viewer(context, operation).version(report))


@endpoint("collect")
async def _collect(context: ServerContext, operation: OperationRequest) -> Reply:
    request: GcRequest = operation.body
    report = await context.served_base.base_of(operation.tenant).gc(keep_versions=request.keep_versions)
    await write_audit(context, operation, AuditKind.BASE, "collected", subject="versions")
    return Reply(report)
