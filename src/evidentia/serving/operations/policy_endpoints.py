"""Policies over HTTP: list, create, read, replace, change in part, remove, push; versions, templates and schemas."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from evidentia.contracts.control import MAX_PUSHED, PolicyPage, PolicyTemplates, PolicyVersions, PushReply
from evidentia.contracts.doors import encode_cursor
from evidentia.contracts.errors import NotFoundError, PolicyConflictError
from evidentia.contracts.policies import MAX_TRIAL_MINUTES, MAX_TRIAL_RECORDS, PolicyBody, PolicyId, StoredPolicy
from evidentia.contracts.runs import RunId, RunStarted
from evidentia.governance.calibration import calibrate
from evidentia.governance.decision_expansion import micros
from evidentia.governance.log_scan import scan
from evidentia.governance.shadow import shadow_log
from evidentia.policy.categories import find_category
from evidentia.policy.rules import check_policy, policy_schema, rules_schema
from evidentia.policy.templates import TEMPLATES
from evidentia.provenance.decision_chain import CHECKPOINT
from evidentia.provenance.decision_lines import REDACTED_MARK, LineHeader, decode_details, decode_header
from evidentia.serving.operations.api_errors import CHANGED, ApiError, bad_field
from evidentia.serving.operations.endpoint import OperationRequest, Reply, decode_cursor, endpoint
from evidentia.serving.operations.ownership import Viewer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.decisions import LogRecord
    from evidentia.serving.operations.server_context import ServerContext


_Raw = dict[str, Any]  # Any: whatever was sent; the check of policies says what is wrong with it


class _PushRaw(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    policies: Annotated[tuple[_Raw, ...], msgspec.Meta(min_length=1, max_length=MAX_PUSHED)]
    dry_run: bool = False


@endpoint("list_policies")
def _list_policies(context: ServerContext, request: OperationRequest) -> Reply:
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


@endpoint("create_policy", reads=_Raw)
def _create_policy(context: ServerContext, request: OperationRequest) -> Reply:
    body = check_policy(request.body, tenant=request.tenant).body
    stored = context.parts.policies.put(body, tenant=request.tenant, by=request.by)
    return _versioned(stored, {"location": f"/v1/policies/{stored.policy.policy_id}"})


@endpoint("show_policy")
def _show_policy(context: ServerContext, request: OperationRequest) -> Reply:
    return _versioned(context.parts.policies.find(request.path["id"], tenant=request.tenant, version=request.query["version"]))


@endpoint("replace_policy", reads=_Raw)
def _replace_policy(context: ServerContext, request: OperationRequest) -> Reply:
    current = context.parts.policies.find(request.path["id"], tenant=request.tenant)
    body = check_policy(request.body, tenant=request.tenant).body
    return _put(context, request, current, body)


@endpoint("change_policy", reads=_Raw)
def _change_policy(context: ServerContext, request: OperationRequest) -> Reply:
    current = context.parts.policies.find(request.path["id"], tenant=request.tenant)
    before, changes = current.policy.body, request.body
    merged = msgspec.to_builtins(before) | changes
    is_same_category = merged["category"] == before.category
    if is_same_category and isinstance(changes.get("rules"), dict):
        merged["rules"] = {**before.rules, **changes["rules"]}
    body = check_policy(merged, tenant=request.tenant).body
    return _put(context, request, current, body)


@endpoint("remove_policy")
def _remove_policy(context: ServerContext, request: OperationRequest) -> Reply:
    current = context.parts.policies.find(request.path["id"], tenant=request.tenant)
    expected = _expected(request, current)
    try:
        removed = context.parts.policies.remove(current.policy.policy_id, tenant=request.tenant, by=request.by, expected=expected)
    except PolicyConflictError as error:
        raise _changed_meanwhile(error) from error
    return _versioned(removed)


@endpoint("list_policy_versions")
def _list_policy_versions(context: ServerContext, request: OperationRequest) -> Reply:
    return Reply(PolicyVersions(versions=tuple(context.parts.policies.versions(request.path["id"], tenant=request.tenant))))


@endpoint("push_policies", reads=_PushRaw)
def _push_policies(context: ServerContext, request: OperationRequest) -> Reply:
    pushed: _PushRaw = request.body
    results = context.parts.policies.push(pushed.policies, tenant=request.tenant, by=request.by, is_dry=pushed.dry_run)
    return Reply(PushReply(results=tuple(results), dry_run=pushed.dry_run))


@endpoint("list_templates")
def _list_templates(_: ServerContext, __: OperationRequest) -> Reply:
    return Reply(PolicyTemplates(templates=dict(TEMPLATES)))


@endpoint("show_policy_schema")
def _show_policy_schema(_: ServerContext, __: OperationRequest) -> Reply:
    return Reply(policy_schema())


@endpoint("show_rules_schema")
def _show_rules_schema(_: ServerContext, request: OperationRequest) -> Reply:
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


# --- trial endpoints ---
# Policies tried over recorded runs: what a candidate would have decided, and where a threshold belongs. Nothing is changed.

WEEK_MINUTES: Final = 60 * 24 * 7


class _TrialRaw(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    policy: dict[str, Any]  # Any: whatever was sent; the check of policies says what is wrong with it
    minutes: Annotated[int, msgspec.Meta(ge=1, le=MAX_TRIAL_MINUTES)] = WEEK_MINUTES
    is_whole: bool = False


@endpoint("try_policy", reads=_TrialRaw)
def _try_policy(context: ServerContext, request: OperationRequest) -> Reply:
    trial: _TrialRaw = request.body
    candidate = check_policy(trial.policy, tenant=request.tenant)
    since_us = _since_us(context, trial.minutes)
    lines = _Lines(request.tenant, since_us=since_us)
    report = shadow_log(context.parts.log, [candidate], is_whole=trial.is_whole, since_us=since_us, counted=lines.of)
    return Reply(Viewer(context, request).report(report))


@endpoint("calibrate_rule")
def _calibrate_rule(context: ServerContext, request: OperationRequest) -> Reply:
    query = request.query
    if query["rule"] is None:
        raise bad_field("rule", "name the rule whose threshold is wanted")
    name = query["policy"]
    policy = None if name is None else context.parts.policies.find(name, tenant=request.tenant).policy
    since_us = _since_us(context, query["minutes"])
    counted = _Counted()

    def is_wanted(_: str, header: LineHeader) -> bool:
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

    def _is_own(self, header: LineHeader, details: bytes) -> bool:
        if header.kind == "run":
            self._own.discard(header.run_id)
            if not details.startswith(REDACTED_MARK):
                call = decode_details(header.kind, details).call
                if isinstance(call, RunStarted) and call.facts.tenant == self._tenant:
                    self._own.add(header.run_id)
        return header.run_id in self._own


def _since_us(context: ServerContext, minutes: int) -> int:
    return micros(context.parts.clock.now() - timedelta(minutes=minutes), field="minutes")
