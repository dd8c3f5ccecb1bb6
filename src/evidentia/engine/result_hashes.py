"""Hashes of what was asked and what was answered, over nothing that a clock, a cache or a machine decides.

docs/custody.md specifies the bytes. Numbers that are not integers are counted in millionths, maps become sorted lists
of pairs, so that every value is canonical.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Final, cast

import msgspec
import msgspec.inspect

from evidentia.contracts.canonical import encode_record, encode_struct, sha256_hex
from evidentia.contracts.evidence import (
    Conflict,
    CoverageReport,
    EvidenceFragment,
    EvidenceRequest,
    EvidenceResponse,
    WithheldFragment,
)
from evidentia.contracts.vocabulary import CoverageState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.ids import Sha256, SourceId
    from evidentia.contracts.receipts import EngineConfig

_MILLION = 1_000_000
NOT_COVERED: Final = ("latency_ms", "receipt_id", "response_hash")
"""Fields that stand as null when an answer is hashed: the hash itself, the receipt that names it, and the time until it was out."""
_NOT_HASHED = ("corpus_version", "evidence_state", "on_timeout", "receipt")
"""The version that answered stands in the answer itself, whether or not the request named it."""


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A fragment as the hash of an answer sees it."""

    authority_tier: str
    chunk_id: str
    content_hash: str
    cut_off: int
    flags: tuple[str, ...]
    is_truncated: bool
    score: int


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as its hash sees it."""

    config_hash: str
    conflicts: list[object]
    coverage: list[tuple[str, str]]
    evidence_state: str
    facets: list[tuple[str, list[tuple[str, int]]]]
    fragments: list[_Mark]
    policies: str
    request_hash: str
    truncation_applied: bool
    withheld: list[tuple[str, str]]


def request_hash(request: EvidenceRequest) -> Sha256:
    """Return the hash of a request in the form in which it was answered."""
    fields = [
        encoded if value is default else encode_record({name: plain(value)})[1:-1]
        for value, (name, default, encoded) in zip(_HASHED_VALUES(request), _HASHED, strict=True)
    ]
    return sha256_hex(b"{" + b",".join(fields) + b"}")


def config_hash(config: EngineConfig) -> Sha256:
    """Return the hash of the settings that shape an answer."""
    settings = {name: plain(getattr(config, name)) for name in config.__struct_fields__}
    if config.calibration is None:
        del settings["calibration"]  # receipts from before there were any keep their hash
    return sha256_hex(encode_record({"config": settings}))


def result_hash(
    *,
    request: Sha256,
    evidence_state: str,
    config: Sha256,
    fragments: Sequence[EvidenceFragment],
    coverage: Mapping[SourceId, CoverageReport],
    withheld: Sequence[WithheldFragment],
    policies: str,
    conflicts: Sequence[Conflict],
    facets: Mapping[str, Mapping[str, int]],
    truncation_applied: bool,
) -> Sha256:
    """Return the hash of an answer."""
    result = _Result(
        config_hash=config,
        conflicts=[plain(conflict) for conflict in conflicts],
        coverage=[(source, _state(report)) for source, report in sorted(coverage.items())],
        evidence_state=evidence_state,
        facets=[(field, _ordered(counts)) for field, counts in sorted(facets.items())],
        fragments=[
            _Mark(
                authority_tier=fragment.authority_tier,
                chunk_id=fragment.chunk_id,
                content_hash=fragment.content_hash,
                cut_off=len(fragment.cut_off),
                flags=fragment.flags,
                is_truncated=fragment.is_truncated,
                score=fragment.score,
            )
            for fragment in fragments
        ],
        policies=policies,
        request_hash=request,
        truncation_applied=truncation_applied,
        withheld=[(each.chunk_id, each.reason) for each in withheld],
    )
    return sha256_hex(encode_struct(result))


def response_hash(response: EvidenceResponse) -> Sha256:
    """Return the hash of everything that an answer says, but for what is known only once it is handed out."""
    return sha256_hex(encode_struct(_counted(msgspec.structs.replace(response, **dict.fromkeys(NOT_COVERED)))))


def sealed(response: EvidenceResponse) -> EvidenceResponse:
    """Return an answer with the hash of all that it says."""
    return msgspec.structs.replace(response, response_hash=response_hash(response))


def _counted(value: object) -> object:
    """Return a value whose fractions are integers; only fields that can hold one are looked into."""
    if isinstance(value, float):
        return round(value * _MILLION)
    if isinstance(value, msgspec.Struct):
        fields = _fraction_fields(type(value))
        changed = {name: (_counted_freely if is_free else _counted)(getattr(value, name)) for name, is_free in fields}
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, dict):
        return {key: _counted(inner) for key, inner in value.items()}
    return tuple(map(_counted, value)) if isinstance(value, tuple) else value


def _counted_freely(value: object) -> object:
    """Return a value of no declared type whose fractions cannot be taken for integers that stand there."""
    if isinstance(value, dict):
        return {key: _counted_freely(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_counted_freely(each) for each in value]
    return {"millionths": round(value * _MILLION)} if isinstance(value, float) else value


@cache
def _fraction_fields(message: type[msgspec.Struct]) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a message that can hold a fraction, and whether anything else may stand there."""
    described = cast("msgspec.inspect.StructType", msgspec.inspect.type_info(message))
    return tuple(
        (field.name, _holds(field.type, msgspec.inspect.AnyType))
        for field in described.fields
        if _holds(field.type, msgspec.inspect.FloatType, msgspec.inspect.AnyType)
    )


def _holds(kind: msgspec.inspect.Type, *wanted: type[msgspec.inspect.Type]) -> bool:
    """Tell whether a type is, or contains, one of these; what a message in it holds freely is that message's own affair."""
    if isinstance(kind, wanted):
        return True
    if isinstance(kind, msgspec.inspect.StructType):
        return msgspec.inspect.FloatType in wanted and bool(_fraction_fields(kind.cls))
    inner = [getattr(kind, name, ()) for name in ("item_type", "key_type", "value_type", "types", "item_types", "type")]
    return any(_holds(each, *wanted) for found in inner for each in (found if isinstance(found, tuple) else (found,)))


def _state(report: CoverageReport) -> str:
    """Return what became of a source; where its candidates were kept is nothing that an answer's hash speaks of."""
    return (CoverageState.SEARCHED if report.state is CoverageState.CACHED else report.state).value


def plain(value: object) -> object:
    """Return a value in canonical terms."""
    if isinstance(value, msgspec.Struct):
        tag = {value.__struct_config__.tag_field: value.__struct_config__.tag} if value.__struct_config__.tag_field else {}
        return tag | {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return [[plain(key), plain(inner)] for key, inner in sorted(value.items())]
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return _scalar(value)


def _scalar(value: object) -> object:
    if isinstance(value, float):
        return round(value * _MILLION)
    if isinstance(value, datetime):
        return msgspec.to_builtins(value.astimezone(UTC))
    return str(value) if isinstance(value, str) else value


def _encoded_default(field: msgspec.structs.FieldInfo) -> bytes:
    return b"" if field.default is msgspec.NODEFAULT else encode_record({field.name: plain(field.default)})[1:-1]


_HASHED = [
    (field.name, field.default, _encoded_default(field))
    for field in sorted(msgspec.structs.fields(EvidenceRequest), key=attrgetter("name"))
    if field.name not in _NOT_HASHED
]
"""Fields by name, with what they hold unless the request says otherwise and how that stands in the canonical record."""
_HASHED_VALUES = attrgetter(*(name for name, _, _ in _HASHED))


def _ordered(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return a facet in the order in which it is shown, whatever became of the order of its keys on the way."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))
