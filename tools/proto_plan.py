"""What the wire looks like, as plain records: messages with their fields, enums with their words, and methods."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """How a single value crosses the wire."""

    PLAIN = "plain"
    """As it is."""
    MOMENT = "moment"
    """As RFC 3339 text: what is hashed says its offset and its microseconds, and a Timestamp keeps no offset."""
    JSON = "json"
    """As JSON text: a protobuf Value turns 1 into 1.0, and what was hashed would not be what arrives."""
    ENUM = "enum"
    MESSAGE = "message"


class Label(StrEnum):
    """How often a value stands in a field, and whether its absence can be seen."""

    IMPLICIT = ""
    OPTIONAL = "optional"
    REPEATED = "repeated"
    MAP = "map"


class Absence(StrEnum):
    """What it means that a field was left out."""

    REFUSED = "refused"
    DEFAULT = "default"
    NULL = "null"
    """None, which the contract has no default for."""


class Form(StrEnum):
    """What a message stands for."""

    STRUCT = "struct"
    UNION = "union"
    LIST = "list"
    """A list that may be absent, or stands in another list."""
    MAP = "map"
    TUPLE = "tuple"
    REPLY = "reply"


class Shape(NamedTuple):
    """A single value: its protobuf type, and its word in the names of what holds it."""

    kind: Kind
    proto: str
    word: str


class FieldPlan(NamedTuple):
    """One field of a message."""

    name: str
    """What the contract calls it."""
    shape: Shape
    label: Label = Label.IMPLICIT
    absence: Absence = Absence.DEFAULT
    is_nullable: bool = False
    is_unset: bool = False
    """Whether the contract says UNSET for a field that was left out."""
    about: str = ""
    default: str = ""
    """As JSON, where it is not what protobuf reads for an absent field."""
    dropped: str = ""
    """The default as Python, where a reader leaves it out: structs that omit their defaults tell them by identity when encoded."""
    arm_of: str = ""
    """In a union: the Python expression of the classes that this arm stands for."""
    tag: tuple[str, str] | None = None

    @property
    def is_builtin(self) -> bool:
        """Tell whether this arm of a union stands for what Python has by itself, and not for a message of the contracts."""
        return bool(self.arm_of) and not self.arm_of[0].isupper()

    @property
    def wire(self) -> str:
        """Return what the wire calls it."""
        return f"{self.name}_json" if self.shape.kind is Kind.JSON and self.name != "json" else self.name

    @property
    def wire_type(self) -> str:
        """Return what decides how its bytes are read; another type needs another number."""
        match self.label:
            case Label.REPEATED:
                return f"repeated {self.shape.proto}"
            case Label.MAP:
                return f"map<string, {self.shape.proto}>"
            case _:
                return self.shape.proto


class MessagePlan(NamedTuple):
    """One message."""

    name: str
    form: Form
    fields: tuple[FieldPlan, ...]
    about: str = ""
    module: str = ""
    """Where its contract is defined; empty for what is made here."""
    is_recursive: bool = False


class EnumPlan(NamedTuple):
    """One closed vocabulary."""

    name: str
    words: tuple[str, ...]
    about: str = ""

    def value_name(self, word: str) -> str:
        """Return what a word is called in protobuf."""
        return f"{snake(self.name)}_{word}".upper()


class MethodPlan(NamedTuple):
    """One method of a service, with its two messages."""

    service: str
    name: str
    about: str
    request: MessagePlan
    response: MessagePlan
    is_stream: bool


class Plan(NamedTuple):
    """Everything that is written."""

    messages: tuple[MessagePlan, ...]
    """Those that methods share, by name."""
    enums: tuple[EnumPlan, ...]
    methods: tuple[MethodPlan, ...]

    @property
    def all_messages(self) -> tuple[MessagePlan, ...]:
        """Return the shared messages, and those of each method."""
        return self.messages + tuple(each for method in self.methods for each in (method.request, method.response))

    @property
    def asked(self) -> frozenset[str]:
        """Return the names of all messages that a request may hold, its own included."""
        by_name = {message.name: message for message in self.all_messages}
        found = {method.request.name for method in self.methods}
        pending = sorted(found)
        while pending:
            inner = {field.shape.proto for field in by_name[pending.pop()].fields} & by_name.keys() - found
            found |= inner
            pending += sorted(inner)
        return frozenset(found)

    @property
    def services(self) -> tuple[str, ...]:
        """Return the names of the services, sorted."""
        return tuple(sorted({method.service for method in self.methods}))


TEXT: Final = Shape(Kind.PLAIN, "string", "Text")
INTEGER: Final = Shape(Kind.PLAIN, "int64", "Integer")
REAL: Final = Shape(Kind.PLAIN, "double", "Real")
TRUTH: Final = Shape(Kind.PLAIN, "bool", "Truth")
BYTES: Final = Shape(Kind.PLAIN, "bytes", "Bytes")
MOMENT: Final = Shape(Kind.MOMENT, "string", "Moment")
JSON: Final = Shape(Kind.JSON, "string", "Json")

_WORD_BREAK: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake(name: str) -> str:
    """Return a name in lower case with underscores: `StreamEvent` is `stream_event`."""
    return _WORD_BREAK.sub("_", name).lower()
