"""From the types of the contracts to messages and enums; what has no form on the wire is refused by name."""

from __future__ import annotations

import importlib
import keyword
import pkgutil
import types
import typing
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import inspect as look
from proto_plan import (
    BYTES,
    INTEGER,
    JSON,
    MOMENT,
    REAL,
    TEXT,
    TRUTH,
    Absence,
    EnumPlan,
    FieldPlan,
    Form,
    Kind,
    Label,
    MessagePlan,
    Shape,
    snake,
)
from reference import sources

import evidentia.contracts as contracts_room

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


PYTHON: Final = {"Truth": "bool", "Integer": "int", "Real": "float", "Text": "str", "Bytes": "bytes", "List": "(tuple, list)"}
"""The classes of what a union may hold besides messages, in the order in which they are asked: a bool is an int as well."""


def bare(info: look.Type) -> tuple[look.Type, bool]:
    """Return a type without what is said about it, and without None; and whether None was in it."""
    while isinstance(info, look.Metadata):
        info = info.type
    if not isinstance(info, look.UnionType):
        return info, False
    members = tuple(each for each in info.types if not isinstance(each, look.NoneType))
    is_nullable = len(members) < len(info.types)
    return (bare(members[0])[0] if len(members) == 1 else look.UnionType(members)), is_nullable


def first_line(cls: type) -> str:
    """Return the first line of what a class says about itself."""
    return (cls.__doc__ or "").strip().partition("\n")[0]


def default_of(field: look.Field) -> object:
    """Return what a field is when it is left out; NODEFAULT for one that must not be, UNSET where that is the default."""
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    is_unset = not field.required and field.default is msgspec.NODEFAULT
    return msgspec.UNSET if is_unset else field.default


def default_text(default: object) -> str:
    """Return a default as JSON where a reader of the schema would not expect it; empty for zero, empty, null and messages."""
    is_told = default is not msgspec.NODEFAULT and default is not msgspec.UNSET and bool(default)
    return msgspec.json.encode(default).decode() if is_told and not isinstance(default, msgspec.Struct) else ""


def dropped_default(field: look.Field) -> str:
    """Return the Python of a default that is a plain value, or a message that says nothing; empty for any other."""
    if isinstance(field.default, msgspec.Struct):
        is_silent = not msgspec.to_builtins(field.default)
        return "{}" if is_silent else ""
    return repr(field.default) if type(field.default) in (str, int, float, bool) else ""


def words_of(words: str, info: look.Type) -> str:
    """Return what is said about a field, with the words it takes where they are few and fixed."""
    if not isinstance(info, look.LiteralType):
        return words
    return f"{words} One of {', '.join(map(str, info.values))}.".strip()


def union_name(structs: Sequence[look.StructType], builtins: Sequence[Shape]) -> tuple[str, str]:
    """Return what a union is called, and the module that calls it so; one without a name is called by its members."""
    classes = frozenset(each.cls for each in structs)
    whole = aliases().get(classes | {PYTHON.get(shape.word, shape.word) for shape in builtins})
    if whole is not None:
        return whole
    part = aliases().get(classes)
    words = [part[0]] if part is not None else sorted(each.cls.__name__ for each in structs)
    return "Or".join([*words, *(shape.word for shape in builtins)]), ""


@cache
def aliases() -> Mapping[frozenset[object], tuple[str, str]]:
    """Return what the contracts call their unions, by the members; None is left out, scalars stand by their name."""
    found: dict[frozenset[object], tuple[str, str]] = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(contracts_room.__path__) if not each.ispkg):
        owner = importlib.import_module(f"{contracts_room.__name__}.{module}")
        for alias in sources.aliases(sources.PACKAGE / "contracts" / f"{module}.py"):
            value = vars(owner).get(alias.name)
            if isinstance(value, types.UnionType) or typing.get_origin(value) is typing.Union:
                members = [each for each in typing.get_args(value) if each is not type(None)]
                key = frozenset(each if issubclass(each, msgspec.Struct) else each.__name__ for each in members)
                found.setdefault(key, (alias.name, owner.__name__))
    return found


_SCALARS: Final[Mapping[type, Shape]] = {
    look.StrType: TEXT,
    look.LiteralType: TEXT,
    look.IntType: INTEGER,
    look.FloatType: REAL,
    look.BoolType: TRUTH,
    look.BytesType: BYTES,
    look.DateTimeType: MOMENT,
    look.AnyType: JSON,
    look.RawType: JSON,
}
_LISTS: Final = (look.VarTupleType, look.ListType, look.FrozenSetType, look.SetType)
_CONTRACTS: Final = "evidentia.contracts."
"""The one room that generated code may name; a struct of another is converted without being named."""
_DEEP: Final = "The same as JSON text, where it is nested more deeply than protobuf reads."
_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth")


