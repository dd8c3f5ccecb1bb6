"""The options of `evidentia sources add`, and the descriptor that they make."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from evidentia.contracts.vocabulary import AuthorityTier, Classification, LatencyTier, QueryCapability, SourceType

TYPES = ", ".join(SourceType.words())
TIERS = ", ".join(AuthorityTier.words())
LATENCIES = ", ".join(LatencyTier.words())
CAPABILITIES = ", ".join(QueryCapability.words())
LEVELS = ", ".join(Classification.words())
USUAL_LATENCY = LatencyTier.WARM
"""What is typed here is asked by a process that has just begun, which takes longer than the 10 ms of the contract's default."""
_MILLI = 1_000

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="Descriptor file (.json or .toml); options override its fields.", show_default=False)
]
IdOption = Annotated[str | None, typer.Option("--id", metavar="ID", help="Id of the source.", show_default=False)]
TypeOption = Annotated[
    str | None, typer.Option("--type", metavar="T", help=f"Source type: {TYPES}; default: inverted_index.", show_default=False)
]
KindOption = Annotated[
    str | None,
    typer.Option("--kind", metavar="K", help="Connection kind: base, remote or mcp; own for documents of this base.", show_default=False),
]
AddressOption = Annotated[
    str | None,
    typer.Option("--address", metavar="A", help="A base's directory, an address, or the command of an MCP server.", show_default=False),
]
ToolOption = Annotated[str | None, typer.Option("--tool", metavar="NAME", help="The tool of an MCP server.", show_default=False)]
KeyOption = Annotated[
    str | None,
    typer.Option("--key-variable", metavar="NAME", help="The environment variable that holds the key.", show_default=False),
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the connection; repeatable.", show_default=False),
]
AuthorityOption = Annotated[
    str | None,
    typer.Option("--authority", metavar="TIER", help=f"Authority tier: {TIERS}; default: curated.", show_default=False),
]
LatencyOption = Annotated[
    str | None,
    typer.Option("--latency-tier", metavar="TIER", help=f"Latency tier: {LATENCIES}; default: warm.", show_default=False),
]
ExpectedOption = Annotated[
    int | None,
    typer.Option("--expected-p99-ms", metavar="N", help="Expected 99th percentile latency, where it is known.", show_default=False),
]
SlaOption = Annotated[
    str | None,
    typer.Option("--freshness-sla", metavar="SPAN", help="Freshness SLA: 24h, 7d, or seconds.", show_default=False),
]
CapabilityOption = Annotated[
    list[str] | None,
    typer.Option("--capability", metavar="C", help=f"Query capability: {CAPABILITIES}; repeatable.", show_default=False),
]
CostOption = Annotated[int | None, typer.Option("--cost-micros", metavar="N", help="Cost per query, in millionths.", show_default=False)]
QpsOption = Annotated[int | None, typer.Option("--max-qps", metavar="N", help="Maximum queries per second.", show_default=False)]
VersionOption = Annotated[
    str | None, typer.Option("--schema-version", metavar="V", help="The version of its schema; default: 1.0.0.", show_default=False)
]
WeightOption = Annotated[
    float | None, typer.Option("--weight", metavar="W", help="Weight in rank fusion, from 0 to 10; default: 1.", show_default=False)
]
RoleOption = Annotated[list[str] | None, typer.Option("--role", metavar="R", help="Allow this role; repeatable.", show_default=False)]
GroupOption = Annotated[list[str] | None, typer.Option("--group", metavar="G", help="Allow this group; repeatable.", show_default=False)]
PrincipalOption = Annotated[
    list[str] | None, typer.Option("--principal", metavar="P", help="Allow this principal; repeatable.", show_default=False)
]
TenantOption = Annotated[
    list[str] | None, typer.Option("--tenant", metavar="T", help="Tenant of the source; repeatable; default: default.", show_default=False)
]
ClearanceOption = Annotated[
    str | None,
    typer.Option(
        "--min-clearance", metavar="LEVEL", help=f"Minimum clearance of the caller: {LEVELS}; default: public.", show_default=False
    ),
]


class Typed(NamedTuple):
    """What was typed, under the names of the contract; None was not typed."""

    fields: Mapping[str, object]
    connection: Mapping[str, object]
    access_policy: Mapping[str, object]

    def descriptor(self) -> dict[str, object]:
        """Return the fields that were typed, tables in their places."""
        tables = {"connection": _given(self.connection), "access_policy": _given(self.access_policy)}
        return {**_given(self.fields), **{name: table for name, table in tables.items() if table}}


def in_thousandths(weight: float | None) -> int | None:
    """Return a weight as the contract keeps it; what is no number of its range is left for the contract to refuse."""
    from math import isfinite

    from evidentia.contracts.errors import InvalidFieldError

    if weight is None:
        return None
    if not isfinite(weight):
        raise InvalidFieldError("weight_milli", f"'{weight}' is not a number from 0 to 10")
    return round(weight * _MILLI)


def named_values(typed: list[str] | None) -> dict[str, str] | None:
    """Return `NAME=VALUE` words as a table, or name the one that is none; a value may be a secret and is not repeated."""
    from evidentia.contracts.errors import InvalidFieldError

    if typed is None:
        return None
    found: dict[str, str] = {}
    for word in typed:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InvalidFieldError("connection.options", "an option is not of the form NAME=VALUE")
        if name in found:
            raise InvalidFieldError("connection.options", f"'{name}' is given twice")
        found[name] = value
    return found


def _given(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}
