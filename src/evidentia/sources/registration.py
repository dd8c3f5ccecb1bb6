"""What may be registered as a source, and what may take the place of what was: pure decisions with errors that name the field."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec import inspect

from evidentia.contracts.canonical import encode_record
from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import FilterSyntaxError, InvalidFieldError
from evidentia.contracts.predicate_text import parse
from evidentia.contracts.predicate_values import FREE
from evidentia.contracts.predicates import check_fields, fields_of
from evidentia.contracts.shapes import shape_fault
from evidentia.contracts.sources import OUTBOUND, SchemaDefinition, SchemaField, SourceAccessPolicy, SourceConnection, SourceDescriptor
from evidentia.contracts.vocabulary import ConnectionKind, Vocabulary
from evidentia.text.names import SOURCE_NAME_RULE, is_source_name

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


# --- connection rules ---
# What each kind of connection needs and may have; a key itself is refused wherever it could be written down.
#
# No message repeats what might be a key.

_NEEDED: Final[Mapping[ConnectionKind, tuple[str, ...]]] = {
    ConnectionKind.OWN: (),
    ConnectionKind.PYTHON: (),
    ConnectionKind.MEMORY: (),
    ConnectionKind.BASE: ("address",),
    ConnectionKind.REMOTE: ("address",),
    ConnectionKind.MCP: ("address", "tool"),
}
_MAY_HAVE_KEY: Final = frozenset({ConnectionKind.REMOTE, ConnectionKind.MCP})
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LIKE_A_SECRET: Final = re.compile(
    r"key|sig|"
    r"(?:.*[^a-z])?(?:(?:api|access|secret|private|auth|client)[^a-z]?(?:key|token|secret)|password|passwd|passphrase|secret|token"
    r"|credentials?|authori[sz]ation|signature|cookie)"
)
_SCHEMES: Final = ("http", "https")
MAX_ADDRESS_LENGTH: Final = 2_048
KEY_HINT: Final = "put it into an environment variable and name that in connection.key_variable"


def check_connection(connection: SourceConnection) -> None:
    """Raise InvalidFieldError for what a connection lacks, and for what it has that its kind does not use."""
    kind = connection.kind
    needed = _NEEDED[kind]
    for name, value in (("address", connection.address), ("tool", connection.tool)):
        if name in needed and not value.strip():
            raise InvalidFieldError(f"connection.{name}", f"a source of kind '{kind}' needs it")
        if name not in needed and value:
            raise InvalidFieldError(f"connection.{name}", f"a source of kind '{kind}' has none; leave it out")
        if not value.isprintable() or len(value) > MAX_ADDRESS_LENGTH:
            raise InvalidFieldError(f"connection.{name}", f"it is longer than {MAX_ADDRESS_LENGTH} characters or holds control characters")
    _check_key(connection)
    if kind is ConnectionKind.REMOTE or (kind is ConnectionKind.MCP and _is_web_address(connection.address)):
        _check_address(connection.address)


def _check_key(connection: SourceConnection) -> None:
    kind, variable = connection.kind, connection.key_variable
    if variable and kind not in _MAY_HAVE_KEY:
        raise InvalidFieldError("connection.key_variable", f"a source of kind '{kind}' needs no key; leave it out")
    if variable and not _VARIABLE.fullmatch(variable):
        raise InvalidFieldError(
            "connection.key_variable",
            "it is not the name of an environment variable (letters, digits and underscores); never the key itself",
        )
    if connection.options and kind is ConnectionKind.OWN:
        raise InvalidFieldError("connection.options", "the base's own sources have none; leave them out")
    if proxy := connection.options.get(f"{OUTBOUND}proxy"):
        _check_address(proxy)
    for name in connection.options:
        if not name.startswith(OUTBOUND) and _LIKE_A_SECRET.fullmatch(name.lower()):  # those name files, and a variable
            raise InvalidFieldError("connection.options", f"{name[:80]!a} looks like a key, and keys are not stored; {KEY_HINT}")


def _is_web_address(address: str) -> bool:
    return address.lower().startswith(tuple(f"{scheme}://" for scheme in _SCHEMES))


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        is_complete = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete or any(character.isspace() for character in address):
        raise InvalidFieldError("connection.address", "it is not an address such as https://host:8080/path")
    if "@" in parts.netloc:
        raise InvalidFieldError("connection.address", f"it holds a name or password before the host, which is not stored; {KEY_HINT}")
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        if _LIKE_A_SECRET.fullmatch(name.lower()):
            raise InvalidFieldError("connection.address", f"its part {name[:80]!a} looks like a key, which is not stored; {KEY_HINT}")


# --- descriptor shape ---
# The shape of a descriptor as it is given: a field that does not exist and a word that no vocabulary has are named.

MAX_SHOWN_LENGTH: Final = 80
WHOLE: Final = "descriptor"


def read_descriptor(given: SourceDescriptor | Mapping[str, object]) -> SourceDescriptor:
    """Return what was given as a descriptor whose types hold, or raise InvalidFieldError naming the field."""
    try:
        plain = msgspec.to_builtins(given)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidFieldError(WHOLE, f"it holds what no descriptor can ({_lowered(str(error))})") from error
    if not isinstance(plain, Mapping):
        raise InvalidFieldError(WHOLE, f"it is a {type(plain).__name__}, not a mapping of its fields")
    for path, problem in _faults(plain, _descriptor_type(), path=""):
        raise InvalidFieldError(path or WHOLE, problem)
    try:
        return convert(plain, SourceDescriptor)
    except msgspec.ValidationError as error:
        place, problem = shape_fault(error, SourceDescriptor)
        raise InvalidFieldError(place or WHOLE, problem) from error


def shown(value: object) -> str:
    """Return a value for a message, in quotes: short, one line, safe to print."""
    return ascii(str(value)[:MAX_SHOWN_LENGTH])


@lru_cache(maxsize=1)
def _descriptor_type() -> inspect.Type:
    return inspect.type_info(SourceDescriptor)


def _faults(given: object, expected: inspect.Type, *, path: str) -> Iterator[tuple[str, str]]:
    """Yield (field, problem) for fields and words that do not exist; other types are the decoder's business."""
    if isinstance(expected, inspect.StructType) and isinstance(given, Mapping):
        yield from _struct_faults(given, expected, path=path)
    elif isinstance(expected, inspect.EnumType) and issubclass(expected.cls, Vocabulary):
        if not _is_word(given, expected.cls):
            yield path, f"{shown(given)} is not one of {', '.join(expected.cls.words())}"
    elif isinstance(expected, inspect.VarTupleType) and isinstance(given, (list, tuple)):
        for number, each in enumerate(given):
            yield from _faults(each, expected.item_type, path=f"{path}[{number}]")
    elif isinstance(expected, inspect.DictType) and isinstance(given, Mapping):
        for name, each in given.items():
            yield from _faults(each, expected.value_type, path=f"{path}[{shown(name)}]")


def _struct_faults(given: Mapping[object, object], expected: inspect.StructType, *, path: str) -> Iterator[tuple[str, str]]:
    known = {field.name: field.type for field in expected.fields}
    for name, value in given.items():
        if not isinstance(name, str) or name not in known:
            yield path, f"there is no field {shown(name)}; {_meant(str(name), sorted(known))}"
        else:
            yield from _faults(value, known[name], path=f"{path}.{name}" if path else name)


def _is_word(given: object, vocabulary: type[Vocabulary]) -> bool:
    if not isinstance(given, str):
        return False
    try:
        vocabulary(given)
    except ValueError:
        return False
    return True


def _meant(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"the fields are {', '.join(known)}"


def _lowered(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"
