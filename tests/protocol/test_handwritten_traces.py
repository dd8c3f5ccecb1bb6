"""Traces written by hand in natural wording: what is wrong is named, what is right is left alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from trace_plans import CITE_TABLE, CITE_TEXT, SHOW_IMAGES

from evidentia.contracts.protocol import AgentTrace, ProtocolRule
from evidentia.policy.protocol_profiles import PROFILES
from evidentia.protocol import lint_trace

FOLDER = Path(__file__).parent / "handwritten_traces"
MARKS = {"@text": CITE_TEXT, "@images": SHOW_IMAGES, "@table": CITE_TABLE}


@dataclass(frozen=True)
class Written:
    """A trace, the rules that it breaks, and those that may be named besides."""

    name: str
    why: str
    trace: AgentTrace
    expect: frozenset[ProtocolRule]
    also: frozenset[ProtocolRule]
    missed: str = ""
    """Why it is not judged so, where that is a known limit."""


def read_all() -> list[Written]:
    """Return every trace of the folder, in the order of the files."""
    return [_read(entry, path) for path in sorted(FOLDER.glob("*.yaml")) for entry in yaml.safe_load(path.read_text("utf-8"))]


def _read(entry: dict[str, Any], path: Path) -> Written:
    trace = msgspec.convert(_with_marks(entry["trace"]) | {"name": f"{path.stem}: {entry['name']}"}, AgentTrace)
    expect, also = (frozenset(ProtocolRule(rule) for rule in entry.get(key, ())) for key in ("expect", "also"))
    return Written(name=trace.name, why=entry["why"], trace=trace, expect=expect, also=also, missed=entry.get("missed", ""))


def _with_marks(trace: dict[str, Any]) -> dict[str, Any]:
    calls = [
        call | {"result": "\n".join(MARKS.get(line, line) for line in call.get("result", "").split("\n"))}
        for call in trace.get("calls", ())
    ]
    return trace | {"calls": calls}


WRITTEN = read_all()


PARAMETERS = [
    pytest.param(written, id=written.name, marks=[pytest.mark.xfail(reason=written.missed, strict=True)] if written.missed else [])
    for written in WRITTEN
]


@pytest.mark.parametrize("written", PARAMETERS)
def test_a_handwritten_trace_is_judged_as_its_author_says(written: Written) -> None:
    findings = lint_trace(written.trace)
    found = {finding.rule for finding in findings}
    told = "\n".join(f"{finding.rule.value} (call {finding.call}, block {finding.block}): {finding.reason}" for finding in findings)

    assert found >= written.expect, f"{written.why}\n{told}"
    assert found <= written.expect | written.also, f"{written.why}\n{told}"


def test_there_are_enough_traces_of_both_kinds_and_profiles() -> None:
    right = [written for written in WRITTEN if not written.expect]

    assert len(WRITTEN) == len({written.name for written in WRITTEN})
    assert len(WRITTEN) >= 60
    assert len(right) >= 25
    assert all(written.why for written in WRITTEN)
    for name in PROFILES:
        assert sum(written.trace.profile == name for written in WRITTEN) >= 20


def test_every_rule_of_first_call_is_broken_by_hand() -> None:
    broken = {rule for written in WRITTEN if written.trace.profile == "first_call" for rule in written.expect}

    assert set(PROFILES["first_call"].sections) == broken
