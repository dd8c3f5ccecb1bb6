"""Sources as text: how they are, how fresh they are, and what one of them answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.vocabulary import BreakerState
from evidentia.serving.cli.durations import NEVER, age_in_words, span_of
from evidentia.serving.cli.output import counted, put, put_facts, put_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from evidentia.contracts.retrieval import ExternalCandidate, SourceTrial
    from evidentia.contracts.sources import FreshnessReport, SourceAccessPolicy, SourceDescriptor, SourceHealth, SourceStatus
    from evidentia.serving.cli.snippets import SnippetCutter

READY = "ready"
NOT_ATTACHED = "not attached"
MAX_ORIGIN_CHARS = 60
OTHER_BASE = "evidentia:"
"""How origins in other bases begin; what follows names the base by its hash, which says nothing to a reader."""
_VERDICTS = {True: "fresh", False: "too old", None: NEVER}


def put_statuses(statuses: Sequence[SourceStatus]) -> None:
    """Print a table of sources; what they did stands last, since it is longest."""
    rows = [
        (
            each.descriptor.source_id,
            each.descriptor.source_type.value,
            each.descriptor.connection.kind.value,
            each.descriptor.authority_tier.value,
            span_of(each.descriptor.freshness_sla_s),
            _state(each),
            _use(each),
        )
        for each in statuses
    ]
    put_table(("id", "type", "kind", "authority", "SLA", "state", "use"), rows)


def put_status(status: SourceStatus, freshness: FreshnessReport) -> None:
    """Print everything that is known of a source."""
    descriptor, health = status.descriptor, status.health
    put_facts(
        [
            ("source", descriptor.source_id),
            ("type", descriptor.source_type.value),
            ("kind", descriptor.connection.kind.value),
            *_connection(descriptor),
            ("authority", descriptor.authority_tier.value),
            ("capabilities", ", ".join(each.value for each in descriptor.query_capabilities) or NEVER),
            ("latency tier", _latency(descriptor)),
            ("cost", f"{descriptor.cost_per_query_micros} millionths a question"),
            ("rate", NEVER if descriptor.max_qps is None else f"at most {descriptor.max_qps} questions a second"),
            ("weight", f"{descriptor.weight_milli / 1_000:g}"),
            ("schema", _schema(descriptor)),
            ("may ask", _askers(descriptor.access_policy)),
            ("freshness", _freshness(freshness)),
            ("state", _state(status)),
            ("use", _use(status)),
            *_history(health),
        ]
    )


def put_freshness(reports: Sequence[FreshnessReport]) -> None:
    """Print a table of ages beside promises."""
    rows = [
        (each.source_id, span_of(each.freshness_sla_s), age_in_words(each.age_s), _moment(each.newest_at), _VERDICTS[each.is_fresh])
        for each in reports
    ]
    put_table(("source", "SLA", "age", "newest", "verdict"), rows)


def put_trial(trial: SourceTrial, *, cutter: SnippetCutter) -> None:
    """Print what a source did, then what it proposed."""
    report = trial.report
    put_facts(
        [
            ("source", trial.source_id),
            ("state", report.state.value),
            *([("reason", report.reason)] if report.reason else []),
            ("candidates", report.candidates),
            ("time", f"{report.elapsed_ms:.1f} ms"),
            ("data age", age_in_words(report.data_age_s)),
            ("faults", faults_in_words(report.faults) or NEVER),
        ]
    )
    if not trial.candidates:
        return
    put()
    put_table(
        ("#", "id", "origin", "age", "flags", "snippet"),
        [
            (
                each.rank,
                each.document_id,
                short_origin(each.origin) or NEVER,
                _age(each),
                ", ".join(each.flags) or NEVER,
                cutter.cut(each.content),
            )
            for each in trial.candidates
        ],
    )


def faults_in_words(faults: Mapping[str, int]) -> str:
    """Return what was wrong with a reply and how often, by name."""
    return ", ".join(f"{name} {count}" for name, count in sorted(faults.items()))


def short_origin(origin: str) -> str:
    """Return an origin that fits into a cell, its beginning and a mark where it was cut."""
    return origin if len(origin) <= MAX_ORIGIN_CHARS else f"{origin[: MAX_ORIGIN_CHARS - 1]}…"


def _state(status: SourceStatus) -> str:
    if not status.is_attached:
        return NOT_ATTACHED
    breaker = status.health.breaker
    return READY if breaker is BreakerState.CLOSED else f"breaker {breaker.value.replace('_', ' ')}"


def _use(status: SourceStatus) -> str:
    if status.documents is not None:
        return counted(status.documents, "document")
    health = status.health
    if not health.calls:
        return "not asked yet"
    counts = [counted(health.calls, "call"), f"{health.failures} failed", f"{health.timeouts} late"]
    times = [f"{name} {value:.1f} ms" for name, value in (("p50", health.p50_ms), ("p99", health.p99_ms)) if value is not None]
    return ", ".join([*counts, *times])


def _connection(descriptor: SourceDescriptor) -> list[tuple[str, object]]:
    connection = descriptor.connection
    options = ", ".join(f"{name}={value}" for name, value in sorted(connection.options.items()))
    facts = (("address", connection.address), ("tool", connection.tool), ("key variable", connection.key_variable), ("options", options))
    return [(name, value) for name, value in facts if value]


def _latency(descriptor: SourceDescriptor) -> str:
    expected = descriptor.expected_p99_ms
    return descriptor.latency_tier.value + ("" if expected is None else f", 99 of 100 answers within {expected} ms")


def _schema(descriptor: SourceDescriptor) -> str:
    fields, tables = len(descriptor.schema.fields), len(descriptor.schema.tables)
    return f"version {descriptor.version}, {counted(fields, 'field')}, {counted(tables, 'table')}"


def _askers(policy: SourceAccessPolicy) -> str:
    lists = (("tenants", policy.tenants), ("roles", policy.roles), ("groups", policy.groups), ("principals", policy.principals))
    said = [f"{name} {', '.join(members)}" for name, members in lists if members]
    said.append(f"clearance {policy.minimum_clearance.value}")
    return "; ".join([*said, *([policy.predicate] if policy.predicate else [])])


def _freshness(report: FreshnessReport) -> str:
    promise = "promises nothing" if report.freshness_sla_s is None else f"at most {span_of(report.freshness_sla_s)}"
    verdict = "" if report.is_fresh is None else f", {_VERDICTS[report.is_fresh]}"
    return f"{age_in_words(report.age_s)}; {promise}{verdict}"


def _history(health: SourceHealth) -> list[tuple[str, object]]:
    facts = (
        ("last answer", health.last_success_at and _moment(health.last_success_at)),
        ("last failure", health.last_failure_at and _moment(health.last_failure_at)),
        ("last problem", health.last_problem),
    )
    return [(name, value) for name, value in facts if value]


def _moment(moment: datetime | None) -> str:
    return NEVER if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"


def _age(candidate: ExternalCandidate) -> str:
    if candidate.updated_at is None:
        return "unknown"
    return age_in_words(max(0, int((candidate.retrieved_at - candidate.updated_at).total_seconds())))
