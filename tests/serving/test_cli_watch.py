"""Watching tells what changed, is silent otherwise, and waits between looks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from evidentia.contracts.reports import IngestProgress, IngestReport, SkippedInput
from evidentia.serving.cli.ingest_commands import LOOK_EVERY_S, keep_looking
from evidentia.serving.cli.invocation import Invocation

if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING = IngestReport(
    seen=1,
    added=0,
    changed=0,
    unchanged=1,
    access_changed=0,
    removed=0,
    chunks=0,
    skipped=(),
    notes=(),
    corpus_version="v1",
    evidence_state="e1",
    sequence=1,
)
SKIPPED = SkippedInput(path="a", reason="empty", message="'a' is empty")


def watched(passes: list[tuple[IngestReport, tuple[str, ...]]], *, is_json: bool = False, first: IngestReport = NOTHING) -> list[float]:
    coming, pauses = iter(passes), []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > len(passes):
            raise KeyboardInterrupt

    def take_in(on_progress: Callable[[IngestProgress], None]) -> IngestReport:
        report, document_ids = next(coming)
        on_progress(IngestProgress(seen=1, stored=1, total=1, current="", document_ids=document_ids))
        return report

    with pytest.raises(KeyboardInterrupt):
        keep_looking(Invocation(base=Path(), is_quiet=True, is_json=is_json), take_in, first=first, pause=pause)
    return pauses


def test_nothing_is_printed_while_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert [LOOK_EVERY_S] * 3 == watched([(NOTHING, ()), (NOTHING, ())])
    assert ("", "") == capsys.readouterr()


def test_each_change_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    stored = msgspec.structs.replace(NOTHING, added=1, changed=1, removed=2, corpus_version="v2")
    watched([(stored, ("d:a", "d:b")), (NOTHING, ())])

    assert ["stored   d:a", "stored   d:b", "removed  2 documents", "version  v2"] == capsys.readouterr().out.splitlines()


def test_skipped_input_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    broken = msgspec.structs.replace(NOTHING, skipped=(SKIPPED,))
    watched([(broken, ()), (broken, ())])

    assert ["skipped  'a' is empty", "version  v1"] == capsys.readouterr().out.splitlines()


def test_what_the_first_pass_skipped_is_not_told_again(capsys: pytest.CaptureFixture[str]) -> None:
    broken = msgspec.structs.replace(NOTHING, skipped=(SKIPPED,))
    watched([(broken, ())], first=broken)

    assert "" == capsys.readouterr().out


def test_with_json_each_pass_that_changed_something_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    watched([(msgspec.structs.replace(NOTHING, added=1), ("d:a",)), (NOTHING, ())], is_json=True)

    assert [1] == [json.loads(line)["added"] for line in capsys.readouterr().out.splitlines()]
