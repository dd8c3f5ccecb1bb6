"""The `.proto` files: what the plan says, in the language of protobuf, with the words of the contracts as comments."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from proto_plan import Absence, Form, Kind, Label, snake

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from proto_numbers import Numbers, Reserved
    from proto_plan import EnumPlan, FieldPlan, MessagePlan, MethodPlan, Plan

PACKAGE: Final = "evidentia.v1"
FOLDER: Final = "evidentia/v1"
_HEAD: Final = """\
// Written by tools/write_proto.py from the contracts; change those.
//
// A field that is left out has the default of its contract; its comment names it where it is not the empty one.
// Moments are RFC 3339 text: custody is hashed with their offsets and microseconds, and a Timestamp keeps no offset.
// Fields whose names end in _json are JSON text: a protobuf Value would turn 1 into 1.0.
"""
_ABOUT: Final[Mapping[str, str]] = {
    "AdministrationService": "What those do who run a base.",
    "EvidenceService": "Asks for evidence, and about it.",
    "GovernanceService": "Policies, runs, and what was decided about them.",
}
_WIDTH: Final = 118


def proto_files(plan: Plan, numbers: Numbers) -> dict[str, str]:
    """Return the text of every file under its path."""
    files = {f"{FOLDER}/types.proto": _types_file(plan, numbers)}
    for service in plan.services:
        methods = [method for method in plan.methods if method.service == service]
        files[f"{FOLDER}/{snake(service)}.proto"] = _service_file(service, methods, numbers)
    return files


def _types_file(plan: Plan, numbers: Numbers) -> str:
    asked = plan.asked
    parts = [_enum(enum, numbers) for enum in plan.enums]
    parts += [_message(message, numbers, is_asked=message.name in asked) for message in plan.messages]
    return _file(parts, imports=())


def _service_file(service: str, methods: Sequence[MethodPlan], numbers: Numbers) -> str:
    messages = [each for method in methods for each in (method.request, method.response)]
    requests = {method.request.name for method in methods}
    is_typed = any(field.shape.kind in (Kind.MESSAGE, Kind.ENUM) for message in messages for field in message.fields)
    lines = [*_comment(_ABOUT[service], indent=0), f"service {service} {{"]
    for method in methods:
        stream = "stream " if method.is_stream else ""
        lines += _comment(method.about, indent=1)
        lines.append(f"  rpc {method.name}({method.request.name}) returns ({stream}{method.response.name});")
    parts = ["\n".join([*lines, "}"]), *(_message(each, numbers, is_asked=each.name in requests) for each in messages)]
    return _file(parts, imports=(f"{FOLDER}/types.proto",) if is_typed else ())


def _file(parts: Iterable[str], *, imports: Iterable[str]) -> str:
    head = [_HEAD, 'syntax = "proto3";\n', f"package {PACKAGE};\n"]
    named = [f'import "{name}";' for name in imports]
    return "\n".join([*head, *([*named, ""] if named else ()), "\n\n".join(parts)]) + "\n"


def _enum(enum: EnumPlan, numbers: Numbers) -> str:
    given = numbers.of_enum(enum)
    values = [f"  {enum.value_name('unspecified')} = 0;", *(f"  {enum.value_name(word)} = {given[word]};" for word in enum.words)]
    reserved = _reserved(numbers.reserved_of_enum(enum))
    return "\n".join([*_comment(enum.about, indent=0), f"enum {enum.name} {{", *reserved, *values, "}"])


def _message(message: MessagePlan, numbers: Numbers, *, is_asked: bool) -> str:
    given = numbers.of_message(message)
    lines = [*_comment(message.about, indent=0), f"message {message.name} {{", *_reserved(numbers.reserved_of_message(message))]
    if message.form is Form.UNION:
        arms = [line for field in message.fields for line in _field(field, given[field.wire], is_asked=False, indent=2)]
        lines += ["  oneof kind {", *arms, "  }"]
    else:
        lines += [line for field in message.fields for line in _field(field, given[field.wire], is_asked=is_asked, indent=1)]
    return "\n".join([*lines, "}"])


def _field(field: FieldPlan, number: int, *, is_asked: bool, indent: int) -> Iterator[str]:
    required = "Required." if is_asked and field.absence is Absence.REFUSED else ""
    default = f"Left out, it is {field.default}." if field.default else ""
    yield from _comment(" ".join(filter(None, (field.about, required, default))), indent=indent)
    optional = "optional " if field.label is Label.OPTIONAL else ""
    yield f"{'  ' * indent}{optional}{field.wire_type} {field.wire} = {number};"


def _reserved(reserved: Reserved) -> Iterator[str]:
    if reserved.numbers:
        yield f"  reserved {', '.join(map(str, reserved.numbers))};"
    if reserved.names:
        quoted = (f'"{name}"' for name in reserved.names)
        yield f"  reserved {', '.join(quoted)};"


def _comment(words: str, *, indent: int) -> Iterator[str]:
    blank = "  " * indent
    for line in textwrap.wrap(" ".join(words.split()), width=_WIDTH - len(blank)):
        yield f"{blank}// {line}"
