"""Runs over HTTP: begin one, record what it does, end it, and read what became of it."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from evidentia.contracts.access import DEFAULT_TENANT
from evidentia.contracts.control import (
    MAX_PUSHED,
    CallsRequest,
    DecisionPage,
    EndRequest,
    EventPage,
    GovernanceEvent,
    RunPage,
    StartReply,
)
from evidentia.contracts.decisions import DecisionCounts, LogReport
from evidentia.contracts.decoding import convert
from evidentia.contracts.doors import encode_cursor
from evidentia.contracts.errors import FieldProblem, InvalidFieldError, NotFoundError, PolicyInvalidError
from evidentia.contracts.runs import OWNED_FACTS, RunFacts, RunId, RunStarted, RunStatus, RunTrace
from evidentia.governance.decision_queries import DecisionFilter, LogPosition, count_decisions, decisions, trace
from evidentia.governance.log_maintenance import prove, verify
from evidentia.governance.log_scan import scan
from evidentia.governance.run_summaries import RunFilter, newest_runs
from evidentia.policy.access import owner_digest
from evidentia.policy.handlers import check_call, check_ranges
from evidentia.serving.operations.api_errors import FORBIDDEN, ApiError, bad_field, nearest, shape_refusal
from evidentia.serving.operations.endpoint import OperationRequest, Reply, decode_cursor, endpoint
from evidentia.serving.operations.open_runs import digest_of
from evidentia.serving.operations.ownership import Viewer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evidentia.contracts.decisions import PolicyDecision
    from evidentia.serving.operations.server_context import ServerContext


_FACTS: Final = tuple(field.name for field in msgspec.structs.fields(RunFacts))
_RUN_ID_BYTES: Final = 12
_MADE_HERE: Final = ("judgements", "judged_by")
"""Fields of calls that only the server fills in."""
MAX_POLICY_BYTES: Final = 16 << 10
"""Of the policies that come with a run: what they list may stand in each of its decisions."""
_OF_JUDGES: Final = ("llm_grounding_check", "llm_grounding_criteria")
_STORED_ONLY: Final = "a policy that comes with a run asks no judge; have an admin store the policy, and leave it out here"
_Raw = dict[str, Any]  # Any: whatever was sent; the check of policies says what is wrong with it


class _StartRaw(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    facts: _Raw
    policies: Annotated[tuple[_Raw, ...], msgspec.Meta(max_length=MAX_PUSHED)] = ()
    is_enforced: bool = True


@endpoint("start_run", reads=_StartRaw)
def _start_run(context: ServerContext, operation: OperationRequest) -> Reply:
    request: _StartRaw = operation.body
    _refuse_judges(request.policies)
    if len(msgspec.json.encode(request.policies)) > MAX_POLICY_BYTES:
        raise bad_field("policies", f"policies that come with a run have {MAX_POLICY_BYTES} bytes at most; have an admin store larger ones")
    point = context.served_base.enforcement_point(operation.principal, operation.token)
    given, claimed = request.facts, request.facts.get("agent_name", "")
    if isinstance(claimed, str):
        given = {**given, "agent_name": point.agent(claimed, field="facts.agent_name", operation="start_run")}
    facts = _facts(context, operation, given)
    floor = point.standing.floor(facts.agent_name)
    governor = context.parts.governor_of(operation.tenant)
    opened, is_new = context.runs.start(
        operation.tenant,
        facts.run_id,
        beginning=digest_of(request),
        holder=operation.token.token_id,
        # The governor checks bodies itself, and says more about what is wrong with a map than with a message.
        begin=lambda: governor.start(
            facts,
            policies=request.policies,  # type: ignore[arg-type]
            is_enforced=request.is_enforced,
            principal=operation.principal,
            floor=floor,
        ),
    )
    run = opened.run
    message = StartReply(run_id=run.facts.run_id, is_enforced=request.is_enforced, policies=run.policies.policies)
    return Reply(message, {"location": f"/v1/runs/{run.facts.run_id}"}, status=201 if is_new else 200)


@endpoint("record_calls")
def _record_calls(context: ServerContext, operation: OperationRequest) -> Reply:
    request: CallsRequest = operation.body
    for place, numbered in enumerate(request.calls):
        where = f"calls[{place}].call"
        try:
            check_call(numbered.call)
            check_ranges(numbered.call)
        except InvalidFieldError as error:
            raise bad_field(f"{where}.{error.field}", str(error).partition("': ")[2]) from error
        for name in _MADE_HERE:
            if getattr(numbered.call, name, None):
                raise bad_field(f"{where}.{name}", "the server sets it; leave it out")
    with _named(operation):
        return Reply(context.runs.record(operation.tenant, _run_id(context, operation), request.calls))


@endpoint("end_run")
def _end_run(context: ServerContext, operation: OperationRequest) -> Reply:
    request: EndRequest = operation.body
    if request.status is RunStatus.RUNNING:
        raise bad_field("status", "a run does not end as running; write success, blocked or error")
    with _named(operation):
        return Reply(context.runs.finish(operation.tenant, _run_id(context, operation), request))


@endpoint("list_runs")
def _list_runs(context: ServerContext, operation: OperationRequest) -> Reply:
    query = operation.query
    place = decode_cursor(query["cursor"], (str, int, int))
    since = None if query["minutes"] is None else context.parts.clock.now() - timedelta(minutes=query["minutes"])
    viewer = Viewer(context, operation)
    wanted = RunFilter(tenant=operation.tenant, owner=viewer.owner, agent=query["agent"], status=query["status"], since=since)
    after = None if place is None else LogPosition(*place)
    page = newest_runs(context.parts.log, wanted, after=after, limit=query["limit"])
    return Reply(RunPage(runs=tuple(map(viewer.summary, page.runs)), next_cursor=None if page.next is None else encode_cursor(page.next)))


@endpoint("show_run")
def _show_run(context: ServerContext, operation: OperationRequest) -> Reply:
    return Reply(_trace(context, operation).summary)


@endpoint("show_trace")
def _show_trace(context: ServerContext, operation: OperationRequest) -> Reply:
    return Reply(_trace(context, operation))


@endpoint("list_run_decisions")
def _list_run_decisions(context: ServerContext, operation: OperationRequest) -> Reply:
    run_id = Viewer(context, operation).find_run(context.parts.log, operation.path["id"]).run_id
    found, following = read_page(context, operation, run_id=run_id, is_newest_first=False)
    return Reply(DecisionPage(decisions=found, next_cursor=following))


def _refuse_judges(policies: Sequence[_Raw]) -> None:
    """Refuse policies of a run that ask a judge: it reads with the tenant's key, so that only an admin has it asked."""
    problems = [
        FieldProblem(f"policies[{place}].rules.{name}", _STORED_ONLY)
        for place, body in enumerate(policies)
        if isinstance(rules := body.get("rules"), dict)
        for name in _OF_JUDGES
        if rules.get(name)
    ]
    if problems:
        raise PolicyInvalidError(problems)


