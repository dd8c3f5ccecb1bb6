"""Write base/sync_base.py from `AsyncBase`: the same methods for callers that are not async; a test compares the two.

Usage: python tools/write_sync_base.py [FILE]
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

BASE = Path(__file__).resolve().parents[1] / "src" / "evidentia" / "base"
SYNC = BASE / "sync_base.py"
HEAD = '''\
"""Written by tools/write_sync_base.py; nothing here is changed by hand.

`Base`: the same methods as `AsyncBase`, for callers that are not async.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from evidentia.base.async_base import AsyncBase, aconnect, open_directory
from evidentia.foundation.loop_thread import LoopThread
from evidentia.wiring.settings_file import is_address
{imports}

if TYPE_CHECKING:
{typing}


def connect({connect}) -> Base:
    """{connect_words}"""
    portal = LoopThread("evidentia")
    if not is_address(path):
        return Base(open_directory({connect_given}), portal)
    try:
        return Base(portal.run(aconnect({connect_given})), portal)
    except BaseException:
        portal.close()
        raise


class Base:
    """{words}"""

    def __init__(self, inner: AsyncBase, portal: LoopThread) -> None:
        self._inner = inner
        self._portal = portal
'''
TAIL = '''
    def close(self) -> None:
        """Give back what the base holds."""
        self._portal.run(self._inner.close())
        self._portal.close()

    def __enter__(self) -> Self:
        """Return the base itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the base."""
        self.close()
'''


def sync_base() -> str:
    """Return the text of the module."""
    tree = ast.parse((BASE / "async_base.py").read_text(encoding="utf-8"))
    connecting = next(node for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name == "aconnect")
    cls = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "AsyncBase")
    methods = [node for node in cls.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")]
    blocking = {node.name for node in cls.body if isinstance(node, ast.FunctionDef) and node.name.endswith("_blocking")}
    body = "".join(_method(node, blocking) for node in methods if node.name != "close")
    # What a signature names is imported as AsyncBase imports it; defaults are needed when the module runs, types are not.
    typed = [each for node in (connecting, *methods) for each in (*_annotations(node), *_collections(node))]
    at_runtime = {each.id for node in methods for default in _defaults(node) for each in ast.walk(default) if isinstance(each, ast.Name)}
    for_types = {each.id for each in typed if isinstance(each, ast.Name)} - at_runtime - {"AsyncBase", "Base"}
    head = HEAD.format(
        imports="\n".join(_imports(tree, at_runtime)),
        typing="\n".join(f"    {each}" for each in _imports(tree, for_types)),
        connect=ast.unparse(connecting.args),
        connect_words=ast.get_docstring(connecting, clean=False),
        connect_given=_given(connecting),
        words=ast.get_docstring(cls),
    )
    return _formatted(head + body + TAIL)


def _method(node: ast.FunctionDef | ast.AsyncFunctionDef, blocking: set[str]) -> str:
    """Return a method; one that has a private twin for callers who block calls that, with the loop for what needs one."""
    inner = f"self._inner.{node.name}"
    is_property = any(ast.unparse(each) == "property" for each in node.decorator_list)
    returns = ast.unparse(node.returns) if node.returns else "None"
    call = inner if is_property else f"{inner}({_given(node)})"
    if returns.startswith("AsyncGenerator["):
        returns, call = f"Iterator[{returns[len('AsyncGenerator[') :].rpartition(',')[0]}]", f"self._portal.stream({call})"
    elif f"_{node.name}_blocking" in blocking:
        call = f"self._inner._{node.name}_blocking(self._portal, {_given(node)})  # noqa: SLF001 - its twin"
    elif isinstance(node, ast.AsyncFunctionDef):
        call = f"self._portal.run({call})"
    head = f"    def {node.name}({ast.unparse(node.args)}) -> {returns}:"
    words = ast.get_docstring(node, clean=False)
    return "\n" + "    @property\n" * is_property + f'{head}\n        """{words}"""\n        return {call}\n'


def _given(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the arguments of a function as it hands them on."""
    positional = [each.arg for each in node.args.args if each.arg != "self"]
    named = [f"{each.arg}={each.arg}" for each in node.args.kwonlyargs]
    return ", ".join([*positional, *named, *([f"**{node.args.kwarg.arg}"] if node.args.kwarg else [])])


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    given = [each.annotation for each in (*node.args.args, *node.args.kwonlyargs, node.args.kwarg) if each and each.annotation]
    return [part for each in (*given, node.returns) if each is not None for part in ast.walk(each)]


def _collections(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    is_stream = node.returns is not None and ast.unparse(node.returns).startswith("AsyncGenerator[")
    return [ast.Name("Iterator")] if is_stream else []


def _defaults(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    return [each for each in (*node.args.defaults, *node.args.kw_defaults) if each is not None]


def _imports(tree: ast.Module, names: set[str]) -> list[str]:
    """Return the import of each name, as the module has it."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found += [f"from {node.module} import {ast.unparse(each)}" for each in node.names if (each.asname or each.name) in names]
    return sorted(set(found))


def _formatted(text: str) -> str:
    """Return the text as ruff lays it out: imports that the types no longer need are gone."""
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    fixed = _piped([*ruff, "check", "--fix-only", "--quiet", "--select", "F401,I", "--stdin-filename", str(SYNC), "-"], text)
    return _piped([*ruff, "format", "--quiet", "--stdin-filename", str(SYNC), "-"], fixed)


def _piped(command: list[str], text: str) -> str:
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout  # noqa: S603 - ruff, on text made here


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else SYNC).write_text(sync_base(), encoding="utf-8")
