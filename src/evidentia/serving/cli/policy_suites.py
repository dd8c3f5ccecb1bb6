"""Files of cases and policies put to the evaluator, patches of policies, and the log decided again."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from evidentia.contracts.errors import FieldProblem, InvalidFieldError, PolicyInvalidError
from evidentia.contracts.runs import RunId
from evidentia.governance.decision_replay import DecisionReplayer, DecisionReplayReport
from evidentia.governance.log_scan import KeptLogs, lines_of, logs_with_parts, readable, scan
from evidentia.governance.policy_tests import CaseResult, parse_suite, policies_in, run_suite
from evidentia.governance.shadow import shadow_log
from evidentia.policy.rules import check_policy
from evidentia.provenance.decision_chain import CHECKPOINT
from evidentia.provenance.decision_lines import ADMIN_RUN, decode_header
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.input_files import read_document, suites_in
from evidentia.serving.cli.progress import Bar

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.decisions import LogRecord
    from evidentia.contracts.policies import Policy, PolicyBody
    from evidentia.contracts.policy_trials import ShadowReport
    from evidentia.serving.cli.invocation import Invocation

_Read = TypeVar("_Read")

STEP = 4_096
HINT = 'write {"given": {"policies": [...]}, "when": [{"retrieval": {...}}], "then": ["block"]}'


def run_files(files: Sequence[Path]) -> list[tuple[Path, CaseResult]]:
    """Return what became of every case of every file; a mistake in a file is named with the file and the path of the field."""
    results: list[tuple[Path, CaseResult]] = []
    for path in suites_in(files):
        document = read_document(path)
        try:
            cases = parse_suite(document, load=lambda name, folder=path.parent: read_document(folder / name))  # type: ignore[misc]  # bound now
        except InvalidFieldError as error:
            raise UsageError(f"'{path}': {error}", hint=HINT) from error
        results += [(path, result) for result in run_suite(cases)]
    return results


def read_policies(file: Path) -> list[Policy]:
    """Return the policies of a file, checked."""
    bodies = policies_in(read_document(file))
    problems = [str(problem) for body in bodies for problem in problems_of(body)]
    if problems:
        raise UsageError(f"'{file}': {'; '.join(problems)}", hint="`evidentia policy validate` lists every problem")
    return [check_policy(body) for body in bodies]  # type: ignore[arg-type]  # what is no mapping has problems


def recorded(call: Invocation, logs: KeptLogs) -> Iterator[LogRecord]:
    """Yield every record of every log, and before those of a log that was cut the policies that were kept; a bar says how many."""
    with Bar("reading", is_wanted=not call.is_quiet) as bar:
        yield from _counted(scan(logs, lambda _, header: header.run_id != ADMIN_RUN or header.kind == "policies"), bar)


def tried(
    call: Invocation, logs: KeptLogs, candidates: Sequence[Policy], *, is_whole: bool, without: Collection[str], since_us: int | None
) -> ShadowReport:
    """Try candidates over everything that was recorded; a bar says how far it has come."""
    with Bar("trying", is_wanted=not call.is_quiet) as bar:
        return shadow_log(
            logs, candidates, is_whole=is_whole, without=without, since_us=since_us, counted=lambda lines: _counted(lines, bar)
        )


def replayed(call: Invocation, logs: KeptLogs, *, run: str | None) -> DecisionReplayReport:
    """Decide the log again, or one run of it."""
    replaying = DecisionReplayer()
    logs.flush()
    with Bar("replaying", is_wanted=not call.is_quiet) as bar:
        for log, parts in logs_with_parts(logs):
            lines = _counted(lines_of(logs, parts), bar)
            with readable(log):
                replaying.read(log, lines if run is None else _of_run(lines, RunId(run)))
    return replaying.report()


def _counted(read: Iterable[_Read], bar: Bar) -> Iterator[_Read]:
    for number, each in enumerate(read):
        if not number % STEP:
            bar.move(number, None)
        yield each


def _of_run(lines: Iterable[bytes], run: RunId) -> Iterator[bytes]:
    """Yield the lines of one run, and those that every run needs."""
    for line in lines:
        if line.startswith(CHECKPOINT):
            yield line
            continue
        header = decode_header(line.split(b" ", 2)[1])
        if header.run_id == run or header.kind == "policies":
            yield line


# JSON merge patches for policies (RFC 7396), and everything that is wrong with a body.

PATCH_HINT = 'write an object such as {"rules": {"min_chunks": 2}}'


def parse_patch(text: str) -> dict[str, object]:
    """Return a patch as it was typed, or as stdin has it."""
    try:
        patch = json.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise UsageError("the patch is not JSON", hint=PATCH_HINT) from error
    if not isinstance(patch, dict):
        raise UsageError("the patch is not an object", hint=PATCH_HINT)
    return patch


def with_patch(body: PolicyBody, patch: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a body with a patch applied."""
    fields: dict[str, object] = msgspec.to_builtins(body)
    return _merged(fields, patch)


def problems_of(body: object) -> tuple[FieldProblem, ...]:
    """Return everything that is wrong with a body; empty when it can be put in force."""
    if not isinstance(body, Mapping):
        return (FieldProblem("policies", "expected a policy with name, category and rules"),)
    try:
        check_policy(body)
    except PolicyInvalidError as error:
        return error.problems
    return ()


def _merged(target: Mapping[str, object], patch: Mapping[str, object]) -> dict[str, object]:
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            known = merged.get(name)
            merged[name] = _merged(known if isinstance(known, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged
