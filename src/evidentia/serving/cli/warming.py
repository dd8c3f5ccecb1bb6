"""Asking ahead of time, once or at intervals, and telling what came of it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vocabulary import CoverageState
from evidentia.serving.cli.cli_errors import UsageError, os_problem
from evidentia.serving.cli.durations import span_of
from evidentia.serving.cli.output import note, put, put_json, put_table
from evidentia.serving.cli.snippets import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from evidentia.contracts.evidence import CoverageReport
    from evidentia.contracts.retrieval import WarmReport
    from evidentia.serving.cli.invocation import Invocation

LARGEST_BYTES = 1 << 24
STDIN = "-"
HINT = "give questions, a --file with one a line, or the setting cache.warm"


def questions_from(typed: Sequence[str], file: Path | None) -> tuple[str, ...]:
    """Return the questions that were typed and those of a file, each once, in their order; empty lines ask nothing."""
    lines = [] if file is None else _lines(file)
    return tuple(dict.fromkeys([*typed, *(line.strip() for line in lines if line.strip())]))


def refuse_none(questions: Sequence[str]) -> None:
    """Refuse to ask nothing, which looks like having asked."""
    if not questions:
        raise UsageError("there is nothing to ask", hint=HINT)


def keep_warm(call: Invocation, ask: Callable[[], WarmReport], *, pause_s: int | None, pause: Callable[[float], None] = time.sleep) -> None:
    """Ask once, or with a pause again and again until interrupted; then each pass is one line of JSON."""
    if pause_s is not None and pause_s < 1:
        raise InvalidFieldError("every", "a pause is at least a second")
    while True:
        _tell(call, ask(), is_repeated=pause_s is not None)
        if pause_s is None:
            return
        sys.stdout.flush()  # whoever reads through a pipe wants each pass when it is over
        note(call, f"asking again in {span_of(pause_s)}; press Ctrl-C to stop")
        pause(pause_s)


def _tell(call: Invocation, report: WarmReport, *, is_repeated: bool) -> None:
    if call.is_json:
        put_json(report, is_compact=is_repeated)
        return
    rows = [
        (source, *_account(each), shortened(question))
        for question, coverage in report.coverage.items()
        for source, each in sorted(coverage.items())
    ]
    if rows:
        put_table(("source", "state", "candidates", "reason", "question"), rows)
        put()
    questions = f"{report.questions} {'question' if report.questions == 1 else 'questions'}"
    put(f"{questions}, {report.kept} {'answer' if report.kept == 1 else 'answers'} of sources kept")
    if not rows:
        note(call, "no source outside the base was asked; `evidentia sources list` shows which there are")


def _account(report: CoverageReport) -> tuple[str, int, str]:
    return report.state.value, report.candidates, "-" if report.state is CoverageState.SEARCHED else report.reason or "-"


def _lines(file: Path) -> list[str]:
    try:
        content = sys.stdin.buffer.read(LARGEST_BYTES + 1) if str(file) == STDIN else _head(file)
    except OSError as error:
        raise UsageError(f"'{file}' cannot be read: {os_problem(error)}", hint=HINT) from error
    if len(content) > LARGEST_BYTES:
        raise UsageError(f"'{file}' is larger than {LARGEST_BYTES} bytes", hint="ask fewer questions at a time")
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"'{file}' cannot be read: it is not UTF-8", hint=HINT) from error


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(LARGEST_BYTES + 1)
