"""Traces from files, each linted, and their findings as a table. A trace that cannot be read is named with its file, line and field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import msgspec

from evidentia.contracts.decoding import convert, decode_json
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.protocol import AgentTrace, Profile, TraceFinding
from evidentia.policy.protocol_profiles import PROFILES, profile_of
from evidentia.protocol import lint_trace
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.input_files import STDIN, read_bytes, read_document
from evidentia.serving.cli.output import put, put_table
from evidentia.serving.cli.progress import Bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evidentia.serving.cli.invocation import Invocation

LARGEST_BYTES: Final = 1 << 28
STEP: Final = 64
HINT: Final = 'write {"question": ..., "calls": [{"name": ..., "arguments": {...}, "result": ...}], "reply": ...}'
PROFILE_HINT: Final = 'write what it is based on and what is different: {"based_on": "first_call", "name": "mine", "call_cap": 2}'
_YAML: Final = (".yaml", ".yml")
_FIELD: Final = re.compile(r" - at `\$?\.?([^`]*)`$")
_BYTE: Final = re.compile(r"byte (\d+)")
_MAX_REASON_LENGTH: Final = 400

Traced = tuple[str, AgentTrace]
"""Where a trace stands in its file, and the trace."""


class Linted(NamedTuple):
    """A trace and what it breaks."""

    file: Path
    place: str
    name: str
    findings: tuple[TraceFinding, ...]

    @property
    def label(self) -> str:
        """Return what the trace is called: its name, else where it stands."""
        return self.name or f"{self.file}, {self.place}"

    def as_json(self) -> Mapping[str, Any]:  # Any: as JSON has it
        """Return it for a program to read."""
        return {"file": str(self.file), "place": self.place, "name": self.name, "ok": not self.findings, "findings": self.findings}


def lint_files(call: Invocation, files: Sequence[Path], *, profile: Profile | None) -> list[Linted]:
    """Return what every trace of every file breaks, in their order; a bar says how many were read."""
    linted: list[Linted] = []
    with Bar("linting", is_wanted=not call.is_quiet) as bar:
        for file in files:
            for place, trace in _traces(file):
                if not len(linted) % STEP:
                    bar.move(len(linted), None)
                linted.append(_lint(file, place, trace, profile))
    return linted


def read_profile(given: str) -> Profile:
    """Return a profile by its name, or from a file that describes one."""
    from pathlib import Path

    if given in PROFILES:
        return PROFILES[given]
    path = Path(given)
    if path != STDIN and not path.suffix and not path.exists():
        return profile_of(given)
    document = read_document(path)
    try:
        return profile_of(document)  # type: ignore[arg-type]  # what is no mapping is refused by name
    except InvalidFieldError as error:
        raise UsageError(f"'{path}': {error}", hint=PROFILE_HINT) from error


def put_findings(linted: Sequence[Linted]) -> None:
    """Print a row for each finding, and how many traces were clean."""
    rows = [
        (each.label, found.rule.value, found.section, _where(found), found.reason[:_MAX_REASON_LENGTH])
        for each in linted
        for found in each.findings
    ]
    if rows:
        put_table(("trace", "rule", "section", "where", "reason"), rows)
        put()
    broken = sum(bool(each.findings) for each in linted)
    put(f"{len(linted)} traces, {len(linted) - broken} clean, {len(rows)} findings")


def _where(found: TraceFinding) -> str:
    places = ((f"call {found.call}", found.call), (f"block {found.block}", found.block))
    return ", ".join(text for text, number in places if number is not None) or "reply"


def _lint(file: Path, place: str, trace: AgentTrace, profile: Profile | None) -> Linted:
    try:
        return Linted(file, place, trace.name, lint_trace(trace, profile=profile))
    except InvalidFieldError as error:
        raise UsageError(f"'{file}', {place}: {error}", hint=HINT) from error


def _traces(file: Path) -> Iterator[Traced]:
    if file.suffix.lower() in _YAML:
        yield from _documents(file, read_document(file))
        return
    content = read_bytes(file, most=LARGEST_BYTES).removeprefix(b"\xef\xbb\xbf")
    if file.suffix.lower() == ".jsonl" or _is_lines(content):
        for number, line in enumerate(content.splitlines(), start=1):
            if line.strip():
                yield f"line {number}", _decoded(file, line, f"line {number}")
        return
    try:
        document: object = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        _refuse(file, f"line {_line_of(content, str(error))}", f"it is not JSON: {error}")
    yield from _documents(file, document)


def _documents(file: Path, document: object) -> Iterator[Traced]:
    """Yield the traces of a document: itself, its list, or its field `traces`."""
    within = document.get("traces") if isinstance(document, dict) and "traces" in document else document
    several = within if isinstance(within, list) else [within]
    for number, each in enumerate(several, start=1):
        place = f"trace {number}"
        try:
            yield place, convert(each, AgentTrace)
        except (msgspec.ValidationError, RecursionError) as error:
            _refuse(file, place, _problem(error))


def _decoded(file: Path, line: bytes, place: str) -> AgentTrace:
    try:
        return decode_json(line, AgentTrace)
    except (msgspec.DecodeError, RecursionError) as error:
        _refuse(file, place, _problem(error))


def _problem(error: Exception) -> str:
    """Return what is wrong with a trace, its field first."""
    said = str(error) or "it is nested too deeply"
    found = _FIELD.search(said)
    return said if found is None else f"field '{found[1]}': {said[: found.start()]}"


def _is_lines(content: bytes) -> bool:
    """Tell whether a file without a telling suffix has one trace a line: its first line is a whole object, and there are more."""
    first, _, rest = content.strip().partition(b"\n")
    return rest.strip().startswith(b"{") and first.startswith(b"{") and first.rstrip().endswith(b"}")


def _line_of(content: bytes, problem: str) -> int:
    found = _BYTE.search(problem)
    return content.count(b"\n", 0, int(found[1]) if found else len(content)) + 1


def _refuse(file: Path, place: str, problem: str) -> NoReturn:
    raise UsageError(f"'{file}', {place}: {problem}", hint=HINT)
