"""The bases that scenarios are about, and who asks them what: whatever tells of scenarios makes them here, and asks by the public API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from evidentia import EvidentiaError, Principal, connect
from evidentia.testing.determinism import RepeatableEntropy
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

AGENT = "scenario"
"""The agent that asks when none is named; over MCP it would be the client."""
VISITOR: tuple[str, dict[str, Any]] = ("visitor", {"clearance": "restricted"})
"""Who asks when nobody is named: somebody who is cleared for everything and owns nothing."""
ASKED = {"as_of": "2026-01-01T00:00:00Z", "agent_name": AGENT, "latency_deadline_ms": 20_000}
"""What every search says unless its scenario says otherwise: scenarios are about answers, not about how busy a machine is.

Without a moment two doors would ask at two of them, which are two questions."""

Answer = dict[str, Any]  # JSON: an EvidenceResponse, a ReplayReport, or {"error": ...}


def make_scenario_base(base: Path, given: Mapping[str, Any], *, folder: Path) -> None:
    """Make the base that a scenario is given, with its settings, documents, sources and notes; files are written to the folder."""
    _create(base)
    _configure(base, given.get("settings", {}))
    ingest_documents(base, given["documents"], folder=folder)
    _connect_sources(base, given, folder=folder)


def change_base(base: Path, change: Mapping[str, Any], *, folder: Path) -> None:
    """Add, change and remove the documents that a step names."""
    ingest_documents(base, change.get("documents", []), folder=folder)
    with connect(base) as opened:
        opened.remove(change.get("remove", []))


def ingest_documents(base: Path, documents: list[dict[str, Any]], *, folder: Path) -> None:
    """Take in each document by itself, as a file of the folder."""
    with connect(base) as opened:
        for document in documents:
            options = {name: value for name, value in document.items() if name not in {"name", "text"}}
            file = folder / options.get("source", "documents") / document["name"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(document["text"], encoding="utf-8")
            report = opened.ingest([file], **options)
            assert 1 == report.added + report.changed, report


def listed(part: Any) -> list[Any]:
    """Return the steps or expectations of a scenario, which may be one."""
    return part if isinstance(part, list) else [part]


def question_of(step: Mapping[str, Any], principals: Mapping[str, Any]) -> tuple[str, dict[str, Any], tuple[str, dict[str, Any]]]:
    """Return what a step asks: the query, the fields of the request, and the caller with the facts about them."""
    asked = dict(step["search"])
    query, name = asked.pop("query"), asked.pop("as", None)
    who, facts = VISITOR if name is None else (name, {"clearance": "internal"} | principals[name])
    return query, ASKED | asked, (who, {"roles": ["agent"], **facts})


class InProcess:
    """The Python door."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def search(self, query: str, fields: Mapping[str, Any], caller: tuple[str, Mapping[str, Any]]) -> Answer:
        """Return the answer, or the error under `error`."""
        principal = msgspec.convert({"principal_id": caller[0], **caller[1]}, Principal)
        try:
            with connect(self._base, principal=principal) as base:
                return base.retrieve(query, **fields).to_dict()
        except EvidentiaError as error:
            return {"error": {"code": error.code, "message": str(error)}}

    def replay(self, receipt_id: str) -> Answer:
        """Return the report of a replay by the owner."""
        with connect(self._base) as base:
            report: Answer = msgspec.to_builtins(base.replay(receipt_id))
            return report


def _configure(base: Path, settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Write settings as they would be written by hand; JSON's words and numbers are TOML's."""
    lines = [
        line
        for table, values in settings.items()
        for line in (f"[{table}]", *(f"{name} = {json.dumps(each)}" for name, each in values.items()))
    ]
    if lines:
        (base / "evidentia.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _create(base: Path) -> None:
    """Make an empty base whose secret is the same each time: the hashes of what others than the owner are answered follow from it."""
    embedded.create(base, entropy=RepeatableEntropy())


def _connect_sources(base: Path, given: Mapping[str, Any], *, folder: Path) -> None:
    """Make the other bases, register the sources, whose addresses are beside the base, and write the notes."""
    for name, documents in given.get("other_bases", {}).items():
        _create(base.parent / name)
        ingest_documents(base.parent / name, documents, folder=folder / name)
    with connect(base) as opened:
        for descriptor in given.get("sources", []):
            opened.add_source(descriptor)
    for note in given.get("notes", []):
        writer = msgspec.convert({"principal_id": note["as"], "clearance": "internal"}, Principal) if "as" in note else None
        with connect(base, principal=writer) as opened:
            opened.remember(**{name: value for name, value in note.items() if name != "as"})
