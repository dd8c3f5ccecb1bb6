"""The code of the conversions: from contracts to messages, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proto_plan import Absence, Form, Kind, Label, snake

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from proto_plan import FieldPlan, MessagePlan, Plan, Shape


DEEPEST: Final = 60
"""How many messages of a recursive union stand in one another; protobuf reads 100, of which the answer around needs some."""


class Writing:
    """Writes the writing half of the conversions."""

    def __init__(self, plan: Plan) -> None:
        self._recursive = {message.name for message in plan.messages if message.is_recursive}

    def function(self, message: MessagePlan) -> str:
        """Return the source of one function."""
        room = f", room: int = {DEEPEST}" if message.is_recursive else ""
        owner = message.name if message.module else "Any"
        head = f"def write_{snake(message.name)}(it: {owner}{room}) -> Fields:"
        return "\n".join([head, *(f"    {line}" for line in self._body(message))])

    def _body(self, message: MessagePlan) -> Iterator[str]:
        match message.form:
            case Form.UNION:
                yield from self._union(message)
            case Form.LIST | Form.MAP | Form.REPLY:
                field = message.fields[0]
                yield f'return {{"{field.wire}": {self._value(message, field, "it")}}}'
            case Form.TUPLE:
                yield from self._literal(message, {field.name: f"it[{place}]" for place, field in enumerate(message.fields)})
            case _:
                yield from self._literal(message, {field.name: f"it.{field.name}" for field in message.fields})

    def _literal(self, message: MessagePlan, sources: Mapping[str, str]) -> Iterator[str]:
        yield "return {"
        for field in message.fields:
            yield f'    "{field.wire}": {self._value(message, field, sources[field.name])},'
        yield "}"

    def _value(self, message: MessagePlan, field: FieldPlan, source: str) -> str:
        """Return the expression of a field's value; None leaves it out."""
        if field.label in (Label.REPEATED, Label.MAP):
            return self._many(message, field, source)
        name = f"{field.name}_"
        written = self._single(message, field.shape, name)
        if field.is_unset:
            return f"None if ({name} := {source}) is UNSET else {written}"
        if field.is_nullable:
            return source if written == name else f"None if ({name} := {source}) is None else {written}"
        if field.shape.kind is Kind.JSON and field.label is Label.IMPLICIT and message.form is Form.STRUCT:
            return f"{written} if ({name} := {source}) else None"
        return self._single(message, field.shape, source)

    def _many(self, message: MessagePlan, field: FieldPlan, source: str) -> str:
        written = self._single(message, field.shape, "each")
        if written == "each":
            return source
        if field.label is Label.MAP:
            return f"{{key: {written} for key, each in {source}.items()}}"
        return f"[{written} for each in {source}]"

    def _union(self, message: MessagePlan) -> Iterator[str]:
        if message.is_recursive:
            yield "if room <= 0:"
            yield '    return {"json": dumps(it)}'
        for field in filter(lambda each: each.is_builtin, message.fields):
            yield f"if isinstance(it, {field.arm_of}):"
            yield f'    return {{"{field.wire}": {self._single(message, field.shape, "it")}}}'
        yield from self._message_arms(message, _message_arms(message))

    def _message_arms(self, message: MessagePlan, arms: list[FieldPlan]) -> Iterator[str]:
        if not arms:
            yield "return {}"
            return
        if len(arms) == 1:
            yield f'return {{"{arms[0].wire}": {self._single(message, arms[0].shape, "it")}}}'
            return
        room = ", room - 1" if message.is_recursive else ""
        yield f"arm, write = _{snake(message.name).upper()}[type(it)]"
        yield f"return {{arm: write(it{room})}}"

    def arms_table(self, message: MessagePlan) -> str:
        """Return the table of a union: the arm of each class and the function that writes it; empty where it needs none."""
        arms = _message_arms(message)
        if message.form is not Form.UNION or len(arms) < 2:  # noqa: PLR2004 - a choice needs two
            return ""
        lines = [f'    {field.arm_of}: ("{field.wire}", {self._arm_writer(message, field)}),' for field in arms]
        return "\n".join([f"_{snake(message.name).upper()}: Final[Mapping[type, tuple[str, Any]]] = {{", *lines, "}"])

    def _arm_writer(self, message: MessagePlan, field: FieldPlan) -> str:
        writer = f"write_{snake(field.shape.proto)}"
        if message.is_recursive and field.shape.proto not in self._recursive:
            return f"lambda it, _: {writer}(it)"
        return writer

    def _single(self, message: MessagePlan, shape: Shape, source: str) -> str:
        match shape.kind:
            case Kind.MOMENT:
                return f"moment({source})"
            case Kind.JSON:
                return f"dumps({source})"
            case Kind.ENUM:
                return f"{snake(shape.proto).upper()}_NUMBERS[{source}]"
            case Kind.MESSAGE:
                room = ", room - 1" if message.is_recursive and shape.proto in self._recursive else ""
                return f"write_{snake(shape.proto)}({source}{room})"
            case _:
                return source


def _message_arms(union: MessagePlan) -> list[FieldPlan]:
    return [field for field in union.fields if field.shape.kind is Kind.MESSAGE and not field.is_builtin]


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