def _run_id(context: ServerContext, operation: OperationRequest) -> RunId:
    return Viewer(context, operation).own_run(operation.path["id"])


@contextmanager
def _named(operation: OperationRequest) -> Iterator[None]:
    """Have a run that is not open called as it was asked for, whosever it is."""
    try:
        yield
    except NotFoundError:
        raise NotFoundError("run", operation.path["id"]) from None


def _trace(context: ServerContext, operation: OperationRequest) -> RunTrace:
    viewer, log = Viewer(context, operation), context.parts.log
    return viewer.trace(trace(log, viewer.find_run(log, operation.path["id"]).run_id))


def _facts(context: ServerContext, operation: OperationRequest, given: Mapping[str, Any]) -> RunFacts:  # Any: as above
    """Return the facts of a run in the token's tenant, with whose it is."""
    tenant, principal = operation.tenant, operation.principal
    for name in given:
        if name in OWNED_FACTS:
            raise bad_field(f"facts.{name}", "the server sets it; leave it out")
        if name not in _FACTS:
            raise bad_field(f"facts.{name}", "there is no such fact", suggestion=nearest(name, _FACTS))
    if given.get("tenant", tenant) != tenant:
        message = "the token is for another tenant than the one in 'facts.tenant'"
        raise ApiError(FORBIDDEN, "wrong_tenant", message, hint="leave the tenant out, or use a token of that tenant")
    try:
        facts = convert({"run_id": "", **given, "tenant": tenant}, RunFacts)
    except msgspec.ValidationError as error:
        raise shape_refusal(error, RunFacts, names=_FACTS, within="facts") from error
    if not facts.agent_name:
        raise bad_field("facts.agent_name", "name the agent that runs")
    name = facts.run_id or f"run-{context.parts.entropy.take(_RUN_ID_BYTES).hex()}"
    return msgspec.structs.replace(
        facts,
        run_id=Viewer(context, operation).new_run(name),
        owner=owner_digest(principal),
        token_id=operation.token.token_id,
        clearance=str(principal.clearance),
    )


# --- decision endpoints ---
# Decisions over HTTP: as events of the last minutes, as records page by page, with proofs, and the state of the whole log.

PLACE: Final = (str, int, int)
"""Of a decision, in a cursor."""
_MAX_SEQ_LENGTH: Final = 15


@endpoint("list_events")
def _list_events(context: ServerContext, request: OperationRequest) -> Reply:
    page, following = _page(context, request)
    events = tuple(_event(decision) for decision in page)
    return Reply(EventPage(events=events, minutes=request.query["minutes"], next_cursor=following))


