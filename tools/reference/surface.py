"""docs/reference/surface.json: the public names with their signatures; a change to it is a diff that someone reads."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING

import msgspec

import evidentia
from evidentia.contracts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTEXT_METHODS = ("__enter__", "__exit__", "__aenter__", "__aexit__")
_MARKS: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def surface_file() -> str:
    """Return the public surface as sorted JSON."""
    surface = {name: _described(getattr(evidentia, name)) for name in evidentia.__all__}
    return json.dumps(surface, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _described(public: object) -> object:
    if isinstance(public, type) and issubclass(public, msgspec.Struct):
        return {"kind": "message", "module": public.__module__}
    if isinstance(public, type) and issubclass(public, BaseException):
        return {"kind": "error", "module": public.__module__}
    if isinstance(public, type) and issubclass(public, Vocabulary):
        return {"kind": "vocabulary", "module": public.__module__, "words": list(public.words())}
    if isinstance(public, type):
        return {"kind": "class", "module": public.__module__, "members": _members(public)}
    if inspect.isfunction(public):
        return {"kind": "function", "module": public.__module__, "signature": signature_text(public)}
    raise TypeError(f"the surface has no words for '{public}'")


def _members(cls: type) -> dict[str, str]:
    """Return the public methods and properties of a class, and how it takes part in `with`."""
    members: dict[str, str] = {}
    for name, member in vars(cls).items():
        if name.startswith("_") and name not in _CONTEXT_METHODS:
            continue
        if isinstance(member, property):
            members[name] = f"property{_answer(member.fget)}"
        elif inspect.isfunction(member):
            members[name] = signature_text(member)
    return members


def signature_text(function: Callable[..., object]) -> str:
    """Return a signature with annotations as typed and defaults as values, the same on every Python."""
    parts: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(_parameter(parameter))
    waiting = "async " if inspect.iscoroutinefunction(function) else ""
    return f"{waiting}({', '.join(parts)}){_answer(function)}"


def _parameter(parameter: inspect.Parameter) -> str:
    name = f"{_MARKS.get(parameter.kind, '')}{parameter.name}"
    typed = f"{name}: {parameter.annotation}" if parameter.annotation is not parameter.empty else name
    return typed if parameter.default is parameter.empty else f"{typed} = {parameter.default!r}"


def _answer(function: Callable[..., object] | None) -> str:
    annotation = getattr(function, "__annotations__", {}).get("return")
    return "" if annotation is None else f" -> {annotation}"
