"""Field numbers that never change: the lock file keeps every number that was ever given, and none is given twice.

A number belongs to a name and a type. A field that is removed, or changes its type, leaves its number behind, reserved.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from proto_plan import EnumPlan, FieldPlan, MessagePlan

_FIRST_OF_PROTOBUF: Final = 19_000
"""Protobuf keeps 19000 to 19999 for itself; no message comes near, and one that does is refused."""


class Reserved(NamedTuple):
    """What a message no longer uses, and nobody may use again."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]


class Numbers:
    """The numbers of fields and words, with new ones for what has none."""

    def __init__(self, text: str = "{}") -> None:
        kept: dict[str, dict[str, dict[str, int]]] = json.loads(text)
        self._messages = kept.get("messages", {})
        self._enums = kept.get("enums", {})

    def text(self) -> str:
        """Return the lock file."""
        return json.dumps({"enums": self._enums, "messages": self._messages}, indent=1, sort_keys=True) + "\n"

    def of_message(self, message: MessagePlan) -> Mapping[str, int]:
        """Return the number of every field by its name on the wire."""
        given = allot(self._messages.setdefault(message.name, {}), [_key(field) for field in message.fields])
        return {field.wire: given[_key(field)] for field in message.fields}

    def of_enum(self, enum: EnumPlan) -> Mapping[str, int]:
        """Return the number of every word; 0 is for none of them."""
        return allot(self._enums.setdefault(enum.name, {}), enum.words)

    def reserved_of_message(self, message: MessagePlan) -> Reserved:
        """Return what the message had once, and has no longer."""
        kept = self._messages.get(message.name, {})
        used = {_key(field) for field in message.fields}
        left = sorted((number, key.partition(":")[0]) for key, number in kept.items() if key not in used)
        names = {name for _, name in left} - {field.wire for field in message.fields}
        return Reserved(tuple(number for number, _ in left), tuple(sorted(names)))

    def reserved_of_enum(self, enum: EnumPlan) -> Reserved:
        """Return the words that are gone."""
        left = sorted((number, word) for word, number in self._enums.get(enum.name, {}).items() if word not in enum.words)
        return Reserved(tuple(number for number, _ in left), tuple(sorted(enum.value_name(word) for _, word in left)))


def allot(kept: dict[str, int], keys: Iterable[str]) -> dict[str, int]:
    """Return the number of every key, after giving the next ones to those that have none; what is kept only grows."""
    given: dict[str, int] = {}
    for key in keys:
        if key not in kept:
            kept[key] = max(kept.values(), default=0) + 1
        if kept[key] >= _FIRST_OF_PROTOBUF:
            raise ValueError(f"'{key}' would get the number {kept[key]}, which protobuf keeps for itself")
        given[key] = kept[key]
    return given


def _key(field: FieldPlan) -> str:
    return f"{field.wire}: {field.wire_type}"
