"""docs/reference/ports.md: every replaceable part, what it must do, and which classes of the package do it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from functools import cache
from typing import Protocol

from evidentia.contracts import ports
from reference import sources
from reference.markdown import code, page, prose, table
from reference.sources import Function, class_node, is_property, methods_of

INTRODUCTION = """\
A part that can be replaced is a `Protocol` in `evidentia.contracts.ports`. A class of the package inherits the ports it implements;
a class of yours may inherit them too, or just have their methods.
A port has at most five methods; extra powers are small `Supports...` protocols."""


def ports_page() -> str:
    """Return the page."""
    return page("Ports", INTRODUCTION, *map(_section, port_classes()))


def port_classes() -> list[type]:
    """Return every port by its module, in the order they were declared there."""
    modules = [importlib.import_module(each.name) for each in pkgutil.iter_modules(ports.__path__, f"{ports.__name__}.")]
    declared = [(module, each) for module in modules for each in vars(module).values() if isinstance(each, type)]
    return [each for module, each in declared if each.__module__ == module.__name__ and getattr(each, "_is_protocol", False)]


def implementers(port: type) -> list[str]:
    """Return the full names of the classes that inherit a port, by its name or through another class or port, sorted."""
    heirs = {each.__name__ for each in port_classes() if port in each.__mro__}
    found: set[str] = set()
    while True:
        above = heirs | {name.rpartition(".")[2] for name in found}
        wider = {name for name, bases in _classes() if above & bases}
        if wider == found:
            return sorted(found)
        found = wider


def _section(port: type) -> str:
    own = methods_of(class_node(port))
    above = [each.__name__ for each in port.__bases__ if each is not Protocol]
    blocks = [f"## `{port.__name__}`", prose(inspect.getdoc(port))]
    if above:
        blocks.append(f"Has the methods of {' and '.join(map(code, above))}.")
    if own:
        blocks.append(table(("method", "promise"), [(code(_signature(each)), ast.get_docstring(each) or "") for each in own.values()]))
    blocks.append(f"Implemented by {', '.join(map(code, implementers(port)))}.")
    return "\n\n".join(blocks)


def _signature(function: Function) -> str:
    answer = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    if is_property(function):
        return f"{function.name}{answer}"
    arguments = ast.unparse(function.args).removeprefix("self").removeprefix(", ")
    waiting = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    return f"{waiting}{function.name}({arguments}){answer}"


@cache
def _classes() -> list[tuple[str, frozenset[str]]]:
    """Return every class of the package by its full name, with the names it inherits from."""
    modules = [path for path in sorted(sources.PACKAGE.rglob("*.py")) if not {"contracts", "demo_corpus"} & set(path.parts)]
    return [
        (f"{sources.module_name(path)}.{node.name}", frozenset(map(ast.unparse, node.bases)))
        for path in modules
        for node in sources.tree_of(path).body
        if isinstance(node, ast.ClassDef)
    ]
