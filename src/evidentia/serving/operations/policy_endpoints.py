"""Policies over HTTP: list, create, read, replace, change in part, remove, push; versions, templates and schemas."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from evidentia.contracts.control import MAX_PUSHED, PolicyPage, PolicyPatch, PolicyTemplates, PolicyVersions, PushReply, PushRequest
from evidentia.contracts.errors import NotFoundError, PolicyConflictError
from evidentia.contracts.policies import MAX_TRIAL_MINUTES, MAX_TRIAL_RECORDS, Enforcement, PolicyBody, PolicyId, ShadowTrial, StoredPolicy
from evidentia.contracts.runs import RunId, RunStarted
from evidentia.governance.calibration import Calibration, calibrate
from evidentia.governance.decision_expansion import micros
from evidentia.governance.log_scan import scan
from evidentia.governance.shadow import ShadowReport, shadow_log
from evidentia.policy.categories import find_category
from evidentia.policy.rules import check_policy, policy_schema, rules_schema
from evidentia.policy.templates import TEMPLATES
from evidentia.provenance.decision_chain import CHECKPOINT
from evidentia.provenance.decision_lines import REDACTED_MARK, decode_details, decode_header
from evidentia.serving.operations.api_errors import CHANGED, CONFLICT, NOT_FOUND, ApiError, bad_field
from evidentia.serving.operations.endpoint import (
    AUDITORS,
    CURSOR,
    LIMIT,
    MINUTES,
    READERS,
    WRITERS,
    Endpoint,
    OperationRequest,
    QueryField,
    Reply,
    decode_cursor,
    encode_cursor,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.decisions import LogRecord
    from evidentia.provenance.decision_lines import Header
    from evidentia.serving.operations.server_context import ServerContext


_Raw = dict[str, Any]  # Any: whatever was sent; the check of policies says what is wrong with it


class _PushRaw(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    policies: Annotated[tuple[_Raw, ...], msgspec.Meta(min_length=1, max_length=MAX_PUSHED)]
    dry_run: bool = False


def list_policies(context: ServerContext, request: OperationRequest) -> Reply:
    """Return the policies that were not removed, page by page."""
    query = request.query
    place = decode_cursor(query["cursor"], (int, str, str))
    found = [
        each
        for each in context.parts.policies.live(tenant=request.tenant)
        if query["category"] in {None, each.policy.body.category}
        and query["enabled"] in {None, each.policy.body.enabled}
        and query["enforcement"] in {None, each.policy.body.enforcement}
        and query["name"] in {None, each.policy.body.name}
        and (place is None or _place(each) > place)
    ]
    page = found[: query["limit"]]
    is_last = len(page) == len(found)
    return Reply(PolicyPage(policies=tuple(page), next_cursor=None if is_last else encode_cursor(_place(page[-1]))))


def create_policy(context: ServerContext, request: OperationRequest) -> Reply:
    """Put a new policy in force."""
    body = check_policy(request.body, tenant=request.tenant).body
    stored = context.parts.policies.put(body, tenant=request.tenant, by=request.by)
    return _versioned(stored, {"location": f"/v1/policies/{stored.policy.policy_id}"})


def show_policy(context: ServerContext, request: OperationRequest) -> Reply:
    """Return a policy, by its id or its name, in the newest or a named version."""
    return _versioned(context.parts.policies.find(request.path["id"], tenant=request.tenant, version=request.query["version"]))


def replace_policy(context: ServerContext, request: OperationRequest) -> Reply:
    """Put the next version of a policy in force."""
    current = context.parts.policies.find(request.path["id"], tenant=request.tenant)
    body = check_policy(request.body, tenant=request.tenant).body
    return _put(context, request, current, body)


def change_policy(context: ServerContext, request: OperationRequest) -> Reply:
    """Put the next version of a policy in force, with the fields that are given; rules that are not named stay as they are."""
    current = context.parts.policies.find(request.path["id"], tenant=request.tenant)
    before, changes = current.policy.body, request.body
    merged = msgspec.to_builtins(before) | changes
    is_same_category = merged["category"] == before.category
    if is_same_category and isinstance(changes.get("rules"), dict):
        merged["rules"] = {**before.rules, **changes["rules"]}
    body = check_policy(merged, tenant=request.tenant).body
    return _put(context, request, current, body)


def remove_policy(context: ServerContext, request: OperationRequest) -> Reply:
    """Take a policy out of force; its versions stay readable."""
    current = context.parts.policies.find(request.path["id"], tenant=request.tenant)
    expected = _expected(request, current)
    try:
        removed = context.parts.policies.remove(current.policy.policy_id, tenant=request.tenant, by=request.by, expected=expected)
    except PolicyConflictError as error:
        raise _changed_meanwhile(error) from error
    return _versioned(removed)


def list_versions(context: ServerContext, request: OperationRequest) -> Reply:
    """Return every version of a policy, also of one that was removed."""
    return Reply(PolicyVersions(versions=tuple(context.parts.policies.versions(request.path["id"], tenant=request.tenant))))


def push_policies(context: ServerContext, request: OperationRequest) -> Reply:
    """Put several policies in force by their names, all or none."""
    pushed: _PushRaw = request.body
    results = context.parts.policies.push(pushed.policies, tenant=request.tenant, by=request.by, is_dry=pushed.dry_run)
    return Reply(PushReply(results=tuple(results), dry_run=pushed.dry_run))


def list_templates(_: ServerContext, __: OperationRequest) -> Reply:
    """Return policies to begin with."""
    return Reply(PolicyTemplates(templates=dict(TEMPLATES)))


def show_schema(_: ServerContext, __: OperationRequest) -> Reply:
    """Return the JSON Schema of a policy."""
    return Reply(policy_schema())


def show_rules_schema(_: ServerContext, request: OperationRequest) -> Reply:
    """Return the JSON Schema of the rules of one category."""
    category = request.path["category"]
    if find_category(category) is None:
        raise NotFoundError("category", category)
    return Reply(rules_schema(category))


def _put(context: ServerContext, request: OperationRequest, current: StoredPolicy, body: PolicyBody) -> Reply:
    expected = _expected(request, current)
    policy_id: PolicyId = current.policy.policy_id
    try:
        stored = context.parts.policies.put(body, tenant=request.tenant, by=request.by, policy_id=policy_id, expected=expected)
    except PolicyConflictError as error:
        newest = context.parts.policies.find(policy_id, tenant=request.tenant).policy.version
        if expected is not None and newest != expected:
            raise _changed_meanwhile(error) from error
        raise
    return _versioned(stored)


def _expected(request: OperationRequest, current: StoredPolicy) -> int | None:
    """Return the version that a change may replace: any without If-Match, else the one in force if it is among those named."""
    if request.if_match is None or request.if_match.strip() == "*":
        return None
    version = current.policy.version
    if str(version) not in re.findall(r'"(\d+)"', request.if_match):
        raise _changed_meanwhile(PolicyConflictError(current.policy.body.name, f"version {version} is in force"))
    return version


def _changed_meanwhile(error: PolicyConflictError) -> ApiError:
    return ApiError(CHANGED, "version_changed", str(error), hint=error.hint)


def _versioned(stored: StoredPolicy, headers: dict[str, str] | None = None) -> Reply:
    return Reply(stored, {"etag": f'"{stored.policy.version}"', **(headers or {})})


def _place(stored: StoredPolicy) -> tuple[int, str, str]:
    return stored.policy.body.priority, stored.policy.body.name, stored.policy.policy_id


_FILTERS: Final = (
    QueryField("category", "Only policies of this category."),
    QueryField("enabled", "Only those that are enabled, or that are not.", bool),
    QueryField("enforcement", "Only those that are enforced, or in shadow.", Enforcement),
    QueryField("name", "Only the one with this name."),
)
_VERSION: Final = QueryField("version", "This version; also of a policy that was removed.", int, most=1_000_000_000)

ENDPOINTS: Final = (
    Endpoint("list_policies", "GET", "/v1/policies", "List policies", READERS, list_policies, PolicyPage, query=(*_FILTERS, CURSOR, LIMIT)),
    Endpoint(
        "create_policy",
        "POST",
        "/v1/policies",
        "Create a policy",
        WRITERS,
        create_policy,
        StoredPolicy,
        body=PolicyBody,
        reads=_Raw,
        status=201,
        faults=(CONFLICT,),
        has_version=True,
        is_writing=True,
    ),
    Endpoint(
        "push_policies",
        "POST",
        "/v1/policies/push",
        "Put several policies in force, all or none",
        WRITERS,
        push_policies,
        PushReply,
        body=PushRequest,
        reads=_PushRaw,
        is_writing=True,
    ),
    Endpoint("list_templates", "GET", "/v1/policies/templates", "List policies to begin with", READERS, list_templates, PolicyTemplates),
    Endpoint("show_policy_schema", "GET", "/v1/policies/schema", "Show the JSON Schema of a policy", READERS, show_schema, None),
    Endpoint(
        "show_rules_schema",
        "GET",
        "/v1/policies/schema/{category}",
        "Show the JSON Schema of a category's rules",
        READERS,
        show_rules_schema,
        None,
        faults=(NOT_FOUND,),
    ),
    Endpoint(
        "show_policy",
        "GET",
        "/v1/policies/{id}",
        "Show a policy",
        READERS,
        show_policy,
        StoredPolicy,
        query=(_VERSION,),
        faults=(NOT_FOUND,),
        has_version=True,
    ),
    Endpoint(
        "replace_policy",
        "PUT",
        "/v1/policies/{id}",
        "Replace a policy",
        WRITERS,
        replace_policy,
        StoredPolicy,
        body=PolicyBody,
        reads=_Raw,
        faults=(NOT_FOUND, CONFLICT, CHANGED),
        has_version=True,
        is_writing=True,
    ),
    Endpoint(
        "change_policy",
        "PATCH",
        "/v1/policies/{id}",
        "Change some fields of a policy",
        WRITERS,
        change_policy,
        StoredPolicy,
        body=PolicyPatch,
        reads=_Raw,
        faults=(NOT_FOUND, CONFLICT, CHANGED),
        has_version=True,
        is_writing=True,
    ),
    Endpoint(
        "remove_policy",
        "DELETE",
        "/v1/policies/{id}",
        "Take a policy out of force",
        WRITERS,
        remove_policy,
        StoredPolicy,
        faults=(NOT_FOUND, CHANGED),
        has_version=True,
        is_writing=True,
    ),
    Endpoint(
        "list_policy_versions",
        "GET",
        "/v1/policies/{id}/versions",
        "List the versions of a policy",
        READERS,
        list_versions,
        PolicyVersions,
        faults=(NOT_FOUND,),
    ),
)


# --- trial endpoints ---
# Policies tried over recorded runs: what a candidate would have decided, and where a threshold belongs. Nothing is changed.

WEEK_MINUTES: Final = 60 * 24 * 7


class _TrialRaw(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    policy: dict[str, Any]  # Any: whatever was sent; the check of policies says what is wrong with it
    minutes: Annotated[int, msgspec.Meta(ge=1, le=MAX_TRIAL_MINUTES)] = WEEK_MINUTES
    is_whole: bool = False


def try_policy(context: ServerContext, request: OperationRequest) -> Reply:
    """Return what a policy would have changed in the tenant's runs, had it been in force."""
    trial: _TrialRaw = request.body
    candidate = check_policy(trial.policy, tenant=request.tenant)
    since_us = _since_us(context, trial.minutes)
    lines = _Lines(request.tenant, since_us=since_us)
    report = shadow_log(context.parts.log, [candidate], is_whole=trial.is_whole, since_us=since_us, counted=lines.of)
    return Reply(report)


