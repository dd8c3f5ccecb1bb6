"""Sources that are still out are given up when enough has come: only where the request asks for it, and never in silence."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from engine.federated_base import FederatedBase, ask, describe
from engine.small_base import memory_folder
from evidentia.contracts.access import local_owner
from evidentia.contracts.ids import SourceId
from evidentia.contracts.retrieval import Candidate
from evidentia.contracts.settings import CacheSettings
from evidentia.contracts.vocabulary import CoverageState
from evidentia.testing.documents import make_document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from evidentia.contracts.evidence import EvidenceResponse
    from evidentia.contracts.retrieval import SourceAsk

QUICK, LATER, LAST = "quick", "later", "last"
NAMES = (QUICK, LATER, LAST)
PAUSES_MS = {QUICK: 5, LATER: 20, LAST: 60}
LIMIT = 3


class SureSource:
    """Implements `Retriever`: says how sure it is of each of its fragments, after a pause; without any it raises."""

    def __init__(self, name: str, confidences: Sequence[float | None] | None, *, pause_ms: float) -> None:
        self._name = name
        self._confidences = confidences
        self._pause_s = pause_ms / 1_000

    async def retrieve(self, asked: SourceAsk) -> AsyncIterator[object]:
        """Yield the fragments."""
        await asyncio.sleep(self._pause_s)
        if self._confidences is None:
            raise ConnectionError
        for place, confidence in enumerate(self._confidences):
            yield Candidate(
                content=f"{asked.query.text} according to {self._name}, {place}",
                own_id=str(place),
                origin=f"test://{self._name}/{place}",
                confidence=confidence,
            )


@pytest.fixture
def base(tmp_path: Path) -> Iterator[FederatedBase]:
    with memory_folder(tmp_path) as folder:
        made = FederatedBase(
            Path(folder) / "base",
            documents=[make_document("a", "The harbour opens at noon.")],
            descriptors=[describe(name) for name in NAMES],
        )
        yield made
        made.close()


def answer(
    base: FederatedBase, said: Mapping[str, Sequence[float | None] | None], *, early_stop: bool, receipt: bool = False
) -> EvidenceResponse:
    base.attach({name: SureSource(name, said[name], pause_ms=PAUSES_MS[name]) for name in NAMES})
    request = ask("harbour", limit=LIMIT, early_stop=early_stop, receipt=receipt)
    return base.asking(cache=CacheSettings(enabled=False)).answer(request)


def states(response: EvidenceResponse) -> tuple[CoverageState, ...]:
    return tuple(response.source_coverage[SourceId(name)].state for name in NAMES)


SURE = {QUICK: (0.9, 0.9, 0.9), LATER: (0.9,), LAST: (0.95,)}
IDLE = {QUICK: (0.5, 0.5, 0.5), LATER: (0.5,), LAST: (0.95,)}
USEFUL = {QUICK: (0.5, 0.5, 0.5), LATER: (0.6,), LAST: (0.7,)}
FAILING = {QUICK: None, LATER: None, LAST: (0.95,)}
EMPTY = {QUICK: (), LATER: (), LAST: (0.95,)}
SEARCHED, SKIPPED, FAILED = CoverageState.SEARCHED, CoverageState.SKIPPED, CoverageState.FAILED


@pytest.mark.parametrize("said", [SURE, IDLE, USEFUL, EMPTY])
def test_everybody_is_waited_for_unless_the_request_asks_otherwise(base: FederatedBase, said: Mapping[str, Sequence[float]]) -> None:
    response = answer(base, said, early_stop=False)

    assert (SEARCHED, SEARCHED, SEARCHED) == states(response)
    assert 60.0 == response.latency_ms


def test_enough_has_come_when_every_fragment_is_likely_enough(base: FederatedBase) -> None:
    response = answer(base, SURE, early_stop=True)

    assert (SEARCHED, SKIPPED, SKIPPED) == states(response)
    assert 5.0 == response.latency_ms
    for name in (LATER, LAST):
        report = response.source_coverage[SourceId(name)]
        assert "given up: early stop: 3 fragments are at least 0.85 likely to be relevant" == report.reason
        assert (0, 0.0) == (report.candidates, report.searched_share)
    assert {QUICK, "test"} >= {fragment.source_id for fragment in response.fragments}


def test_enough_has_come_when_the_last_source_added_next_to_nothing(base: FederatedBase) -> None:
    response = answer(base, IDLE, early_stop=True)

    assert (SEARCHED, SEARCHED, SKIPPED) == states(response)
    assert 20.0 == response.latency_ms
    assert "given up: early stop: the last source added less than 0.02" == response.source_coverage[SourceId(LAST)].reason


def test_a_source_that_added_something_is_followed_by_the_next(base: FederatedBase) -> None:
    assert (SEARCHED, SEARCHED, SEARCHED) == states(answer(base, USEFUL, early_stop=True))


def test_sources_that_failed_are_no_reason_to_give_up_the_others(base: FederatedBase) -> None:
    assert (FAILED, FAILED, SEARCHED) == states(answer(base, FAILING, early_stop=True))


@pytest.mark.parametrize("seed", range(30))
def test_it_never_happens_without_being_asked_for_nor_in_silence(base: FederatedBase, seed: int) -> None:
    rng = Random(seed)
    said = {name: tuple(rng.choice((None, 0.1, 0.9, 1.0)) for _ in range(rng.randint(0, 4))) for name in NAMES}
    plain, stopped = answer(base, said, early_stop=False), answer(base, said, early_stop=True)
    given_up = [name for name in NAMES if stopped.source_coverage[SourceId(name)].state is SKIPPED]

    assert (SEARCHED, SEARCHED, SEARCHED) == states(plain)
    assert 60.0 == plain.latency_ms
    assert bool(given_up) == (stopped.latency_ms < 60.0)
    assert all(stopped.source_coverage[SourceId(name)].reason.startswith("given up: early stop") for name in given_up)
    assert not {fragment.source_id for fragment in stopped.fragments} & set(given_up)


def test_an_answer_that_was_stopped_is_repeated_as_it_was(base: FederatedBase) -> None:
    response = answer(base, IDLE, early_stop=True, receipt=True)
    assert response.receipt_id is not None
    report = base.parts.replayer().replay(response.receipt_id, asker=local_owner())

    assert report.is_same
    assert states(response) == states(report.response)


def test_the_answer_itself_says_that_it_was_stopped(base: FederatedBase) -> None:
    response = answer(base, SURE, early_stop=True)

    assert any("early stop" in told for told in (*response.degraded, *(decision.note for decision in response.decisions)))
