"""What admins and auditors ask: who changed what, which secrets are kept, and who holds a token."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evidentia.contracts.control import (
    NAME_PATTERN,
    AuditPage,
    IssuedToken,
    SecretKept,
    SecretNames,
    SecretValue,
    TokenId,
    TokenInfo,
    TokenList,
    TokenRequest,
)
from evidentia.contracts.errors import InvalidFieldError, MissingExtraError
from evidentia.serving.operations.api_errors import CONFLICT, NOT_FOUND, ApiError, bad_field
from evidentia.serving.operations.endpoint import CURSOR, LIMIT, Endpoint, Group, OperationRequest, Reply, decode_cursor, encode_cursor
from evidentia.serving.operations.roles import AUDITORS, WRITERS

if TYPE_CHECKING:
    from evidentia.serving.operations.server_context import ServerContext


def list_changes(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return who changed which policy, token or secret, the oldest first."""
    place = decode_cursor(operation.query["cursor"], (int,))
    limit = operation.query["limit"]
    found = context.parts.policies.audit(tenant=operation.tenant, after=0 if place is None else place[0], limit=limit + 1)
    page = found[:limit]
    return Reply(AuditPage(changes=tuple(page), next_cursor=encode_cursor((page[-1].seq,)) if len(found) > limit else None))


def list_secrets(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the names of the secrets."""
    return Reply(SecretNames(names=tuple(context.parts.secrets.names(tenant=operation.tenant))))


def show_secret(context: ServerContext, operation: OperationRequest) -> Reply:
    """Say since when a secret is kept; never what it is."""
    return Reply(context.parts.secrets.kept(operation.path["name"], tenant=operation.tenant))


def put_secret(context: ServerContext, operation: OperationRequest) -> Reply:
    """Keep a secret, encrypted."""
    name = operation.path["name"]
    if not re.fullmatch(NAME_PATTERN, name):
        raise bad_field("name", "use at most 128 letters, digits and . _ : -, beginning with a letter or digit")
    value: SecretValue = operation.body
    try:
        return Reply(context.parts.secrets.put(name, value.value, tenant=operation.tenant, by=operation.by))
    except (InvalidFieldError, MissingExtraError) as error:
        hint = "whoever runs the plane sets EVIDENTIA_SECRET_KEY to a long random text and starts it again"
        raise ApiError(CONFLICT, "secrets_unavailable", str(error), hint=hint) from error


def remove_secret(context: ServerContext, operation: OperationRequest) -> Reply:
    """Forget a secret."""
    kept = context.parts.secrets.kept(operation.path["name"], tenant=operation.tenant)
    context.parts.secrets.remove(kept.name, tenant=operation.tenant, by=operation.by)
    return Reply(kept)


def list_tokens(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the tokens of the tenant, without their secrets."""
    return Reply(TokenList(tokens=tuple(context.parts.tokens.tokens(tenant=operation.tenant))))


def issue_token(context: ServerContext, operation: OperationRequest) -> Reply:
    """Make a token; its secret is in this answer and nowhere else."""
    request: TokenRequest = operation.body
    issued = context.parts.tokens.issue(
        name=request.name, roles=request.roles, tenant=operation.tenant, by=operation.by, expires_at=request.expires_at, facts=request.facts
    )
    return Reply(issued)


def revoke_token(context: ServerContext, operation: OperationRequest) -> Reply:
    """Make a token worthless from now on."""
    return Reply(context.parts.tokens.revoke(TokenId(operation.path["id"]), tenant=operation.tenant, by=operation.by))


_A: Final = Group.ADMINISTRATION

ENDPOINTS: Final = (
    Endpoint(
        "list_changes", "GET", "/v1/audit", "List who changed what", AUDITORS, list_changes, AuditPage, query=(CURSOR, LIMIT), group=_A
    ),
    Endpoint("list_secrets", "GET", "/v1/secrets", "List the names of secrets", WRITERS, list_secrets, SecretNames, group=_A),
    Endpoint(
        "show_secret",
        "GET",
        "/v1/secrets/{name}",
        "Say since when a secret is kept",
        WRITERS,
        show_secret,
        SecretKept,
        faults=(NOT_FOUND,),
        group=_A,
    ),
    Endpoint(
        "put_secret",
        "PUT",
        "/v1/secrets/{name}",
        "Keep a secret",
        WRITERS,
        put_secret,
        SecretKept,
        body=SecretValue,
        faults=(CONFLICT,),
        group=_A,
        is_writing=True,
    ),
    Endpoint(
        "remove_secret",
        "DELETE",
        "/v1/secrets/{name}",
        "Forget a secret",
        WRITERS,
        remove_secret,
        SecretKept,
        faults=(NOT_FOUND,),
        group=_A,
        is_writing=True,
    ),
    Endpoint("list_tokens", "GET", "/v1/tokens", "List tokens", WRITERS, list_tokens, TokenList, group=_A),
    Endpoint(
        "issue_token",
        "POST",
        "/v1/tokens",
        "Make a token",
        WRITERS,
        issue_token,
        IssuedToken,
        body=TokenRequest,
        status=201,
        group=_A,
        is_writing=True,
    ),
    Endpoint(
        "revoke_token",
        "DELETE",
        "/v1/tokens/{id}",
        "Revoke a token",
        WRITERS,
        revoke_token,
        TokenInfo,
        faults=(NOT_FOUND,),
        group=_A,
        is_writing=True,
    ),
)
