"""Evidence: ask for it, at once or as it comes, and ask receipts what an answer was made from."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.access import Principal, normalised
from evidentia.contracts.doors import (
    ReceiptView,
    VerifyRequest,
)
from evidentia.contracts.ids import ReceiptId
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.operations.api_errors import FORBIDDEN, ApiError, bad_field
from evidentia.serving.operations.endpoint import OperationRequest, Reply, endpoint, needed
from evidentia.serving.operations.ownership import Viewer
from evidentia.serving.operations.request_decoding import read_request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from evidentia.base.async_base import AsyncBase
    from evidentia.contracts.evidence import EvidenceRequest, StreamEvent
    from evidentia.serving.operations.server_context import ServerContext

Sent = dict[str, Any]  # Any: whatever was sent; reading it as a request says what is wrong with it
_LEVELS: Final = list(Classification)


@endpoint("retrieve", reads=Sent)
async def _retrieve(context: ServerContext, operation: OperationRequest) -> Reply:
    base, request = _asking(context, operation)
    return Reply(await base.retrieve(request))


@endpoint("retrieve_stream", reads=Sent)
async def _retrieve_stream(context: ServerContext, operation: OperationRequest) -> AsyncGenerator[StreamEvent, None]:
    base, request = _asking(context, operation)
    async for event in base.retrieve_stream(request):
        yield event


@endpoint("verify")
async def _verify(context: ServerContext, operation: OperationRequest) -> Reply:
    request: VerifyRequest = operation.body
    given = [each for each in (request.response, request.export, request.target) if each is not None]
    if len(given) != 1:
        raise bad_field("response", "give exactly one of response, export and target")
    return Reply(await context.served_base.base_for(operation.principal, operation.token).verify(given[0]))


@endpoint("show_receipt")
async def _show_receipt(context: ServerContext, operation: OperationRequest) -> Reply:
    viewer = Viewer(context, operation)
    receipt = await viewer.find_receipt(operation.path["id"])
    request = receipt.request
    view = ReceiptView(
        receipt_id=ReceiptId(operation.path["id"]),
        answered_at=receipt.answered_at,
        query=request.query.text,
        principal_id="" if request.principal is None else request.principal.principal_id,
        agent_name=request.agent_name,
        corpus_version=receipt.corpus_version,
        evidence_state=receipt.evidence_state,
        config_hash=receipt.config_hash,
        result_hash=receipt.result_hash,
        fragments=receipt.fragments,
        custody_format=receipt.custody_format,
        response_hash=receipt.response_hash,
    )
    return Reply(await asyncio.to_thread(viewer.receipt, receipt, view))


@endpoint("replay")
async def _replay(context: ServerContext, operation: OperationRequest) -> Reply:
    viewer = Viewer(context, operation)
    receipt = await viewer.find_receipt(operation.path["id"])
    report = await context.served_base.base_for(operation.principal, operation.token).replay(operation.path["id"])
    return Reply(await asyncio.to_thread(viewer.replay, receipt, report))


@endpoint("why")
async def _why(context: ServerContext, operation: OperationRequest) -> Reply:
    chunk = needed(operation, "chunk")
    await Viewer(context, operation).find_receipt(operation.path["id"])
    return Reply(await context.served_base.base_for(operation.principal, operation.token).why(operation.path["id"], chunk))


def _asking(context: ServerContext, operation: OperationRequest) -> tuple[AsyncBase, EvidenceRequest]:
    """Return the base as whoever asks sees it; a principal in the request is for tokens that may speak for others."""
    request = read_request(operation.body)
    principal = operation.principal
    if request.principal is not None:
        principal = _spoken_for(operation, normalised(request.principal))
        request = msgspec.structs.replace(request, principal=None)
    return context.served_base.base_for(principal, operation.token, names_mode=operation.body.get("governance") is not None), request


def _spoken_for(operation: OperationRequest, claimed: Principal) -> Principal:
    own = operation.principal
    if claimed == own:
        return own
    is_within = claimed.tenant == own.tenant and _LEVELS.index(claimed.clearance) <= _LEVELS.index(own.clearance)
    if not operation.token.facts.is_delegate or claimed.is_owner or not is_within:
        message = "field 'principal': the token does not let its holder ask as this principal"
        hint = "leave the principal out, or use a token that was made with --delegate, in its tenant and within its clearance"
        raise ApiError(FORBIDDEN, "not_your_principal", message, hint=hint)
    return claimed
