"""What admins and auditors ask: who changed what, which secrets are kept, who holds a token, and the upkeep of the base."""

from __future__ import annotations

import re

from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.control import (
    NAME_PATTERN,
    AuditKind,
    AuditPage,
    SecretNames,
    SecretValue,
    TokenId,
    TokenList,
    TokenRequest,
)
from evidentia.contracts.doors import Count, FlushRequest, GcRequest, encode_cursor
from evidentia.contracts.errors import BelowFloorError, InvalidFieldError, MissingExtraError
from evidentia.contracts.operations import AUDITORS
from evidentia.serving.operations.api_errors import CONFLICT, ApiError, bad_field
from evidentia.serving.operations.endpoint import OperationRequest, Reply, decode_cursor, endpoint
from evidentia.serving.operations.server_context import ServerContext, write_audit


@endpoint("list_changes")
def _list_changes(context: ServerContext, operation: OperationRequest) -> Reply:
    place = decode_cursor(operation.query["cursor"], (int,))
    limit = operation.query["limit"]
    found = context.parts.policies.audit(tenant=operation.tenant, after=0 if place is None else place[0], limit=limit + 1)
    page = found[:limit]
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
        name=request.name, roles=request.roles, tenant=operation.tenant, by=operation.by, expires_at=request.expires_at, facts=request.facts
    )
    return Reply(issued)


@endpoint("revoke_token")
def _revoke_token(context: ServerContext, operation: OperationRequest) -> Reply:
    return Reply(context.parts.tokens.revoke(TokenId(operation.path["id"]), tenant=operation.tenant, by=operation.by))


@endpoint("flush_cache")
async def _flush_cache(context: ServerContext, operation: OperationRequest) -> Reply:
    request: FlushRequest = operation.body
    count = await context.served_base.base_of(operation.tenant).flush_cache(request.source_id)
    await write_audit(context, operation, AuditKind.BASE, "flushed", subject=request.source_id or "cache")
    return Reply(Count(count=count))


@endpoint("show_head")
async def _show_head(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the newest version; whoever sees to the whole base sees its hashes as the owner does."""
    is_operator = operation.tenant == DEFAULT_TENANT and bool(set(AUDITORS) & set(operation.token.roles))
    base = (
        context.served_base.base_of(operation.tenant) if is_operator else context.served_base.base_for(operation.principal, operation.token)
    )
    return Reply(await base.head())


@endpoint("embed")
async def _embed(context: ServerContext, operation: OperationRequest) -> Reply:
    report = await context.served_base.base_of(operation.tenant).embed()
    await write_audit(context, operation, AuditKind.BASE, "embedded", subject="vectors")
    return Reply(report)


@endpoint("collect")
async def _collect(context: ServerContext, operation: OperationRequest) -> Reply:
    request: GcRequest = operation.body
    report = await context.served_base.base_of(operation.tenant).gc(keep_versions=request.keep_versions)
    await write_audit(context, operation, AuditKind.BASE, "collected", subject="versions")
    return Reply(report)
