"""`evidentia sources add`: a descriptor from a file and from options, registered in a base."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from evidentia.serving.cli import source_options as given
from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.sources import SourceStatus


def add(
    context: typer.Context,
    *,
    file: given.FileArgument = None,
    source_id: given.IdOption = None,
    source_type: given.TypeOption = None,
    kind: given.KindOption = None,
    address: given.AddressOption = None,
    tool: given.ToolOption = None,
    key_variable: given.KeyOption = None,
    option: given.OptionOption = None,
    authority: given.AuthorityOption = None,
    latency_tier: given.LatencyOption = None,
    expected_p99_ms: given.ExpectedOption = None,
    freshness_sla: given.SlaOption = None,
    capability: given.CapabilityOption = None,
    cost_micros: given.CostOption = None,
    max_qps: given.QpsOption = None,
    schema_version: given.VersionOption = None,
    weight: given.WeightOption = None,
    role: given.RoleOption = None,
    group_name: given.GroupOption = None,
    principal: given.PrincipalOption = None,
    tenant: given.TenantOption = None,
    min_clearance: given.ClearanceOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Register a source, or change one.

    The base keeps its descriptor, and every request may ask it from then on. Of a source that is registered, options change what
    they name. A key is never kept, only the name of its variable.
    """
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.descriptor_files import read_descriptor_file, with_typed
    from evidentia.serving.cli.durations import seconds_of
    from evidentia.serving.cli.output import note, put, put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    typed = given.Typed(
        fields={
            "source_id": source_id,
            "source_type": source_type,
            "authority_tier": authority,
            "latency_tier": latency_tier,
            "expected_p99_ms": expected_p99_ms,
            "freshness_sla_s": None if freshness_sla is None else seconds_of(freshness_sla, field="freshness_sla_s"),
            "query_capabilities": capability,
            "cost_per_query_micros": cost_micros,
            "max_qps": max_qps,
            "version": schema_version,
            "weight_milli": given.in_thousandths(weight),
        },
        connection={
            "kind": kind,
            "address": address,
            "tool": tool,
            "key_variable": key_variable,
            "options": given.named_values(option),
        },
        access_policy={
            "roles": role,
            "groups": group_name,
            "principals": principal,
            "tenants": tenant,
            "minimum_clearance": min_clearance,
        },
    ).descriptor()
    require_text(**_texts(typed))
    described = with_typed({} if file is None else read_descriptor_file(file), typed)
    with connect(call.base) as opened:
        known = None if file is not None else _known(opened.sources(), described)
        descriptor = with_typed(known or {}, described)
        _complete(descriptor, is_typed_address=address is not None)
        stored = opened.add_source(descriptor)
    if call.is_json:
        put_json(stored)
        return
    put(f"registered {stored.source_id} ({stored.connection.kind.value})")
    if not stored.is_own:
        note(call, f"`evidentia sources test {stored.source_id}` asks it by itself")


def _known(statuses: "Sequence[SourceStatus]", described: dict[str, object]) -> dict[str, object] | None:
    """Return the descriptor that is registered under the same name, as fields."""
    import msgspec

    wanted = described.get("source_id")
    found = next((each.descriptor for each in statuses if each.descriptor.source_id == wanted), None)
    return None if found is None else msgspec.to_builtins(found)


def _texts(typed: dict[str, object]) -> dict[str, "str | Sequence[str]"]:
    """Return every text that was typed under its name, those in tables too."""
    texts: dict[str, str | Sequence[str]] = {}
    for name, value in typed.items():
        if isinstance(value, dict):
            texts.update({f"{name}.{inner}": text for inner, text in _texts(value).items()})
        elif isinstance(value, str | list):
            texts[name] = value
    return texts


def _complete(descriptor: dict[str, object], *, is_typed_address: bool) -> None:
    """Fill in what a command knows better than the contract, and refuse what no command can do."""
    from evidentia.contracts.errors import InvalidFieldError
    from evidentia.serving.cli.cli_errors import UsageError

    if "source_id" not in descriptor:
        raise InvalidFieldError("source_id", "say what it is called, with --id or in the file")
    descriptor.setdefault("latency_tier", given.USUAL_LATENCY.value)
    connection = descriptor.get("connection", {})
    if not isinstance(connection, dict):
        return
    kind = connection.get("kind")
    if kind is None:
        raise InvalidFieldError("connection.kind", "say where it is: base, remote or mcp, with --kind or in the file")
    if str(kind).strip().lower() == "python":
        raise UsageError(
            "field 'connection.kind': an object of a Python program cannot be attached from here",
            hint="register it in that program with `base.add_source(descriptor, retriever)`",
        )
    if is_typed_address and str(kind).strip().lower() == "base":
        # What is typed in a shell starts at the working directory; in a descriptor it starts at the base.
        descriptor["connection"] = {**connection, "address": str(Path(str(connection["address"])).absolute())}
