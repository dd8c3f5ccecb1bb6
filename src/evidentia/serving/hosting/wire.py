"""What one process hands another to be done, and what comes back: an operation that was let in, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.access import Principal
from evidentia.contracts.control import Fault, TokenInfo
from evidentia.contracts.vocabulary import Vocabulary
from evidentia.serving.identity.admission import Identity
from evidentia.serving.operations.api_errors import NOT_FOUND, ApiError
from evidentia.serving.operations.bodies import decode_body
from evidentia.serving.operations.endpoint import OperationRequest, Reply
from evidentia.serving.operations.registry import ENDPOINTS

if TYPE_CHECKING:
    from evidentia.serving.operations.endpoint import Endpoint

_BY_NAME: Final = {endpoint.operation: endpoint for endpoint in ENDPOINTS}


class Forwarded(msgspec.Struct, frozen=True, kw_only=True):
    """An operation, and who asks for it with what. Whoever hands it over has let them in."""

    operation: str
    token: TokenInfo
    principal: Principal
    path: dict[str, str]
    query: dict[str, Any]  # Any: each value has the kind of its field
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    if_match: str | None = None


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it: a message, or a fault with the status of the refusal."""

    status: int | None = None
    headers: dict[str, str] = {}
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    fault: Fault | None = None


def forwarded(endpoint: Endpoint, asked: OperationRequest) -> bytes:
    """Return what is handed over."""
    return msgspec.json.encode(
        Forwarded(
            operation=endpoint.operation,
            token=asked.identity.token,
            principal=asked.identity.principal,
            path=dict(asked.path),
            query=dict(asked.query),
            body=msgspec.UNSET if endpoint.body is None else msgspec.Raw(msgspec.json.encode(asked.body)),
            if_match=asked.if_match,
        )
    )


def read_forwarded(raw: bytes) -> tuple[Endpoint, OperationRequest]:
    """Return what was handed over."""
    message = msgspec.json.decode(raw, type=Forwarded)
    endpoint = _BY_NAME[message.operation]
    query = dict(message.query)
    for field in endpoint.query:
        if issubclass(field.kind, Vocabulary) and query.get(field.name) is not None:
            query[field.name] = field.kind(query[field.name])
    body = None if message.body is msgspec.UNSET else decode_body(bytes(message.body), endpoint)
    return endpoint, OperationRequest(Identity(message.token, message.principal), message.path, query, body, message.if_match)


def answered(reply: Reply) -> bytes:
    """Return what goes back when it was done."""
    message = msgspec.Raw(msgspec.json.encode(reply.message))
    return msgspec.json.encode(Answered(status=reply.status, headers=dict(reply.headers), message=message))


def answered_no(refusal: ApiError) -> bytes:
    """Return what goes back when it was refused."""
    return msgspec.json.encode(Answered(status=refusal.status, headers=refusal.headers, fault=refusal.fault))


def read_answered(raw: bytes, endpoint: Endpoint) -> Reply:
    """Return the reply, or raise the refusal."""
    message = msgspec.json.decode(raw, type=Answered)
    if message.fault is not None:
        fault = message.fault
        raise ApiError(
            message.status or NOT_FOUND, fault.code, fault.message, hint=fault.hint, problems=fault.problems, headers=message.headers
        )
    kind = Any if endpoint.reply is None else endpoint.reply
    content = msgspec.json.decode(b"null" if message.message is msgspec.UNSET else bytes(message.message), type=kind)
    return Reply(content, message.headers, message.status)
