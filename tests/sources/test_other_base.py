"""Another base as a source: who is asked for what, and that its fragments come with its custody, or as a fault."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest
from intake_samples import ASK, NOW, taken_from

import evidentia
from evidentia.contracts.access import local_owner
from evidentia.contracts.errors import ServiceUnavailableError
from evidentia.contracts.ids import Sha256
from evidentia.contracts.ports import SupportsDataVersion
from evidentia.contracts.vocabulary import CoverageState
from evidentia.provenance.custody_exchange import candidates_of
from evidentia.sources.other_base import BaseRetriever

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evidentia.contracts.evidence import EvidenceRequest, EvidenceResponse
    from evidentia.contracts.retrieval import Candidate, SourceAsk

TALL = "---\ntitle: Crane\nupdated_at: 2026-01-02T00:00:00Z\n---\nThe harbour crane is 40 m tall.\n"
OLD = "The crane was built in 1911 by hand.\n"
ASKED = msgspec.structs.replace(ASK, principal=local_owner(), as_of=NOW)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[evidentia.Base]:
    folder: Path = tmp_path_factory.mktemp("other")
    (folder / "tall.md").write_text(TALL)
    (folder / "old.md").write_text(OLD)
    with evidentia.connect(folder / "base", init=True) as base:
        base.ingest([folder / "tall.md", folder / "old.md"], source="yard", embed=False)
        yield base


def ask_base(base: evidentia.Base, ask: SourceAsk = ASKED) -> tuple[list[Candidate], EvidenceRequest, EvidenceResponse]:
    """Ask a base through the retriever, and return what was proposed, asked and answered."""
    seen: list[tuple[EvidenceRequest, EvidenceResponse]] = []

    async def retrieve(request: EvidenceRequest) -> EvidenceResponse:
        response = await asyncio.to_thread(base.retrieve, request)
        seen.append((request, response))
        return response

    async def read() -> list[Candidate]:
        return [each async for each in BaseRetriever(retrieve).retrieve(ask)]

    proposed = asyncio.run(read())
    return proposed, *seen[0]


def test_the_same_is_asked_for_the_same_caller_within_the_same_time(other: evidentia.Base) -> None:
    _, request, _ = ask_base(other)

    assert (ASK.query.text, local_owner(), 10, 100, NOW) == (
        request.query.text,
        request.principal,
        request.limit,
        request.latency_deadline_ms,
        request.as_of,
    )
    assert (True, 0) == (request.receipt, request.source_policy.most_sources)


def test_its_fragments_come_in_its_order_with_its_custody(other: evidentia.Base) -> None:
    proposed, _, response = ask_base(other)
    found = taken_from(proposed)

    assert [each.content for each in response.fragments] == [each.content for each in found.candidates]
    assert 2 == len(found.candidates)
    assert {} == found.faults
    first, fragment = found.candidates[0], response.fragments[0]
    assert f"evidentia:{response.commit.base_id}/{fragment.chunk_id}?corpus_version={response.corpus_version}" == first.origin
    assert response.receipt_id == first.metadata["upstream_receipt"]
    assert fragment.provenance_chain[-1].hash == first.metadata["upstream_custody_head"]
    assert response.result_hash == first.metadata["upstream_result_hash"]
    assert round(fragment.confidence * 1_000_000) == first.confidence_millionths


def test_titles_and_dates_come_along(other: evidentia.Base) -> None:
    proposed, _, _ = ask_base(other)

    crane = next(each for each in proposed if "40 m" in each.content)

    assert ("Crane", "2026-01-02T00:00:00+00:00") == (crane.title, crane.updated_at and crane.updated_at.isoformat())


def test_order_does_not_depend_on_how_its_fragments_arrive(other: evidentia.Base) -> None:
    proposed, _, _ = ask_base(other)

    assert taken_from(proposed) == taken_from(reversed(proposed))


@pytest.mark.parametrize(
    "change",
    [
        lambda fragment: msgspec.structs.replace(fragment, content=fragment.content + "!"),
        lambda fragment: msgspec.structs.replace(fragment, provenance_chain=()),
        lambda fragment: msgspec.structs.replace(fragment, provenance_chain=fragment.provenance_chain[:-1]),
        lambda fragment: msgspec.structs.replace(fragment, provenance_chain=fragment.provenance_chain[:-1], event=None),
        lambda fragment: msgspec.structs.replace(fragment, content_hash=Sha256("0" * 64)),
        lambda fragment: msgspec.structs.replace(fragment, document_id="yard:other"),
        lambda fragment: msgspec.structs.replace(fragment, content="\ud800"),
        lambda fragment: msgspec.structs.replace(fragment, event=msgspec.structs.replace(fragment.event, index=7)),
    ],
)
def test_a_fragment_with_broken_custody_is_a_fault(other: evidentia.Base, change: Callable[[object], object]) -> None:
    _, _, response = ask_base(other)
    broken = msgspec.structs.replace(response, fragments=(change(response.fragments[0]), *response.fragments[1:]))

    found = taken_from(candidates_of(broken, principal=local_owner()))

    assert {"broken_custody": 1} == found.faults
    assert [response.fragments[1].content] == [each.content for each in found.candidates]


def test_a_fragment_without_an_event_is_checked_by_its_chain(other: evidentia.Base) -> None:
    _, _, response = ask_base(other)
    outside = msgspec.structs.replace(response.fragments[0], event=None, inclusion=None)

    found = taken_from(candidates_of(msgspec.structs.replace(response, fragments=(outside,)), principal=local_owner()))

    assert (1, {}) == (len(found.candidates), found.faults)


def test_nothing_found_is_nothing_proposed(other: evidentia.Base) -> None:
    asked = msgspec.structs.replace(ASKED, query=msgspec.structs.replace(ASK.query, text="zeppelin"))

    proposed, _, response = ask_base(other, asked)

    assert ([], ()) == (proposed, response.fragments)


def test_its_version_is_known_where_it_is_given(other: evidentia.Base) -> None:
    async def retrieve(_: EvidenceRequest) -> EvidenceResponse:
        raise NotImplementedError

    versioned = BaseRetriever(retrieve, version=lambda: other.head().evidence_state)

    assert isinstance(versioned, SupportsDataVersion)
    assert other.head().evidence_state == versioned.data_version()
    assert not isinstance(BaseRetriever(retrieve), SupportsDataVersion)


def test_a_base_that_ran_out_of_time_has_not_answered(other: evidentia.Base) -> None:
    """An empty answer of a base that did not look must not be kept as one that found nothing."""
    _, _, response = ask_base(other)
    late = {source: msgspec.structs.replace(each, state=CoverageState.TIMED_OUT) for source, each in response.source_coverage.items()}

    async def answer(_: object) -> object:
        return msgspec.structs.replace(response, source_coverage=late)

    async def ask() -> tuple[list[object], str]:
        found: list[object] = []
        try:
            async for candidate in BaseRetriever(answer).retrieve(ASKED):  # type: ignore[arg-type]  # an answer is an answer
                found.append(candidate)  # noqa: PERF401  # what came before the error counts
        except ServiceUnavailableError as error:
            return found, str(error)
        return found, ""

    found, problem = asyncio.run(ask())
    assert len(response.fragments) == len(found)
    assert "did not look into all it has" in problem