class Shapes:
    """Collects the messages and enums that the types it is shown need."""

    def __init__(self) -> None:
        self.messages: dict[str, MessagePlan] = {}
        self.enums: dict[str, EnumPlan] = {}
        self._classes: dict[str, object] = {}

    def shape_of(self, info: look.Type) -> Shape:
        """Return how one value of a type crosses the wire."""
        info, is_nullable = bare(info)
        if isinstance(info, look.UnionType) or is_nullable:
            return self._union(info, is_nullable=is_nullable)
        if type(info) in _SCALARS:
            return _SCALARS[type(info)]
        if _is_free(info):
            return JSON
        return self._made(info)

    def _made(self, info: look.Type) -> Shape:
        """Return the shape of what has a message or an enum of its own."""
        match info:
            case look.EnumType(cls=cls):
                return self._enum(cls)
            case look.StructType():
                return self._struct(info)
            case look.TupleType(item_types=items):
                return self._tuple([self.shape_of(each) for each in items])
        many = self._many(info)
        if many is None:
            raise TypeError(f"{info!r} has no form on the wire; give it one in tools/proto_shapes.py")
        shape, label = many
        return self._wrapper(shape, Form.MAP if label is Label.MAP else Form.LIST, label)

    def fields_of(self, info: look.StructType, *, words: Mapping[str, str], is_request: bool = False) -> tuple[FieldPlan, ...]:
        """Return the fields of a struct; those of a request may be null and have a default, which is what null means there."""
        fields = (self._field(field, words.get(field.name, ""), is_request=is_request) for field in info.fields)
        if not info.cls.__struct_config__.omit_defaults:
            return tuple(fields)
        return tuple(plan._replace(dropped=dropped_default(field)) for plan, field in zip(fields, info.fields, strict=True))

    def finished(self) -> tuple[MessagePlan, ...]:
        """Return the messages by name; a union that contains itself has one more arm, for what is nested too deeply."""
        reached = {name: self._reached(name) for name in self.messages}
        for name, message in self.messages.items():
            if name in reached[name]:
                arms = (*message.fields, FieldPlan("json", JSON, about=_DEEP)) if message.form is Form.UNION else message.fields
                self.messages[name] = message._replace(is_recursive=True, fields=arms)
        return tuple(self.messages[name] for name in sorted(self.messages))

    def _field(self, field: look.Field, words: str, *, is_request: bool) -> FieldPlan:
        if field.name != field.encode_name:
            raise TypeError(f"'{field.name}' is called '{field.encode_name}' on the wire; only one name is foreseen")
        info, is_nullable = bare(field.type)
        default = default_of(field)
        is_unset = default is msgspec.UNSET
        if is_nullable and default is not None and not field.required and not is_request:
            raise TypeError(f"'{field.name}' may be None and has another default, so absence would be ambiguous")
        is_bare = not is_nullable and not is_unset
        absence = Absence.DEFAULT if not field.required else Absence.NULL if is_nullable else Absence.REFUSED
        plan = FieldPlan(field.name, JSON, absence=absence, is_nullable=is_nullable, is_unset=is_unset, about=words_of(words, info))
        if is_bare and (field.required or not default):
            many = self._many(info)
            if many is not None:
                return plan._replace(shape=many[0], label=many[1], absence=Absence.DEFAULT if not field.required else Absence.NULL)
        shape = self.shape_of(info)
        return plan._replace(
            shape=shape, label=_label(shape, is_zero=is_bare and not field.required and not default), default=default_text(default)
        )

    def _many(self, info: look.Type) -> tuple[Shape, Label] | None:
        """Return the shape of what stands in a list or a map, and which of them it is; None for anything else."""
        if isinstance(info, look.DictType) and not _is_free(info):
            return self.shape_of(info.value_type), Label.MAP
        if isinstance(info, _LISTS) and not _is_free(info):
            return self.shape_of(info.item_type), Label.REPEATED
        return None

    def _enum(self, cls: type[Any]) -> Shape:
        about = first_line(cls)
        self._claim(cls.__name__, cls)
        self.enums[cls.__name__] = EnumPlan(cls.__name__, tuple(member.value for member in cls), about)
        return Shape(Kind.ENUM, cls.__name__, cls.__name__)

    def _struct(self, info: look.StructType) -> Shape:
        name = info.cls.__name__
        if self._claim(name, info.cls):
            fields = self.fields_of(info, words=sources.field_words(info.cls))
            module = info.cls.__module__ if info.cls.__module__.startswith(_CONTRACTS) else ""
            self.messages[name] = MessagePlan(name, Form.STRUCT, fields, first_line(info.cls), module)
        return Shape(Kind.MESSAGE, name, name)

    def _wrapper(self, inner: Shape, form: Form, label: Label) -> Shape:
        name = "entries" if form is Form.MAP else "values"
        message = f"{inner.word}{form.value.capitalize()}"
        about = f"A {form.value} that may be absent, or stands in another one."
        self._claim(message, (form, inner))
        self.messages[message] = MessagePlan(message, form, (FieldPlan(name, inner, label),), about)
        return Shape(Kind.MESSAGE, message, message)

    def _tuple(self, items: Sequence[Shape]) -> Shape:
        message = "".join(each.word for each in items) + "Tuple"
        fields = tuple(FieldPlan(name, each, _label(each, is_zero=True)) for name, each in zip(_ORDINALS, items, strict=False))
        self._claim(message, tuple(items))
        self.messages[message] = MessagePlan(message, Form.TUPLE, fields, "So many values in this order.")
        return Shape(Kind.MESSAGE, message, message)

    def _union(self, info: look.Type, *, is_nullable: bool) -> Shape:
        members = info.types if isinstance(info, look.UnionType) else (info,)
        structs = [each for each in members if isinstance(each, look.StructType)]
        builtins = [self.shape_of(each) for each in members if not isinstance(each, look.StructType)]
        builtins.sort(key=lambda shape: list(PYTHON).index(_python_word(shape)))
        name, module = union_name(structs, builtins)
        name = f"Nullable{name}" if len(members) == 1 else name
        if self._claim(name, frozenset(map(repr, builtins)) | {each.cls for each in structs}):
            arms = [*self._struct_arms(structs, is_whole=not builtins), *(_builtin_arm(shape) for shape in builtins)]
            about = "One of these; none of them is null." if is_nullable else "One of these."
            self.messages[name] = MessagePlan(name, Form.UNION, tuple(arms), about, module)
        return Shape(Kind.MESSAGE, name, name)

    def _struct_arms(self, structs: Sequence[look.StructType], *, is_whole: bool) -> Iterable[FieldPlan]:
        known = aliases().get(frozenset(each.cls for each in structs))
        if not is_whole and len(structs) > 1 and known is not None:
            union = self.shape_of(look.UnionType(tuple(structs)))
            yield FieldPlan(snake(union.word), union)
            return
        for each in structs:
            tag = None if each.tag_field is None else (each.tag_field, str(each.tag))
            name = snake(each.cls.__name__) if tag is None else tag[1]
            name = f"{name}_node" if keyword.iskeyword(name) else name
            yield FieldPlan(name, self.shape_of(each), arm_of=each.cls.__name__, tag=tag, about="")

    def _reached(self, name: str) -> set[str]:
        found: set[str] = set()
        pending = [name]
        while pending:
            for field in self.messages[pending.pop()].fields:
                if field.shape.proto in self.messages and field.shape.proto not in found:
                    found.add(field.shape.proto)
                    pending.append(field.shape.proto)
        return found

    def _claim(self, name: str, owner: object) -> bool:
        """Tell whether a name is new; one that two types claim is refused."""
        is_new = name not in self._classes
        if self._classes.setdefault(name, owner) != owner:
            raise TypeError(f"two types want to be called '{name}' on the wire: {self._classes[name]!r} and {owner!r}")
        return is_new


def _is_free(info: look.Type) -> bool:
    """Tell whether a list or a map holds anything at all, so that it crosses the wire as JSON."""
    inner = info.value_type if isinstance(info, look.DictType) else info.item_type if isinstance(info, _LISTS) else None
    return isinstance(inner, look.AnyType)


def _label(shape: Shape, *, is_zero: bool) -> Label:
    """Return whether the absence of a single value has to be seen; enums and messages show it anyway."""
    is_seen = shape.kind in (Kind.ENUM, Kind.MESSAGE)
    return Label.IMPLICIT if is_seen or is_zero else Label.OPTIONAL


def _builtin_arm(shape: Shape) -> FieldPlan:
    word = _python_word(shape)
    return FieldPlan(word.lower(), shape, arm_of=PYTHON[word])


def _python_word(shape: Shape) -> str:
    """Return the word of what Python has by itself; lists of whatever are lists, and what a union cannot tell apart is refused."""
    word = "List" if shape.kind is Kind.MESSAGE and shape.word.endswith("List") else shape.word
    if word not in PYTHON:
        raise TypeError(f"'{shape.word}' cannot be told apart in a union; give it an arm in tools/proto_shapes.py")
    return word
