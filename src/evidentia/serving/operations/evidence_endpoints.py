"""Evidence: ask for it, at once or as it comes, and ask receipts what an answer was made from."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from evidentia.contracts.access import normalised
from evidentia.contracts.doors import (
    Count,
    EvidenceAsk,
    ImageView,
    LayoutView,
    NoteIds,
    NoteList,
    NoteRequest,
    ReceiptView,
    TableList,
    TableQuestion,
    VerifyRequest,
)
from evidentia.contracts.evidence import EvidenceResponse, StreamEvent
from evidentia.contracts.ids import ReceiptId
from evidentia.contracts.provenance import FragmentExport, VerifyReport
from evidentia.contracts.receipts import ReplayReport, WhyReport
from evidentia.contracts.sources import Note
from evidentia.contracts.tables import OpenTable, TableAnswer
from evidentia.contracts.vocabulary import Classification
from evidentia.engine.answer_verification import verify_response
from evidentia.provenance.verification import verify_export
from evidentia.serving.operations.api_errors import BAD_GATEWAY, FORBIDDEN, NOT_FOUND, ApiError, bad_field
from evidentia.serving.operations.endpoint import AGENTS, AUDITORS, READERS, Endpoint, Group, OperationRequest, QueryField, Reply
from evidentia.serving.operations.request_decoding import read_request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from evidentia.base.async_base import AsyncBase
    from evidentia.contracts.access import Principal
    from evidentia.contracts.evidence import EvidenceRequest
    from evidentia.serving.operations.server_context import ServerContext

MAX_ANSWER_BYTES: Final = 16 << 20
"""Of a body that holds a whole answer."""
Sent = dict[str, Any]  # Any: whatever was sent; reading it as a request says what is wrong with it
_LEVELS: Final = list(Classification)


async def retrieve(context: ServerContext, operation: OperationRequest) -> Reply:
    """Answer a question with ranked, attributed fragments."""
    base, request = _asking(context, operation)
    return Reply(await base.retrieve(request))


async def retrieve_stream(context: ServerContext, operation: OperationRequest) -> AsyncGenerator[StreamEvent, None]:
    """Yield what happens while a question is answered, and last the answer itself."""
    base, request = _asking(context, operation)
    async for event in base.retrieve_stream(request):
        yield event


async def verify(context: ServerContext, operation: OperationRequest) -> Reply:
    """Recompute the custody of an answer, of an exported fragment, or of a document or chunk of this base."""
    request: VerifyRequest = operation.body
    given = [each for each in (request.response, request.export, request.target) if each is not None]
    if len(given) != 1:
        raise bad_field("response", "give exactly one of response, export and target")
    # An answer can be large, and checking it is work for a thread.
    if request.response is not None:
        return Reply(await asyncio.to_thread(verify_response, request.response))
    if request.export is not None:
        return Reply(await asyncio.to_thread(verify_export, request.export))
    return Reply(await context.served_base.base_for(operation.principal).verify(request.target))


async def export(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return a fragment with everything a stranger needs to check it offline."""
    return Reply(await context.served_base.base_for(operation.principal).export(needed(operation, "chunk")))