@endpoint("list_decisions")
def _list_decisions(context: ServerContext, request: OperationRequest) -> Reply:
    page, following = _page(context, request)
    return Reply(DecisionPage(decisions=tuple(page), next_cursor=following))


@endpoint("count_decisions")
def _count_decisions(context: ServerContext, request: OperationRequest) -> Reply:
    try:
        run_id = _run_asked_for(context, request)
    except NotFoundError:
        return Reply(DecisionCounts())
    return Reply(count_decisions(context.parts.log, _wanted(context, request, run_id=run_id)))


@endpoint("show_proof")
def _show_proof(context: ServerContext, request: OperationRequest) -> Reply:
    log, digits = request.path["log"], request.path["seq"]
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_SEQ_LENGTH):
        raise bad_field("seq", "write the number of a record, from 1")
    seq = int(digits)
    facts, viewer = _facts_at(context, log, seq), Viewer(context, request)
    if facts is None or not viewer.may_read(facts):
        raise NotFoundError("record", f"{log}:{seq}")
    return Reply(viewer.proof(facts, prove(context.parts.log, log, seq)))


@endpoint("verify_log")
def _verify_log(context: ServerContext, request: OperationRequest) -> Reply:
    """Return what verification found: the operator of everything, and a tenant of the logs that are wholly its own."""
    report = verify(context.parts.log)
    if request.tenant == DEFAULT_TENANT:
        return Reply(report)
    tenants: dict[str, set[str]] = {}
    for record in scan(context.parts.log, lambda _, header: header.kind == "run"):
        if isinstance(record.entry.call, RunStarted):
            tenants.setdefault(record.log, set()).add("" if record.is_redacted else record.entry.call.facts.tenant)
    heads = tuple(each for each in report.heads if tenants.get(each.log) == {request.tenant})
    own = {log for log, found in tenants.items() if found == {request.tenant}}
    faults = tuple(each for each in report.faults if each.log in own)
    ok = report.ok or not faults
    return Reply(LogReport(ok=ok, logs=len(own), records=sum(each.size for each in heads), faults=faults, heads=heads))


def read_page(
    context: ServerContext, request: OperationRequest, *, run_id: RunId | None, is_newest_first: bool
) -> tuple[tuple[PolicyDecision, ...], str | None]:
    """Return decisions that fit the question, and the cursor of those that follow."""
    query = request.query
    place = decode_cursor(query["cursor"], PLACE)
    wanted = _wanted(context, request, run_id=run_id)
    after = None if place is None else LogPosition(*place)
    shown = Viewer(context, request).decision
    page = decisions(context.parts.log, wanted, after=after, limit=query["limit"], is_newest_first=is_newest_first, shown=shown)
    return page.decisions, None if page.next is None else encode_cursor(page.next)


def _wanted(context: ServerContext, request: OperationRequest, *, run_id: RunId | None) -> DecisionFilter:
    """Return which decisions a question is about; lists and counts of them ask the same."""
    query = request.query
    minutes = query.get("minutes")
    return DecisionFilter(
        tenant=request.tenant,
        owner=Viewer(context, request).owner,
        run_id=run_id,
        since=None if minutes is None else context.parts.clock.now() - timedelta(minutes=minutes),
        **{name: query.get(name) for name in ("agent", "action", "category", "policy", "phase", "status")},
    )


def _page(context: ServerContext, request: OperationRequest) -> tuple[tuple[PolicyDecision, ...], str | None]:
    decode_cursor(request.query["cursor"], PLACE)  # also where there is no such run
    try:
        run_id = _run_asked_for(context, request)
    except NotFoundError:
        return (), None
    return read_page(context, request, run_id=run_id, is_newest_first=True)


def _run_asked_for(context: ServerContext, request: OperationRequest) -> RunId | None:
    """Return the run that a question is about, None for all; one that is not there, or not for whoever asks, is a NotFoundError."""
    run = request.query["run"]
    return None if run is None else Viewer(context, request).find_run(context.parts.log, run).run_id


def _facts_at(context: ServerContext, log: str, seq: int) -> RunFacts | None:
    """Return the facts of the run that a record belongs to; None when there is no such record, or nobody knows."""
    known: dict[RunId, RunFacts] = {}
    run_id: RunId | None = None
    for record in scan(context.parts.log, lambda name, header: header.kind == "run" or (name, header.seq) == (log, seq)):
        if isinstance(record.entry.call, RunStarted) and not record.is_redacted:
            known[record.entry.run_id] = record.entry.call.facts
        if (record.log, record.seq) == (log, seq):
            run_id = record.entry.run_id
    return None if run_id is None else known.get(run_id)


def _event(decision: PolicyDecision) -> GovernanceEvent:
    return convert(decision, GovernanceEvent, from_attributes=True)
