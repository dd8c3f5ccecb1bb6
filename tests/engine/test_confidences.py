"""The confidence of an answer's fragments: the same for every limit and within every view, and low where nothing answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia import connect
from evidentia.contracts.receipts import ConfidenceCalibration
from evidentia.wiring.model_registry import write_calibration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia import Base

THINGS = ("pump", "valve", "crane", "hoist", "winch", "anchor", "ladder", "engine")
QUESTION = "How often is the filter of the green pump cleaned?"
OFF_TOPIC = "best recipe for lasagna"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    """Return a base of technical pages, with vectors."""
    directory = tmp_path_factory.mktemp("confidences")
    for number, (colour, thing) in enumerate((colour, thing) for colour in ("red", "green", "blue") for thing in THINGS):
        text = f"# The {colour} {thing}\n\nThe filter of the {colour} {thing} is cleaned every {number + 2} weeks by the yard's crew.\n"
        (directory / f"{colour}-{thing}.md").write_text(text, encoding="utf-8")
    with connect(directory / "base", init=True) as opened:
        opened.ingest(sorted(directory.glob("*.md")), source="yard")
        opened.embed()
        yield opened


def said(base: Base, question: str, **fields: object) -> dict[str, float]:
    answer = base.retrieve(question, receipt=False, latency_deadline_ms=60_000, as_of="2026-01-01T00:00:00Z", **fields)
    return {fragment.chunk_id: fragment.confidence for fragment in answer.fragments}


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_the_limit_changes_no_confidence(base: Base, mode: str) -> None:
    few, more, most = (said(base, QUESTION, mode=mode, limit=limit, diversity_constraint=1.0) for limit in (1, 5, 20))

    assert few.items() <= more.items() <= most.items()


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_the_right_page_is_likelier_than_anything_that_is_off_topic(base: Base, mode: str) -> None:
    right, strange = said(base, QUESTION, mode=mode), said(base, OFF_TOPIC, mode=mode)

    assert "yard:green-pump.md" in max(right, key=right.__getitem__)
    assert max(right.values()) > max(strange.values(), default=0.0)
    assert max(strange.values(), default=0.0) < 0.3


def test_a_base_of_three_pages_answers_with_a_probability(tmp_path: Path) -> None:
    for name in ("cat", "dog", "fish"):
        (tmp_path / f"{name}.md").write_text(f"The {name} is fed at noon by Anna.\n", encoding="utf-8")
    with connect(tmp_path / "base", init=True) as tiny:
        tiny.ingest([tmp_path / "cat.md", tmp_path / "dog.md", tmp_path / "fish.md"], source="pets")
        tiny.embed()
        right, strange = said(tiny, "Who feeds the cat?"), said(tiny, OFF_TOPIC)

    assert 0.5 < max(right.values()) <= 1
    assert max(strange.values(), default=0.0) < 0.3


def test_parts_of_a_question_leave_a_probability(base: Base) -> None:
    found = said(base, "green pump filter and blue crane filter", explain=True)

    assert all(0 <= chance <= 1 for chance in found.values())


def test_why_tells_the_same_confidence_with_a_calibration(base: Base) -> None:
    write_calibration(base.path, ConfidenceCalibration(basis="ours", shift=1 << 15))
    with connect(base.path) as calibrated:
        answer = calibrated.retrieve(QUESTION, latency_deadline_ms=60_000)
        why = calibrated.why(answer.receipt_id or "", answer.fragments[2].chunk_id)
    write_calibration(base.path, None)

    assert answer.fragments[2].confidence == why.confidence
    assert {"ours"} == {fragment.metadata["confidence_basis"] for fragment in answer.fragments}