async def show_receipt(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return what a receipt says; those of others only to auditors and admins of their tenant."""
    receipt = await context.served_base.receipt(operation.path["id"], asker=_asker(context, operation))
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
    )
    return Reply(view)


async def replay(context: ServerContext, operation: OperationRequest) -> Reply:
    """Answer a receipt's request again on its own version and say whether the result is the same."""
    base = await _receipts(context, operation)
    return Reply(await base.replay(operation.path["id"]))


async def why(context: ServerContext, operation: OperationRequest) -> Reply:
    """Say why a chunk is, or is not, in the answer of a receipt."""
    chunk = needed(operation, "chunk")
    base = await _receipts(context, operation)
    return Reply(await base.why(operation.path["id"], chunk))


async def list_tables(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the tables of the documents that the asker may see."""
    return Reply(TableList(tables=tuple(await context.served_base.base_for(operation.principal).tables())))


async def open_table(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return a table with its cells."""
    return Reply(await context.served_base.base_for(operation.principal).open_table(needed(operation, "table")))


async def ask_tables(context: ServerContext, operation: OperationRequest) -> Reply:
    """Answer a question from the rows of tables, or say why there is no answer."""
    question: TableQuestion = operation.body
    return Reply(await context.served_base.base_for(operation.principal).ask_tables(question.question, limit=question.limit))


async def show_layout(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the pages, images and tables of a document."""
    return Reply(LayoutView(layout=await context.served_base.base_for(operation.principal).layout(needed(operation, "document"))))


async def show_image(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return an image by the hash that a fragment or a layout names."""
    media_type, content = await context.served_base.base_for(operation.principal).image(operation.path["hash"])
    return Reply(ImageView(media_type=media_type, content=content))


async def remember(context: ServerContext, operation: OperationRequest) -> Reply:
    """Write a note that later requests of the same principal, agent and session find."""
    note: NoteRequest = operation.body
    base = context.served_base.base_for(operation.principal)
    kept = await base.remember(
        note.text, title=note.title, agent=note.agent, session=note.session, authority=note.authority.value, ttl_s=note.ttl_s
    )
    return Reply(kept)


async def list_notes(context: ServerContext, operation: OperationRequest) -> Reply:
    """Return the asker's notes."""
    base = context.served_base.base_for(operation.principal)
    return Reply(NoteList(notes=tuple(await base.notes(agent=operation.query["agent"], session=operation.query["session"]))))


async def forget(context: ServerContext, operation: OperationRequest) -> Reply:
    """Forget notes, and return how many there were."""
    request: NoteIds = operation.body
    return Reply(Count(count=await context.served_base.base_for(operation.principal).forget(request.note_ids)))


def _asking(context: ServerContext, operation: OperationRequest) -> tuple[AsyncBase, EvidenceRequest]:
    """Return the base as whoever asks sees it; a principal in the request is for tokens that may speak for others."""
    request = read_request(operation.body)
    principal = operation.principal
    if request.principal is not None:
        principal = _spoken_for(operation, normalised(request.principal))
        request = msgspec.structs.replace(request, principal=None)
    return context.served_base.base_for(principal), request


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


def _asker(context: ServerContext, operation: OperationRequest) -> Principal:
    """Return who asks about receipts: the owner of their tenant, where the role says so."""
    return context.served_base.owner_of(operation.tenant) if set(AUDITORS) & set(operation.token.roles) else operation.principal


async def _receipts(context: ServerContext, operation: OperationRequest) -> AsyncBase:
    """Return the base as whoever asks about a receipt sees it; somebody else's receipt is not there."""
    asker = _asker(context, operation)
    await context.served_base.receipt(operation.path["id"], asker=asker)
    return context.served_base.base_for(asker)


def needed(operation: OperationRequest, name: str) -> str:
    """Return a parameter that has to be there."""
    value: str | None = operation.query[name]
    if value is None:
        raise bad_field(name, "it is missing")
    return value


_CHUNK: Final = QueryField("chunk", "The id of the chunk.", most_chars=2_000)
_TABLE: Final = QueryField("table", "The id of the table.", most_chars=2_000)
DOCUMENT: Final = QueryField("document", "The id of the document.", most_chars=2_000)
_AGENT: Final = QueryField("agent", "Only notes of this agent.")
_SESSION: Final = QueryField("session", "Only notes of this session.")
_E: Final = Group.EVIDENCE

ENDPOINTS: Final = (
    Endpoint(
        "retrieve",
        "POST",
        "/v1/evidence",
        "Ask for evidence",
        READERS,
        retrieve,
        EvidenceResponse,
        body=EvidenceAsk,
        reads=Sent,
        group=_E,
    ),
    Endpoint(
        "retrieve_stream",
        "POST",
        "/v1/evidence/stream",
        "Ask for evidence, and hear what each source does",
        READERS,
        retrieve_stream,
        StreamEvent,
        body=EvidenceAsk,
        reads=Sent,
        group=_E,
        is_stream=True,
    ),
    Endpoint(
        "verify",
        "POST",
        "/v1/verify",
        "Recompute custody",
        READERS,
        verify,
        VerifyReport,
        body=VerifyRequest,
        group=_E,
        faults=(NOT_FOUND,),
        max_bytes=MAX_ANSWER_BYTES,
    ),
    Endpoint(
        "export", "GET", "/v1/export", "Export a fragment", READERS, export, FragmentExport, query=(_CHUNK,), group=_E, faults=(NOT_FOUND,)
    ),
    Endpoint(
        "show_receipt", "GET", "/v1/receipts/{id}", "Show a receipt", READERS, show_receipt, ReceiptView, group=_E, faults=(NOT_FOUND,)
    ),
    Endpoint(
        "replay",
        "POST",
        "/v1/receipts/{id}/replay",
        "Answer a receipt again",
        READERS,
        replay,
        ReplayReport,
        group=_E,
        faults=(NOT_FOUND, BAD_GATEWAY),
    ),
    Endpoint(
        "why",
        "GET",
        "/v1/receipts/{id}/why",
        "Say why a chunk is or is not in an answer",
        READERS,
        why,
        WhyReport,
        query=(_CHUNK,),
        group=_E,
        faults=(NOT_FOUND, BAD_GATEWAY),
    ),
    Endpoint("list_tables", "GET", "/v1/tables", "List tables", READERS, list_tables, TableList, group=_E),
    Endpoint(
        "open_table",
        "GET",
        "/v1/tables/cells",
        "Open a table",
        READERS,
        open_table,
        OpenTable,
        query=(_TABLE,),
        group=_E,
        faults=(NOT_FOUND,),
    ),
    Endpoint("ask_tables", "POST", "/v1/tables/ask", "Ask tables", READERS, ask_tables, TableAnswer, body=TableQuestion, group=_E),
    Endpoint(
        "show_layout",
        "GET",
        "/v1/layout",
        "Show pages, images and tables of a document",
        READERS,
        show_layout,
        LayoutView,
        query=(DOCUMENT,),
        group=_E,
        faults=(NOT_FOUND,),
    ),
    Endpoint("show_image", "GET", "/v1/images/{hash}", "Show an image", READERS, show_image, ImageView, group=_E, faults=(NOT_FOUND,)),
    Endpoint("remember", "POST", "/v1/notes", "Write a note", AGENTS, remember, Note, body=NoteRequest, status=201, group=_E),
    Endpoint("list_notes", "GET", "/v1/notes", "List your notes", AGENTS, list_notes, NoteList, query=(_AGENT, _SESSION), group=_E),
    Endpoint("forget", "POST", "/v1/notes/forget", "Forget notes", AGENTS, forget, Count, body=NoteIds, group=_E),
)
