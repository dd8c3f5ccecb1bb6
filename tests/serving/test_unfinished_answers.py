"""A search that did not finish in time is told apart from one that found nothing, at every door and on every page."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evidentia import Base, connect
from evidentia.backends.embedded.snapshot import EmbeddedSnapshot
from evidentia.contracts.access import local_owner
from evidentia.contracts.control import Role
from evidentia.contracts.vocabulary import CoverageState
from evidentia.protocol.toolbox import Toolbox
from evidentia.serving.identity.callers import Caller
from evidentia.serving.mcp.conversations import ConversationMemory
from evidentia.serving.mcp.tool_definitions import RAG, RETRIEVE
from evidentia.serving.mcp.tools import ToolHandlers
from evidentia.serving.operations.served_base import ServedBase
from serving.dashboard_doors import filled, serving_dashboard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia import EvidenceResponse
    from evidentia.contracts.search import LexicalHits
    from serving.cli_runs import Run

DOCUMENTS = [{"id": "keys.md", "title": "Keys", "text": "Signing keys are rotated every 30 days."}]
SAID = "the search did not finish in time (open)"


@contextmanager
def hanging_searches() -> Iterator[None]:
    """Have searches wait until this is left."""
    may_go, search = threading.Event(), EmbeddedSnapshot.search

    def slow(snapshot: EmbeddedSnapshot, *given: Any, **named: Any) -> LexicalHits:  # Any: whatever it is asked with
        assert may_go.wait(60)
        return search(snapshot, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmbeddedSnapshot, "search", slow)
        try:
            yield
        finally:
            may_go.set()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("unfinished") / "base", DOCUMENTS, source="open")


def unfinished_answer(directory: Path) -> EvidenceResponse:
    with connect(directory) as base:
        base.retrieve("keys", mode="lexical")  # the first request waits for the base
        with hanging_searches():
            return base.retrieve("keys", mode="lexical", latency_deadline_ms=100, receipt=False)


def test_an_answer_says_which_searches_did_not_finish(directory: Path) -> None:
    late = unfinished_answer(directory)
    with connect(directory) as base:
        empty = base.retrieve("zebra", mode="lexical", latency_deadline_ms=20_000, receipt=False)

    assert ("open",) == late.unfinished
    assert late.unfinished_note.startswith(SAID)
    assert late.to_context().startswith(f"Note: {SAID}")
    assert () == empty.fragments
    assert () == empty.unfinished
    assert "" == empty.unfinished_note == empty.to_context()


def test_a_page_says_so_and_offers_more_time(directory: Path) -> None:
    with serving_dashboard(directory) as door:
        reader = door.signed_in(Role.READER)
        asked = "/dashboard/search?q=keys&mode=lexical&f=source_id%3Aopen&deadline_ms="
        assert "Nothing that you may see matches" in reader.get(f"{asked}20000".replace("keys", "zebra")).text
        with hanging_searches():
            late = reader.get(f"{asked}100").text
        longer = late.partition('">Wait longer</a>')[0].rpartition('href="')[2].replace("&amp;", "&")
        found = reader.get(longer.replace("deadline_ms=500", "deadline_ms=20000")).text

    assert "The search did not finish in time:" in late
    assert "Nothing that you may see matches" not in late
    assert longer.endswith("deadline_ms=500")
    assert "f=source_id%3Aopen" in longer
    assert "rotated every 30 days" in found.replace("<mark>", "").replace("</mark>", "")


def test_the_api_says_so_in_its_coverage(directory: Path) -> None:
    with serving_dashboard(directory) as door:
        api = door.api(door.token(Role.AGENT))
        ask = {"query": "keys", "mode": "lexical", "latency_deadline_ms": 20_000, "receipt": False}
        assert 1 == len(api.post("/v1/evidence", json=ask).json()["fragments"])
        with hanging_searches():
            late = api.post("/v1/evidence", json={**ask, "latency_deadline_ms": 100}).json()

    assert [] == late["fragments"]
    assert {"open": "timed_out"} == {source: report["state"] for source, report in late["source_coverage"].items()}
    assert late["degraded"]


def test_a_model_is_told_so(directory: Path) -> None:
    async def scene() -> list[str]:
        served = ServedBase.open(directory)
        caller = Caller(local_owner(), agent_name="a client")
        handlers = ToolHandlers(served, ConversationMemory(), toolbox=lambda base, name: Toolbox(base, agent_name=name, deadline_ms=100))
        ask = {"query": "keys", "mode": "lexical", "latency_deadline_ms": 100}
        try:
            await handlers.call(RETRIEVE, ask, caller)
            with hanging_searches():
                return [(await handlers.call(name, given, caller)).text for name, given in ((RAG, {"query": "keys"}), (RETRIEVE, ask))]
        finally:
            await served.close()

    for text in asyncio.run(scene()):
        assert text.startswith(f"Error: {SAID}")


def test_a_command_says_so_and_ends_otherwise(directory: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    late = unfinished_answer(directory)
    monkeypatch.setattr(Base, "retrieve", lambda *_, **__: late)
    outcome = run("--base", directory, "search", "keys")

    assert 3 == outcome.exit_code
    assert outcome.out.startswith(SAID)
    assert "open (timed_out" in outcome.err


def test_fragments_of_others_do_not_hide_it(directory: Path) -> None:
    with connect(directory) as base:
        found = base.retrieve("keys", mode="lexical", latency_deadline_ms=20_000)
    report = next(iter(found.source_coverage.values()))
    slow = msgspec.structs.replace(report, state=CoverageState.TIMED_OUT, reason="too slow")
    partly = msgspec.structs.replace(found, source_coverage={**found.source_coverage, "wiki": slow})

    assert ("wiki",) == partly.unfinished
    assert partly.to_context().startswith("Note: the search did not finish in time (wiki)")
    assert partly.to_context().endswith(found.to_context())
