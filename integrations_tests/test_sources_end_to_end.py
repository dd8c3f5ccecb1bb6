"""A base asks the retrievers of other frameworks, and says what each of them did."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from test_haystack_integration import Broken as BrokenComponent
from test_haystack_integration import pilot_retriever
from test_langchain_integration import Broken as BrokenLangChainRetriever
from test_langchain_integration import pilot_store
from test_llamaindex_integration import Broken as BrokenLlamaIndexRetriever
from test_llamaindex_integration import pilot_index

from evidentia.base.sync_base import connect
from evidentia.contracts.access import local_owner
from evidentia.contracts.evidence import SubQuery
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import SourceAsk
from evidentia.contracts.settings import SourceSettings
from evidentia.contracts.sources import SourceConnection, SourceDescriptor
from evidentia.contracts.vocabulary import ConnectionKind, CoverageState
from evidentia.integrations import haystack, langchain, llamaindex
from evidentia.sources.intake import Intake
from evidentia.sources.objects import AsyncObject, BlockingObject, adapted

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.integrations.proposals import AsyncSource, BlockingSource
    from evidentia.sources.intake import Taken

PILOTS = SourceId("pilots")
DESCRIPTOR = SourceDescriptor(source_id=PILOTS, connection=SourceConnection(kind=ConnectionKind.PYTHON), expected_p99_ms=10_000)
PATIENT_MS = 30_000
"""A deadline that a busy machine keeps as well."""


NOW = datetime(2024, 6, 1, tzinfo=UTC)
ASK = SourceAsk(query=SubQuery(text="pilot at the lock"), principal=local_owner(), limit=5, budget_ms=PATIENT_MS, as_of=NOW)

every_source = pytest.mark.parametrize(
    "source",
    [
        langchain.as_source(pilot_store()),
        langchain.as_source(pilot_store(), on_thread=True),
        llamaindex.as_source(pilot_index().as_retriever()),
        llamaindex.as_source(pilot_index().as_retriever(), on_thread=True),
        haystack.as_source(pilot_retriever()),
        haystack.as_source(pilot_retriever(), on_thread=True),
    ],
    ids=["langchain", "langchain on a thread", "llamaindex", "llamaindex on a thread", "haystack", "haystack on a thread"],
)


def taken_from(source: AsyncSource | BlockingSource) -> Taken:
    """Ask a source as the engine does, without a deadline."""
    intake = Intake(DESCRIPTOR, ASK, settings=SourceSettings(), now=lambda: NOW)
    asked = adapted(source)
    if isinstance(asked, BlockingObject):
        for proposed in asked.retrieve_blocking(ASK):
            intake.take(proposed)
        return intake.finished()
    assert isinstance(asked, AsyncObject)

    async def ask() -> None:
        async for proposed in asked.retrieve(ASK):
            intake.take(proposed)

    asyncio.run(ask())
    return intake.finished()


@every_source
def test_what_a_retriever_returns_passes_the_intake_without_fault(source: AsyncSource | BlockingSource) -> None:
    taken = taken_from(source)

    assert {} == taken.faults
    assert ["pilots:pilot-1", "pilots:pilot-2"] == [each.document_id for each in taken.candidates]
    assert taken.candidates[0].origin


@every_source
def test_a_base_asks_a_retriever(source: AsyncSource | BlockingSource, tmp_path: Path) -> None:
    with connect(tmp_path / "base", init=True) as base:
        base.add_source(DESCRIPTOR, source)
        response = base.retrieve("does a pilot board at the lock?", latency_deadline_ms=PATIENT_MS)

    assert "A pilot boards every ship at the lock." in [each.content for each in response.fragments if each.source_id == PILOTS]
    assert CoverageState.SEARCHED is response.source_coverage[PILOTS].state


@pytest.mark.parametrize(
    "source",
    [
        langchain.as_source(BrokenLangChainRetriever()),
        llamaindex.as_source(BrokenLlamaIndexRetriever()),
        haystack.as_source(BrokenComponent()),
    ],
    ids=["langchain", "llamaindex", "haystack"],
)
def test_a_base_reports_a_retriever_that_fails(source: AsyncSource | BlockingSource, tmp_path: Path) -> None:
    with connect(tmp_path / "base", init=True) as base:
        base.add_source(DESCRIPTOR, source)
        response = base.retrieve("crane", latency_deadline_ms=PATIENT_MS)

    assert CoverageState.FAILED is response.source_coverage[PILOTS].state
