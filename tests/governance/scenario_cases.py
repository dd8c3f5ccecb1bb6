"""Reads the scenarios of governance: many small cases per file, each with its policies, its calls and what must come of them.

A call is one of `doc`, `good`, `from`, `close`, `ground`, `llm`, `tool`, `search`, `step`, `open`, `shut`, `result` and `change`.
A call without `expect` must pass. One that is expected to block must raise, unless `raises: false` is said; it ends the run unless it
is `caught`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Fields = dict[str, Any]  # JSON: a policy's body, a call, or what is expected of a decision

FOLDER = Path(__file__).resolve().parent.parent / "scenarios" / "governance"
DOORS = ("sync", "async", "rest")


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a trace and what must come of it."""

    said: Fields
    expect: tuple[Fields, ...] = ()
    passes: tuple[Fields, ...] | Fields | None = None
    raises: bool = False
    is_caught: bool = False
    is_reached: bool = True
    refused: str = ""
    parent: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One scenario."""

    theme: str
    name: str
    rows: tuple[str, ...]
    doors: tuple[str, ...] = DOORS
    policies: tuple[Fields, ...] = ()
    calls: tuple[Call, ...] = ()
    end: Call = field(default_factory=lambda: Call(said={"kind": "end", "status": "success", "judgements": {}}))
    agent: str = "rag-agent"
    user: str = ""
    is_enforced: bool = True
    fails: bool = False
    then: Mapping[str, Any] = field(default_factory=dict)
    """What must be true of the whole run: begin, notice, status, feedback, abstention, result, asked."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """What the run is given besides policies: texts, on_abstain."""
    body: Fields | None = None
    """A policy that is only created; `then` has its complete rules or its problems."""

    @property
    def is_run(self) -> bool:
        """Tell whether something is run, and not only created or advised."""
        return self.body is None and "calibrate" not in self.then

    @property
    def label(self) -> str:
        """Return how the case is called in a list."""
        return f"{self.theme}: {self.name}"


def load() -> list[Case]:
    """Return every case of every file, in order."""
    return [case for path in sorted(FOLDER.glob("*.yaml")) for case in _of_file(path)]


def _of_file(path: Path) -> Iterator[Case]:
    written = yaml.safe_load(path.read_text(encoding="utf-8"))
    for each in written["cases"]:
        yield _case(path.stem, written["category"], dict(each))


def _case(theme: str, category: str, written: Fields) -> Case:
    common = {"theme": theme, "name": written.pop("name"), "rows": tuple(written.pop("rows"))}
    common["doors"] = tuple(written.pop("doors", DOORS))
    if "body" in written or "calibrate" in written:
        return Case(**common, body=written.pop("body", None), then=written)
    policies = written.pop("policies", None)
    bodies = [{"name": "P", "rules": written.pop("rules")}] if policies is None else policies
    fails = written.pop("fails", False)
    calls = tuple(call for each in written.pop("calls") for call in _calls(dict(each)))
    given: Fields = {name: written.pop(name) for name in ("texts", "on_abstain") if name in written}
    return Case(
        **common,
        policies=tuple({"category": category, **body} for body in bodies),
        calls=calls,
        end=_end(dict(written.pop("end", {})), fails=fails),
        agent=written.pop("agent", "rag-agent"),
        is_enforced=written.pop("enforce", True),
        fails=fails,
        given=given,
        then=written,
    )


def _calls(written: Fields) -> Iterator[Call]:
    batch = written.pop("batch", None)
    if "good" in written:
        count = written.pop("good")
        for place in range(count):
            yield _call(
                {"kind": "retrieval", "score": 0.95, "source": f"good-{place}", "collection": "kb", "age": 1, "batch": batch}, written
            )
        return
    if "from" in written:
        for source in written.pop("from"):
            yield _call({"kind": "retrieval", "score": 0.95, "source": source, "collection": "kb", "age": 1, "batch": batch}, written)
        return
    yield _call(_said(written), written)


def _said(written: Fields) -> Fields:
    judgements = {name: {"status": status, "score": score} for name, (status, score) in written.pop("judge", {}).items()}
    if "doc" in written:
        doc = written.pop("doc")
        values = doc if isinstance(doc, dict) else dict(zip(("score", "source", "collection", "age", "batch"), doc, strict=False))
        return {"kind": "retrieval", "score": 0.0, "source": "", "collection": "", "age": None, "batch": None} | values
    if "ground" in written:
        ground = written.pop("ground")
        empty: Fields = {
            "kind": "grounding",
            "scores": [],
            "citations": [],
            "unsupported": [],
            "confidence": None,
            "judgements": judgements,
        }
        return empty | {"citations" if name == "cites" else name: value for name, value in ground.items()}
    kind = next(name for name in ("close", "llm", "tool", "search", "step", "open", "shut", "result", "change") if name in written)
    value = written.pop(kind)
    plain: dict[str, Fields] = {
        "close": {"kind": "batch", "batch": value},
        "tool": {"kind": "tool", "name": value, "is_retrieval": False},
        "search": {"kind": "tool", "name": value, "is_retrieval": True},
    }
    return plain.get(kind, {"kind": kind, "name": value})


def _call(said: Fields, written: Fields) -> Call:
    expect = written.get("expect", [])
    expected = tuple([expect] if isinstance(expect, dict) else expect)
    passes = written.get("passes")
    return Call(
        said=said,
        expect=expected,
        passes=tuple(passes) if isinstance(passes, list) else passes,
        raises=written.get("raises", any(_is_stop(each) for each in expected)),
        is_caught=written.get("caught", False),
        is_reached=not written.get("unreached", False),
        refused=written.get("refused", ""),
        parent=written.get("parent", ""),
    )


def _end(written: Fields, *, fails: bool) -> Call:
    judgements = {name: {"status": status, "score": score} for name, (status, score) in written.pop("judge", {}).items()}
    return _call({"kind": "end", "status": "error" if fails else "success", "judgements": judgements}, written)


def _is_stop(expected: Fields) -> bool:
    is_acting = expected.get("status", "evaluated") not in {"shadow", "provisional"} and expected.get("is_enforced", True)
    return expected["action"] == "block" and is_acting