def calibrate_rule(context: ServerContext, request: OperationRequest) -> Reply:
    """Return where the threshold of a rule belongs by the tenant's good runs, and how often it would trigger."""
    query = request.query
    if query["rule"] is None:
        raise bad_field("rule", "name the rule whose threshold is wanted")
    name = query["policy"]
    policy = None if name is None else context.parts.policies.find(name, tenant=request.tenant).policy
    since_us = _since_us(context, query["minutes"])
    counted = _Counted()

    def is_wanted(_: str, header: Header) -> bool:
        return header.kind != "policies" and header.at_us >= since_us and counted.one()

    records: Iterator[LogRecord] = scan(context.parts.log, is_wanted)
    found = calibrate(records, query["rule"], policy=policy, tenant=request.tenant, agent=query["agent"], since_us=since_us)
    return Reply(found)


class _Counted:
    """Counts what a trial reads, and refuses one that reads too much."""

    def __init__(self) -> None:
        self._read = 0

    def one(self) -> bool:
        """Count one record."""
        self._read += 1
        if self._read > MAX_TRIAL_RECORDS:
            raise bad_field("minutes", f"more than {MAX_TRIAL_RECORDS} records were written in that time; name a shorter one")
        return True


class _Lines:
    """The lines of a log that are about the runs of one tenant since a moment, and about policies."""

    def __init__(self, tenant: str, *, since_us: int) -> None:
        self._tenant = tenant
        self._since_us = since_us
        self._own: set[RunId] = set()
        self._counted = _Counted()

    def of(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the lines that are wanted, in order."""
        for line in lines:
            if line.startswith(CHECKPOINT):
                yield line
                continue
            _, header_bytes, details = line.split(b" ", 2)
            header = decode_header(header_bytes)
            is_told = header.kind == "policies" or (header.at_us >= self._since_us and self._is_own(header, details))
            if is_told:
                self._counted.one()
                yield line

    def _is_own(self, header: Header, details: bytes) -> bool:
        if header.kind == "run":
            self._own.discard(header.run_id)
            if not details.startswith(REDACTED_MARK):
                call = decode_details(header.kind, details).call
                if isinstance(call, RunStarted) and call.facts.tenant == self._tenant:
                    self._own.add(header.run_id)
        return header.run_id in self._own


def _since_us(context: ServerContext, minutes: int) -> int:
    return micros(context.parts.clock.now() - timedelta(minutes=minutes), field="minutes")


_RULE: Final = QueryField("rule", "The rule whose threshold is wanted, such as min_relevance_score.")
_POLICY: Final = QueryField("policy", "The name or id of the policy beside whose rules it is read.")
_AGENT: Final = QueryField("agent", "Only runs of this agent; may be a glob.")

TRIAL_ENDPOINTS: Final = (
    Endpoint(
        "try_policy",
        "POST",
        "/v1/trials/shadow",
        "Say what a policy would have changed",
        AUDITORS,
        try_policy,
        ShadowReport,
        body=ShadowTrial,
        reads=_TrialRaw,
    ),
    Endpoint(
        "calibrate_rule",
        "GET",
        "/v1/trials/calibration",
        "Say where a threshold belongs",
        AUDITORS,
        calibrate_rule,
        Calibration,
        query=(_RULE, _POLICY, _AGENT, MINUTES._replace(default=WEEK_MINUTES)),
        faults=(NOT_FOUND,),
    ),
)
