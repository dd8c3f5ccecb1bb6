"""What the settings of a base say of sources outside it holds for its requests, and is part of what an answer was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.federated_base import WITHOUT_VECTORS, FederatedBase, ask, describe
from evidentia.contracts.access import local_owner
from evidentia.contracts.sources import SourcePolicy
from evidentia.contracts.vocabulary import CoverageState
from evidentia.engine.retrieval_task import RetrievalTask
from evidentia.testing.faulty_sources import FaultySource
from evidentia.testing.virtual_time import InlineBlockingExecutor, run_virtual

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia.contracts.evidence import EvidenceResponse

NAMES = ("s0", "s1", "s2")
ONE_PER_PART = "[sources]\nmost_per_part = 1\n"


def answer(directory: Path, settings: str) -> EvidenceResponse:
    """Answer a request that names no number of sources, with the engine as a base has it."""
    base = FederatedBase(directory, descriptors=[describe(name) for name in NAMES], settings=WITHOUT_VECTORS + settings)
    base.attach({name: FaultySource(seed=number) for number, name in enumerate(NAMES)})
    engine = base.parts.engine(base.parts.config)
    request = ask("harbour", policy=SourcePolicy())
    response = run_virtual(RetrievalTask(engine, executor=InlineBlockingExecutor()).run(request, principal=local_owner()), clock=base.clock)
    base.close()
    return response


@pytest.mark.parametrize(("settings", "asked"), [("", 3), (ONE_PER_PART, 1)])
def test_as_many_sources_are_asked_as_the_settings_say(settings: str, asked: int, tmp_path: Path) -> None:
    response = answer(tmp_path / "base", settings)

    assert asked == sum(report.state is CoverageState.SEARCHED for report in response.source_coverage.values())


def test_settings_of_sources_are_part_of_what_an_answer_was_made_with(tmp_path: Path) -> None:
    assert answer(tmp_path / "one", "").config_hash != answer(tmp_path / "other", ONE_PER_PART).config_hash
