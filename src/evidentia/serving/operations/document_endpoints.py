"""Documents: send them, list them, take them out, and say who may see them; an admin's hand reaches no further than the tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.access import AccessRule, is_acl_entry
from evidentia.contracts.control import AuditKind
from evidentia.contracts.doors import AccessRequest, DocumentEntry, DocumentIds, DocumentPage, IngestRequest
from evidentia.contracts.errors import BaseStateError, NotFoundError, ServiceError
from evidentia.contracts.ids import TenantId
from evidentia.serving.operations.api_errors import bad_field
from evidentia.serving.operations.document_intake import take_in
from evidentia.serving.operations.endpoint import OperationRequest, Reply, decode_cursor, encode_cursor, endpoint
from evidentia.serving.operations.server_context import write_audit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.ids import DocumentId
    from evidentia.serving.operations.server_context import ServerContext


@endpoint("ingest")
async def _ingest(context: ServerContext, operation: OperationRequest) -> Reply:
    request: IngestRequest = operation.body
    try:
        report = await take_in(context.served_base, request, tenant=operation.tenant)
    except (BaseStateError, ServiceError) as error:  # by then some of it may be in
        await write_audit(context, operation, AuditKind.DOCUMENT, f"ingest failed ({error.code})", subject=request.source)
        raise
    change = f"ingested {report.added} added {report.changed} changed"
    await write_audit(context, operation, AuditKind.DOCUMENT, change, subject=request.source)
    return Reply(report)


@endpoint("list_documents")
async def _list_documents(context: ServerContext, operation: OperationRequest) -> Reply:
    place = decode_cursor(operation.query["cursor"], (str,))
    found = await context.served_base.base_for(operation.principal).documents()
    rest = [each for each in found if place is None or each[0] > place[0]]
    page = rest[: operation.query["limit"]]
    entries = tuple(DocumentEntry(document_id=name, access=access, chunks=chunks) for name, access, chunks in page)
    return Reply(DocumentPage(documents=entries, next_cursor=None if len(page) == len(rest) else encode_cursor((page[-1][0],))))


@endpoint("remove_documents")
async def _remove_documents(context: ServerContext, operation: OperationRequest) -> Reply:
    request: DocumentIds = operation.body
    names = await _own(context, operation, request.document_ids)
    summary = await context.served_base.base_of(operation.tenant).remove(names)
    await write_audit(context, operation, AuditKind.DOCUMENT, f"removed {len(names)}", subject=names[0])
    return Reply(summary)


@endpoint("set_access")
async def _set_access(context: ServerContext, operation: OperationRequest) -> Reply:
    request: AccessRequest = operation.body
    for place, entry in enumerate(request.acl):
        if not is_acl_entry(entry):
            raise bad_field(f"acl[{place}]", "write user:NAME, group:NAME or role:NAME")
    names = await _own(context, operation, request.document_ids)
    rule = AccessRule(tenant=TenantId(operation.tenant), classification=request.classification, acl=tuple(sorted(set(request.acl))))
    summary = await context.served_base.base_of(operation.tenant).set_access(names, rule)
    await write_audit(context, operation, AuditKind.DOCUMENT, f"access of {len(names)} changed", subject=names[0])
    return Reply(summary)


async def _own(context: ServerContext, operation: OperationRequest, document_ids: Sequence[DocumentId]) -> list[DocumentId]:
    """Return documents of the tenant, each once; those of others and those that are not there are refused alike."""
    live = await context.served_base.base_of(operation.tenant).documents()
    own = {name for name, access, _ in live if access.tenant == operation.tenant}
    for document_id in document_ids:
        if document_id not in own:
            raise NotFoundError("document", document_id)
    return list(dict.fromkeys(document_ids))
