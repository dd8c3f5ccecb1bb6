"""Python code that turns messages into plain objects, as JSON would give them; the contract's own reader makes the struct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto_plan import Absence, Form, Kind, Label, snake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proto_plan import FieldPlan, MessagePlan, Shape


def reading_function(message: MessagePlan, *, message_class: str) -> str:
    """Return the source of one function."""
    head = f"def read_{snake(message.name)}(it: {message_class}) -> {_result(message)}:"
    return "\n".join([head, *(f"    {line}" for line in _body(message))])


def _result(message: MessagePlan) -> str:
    return "Fields" if message.form is Form.STRUCT else "Any"


def _body(message: MessagePlan) -> Iterator[str]:
    match message.form:
        case Form.UNION:
            yield from _union(message)
        case Form.LIST | Form.MAP | Form.REPLY:
            yield f"return {_value(message.fields[0])}"
        case Form.TUPLE:
            yield f"return [{', '.join(_value(field) for field in message.fields)}]"
        case _:
            yield from _struct(message)


def _struct(message: MessagePlan) -> Iterator[str]:
    always = [field for field in message.fields if _is_always(field)]
    others = [field for field in message.fields if not _is_always(field)]
    if not message.fields:
        yield "del it"
    if not others:
        yield from _literal("return {", always)
        return
    yield from _literal("fields: Fields = {", always)
    for field in others:
        yield from _where_present(field)
    yield "return fields"


def _literal(head: str, fields: list[FieldPlan]) -> Iterator[str]:
    if not fields:
        yield head + "}"
        return
    yield head
    for field in fields:
        yield f'    "{field.name}": {_value(field)},'
    yield "}"


def _is_always(field: FieldPlan) -> bool:
    """Tell whether absence needs no question: what is there then is what the contract has by default."""
    if field.label in (Label.REPEATED, Label.MAP):
        return field.absence is Absence.NULL
    return field.shape.kind is Kind.PLAIN and field.label is Label.IMPLICIT and not field.dropped


def _where_present(field: FieldPlan) -> Iterator[str]:
    source = f"it.{field.wire}"
    if field.label in (Label.REPEATED, Label.MAP):
        yield f"if {source}:"
        yield f'    fields["{field.name}"] = {_value(field)}'
        return
    if field.shape.kind is Kind.MESSAGE:
        has = f'it.HasField("{field.wire}")'
        yield f"if {has} and ({field.name}_ := {_value(field)}):" if field.dropped else f"if {has}:"
        yield f'    fields["{field.name}"] = {field.name + "_" if field.dropped else _value(field)}'
    else:
        yield f"if {_presence(field)}:"
        yield f'    fields["{field.name}"] = {_single(field.shape, field.name + "_")}'
    if field.absence is Absence.NULL:
        yield "else:"
        yield f'    fields["{field.name}"] = None'


def _presence(field: FieldPlan) -> str:
    """Return the question whether a single value is there; what is not empty is, and this is asked faster than presence itself."""
    value = f"({field.name}_ := it.{field.wire})"
    if field.label is not Label.OPTIONAL or field.shape.kind is Kind.JSON:
        return value
    has = f'it.HasField("{field.wire}")'
    return f"{value} != {field.dropped} and ({field.name}_ or {has})" if field.dropped else f"{value} or {has}"


def _union(message: MessagePlan) -> Iterator[str]:
    yield 'arm = it.WhichOneof("kind")'
    for field in message.fields:
        yield f'if arm == "{field.wire}":'
        value = _value(field)
        if field.tag is not None:
            value = f'{{"{field.tag[0]}": "{field.tag[1]}", **{value}}}'
        yield f"    return {value}"
    yield "return None"


def _value(field: FieldPlan) -> str:
    source = f"it.{field.wire}"
    single = _single(field.shape, "each")
    if field.label is Label.REPEATED:
        return f"[*{source}]" if single == "each" else f"[{single} for each in {source}]"
    if field.label is Label.MAP:
        return f"dict({source})" if single == "each" else f"{{key: {single} for key, each in {source}.items()}}"
    return _single(field.shape, source)


def _single(shape: Shape, source: str) -> str:
    match shape.kind:
        case Kind.JSON:
            return f"loads({source})"
        case Kind.ENUM:
            return f"{snake(shape.proto).upper()}_WORDS[{source}]"
        case Kind.MESSAGE:
            return f"read_{snake(shape.proto)}({source})"
        case _:
            return source
