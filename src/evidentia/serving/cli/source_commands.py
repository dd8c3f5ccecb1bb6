"""`evidentia sources`: what a base can ask, how it is, how fresh it is, and what it answers by itself."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.vocabulary import AuthorityTier, Classification, CoverageState, LatencyTier, QueryCapability, SourceType
from evidentia.serving.cli.invocation import CommandResult, arg, command, command_group, opt
from evidentia.serving.cli.output import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.base.sync_base import Base
    from evidentia.contracts.retrieval import SourceTrial
    from evidentia.contracts.sources import FreshnessReport, SourceDescriptor, SourceStatus

group = command_group("Register, test and monitor sources.")

TYPES = ", ".join(SourceType.words())
TIERS = ", ".join(AuthorityTier.words())
LATENCIES = ", ".join(LatencyTier.words())
CAPABILITIES = ", ".join(QueryCapability.words())
LEVELS = ", ".join(Classification.words())
NO_SOURCE = "there is no source yet; `evidentia ingest` and `evidentia sources add` bring some"
SourceArgument = Annotated[str, arg("ID", "The source; `sources list` prints the ids.")]


@command(group, "list", has_caller=True)
def list_sources(base: "Base") -> "CommandResult[list[SourceStatus]]":
    """List the sources that you may see, ordered by id.

    Internal sources show documents; external sources show calls, failures and latencies.
    """
    from evidentia.serving.cli.sources_report import put_statuses

    statuses = base.sources()
    return CommandResult(statuses, put_statuses, notes=() if statuses else [NO_SOURCE])


@command(group, "show", has_caller=True)
def show(base: "Base", *, source_id: SourceArgument) -> CommandResult[object]:
    """Show the connection, access policy and health of a source."""
    from evidentia.serving.cli.sources_report import put_status

    status = _status_of(base.sources(), source_id)
    freshness = next(each for each in base.source_freshness() if each.source_id == source_id)
    return CommandResult({"status": status, "freshness": freshness}, lambda _: put_status(status, freshness))


@command(group, "add")
def add(
    base: "Base",
    *,
    file: Annotated[Path | None, arg("FILE", "Descriptor file (.json or .toml); options override its fields.")] = None,
    source_id: Annotated[str | None, opt("--id", "ID", "Id of the source.")] = None,
    source_type: Annotated[str | None, opt("--type", "T", f"Source type: {TYPES}; default: inverted_index.")] = None,
    kind: Annotated[str | None, opt("--kind", "K", "Connection kind: base, remote or mcp; own for documents of this base.")] = None,
    address: Annotated[str | None, opt("--address", "A", "A base's directory, an address, or the command of an MCP server.")] = None,
    tool: Annotated[str | None, opt("--tool", "NAME", "The tool of an MCP server.")] = None,
    key_variable: Annotated[str | None, opt("--key-variable", "NAME", "The environment variable that holds the key.")] = None,
    option: Annotated[list[str] | None, opt("--option", "NAME=VALUE", "An option of the connection; repeatable.")] = None,
    authority_tier: Annotated[str | None, opt("--authority", "TIER", f"Authority tier: {TIERS}; default: curated.")] = None,
    latency_tier: Annotated[str | None, opt("--latency-tier", "TIER", f"Latency tier: {LATENCIES}; default: warm.")] = None,
    expected_p99_ms: Annotated[int | None, opt("--expected-p99-ms", "N", "Expected 99th percentile latency, where it is known.")] = None,
    freshness_sla: Annotated[str | None, opt("--freshness-sla", "SPAN", "Freshness SLA: 24h, 7d, or seconds.")] = None,
    query_capabilities: Annotated[list[str] | None, opt("--capability", "C", f"Query capability: {CAPABILITIES}; repeatable.")] = None,
    cost_per_query_micros: Annotated[int | None, opt("--cost-micros", "N", "Cost per query, in millionths.")] = None,
    max_qps: Annotated[int | None, opt("--max-qps", "N", "Maximum queries per second.")] = None,
    version: Annotated[str | None, opt("--schema-version", "V", "The version of its schema; default: 1.0.0.")] = None,
    weight: Annotated[float | None, opt("--weight", "W", "Weight in rank fusion, from 0 to 10; default: 1.")] = None,
    roles: Annotated[list[str] | None, opt("--role", "R", "Allow this role; repeatable.")] = None,
    groups: Annotated[list[str] | None, opt("--group", "G", "Allow this group; repeatable.")] = None,
    principals: Annotated[list[str] | None, opt("--principal", "P", "Allow this principal; repeatable.")] = None,
    tenants: Annotated[list[str] | None, opt("--tenant", "T", "Tenant of the source; repeatable; default: default.")] = None,
    minimum_clearance: Annotated[
        str | None, opt("--min-clearance", "LEVEL", f"Minimum clearance of the caller: {LEVELS}; default: public.")
    ] = None,
) -> "CommandResult[SourceDescriptor]":
    """Register a source, or change one.

    The base keeps its descriptor, and every request may ask it from then on. Of a source that is registered, options change what
    they name. A key is never kept, only the name of its variable.
    """
    from evidentia.serving.cli.durations import seconds_of
    from evidentia.serving.cli.source_descriptors import TypedDescriptor, complete, in_thousandths, named_values

    typed = TypedDescriptor(
        fields={
            "source_id": source_id,
            "source_type": source_type,
            "authority_tier": authority_tier,
            "latency_tier": latency_tier,
            "expected_p99_ms": expected_p99_ms,
            "freshness_sla_s": None if freshness_sla is None else seconds_of(freshness_sla, field="freshness_sla_s"),
            "query_capabilities": query_capabilities,
            "cost_per_query_micros": cost_per_query_micros,
            "max_qps": max_qps,
            "version": version,
            "weight_milli": in_thousandths(weight),
        },
        connection={"kind": kind, "address": address, "tool": tool, "key_variable": key_variable, "options": named_values(option)},
        access_policy={
            "roles": roles,
            "groups": groups,
            "principals": principals,
            "tenants": tenants,
            "minimum_clearance": minimum_clearance,
        },
    )
    stored = base.add_source(complete(typed, file=file, registered=base.sources()))
    hint = f"`evidentia sources test {stored.source_id}` asks it by itself"
    return CommandResult(stored, f"registered {stored.source_id} ({stored.connection.kind.value})", notes=() if stored.is_own else [hint])


@command(group, "remove")
def remove(base: "Base", *, source_id: SourceArgument) -> CommandResult[object]:
    """Remove an external source and its cached responses."""
    base.remove_source(source_id)
    return CommandResult({"removed": source_id}, f"removed {source_id}")


@command(group, "test", has_caller=True)
def try_source(
    base: "Base",
    *,
    source_id: SourceArgument,
    query: Annotated[str, arg("QUERY", "The test query.")] = "test",
    limit: Annotated[int, opt("--limit", "N", "Maximum number of candidates.", low=1, high=1000)] = 10,
) -> "CommandResult[SourceTrial]":
    """Send a test query to one external source.

    The timeout is 5 seconds; source selection and circuit breakers are bypassed, and the response is not cached. The exit code is 1
    unless the source answered.
    """
    from evidentia.serving.cli.snippets import SnippetCutter
    from evidentia.serving.cli.sources_report import put_trial

    trial = base.test_source(source_id, query, limit=limit)
    show = partial(put_trial, cutter=SnippetCutter(query, language=base.settings.text.language))
    return CommandResult(trial, show, is_failed=trial.report.state is not CoverageState.SEARCHED)


@command(group, "freshness", has_caller=True)
def freshness(base: "Base") -> "CommandResult[list[FreshnessReport]]":
    """Compare the data age of every source with its freshness SLA.

    The exit code is 1 when a source violates its SLA. The age of an external source is that of its newest candidate so far.
    """
    from evidentia.serving.cli.sources_report import put_freshness

    reports = base.source_freshness()
    return CommandResult(reports, put_freshness, is_failed=any(report.is_fresh is False for report in reports))


@command(group, "changed")
def changed(base: "Base", *, source_id: SourceArgument) -> CommandResult[object]:
    """Invalidate the cached responses of a source whose data has changed."""
    _status_of(base.sources(), source_id)
    dropped = base.source_changed(source_id)
    return CommandResult({"source_id": source_id, "dropped": dropped}, f"dropped {counted(dropped, 'kept answer')} of {source_id}")


def _status_of(statuses: "Sequence[SourceStatus]", source_id: str) -> "SourceStatus":
    status = next((each for each in statuses if each.descriptor.source_id == source_id), None)
    if status is None:
        raise NotFoundError("source", source_id)
    return status
