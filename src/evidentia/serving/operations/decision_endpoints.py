"""Decisions over HTTP: as events of the last minutes, as records page by page, with proofs, and the state of the whole log."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from evidentia.contracts.control import DecisionPage, EventPage, GovernanceEvent
from evidentia.contracts.decisions import DecisionStatus, LogReport, PolicyDecision
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import Phase, RunId, RunStarted
from evidentia.governance.log_maintenance import prove
from evidentia.governance.log_scan import scan
from evidentia.governance.log_verifying import verify
from evidentia.governance.reading import DecisionFilter, Position, decisions
from evidentia.provenance.decision_proofs import RecordProof
from evidentia.serving.operations.api_errors import NOT_FOUND, bad_field
from evidentia.serving.operations.endpoint import (
    CURSOR,
    LIMIT,
    MINUTES,
    Endpoint,
    OperationRequest,
    QueryField,
    Reply,
    decode_cursor,
    encode_cursor,
)
from evidentia.serving.operations.roles import AUDITORS, READERS
from evidentia.serving.operations.run_names import find_run

if TYPE_CHECKING:
    from evidentia.serving.operations.server_context import ServerContext

DEFAULT_MINUTES: Final = 60
PLACE: Final = (str, int, int)
"""Of a decision, in a cursor."""
_MAX_SEQ_LENGTH: Final = 15


def list_events(context: ServerContext, request: OperationRequest) -> Reply:
    """Return what policies did in the last minutes, the newest first."""
    page, following = _page(context, request)
    events = tuple(_event(decision) for decision in page)
    return Reply(EventPage(events=events, minutes=request.query["minutes"], next_cursor=following))


def list_decisions(context: ServerContext, request: OperationRequest) -> Reply:
    """Return decisions in full, the newest first."""
    page, following = _page(context, request)
    return Reply(DecisionPage(decisions=tuple(page), next_cursor=following))


def show_proof(context: ServerContext, request: OperationRequest) -> Reply:
    """Return the path from a record to the root of its log."""
    log, digits = request.path["log"], request.path["seq"]
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_SEQ_LENGTH):
        raise bad_field("seq", "write the number of a record, from 1")
    seq = int(digits)
    if _tenant_of(context, log, seq) != request.tenant:
        raise NotFoundError("record", f"{log}:{seq}")
    return Reply(prove(context.parts.log, log, seq))


def verify_log(context: ServerContext, _: OperationRequest) -> Reply:
    """Recompute every chain, and name the first record that does not fit."""
    return Reply(verify(context.parts.log))


def read_page(
    context: ServerContext, request: OperationRequest, *, run_id: RunId | None, is_newest_first: bool
) -> tuple[tuple[PolicyDecision, ...], str | None]:
    """Return decisions that fit the question, and the cursor of those that follow."""
    query = request.query
    place = decode_cursor(query["cursor"], PLACE)
    minutes = query.get("minutes")
    wanted = DecisionFilter(
        tenant=request.tenant,
        run_id=run_id,
        since=None if minutes is None else context.parts.clock.now() - timedelta(minutes=minutes),
        **{name: query.get(name) for name in ("agent", "action", "category", "policy", "phase", "status")},
    )
    after = None if place is None else Position(*place)
    page = decisions(context.parts.log, wanted, after=after, limit=query["limit"], is_newest_first=is_newest_first)
    return page.decisions, None if page.next is None else encode_cursor(page.next)


def _page(context: ServerContext, request: OperationRequest) -> tuple[tuple[PolicyDecision, ...], str | None]:
    run = request.query["run"]
    decode_cursor(request.query["cursor"], PLACE)  # also where there is no such run
    try:
        run_id = None if run is None else find_run(context.parts.log, run, tenant=request.tenant)
    except NotFoundError:
        return (), None
    return read_page(context, request, run_id=run_id, is_newest_first=True)


def _tenant_of(context: ServerContext, log: str, seq: int) -> str | None:
    """Return whose run a record belongs to; None when there is no such record, or nobody knows."""
    tenants: dict[RunId, str] = {}
    run_id: RunId | None = None
    for record in scan(context.parts.log, lambda name, header: header.kind == "run" or (name, header.seq) == (log, seq)):
        if isinstance(record.entry.call, RunStarted):
            tenants[record.entry.run_id] = record.entry.call.facts.tenant
        if (record.log, record.seq) == (log, seq):
            run_id = record.entry.run_id
    return None if run_id is None else tenants.get(run_id)


def _event(decision: PolicyDecision) -> GovernanceEvent:
    return GovernanceEvent(
        at=decision.at,
        run_id=decision.run_id,
        agent_name=decision.agent_name,
        policy_id=decision.policy_id,
        policy_name=decision.policy_name,
        policy_version=decision.policy_version,
        phase=decision.phase,
        action=decision.action,
        category=decision.category,
        rule=decision.rule,
        reason=decision.reason,
        metadata=decision.metadata,
        status=decision.status,
        is_enforced=decision.is_enforced,
        log=decision.log,
        seq=decision.seq,
        part=decision.part,
    )


_FILTERS: Final = (
    QueryField("agent", "Only about runs of this agent."),
    QueryField("action", "Only with this action.", PolicyAction),
    QueryField("category", "Only of this category."),
    QueryField("policy", "Only by the policy with this name or id."),
    QueryField("phase", "Only in this phase.", Phase),
    QueryField("status", "Only those that came about like this.", DecisionStatus),
    QueryField("run", "Only about this run."),
)

ENDPOINTS: Final = (
    Endpoint(
        "list_events",
        "GET",
        "/v1/governance/events",
        "List what policies did lately",
        READERS,
        list_events,
        EventPage,
        query=(MINUTES._replace(default=DEFAULT_MINUTES), *_FILTERS, CURSOR, LIMIT),
    ),
    Endpoint(
        "list_decisions",
        "GET",
        "/v1/decisions",
        "List decisions in full",
        READERS,
        list_decisions,
        DecisionPage,
        query=(MINUTES, *_FILTERS, CURSOR, LIMIT),
    ),
    Endpoint("verify_log", "GET", "/v1/decisions/verify", "Check the whole log", AUDITORS, verify_log, LogReport),
    Endpoint(
        "show_proof",
        "GET",
        "/v1/decisions/{log}/{seq}/proof",
        "Prove that a record is in its log",
        READERS,
        show_proof,
        RecordProof,
        faults=(NOT_FOUND,),
    ),
)
