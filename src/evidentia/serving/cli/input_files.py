"""Files named on the command line, and stdin: bounded bytes, JSON, YAML or TOML; what they mean is for others to check."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from evidentia.serving.cli.cli_errors import UsageError, os_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import yaml


STDIN: Final = Path("-")
LARGEST_BYTES: Final = 1 << 20
MAX_SHOWN: Final = 200
MAX_VALUES: Final = 100_000
"""Values in one file, each counted wherever an alias repeats it."""
SUITE_SUFFIXES: Final = (".yaml", ".yml", ".json", ".toml")
HINT: Final = "write JSON, YAML or TOML, and end the name of the file in .json, .yaml or .toml"


def read_document(path: Path) -> object:
    """Return what a file holds, by its suffix; stdin and other names are read as JSON where they begin so, else as YAML."""
    text = _read(path)
    kind = {".json": "JSON", ".toml": "TOML", ".yaml": "YAML", ".yml": "YAML"}.get(path.suffix.lower())
    if kind is None:
        kind = "JSON" if text.lstrip()[:1] in {"{", "["} else "YAML"
    try:
        document = _READERS[kind](text)
        _refuse_huge(document, {})
    except (ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())[:MAX_SHOWN] or "it is nested too deeply"
        raise UsageError(f"'{path}' cannot be read: it is not {kind}: {problem}", hint=HINT) from error
    return document


def suites_in(paths: Sequence[Path]) -> list[Path]:
    """Return the files to read, those of a directory by name; a directory without any is a mistake."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(each for each in path.iterdir() if each.suffix.lower() in SUITE_SUFFIXES) if path.is_dir() else [path]
        if not inside:
            raise UsageError(f"'{path}' holds no cases", hint="name files with cases, or a directory that holds some")
        found += inside
    return found


def read_bytes(
    path: Path, *, most: int = LARGEST_BYTES, hint: str = "check the path and its permissions", large_hint: str = "split it"
) -> bytes:
    """Return a file, or standard input for `-`; one that is too large or cannot be read is a mistake that names it."""
    try:
        if path == STDIN:
            content = sys.stdin.buffer.read(most + 1)
        else:
            with path.open("rb") as file:
                content = file.read(most + 1)
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {os_problem(error)}", hint=hint) from error
    if len(content) > most:
        raise UsageError(f"'{path}' is larger than {most} bytes", hint=large_hint)
    return content


def _read(path: Path) -> str:
    content = read_bytes(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"'{path}' is not UTF-8", hint="save it as UTF-8") from error


def _read_json(text: str) -> object:
    return json.loads(text, object_pairs_hook=without_repetition, parse_constant=_refuse_constant)


def _read_yaml(text: str) -> object:
    import yaml

    try:
        return yaml.load(text, Loader=_yaml_loader())  # noqa: S506 - a safe loader that also refuses repeated keys
    except yaml.YAMLError as error:
        raise ValueError(_yaml_problem(error)) from error


def _yaml_loader() -> type[yaml.SafeLoader]:
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe loader, and a key that is there twice is refused."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
            """Return the mapping of a node."""
            keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
            twice = [key for place, key in enumerate(keys) if key in keys[:place]]
            if twice:
                raise ValueError(f"the key '{twice[0]}' is there twice, the second time from line {node.start_mark.line + 1} on")
            return super().construct_mapping(node, deep=deep)

    return Loader


def _yaml_problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem


def without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the fields of a JSON object; a name that is there twice is refused."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field is there twice in one object")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _refuse_huge(value: object, known: dict[int, int]) -> int:
    """Return how many values there are, aliases written out; refuses what would be huge then, or holds itself."""
    if not isinstance(value, dict | list):
        return 1
    if known.get(id(value)) == 0:
        raise ValueError("an alias holds itself")
    if id(value) not in known:
        known[id(value)] = 0
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_refuse_huge(each, known) for each in inner)
    if known[id(value)] > MAX_VALUES:
        raise ValueError(f"it holds more than {MAX_VALUES} values")
    return known[id(value)]


_READERS: Final[Mapping[str, Callable[[str], object]]] = {"JSON": _read_json, "YAML": _read_yaml, "TOML": tomllib.loads}
