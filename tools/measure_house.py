"""Measure how a checkout is built, alone or beside another one: size, comments, imports, names, ports, and what one search touches.

    python tools/measure_house.py [ROOT [ROOT]] [--json] [--names] [--static]

ROOT is a checkout with its own `.venv`, this one when left out; with two of them the figures stand side by side, before and after.
The figures are those of src/evidentia without generated code (`protobuf`, `*_pb2.py`, and any file that says so in its first lines)
and without the demo corpus, which is material:

- *code lines* hold code: no comment, blank, or docstring, which is any statement that is nothing but a string;
- an *import cycle* is a group of modules that import one another at module level outside `if TYPE_CHECKING`; that a package is run
  before its modules makes none;
- a module *with one importer* counts where that importer is in the same folder, whichever way it imports (lazily or for types too);
- a *port* is a Protocol in `contracts/ports*`; it has an implementation where a class that is no Protocol inherits it, directly or
  not; the second figure also accepts a class that merely has all members of that name.

`--names` lists what was counted. `--static` leaves out what needs the checkout to run, which tools/measure_run.py does with its Python.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

HERE: Final = Path(__file__).resolve().parents[1]
RUNNER: Final = Path(__file__).with_name("measure_run.py")
PACKAGE: Final = "evidentia"
FOLDERS: Final = ("src", "tests", "tools", "benchmarks", "examples", "integrations_tests", "browser_tests")
TARGETS: Final = {
    "code_lines": 65_000,
    "files": 600,
    "import_cycles": 0,
    "one_importer_in_own_folder": 120,
    "ports_without_implementation": 0,
    "search_files": 90,
    "idle_threads": 4,
}
"""What the figures may be at most."""
_LAYOUT: Final = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip
_OPENING_LINES: Final = 5
_GENERATED_MARKS: Final = ("nothing here is changed by hand", "do not edit")

Report = dict[str, Any]  # JSON: figures by name, and under `names` what each counted


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the checkouts that are named and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roots", nargs="*", type=Path, default=[HERE], metavar="ROOT")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--names", action="store_true", help="list what was counted")
    parser.add_argument("--static", action="store_true", help="run nothing")
    chosen = parser.parse_args(arguments)
    if len(chosen.roots) > 2:  # noqa: PLR2004 - before and after
        parser.error("at most two checkouts are compared")
    reports = [measure(root.resolve(), is_static=chosen.static) for root in chosen.roots]
    for report in reports:
        if not chosen.names:
            del report["names"]
    if chosen.json:
        print(json.dumps(_as_json(reports, chosen), indent=2))
    else:
        print("\n".join(_as_table(reports)))
    return 0


def measure(root: Path, *, is_static: bool = False) -> Report:
    """Return every figure of a checkout."""
    modules = read_modules(root)
    report = {**_sizes(modules), **_imports(modules), **_repeated_names(modules), **_ports(modules)}
    names = {key: report.pop(key) for key in [key for key in report if key.startswith("names_of_")]}
    if not is_static:
        found = run_measurements(root)
        names |= {key: found.pop(key) for key in [key for key in found if key.startswith("names_of_")]}
        report |= found
    report["whole_tree"] = _whole_tree(root)
    report["names"] = {key.removeprefix("names_of_"): value for key, value in names.items()}
    return report


# --- modules ---


class Import(NamedTuple):
    """One module that a module imports, and when."""

    target: str
    is_at_run_time: bool


class Module(NamedTuple):
    """One file of the package."""

    name: str
    path: str
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        """Say whether this is the `__init__` of a folder."""
        return self.path.endswith("__init__.py")

    @property
    def folder(self) -> str:
        """Return the package that the file lies in; an `__init__` lies in its own."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def read_modules(root: Path) -> dict[str, Module]:
    """Return the modules of the package by dotted name, without generated code and material."""
    package = root / "src" / PACKAGE
    found = {}
    for path in sorted(package.rglob("*.py")):
        inner = path.relative_to(package)
        if is_left_out(inner):
            continue
        parts = (PACKAGE, *inner.with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        if says_it_is_generated(text):
            continue
        found[name] = Module(name, inner.as_posix(), text, ast.parse(text))
    return found


def is_left_out(inner: Path) -> bool:
    """Say whether a path under the package is generated code or part of the demo corpus."""
    is_generated = inner.parts[0] == "protobuf" or "_pb2" in inner.name
    return is_generated or any(part.startswith("demo_corpus") for part in inner.parts[:-1])


def says_it_is_generated(text: str) -> bool:
    """Say whether the first lines of a file tell that a program wrote it."""
    opening = text.splitlines()[:_OPENING_LINES]
    return any(mark in line.lower() for line in opening for mark in _GENERATED_MARKS)


# --- lines ---


class Lines(NamedTuple):
    """What the lines of one file hold."""

    total: int
    code: int
    comments: int


def count_lines(text: str, tree: ast.Module) -> Lines:
    """Count lines, those that hold code, and those that are nothing but a comment."""
    lines = text.splitlines()
    statements = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    prose = {(value.lineno, _column(lines, value)) for value in statements if _is_text(value)}
    code: set[int] = set()
    comments = 0
    is_prose = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments += token.line.strip().startswith("#")
        if token.type in _LAYOUT:
            is_prose = is_prose and token.type in (tokenize.NL, tokenize.COMMENT)  # a string in parts goes on after these
            continue
        # Parts that are written one after the other are one string to the parser, which gives the place of the first.
        is_prose = token.type == tokenize.STRING and (is_prose or token.start in prose)
        if not is_prose:
            code.update(range(token.start[0], token.end[0] + 1))
    return Lines(len(lines), sum(1 for number in code if lines[number - 1].strip()), comments)


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _column(lines: Sequence[str], value: ast.expr) -> int:
    """Return where an expression begins in characters; the parser counts bytes."""
    return len(lines[value.lineno - 1].encode()[: value.col_offset].decode())


def _sizes(modules: Mapping[str, Module]) -> Report:
    counted = {module.path: count_lines(module.text, module.tree) for module in modules.values()}
    by_code = max(counted.items(), key=lambda pair: (pair[1].code, pair[0]))
    by_lines = max(counted.items(), key=lambda pair: (pair[1].total, pair[0]))
    lines, comments = sum(each.total for each in counted.values()), sum(each.comments for each in counted.values())
    return {
        "files": len(counted),
        "lines": lines,
        "code_lines": sum(each.code for each in counted.values()),
        "median_file_code_lines": statistics.median(each.code for each in counted.values()),
        "median_file_lines": statistics.median(each.total for each in counted.values()),
        "largest_file_code_lines": by_code[1].code,
        "largest_file_lines": by_lines[1].total,
        "whole_line_comments": comments,
        "whole_line_comments_percent": round(100 * comments / lines, 3) if lines else 0.0,
        "names_of_largest_file_code_lines": by_code[0],
        "names_of_largest_file_lines": by_lines[0],
    }


def _whole_tree(root: Path) -> Report:
    """Return files, lines and code lines of all Python in each folder of the checkout, generated code and material included."""
    totals = {}
    for folder in FOLDERS:
        counted = []
        for path in sorted((root / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            counted.append(count_lines(text, ast.parse(text)))
        if counted:
            totals[folder] = {
                "files": len(counted), "lines": sum(each.total for each in counted), "code_lines": sum(each.code for each in counted),
            }  # fmt: skip
    totals["all"] = {key: sum(each[key] for each in totals.values()) for key in ("files", "lines", "code_lines")}
    return totals


# --- imports ---


def imports_of(module: Module, modules: Mapping[str, Module]) -> Iterator[Import]:
    """Yield every import of another module of the package that a file states, wherever it states it."""
    for node, is_at_run_time in _import_statements(module.tree.body, is_at_run_time=True):
        for target in _targets(node, modules):
            if target != module.name:
                yield Import(target, is_at_run_time)


def _import_statements(body: Iterable[ast.AST], *, is_at_run_time: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, is_at_run_time
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            yield from _import_statements(node.body, is_at_run_time=False)
            yield from _import_statements(node.orelse, is_at_run_time=is_at_run_time)
        else:
            is_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _import_statements(ast.iter_child_nodes(node), is_at_run_time=is_at_run_time and not is_later)


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def _targets(node: ast.Import | ast.ImportFrom, modules: Mapping[str, Module]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
        return
    for alias in node.names:
        inner = f"{node.module}.{alias.name}"
        if inner in modules:
            yield inner
        elif node.module in modules:
            yield node.module or ""


def _imports(modules: Mapping[str, Module]) -> Report:
    stated = {name: list(imports_of(module, modules)) for name, module in modules.items()}
    at_run_time = {name: {each.target for each in found if each.is_at_run_time} for name, found in stated.items()}
    anywhere = {name: {each.target for each in found} for name, found in stated.items()}
    at_module_level_or_types = {
        name: {each.target for each in found if each.is_at_run_time} | _imported_for_types(modules[name], modules)
        for name, found in stated.items()
    }
    importers: dict[str, set[str]] = defaultdict(set)
    for name, targets in anywhere.items():
        for target in targets:
            importers[target].add(name)
    alone = sorted(
        name
        for name, module in modules.items()
        if not module.is_package and len(importers[name]) == 1 and modules[next(iter(importers[name]))].folder == module.folder
    )
    cycles, with_types = find_cycles(at_run_time), find_cycles(at_module_level_or_types)
    return {
        "import_cycles": len(cycles),
        "import_cycles_with_type_checking": len(with_types),
        "one_importer_in_own_folder": len(alone),
        "never_imported": sum(1 for name, module in modules.items() if not module.is_package and not importers[name]),
        "names_of_import_cycles": cycles,
        "names_of_import_cycles_with_type_checking": with_types,
        "names_of_one_importer_in_own_folder": {name: next(iter(importers[name])) for name in alone},
        "names_of_never_imported": sorted(name for name, module in modules.items() if not module.is_package and not importers[name]),
    }


def _imported_for_types(module: Module, modules: Mapping[str, Module]) -> set[str]:
    guarded = (node for node in ast.walk(module.tree) if isinstance(node, ast.If) and _is_type_checking(node.test))
    statements = (each for node in guarded for each, _ in _import_statements(node.body, is_at_run_time=False))
    return {target for each in statements for target in _targets(each, modules)} - {module.name}


def find_cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return each group of more than one module of which every one reaches every other (Tarjan 1972, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    groups: list[list[str]] = []
    for start in sorted(edges):
        if start in index:
            continue
        path: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(edges[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while path:
            node, targets = path[-1]
            step = next(targets, None)
            if step is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    first = stack.index(node)
                    group, stack[first:] = stack[first:], []
                    on_stack.difference_update(group)
                    groups += [sorted(group)] if len(group) > 1 else []
            elif step not in index:
                index[step] = low[step] = len(index)
                stack.append(step)
                on_stack.add(step)
                path.append((step, iter(sorted(edges.get(step, ())))))
            elif step in on_stack:
                low[node] = min(low[node], index[step])
    return sorted(groups)


# --- names ---


def _repeated_names(modules: Mapping[str, Module]) -> Report:
    files = Counter(name.rpartition(".")[2] for name, module in modules.items() if not module.is_package)
    classes = Counter(node.name for module in modules.values() for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef))
    where: dict[str, list[str]] = defaultdict(list)
    for name, module in modules.items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and classes[node.name] > 1:
                where[node.name].append(name)
    twice = sorted(stem for stem, count in files.items() if count > 1)
    return {
        "module_names_used_twice": len(twice),
        "class_names_used_twice": len(where),
        "names_of_module_names_used_twice": {stem: [name for name in modules if name.rpartition(".")[2] == stem] for stem in twice},
        "names_of_class_names_used_twice": dict(sorted(where.items())),
    }


# --- ports ---


class ClassFacts(NamedTuple):
    """One class at the top of a module: what it inherits, as written and as far as it can be followed, and its members."""

    module: str
    name: str
    is_protocol: bool
    bases: tuple[tuple[str, str], ...]
    members: frozenset[str]


def _ports(modules: Mapping[str, Module]) -> Report:
    classes = {(name, each.name): each for name, module in modules.items() for each in _classes_of(module, modules)}
    ports = [key for key, each in classes.items() if each.is_protocol and _is_port_file(modules[each.module])]
    concrete = [key for key, each in classes.items() if not each.is_protocol]
    above = {key: _ancestors(key, classes) for key in classes}
    inherited = {port for key in concrete for port in above[key]}
    members = {key: frozenset().union(*(classes[each].members for each in above[key] | {key})) for key in classes}
    unclaimed = sorted(port for port in ports if port not in inherited)
    unmet = [port for port in unclaimed if not any(members[port] <= members[key] for key in concrete)]
    return {
        "ports": len(ports),
        "ports_without_implementation": len(unclaimed),
        "ports_without_implementation_even_by_members": len(unmet),
        "names_of_ports_without_implementation": [name for _, name in unclaimed],
        "names_of_ports_without_implementation_even_by_members": [name for _, name in unmet],
    }


def _is_port_file(module: Module) -> bool:
    parts = Path(module.path).parts
    return parts[0] == "contracts" and len(parts) > 1 and parts[1].startswith("ports")


def _classes_of(module: Module, modules: Mapping[str, Module]) -> Iterator[ClassFacts]:
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef):
            written = [ast.unparse(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases]
            bases = tuple(found for each in written if (found := _resolve(module, each, modules, seen=frozenset())))
            is_protocol = any(each in {"Protocol", "typing.Protocol"} for each in written)
            yield ClassFacts(module.name, node.name, is_protocol, bases, frozenset(_members(node)))


def _resolve(module: Module, written: str, modules: Mapping[str, Module], *, seen: frozenset[str]) -> tuple[str, str] | None:
    """Return module and name of the class that a name means in a module, through whatever imports hand it on."""
    if module.name in seen:
        return None
    first, _, rest = written.partition(".")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef) and node.name == written and node in module.tree.body:
            return module.name, written
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            if (alias.asname or alias.name) != first:
                continue
            package = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            origin = f"{package}.{alias.name}" if package else alias.name
            if rest and origin in modules:
                return _resolve(modules[origin], rest, modules, seen=seen | {module.name})
            if not rest and package in modules:
                return _resolve(modules[package], alias.name, modules, seen=seen | {module.name})
    return None


def _ancestors(key: tuple[str, str], classes: Mapping[tuple[str, str], ClassFacts]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    pending = [base for base in classes[key].bases if base in classes]
    while pending:
        base = pending.pop()
        if base not in found:
            found.add(base)
            pending += [each for each in classes[base].bases if each in classes]
    return found


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names that objects of a class have: what its body binds, and what its methods put on `self`."""
    for each in ast.walk(node):
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if each in node.body:
                if not name.startswith("_") or name == "__call__":
                    yield name
            case ast.AnnAssign(target=ast.Name(id=name)) if each in node.body:
                yield name
            case ast.Assign(targets=targets) if each in node.body:
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


# --- what runs ---


def run_measurements(root: Path) -> Report:
    """Return what tools/measure_run.py finds with the Python of a checkout."""
    python = root / ".venv" / "bin" / "python"
    package = root / "src" / PACKAGE
    corpus = next(path for path in sorted(package.rglob("demo_corpus*")) if path.is_dir())
    found: Report = {}
    with tempfile.TemporaryDirectory() as directory:
        # One process each: what one of them imported or started must not be there for the next.
        for part in ("base", "search", "threads"):
            report = Path(directory) / f"{part}.json"
            command = [str(python), str(RUNNER), part, str(corpus), str(Path(directory) / "base"), str(package), str(report)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=directory)  # noqa: S603 - the Python of the checkout
            found |= json.loads(report.read_text(encoding="utf-8"))
    return found


# --- what is printed ---

_TITLES: Final = {
    "files": "files",
    "lines": "lines",
    "code_lines": "code lines",
    "median_file_code_lines": "median file, code lines",
    "median_file_lines": "median file, lines",
    "largest_file_code_lines": "largest file, code lines",
    "largest_file_lines": "largest file, lines",
    "whole_line_comments": "whole-line comments",
    "whole_line_comments_percent": "whole-line comments, % of lines",
    "import_cycles": "import cycles at run time",
    "import_cycles_with_type_checking": "import cycles, imports for types included",
    "one_importer_in_own_folder": "modules with one importer, in their folder",
    "never_imported": "modules that nothing imports",
    "module_names_used_twice": "module names used more than once",
    "class_names_used_twice": "class names defined more than once",
    "ports": "ports",
    "ports_without_implementation": "ports that no class inherits",
    "ports_without_implementation_even_by_members": "ports that no class has the members of either",
    "search_files": "files that one search runs through",
    "search_functions": "functions that one search runs through",
    "search_files_only_imported": "files that one search only imports",
    "idle_threads": "threads of a base that asks nobody",
}


def _as_json(reports: Sequence[Report], chosen: argparse.Namespace) -> Report:
    options = [f"--{name}" for name in ("names", "static") if getattr(chosen, name)]
    command = " ".join(["python tools/measure_house.py", *(["ROOT"] if len(reports) == 1 else ["BEFORE", "AFTER"]), "--json", *options])
    shape = reports[0] if len(reports) == 1 else {"before": reports[0], "after": reports[1]}
    return {"command": command, "targets_at_most": TARGETS, **shape}


def _as_table(reports: Sequence[Report]) -> Iterator[str]:
    heads = ["figure", *(["here"] if len(reports) == 1 else ["before", "after", "change"]), "at most"]
    rows = [[title, *_cells([report.get(key) for report in reports]), _number(TARGETS.get(key))] for key, title in _TITLES.items()]
    for folder in reports[0]["whole_tree"]:
        for key in ("files", "code_lines"):
            values = [report["whole_tree"].get(folder, {}).get(key) for report in reports]
            rows.append([f"{folder}: {key.replace('_', ' ')}, all of it", *_cells(values), ""])
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    for row in [heads, *rows]:
        yield "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]).rstrip()
    for report in reports:
        for key, value in report.get("names", {}).items():
            yield f"\n{key}:\n{json.dumps(value, indent=2)}"


def _cells(values: Sequence[float | None]) -> list[str]:
    cells = [_number(value) for value in values]
    if len(values) > 1:
        first, last = values
        cells.append("" if first is None or last is None else f"{round(last - first, 3):+,}")
    return cells


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,}"


if __name__ == "__main__":
    sys.exit(main())
