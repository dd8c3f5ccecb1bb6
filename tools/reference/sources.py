"""What only the source text knows: the words under a field, an annotation as it was typed, the message of an error."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "evidentia"


class Alias(NamedTuple):
    """A name a module gives to a type, with the words under it."""

    name: str
    meaning: str
    words: str


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def module_name(path: Path) -> str:
    """Return the dotted name of a module of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def class_node(cls: type) -> ast.ClassDef:
    """Return the definition of a class."""
    path = Path(inspect.getfile(cls))
    return next(node for node in tree_of(path).body if isinstance(node, ast.ClassDef) and node.name == cls.__name__)


def field_words(cls: type) -> dict[str, str]:
    """Return the string literals that stand under the fields of a class, inherited fields included."""
    words: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if each.__module__.startswith("evidentia."):
            words |= dict(_worded(class_node(each).body))
    return words


def field_types(cls: type) -> dict[str, str]:
    """Return the annotations of a class as typed, without their bounds."""
    types: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        if each.__module__.startswith("evidentia."):
            fields = (node for node in class_node(each).body if isinstance(node, ast.AnnAssign))
            types |= {ast.unparse(node.target): ast.unparse(_Unbound().visit(node.annotation)) for node in fields}
    return types


def aliases(path: Path) -> Iterator[Alias]:
    """Yield the ids and named types that a module defines, in its order."""
    body = tree_of(path).body
    words = dict(_worded(body))
    for node in body:
        name, value = _assignment(node)
        if value is None or name.startswith("_") or not name[:1].isupper() or name.isupper():
            continue
        yield Alias(name, _meaning(value), words.get(name, ""))


def message_template(cls: type) -> str:
    """Return what an error says, with the names of its parts in braces; empty when it is said where it is raised."""
    for call in ast.walk(class_node(cls)):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__" and isinstance(call.args[0], ast.JoinedStr):
            return "".join(_template_part(part) for part in call.args[0].values)
    return ""


def methods_of(node: ast.ClassDef) -> dict[str, Function]:
    """Return the public methods and properties that a class defines itself, in its order."""
    functions = (part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
    return {part.name: part for part in functions if not part.name.startswith("_")}


def is_property(function: Function) -> bool:
    """Whether a method is read like a field."""
    return any(ast.unparse(decorator) == "property" for decorator in function.decorator_list)


def _worded(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, after in pairwise(body):
        name, _ = _assignment(node)
        if name and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            yield name, inspect.cleandoc(after.value.value)


def _assignment(node: ast.stmt) -> tuple[str, ast.expr | None]:
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node.target), node.value
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]), node.value
    return "", None


def _meaning(value: ast.expr) -> str:
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "NewType":
        return ast.unparse(value.args[1])
    return ast.unparse(_Unbound().visit(value))


def _template_part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return f"{{{ast.unparse(part.value)}}}"
    return str(part.value) if isinstance(part, ast.Constant) else ""


class _Unbound(ast.NodeTransformer):
    """Takes `Annotated[int, Meta(...)]` back to `int`; bounds have a column of their own."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
            return node.slice.elts[0]
        return node
