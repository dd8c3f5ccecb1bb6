"""docs/reference/ports.md: every replaceable part, what it must do, and which classes of the package do it."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from typing import Protocol

from evidentia.contracts import ports
from reference import sources
from reference.markdown import code, page, prose, table
from reference.sources import Function, class_node, is_property, methods_of

INTRODUCTION = """\
A part that can be replaced is a `Protocol` in `evidentia.contracts.ports`: a class is one by having its methods, and inherits nothing.
A port has at most five methods; extra powers are small `Supports...` protocols."""


def ports_page() -> str:
    """Return the page."""
    return page("Ports", INTRODUCTION, *map(_section, port_classes()))


def port_classes() -> list[type]:
    """Return every port in the order they were declared."""
    declared = [each for each in vars(ports).values() if isinstance(each, type) and each.__module__ == ports.__name__]
    return [each for each in declared if getattr(each, "_is_protocol", False)]


def implementers(port: type) -> list[str]:
    """Return the full names of the classes that have every method of a port with its very parameters, sorted.

    Types are left to mypy, which checks them where `wiring` hands a class over as the port.
    """
    wanted = _demands(port)
    return sorted(name for name, offered in _classes() if wanted.items() <= offered.items())


def _section(port: type) -> str:
    own = methods_of(class_node(port))
    above = [each.__name__ for each in port.__bases__ if each is not Protocol]
    blocks = [f"## `{port.__name__}`", prose(inspect.getdoc(port))]
    if above:
        blocks.append(f"Has the methods of {' and '.join(map(code, above))}.")
    if own:
        blocks.append(table(("method", "promise"), [(code(_signature(each)), ast.get_docstring(each) or "") for each in own.values()]))
    found = implementers(port)
    blocks.append(f"Implemented by {', '.join(map(code, found))}." if found else "Nothing in the package implements it yet.")
    return "\n\n".join(blocks)


def _signature(function: Function) -> str:
    answer = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    if is_property(function):
        return f"{function.name}{answer}"
    arguments = ast.unparse(function.args).removeprefix("self").removeprefix(", ")
    waiting = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    return f"{waiting}{function.name}({arguments}){answer}"


def _demands(port: type) -> dict[str, str]:
    demands: dict[str, str] = {}
    for each in reversed(port.__mro__):
        if each.__module__ == ports.__name__:
            demands |= _offers(class_node(each))
    return demands


def _offers(node: ast.ClassDef) -> dict[str, str]:
    return {name: _shape(function) for name, function in methods_of(node).items()}


def _shape(function: Function) -> str:
    arguments = function.args
    positional, named = (
        ", ".join(each.arg for each in group) for group in ([*arguments.posonlyargs, *arguments.args], arguments.kwonlyargs)
    )
    return f"{type(function).__name__} {is_property(function)} ({positional}; {named})"


@cache
def _classes() -> list[tuple[str, dict[str, str]]]:
    """Return every class with what it offers."""
    modules = [path for path in sorted(sources.PACKAGE.rglob("*.py")) if not {"contracts", "demo_corpus"} & set(path.parts)]
    return [
        (f"{sources.module_name(path)}.{node.name}", _offers(node))
        for path in modules
        for node in sources.tree_of(path).body
        if isinstance(node, ast.ClassDef)
    ]
