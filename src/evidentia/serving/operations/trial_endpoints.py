"""Policies tried over recorded runs: what a candidate would have decided, and where a threshold belongs. Nothing is changed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from evidentia.contracts.runs import RunId, RunStarted
from evidentia.contracts.trials import MAX_TRIAL_MINUTES, MAX_TRIAL_RECORDS, ShadowTrial
from evidentia.governance.calibrate import Calibration, calibrate
from evidentia.governance.expanding import micros
from evidentia.governance.log_scan import scan
from evidentia.governance.shadow import ShadowReport, shadow_log
from evidentia.policy.rules import check_policy
from evidentia.provenance.decision_chain import CHECKPOINT
from evidentia.provenance.decision_lines import REDACTED_MARK, decode_details, decode_header
from evidentia.serving.operations.api_errors import NOT_FOUND, bad_field
from evidentia.serving.operations.endpoint import MINUTES, Endpoint, OperationRequest, QueryField, Reply
from evidentia.serving.operations.roles import AUDITORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia.contracts.decisions import LogRecord
    from evidentia.provenance.decision_lines import Header
    from evidentia.serving.operations.server_context import ServerContext

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

ENDPOINTS: Final = (
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
