"""What may be registered as a source, and what may take the place of what was: pure decisions with errors that name the field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from evidentia.contracts.canonical import encode_record
from evidentia.contracts.errors import FilterSyntaxError, InvalidFieldError
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicate_values import FREE
from evidentia.contracts.predicates import check_fields, fields_of
from evidentia.sources.connection_rules import check_connection
from evidentia.sources.descriptor_shape import WHOLE, read_descriptor, shown
from evidentia.text.names import SOURCE_NAME_RULE, is_source_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.sources import SchemaDefinition, SchemaField, SourceAccessPolicy, SourceDescriptor

SchemaChange = Literal["none", "compatible", "breaking"]

MAX_NAME_LENGTH: Final = 256
_MARKS: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION: Final = re.compile(
    rf"(?P<major>0|[1-9][0-9]{{0,8}})\.(?P<minor>0|[1-9][0-9]{{0,8}})\.(?P<patch>0|[1-9][0-9]{{0,8}})"
    rf"(?:-(?P<pre>{_MARKS}(?:\.{_MARKS})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_MAX_VERSION_LENGTH: Final = 64


def checked_descriptor(given: SourceDescriptor | Mapping[str, object]) -> SourceDescriptor:
    """Return a descriptor that can be registered, or raise InvalidFieldError naming the first field that is off.

    1. fields, types and words
    2. the name and the version
    3. the schema
    4. who may ask
    5. the connection
    6. that all of it has one canonical form, which is what is stored and hashed
    """
    descriptor = read_descriptor(given)
    if not is_source_name(descriptor.source_id):
        raise InvalidFieldError("source_id", f"{shown(descriptor.source_id)} is not {SOURCE_NAME_RULE}")
    if _version_of(descriptor.version) is None:
        raise InvalidFieldError("version", f"{shown(descriptor.version)} is not a semantic version such as '1.0.0'")
    _refuse_repeats("query_capabilities", descriptor.query_capabilities)
    _check_schema(descriptor.schema)
    _check_policy(descriptor.access_policy)
    check_connection(descriptor.connection)
    _check_canonical(descriptor)
    return descriptor


def check_change(old: SourceDescriptor | None, new: SourceDescriptor) -> None:
    """Raise InvalidFieldError unless a descriptor may take the place of another; None stands for a source that is new.

    Versions never go back; a changed schema needs a higher one, and a breaking change a higher major one.
    """
    before = None if old is None else _version_of(old.version)
    after = _version_of(new.version)
    if old is None or before is None or after is None:
        return
    if after.key < before.key:
        raise InvalidFieldError("version", f"{shown(new.version)} is lower than {shown(old.version)}, which is registered")
    breaking, added = _differences(old.schema, new.schema)
    if breaking and after.major <= before.major:
        raise InvalidFieldError(
            "version",
            f"the schema changed so that what was asked before may fail ({breaking[0]}), which needs a higher major version "
            f"than {shown(old.version)}: at least '{before.major + 1}.0.0'",
        )
    if added and after.key == before.key:
        raise InvalidFieldError("version", f"the schema changed ({added[0]}), which needs a higher version than {shown(old.version)}")


def schema_change(old: SchemaDefinition, new: SchemaDefinition) -> SchemaChange:
    """Tell what became of a schema: a field or table that is gone or has another type breaks what was asked before."""
    breaking, added = _differences(old, new)
    if breaking:
        return "breaking"
    return "compatible" if added else "none"


class _Version(NamedTuple):
    major: int
    key: tuple[object, ...]


def _version_of(text: str) -> _Version | None:
    """Return a semantic version by the precedence of semver.org 2.0.0, section 11; None when it is none."""
    found = _VERSION.fullmatch(text) if len(text) <= _MAX_VERSION_LENGTH else None
    if found is None:
        return None
    numbers = (int(found["major"]), int(found["minor"]), int(found["patch"]))
    marks = tuple((0, int(mark), "") if mark.isdigit() else (1, 0, mark) for mark in (found["pre"] or "").split(".") if mark)
    return _Version(major=numbers[0], key=(*numbers, not marks, marks))


def _differences(old: SchemaDefinition, new: SchemaDefinition) -> tuple[list[str], list[str]]:
    """Return what breaks and what else changed, in words, ordered by name."""
    breaking, other = _field_differences(old.fields, new.fields, within="")
    for name in sorted(old.tables.keys() | new.tables.keys()):
        if name not in new.tables:
            breaking.append(f"table {shown(name)} is gone")
        elif name not in old.tables:
            other.append(f"table {shown(name)} is new")
        else:
            gone, more = _field_differences(old.tables[name], new.tables[name], within=f" of table {shown(name)}")
            breaking += gone
            other += more
    return breaking, other


def _field_differences(old: Sequence[SchemaField], new: Sequence[SchemaField], *, within: str) -> tuple[list[str], list[str]]:
    before, after = ({field.name: field for field in fields} for fields in (old, new))
    breaking: list[str] = []
    other: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        what = f"field {shown(name)}{within}"
        if name not in after:
            breaking.append(f"{what} is gone")
        elif name not in before:
            other.append(f"{what} is new")
        elif before[name].type != after[name].type:
            breaking.append(f"{what} was {shown(before[name].type)} and is {shown(after[name].type)}")
        elif before[name] != after[name]:
            other.append(f"{what} is described otherwise")
    if not breaking and not other and tuple(old) != tuple(new):
        other.append(f"the order of the fields{within}")
    return breaking, other


def _check_schema(schema: SchemaDefinition) -> None:
    _check_fields("schema.fields", schema.fields)
    for name, fields in schema.tables.items():
        _check_name("schema.tables", name)
        _check_fields(f"schema.tables[{shown(name)}]", fields)


def _check_fields(path: str, fields: Sequence[SchemaField]) -> None:
    for field in fields:
        _check_name(f"{path}.name", field.name)
        _check_name(f"{path}.type", field.type)
    _refuse_repeats(path, [field.name for field in fields])


def _check_policy(policy: SourceAccessPolicy) -> None:
    if not policy.tenants:
        raise InvalidFieldError("access_policy.tenants", "without a tenant nobody may ask the source; name at least one")
    for field in ("tenants", "roles", "groups", "principals"):
        for name in getattr(policy, field):
            _check_name(f"access_policy.{field}", name)
        _refuse_repeats(f"access_policy.{field}", getattr(policy, field))
    if not policy.predicate:
        return
    try:
        predicate = parse(policy.predicate)
        check_fields(predicate, fields=dict.fromkeys(fields_of(predicate), FREE))
    except (FilterSyntaxError, InvalidFieldError) as error:
        raise InvalidFieldError("access_policy.predicate", f"it is not a filter over the caller's attributes ({error})") from error


def _check_name(path: str, name: str) -> None:
    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME_LENGTH:
        raise InvalidFieldError(path, f"{shown(name)} is empty, longer than {MAX_NAME_LENGTH} characters or holds control characters")


def _refuse_repeats(path: str, words: Sequence[str]) -> None:
    for number, word in enumerate(words):
        if word in words[:number]:
            raise InvalidFieldError(path, f"{shown(word)} stands there twice")


def _check_canonical(descriptor: SourceDescriptor) -> None:
    try:
        encode_record(msgspec.to_builtins(descriptor))
    except InvalidFieldError as error:
        path = error.field.removeprefix("$").removeprefix(".") or WHOLE
        raise InvalidFieldError(path, str(error).partition(": ")[2]) from error
