"""A base's own calibration: fitted from judged questions, stored with the base, part of what a receipt is answered with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from evidentia import connect, restore
from evidentia.contracts.errors import BaseDamagedError, InvalidFieldError
from evidentia.contracts.receipts import ConfidenceCalibration
from evidentia.engine.result_hashes import config_hash
from evidentia.evaluation.confidence_calibration import JudgedQuestion, calibrate, read_questions
from evidentia.ranking.confidence import shipped_models
from evidentia.wiring.embedded import open_parts
from evidentia.wiring.model_registry import CALIBRATION_NAME, write_calibration

if TYPE_CHECKING:
    from pathlib import Path

    from evidentia import Base

NAMES = [f"{colour} {thing}" for colour in ("red", "green", "blue", "white") for thing in ("pump", "valve", "crane", "hoist", "winch")]
QUESTIONS = [JudgedQuestion(question=f"Who repairs the {name}?", relevant=(f"{name.replace(' ', '-')}.md",)) for name in NAMES]
ASKED = {"mode": "lexical", "as_of": "2026-01-01T00:00:00Z", "latency_deadline_ms": 20_000}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a base of twenty pages that are much alike."""
    pages = tmp_path / "pages"
    pages.mkdir()
    for number, name in enumerate(NAMES):
        (pages / f"{name.replace(' ', '-')}.md").write_text(f"The {name} is repaired by crew {number} of the yard.\n", encoding="utf-8")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([pages], source="pages", embed=False)
    return tmp_path / "base"


def first(base: Base, **fields: object) -> tuple[float, str]:
    answer = base.retrieve(QUESTIONS[0].question, **{**ASKED, **fields})
    return answer.fragments[0].confidence, answer.fragments[0].metadata["confidence_basis"]


def test_twenty_questions_bring_the_confidence_nearer_to_the_judgments(directory: Path) -> None:
    with connect(directory) as base:
        shipped = first(base)
    dry = calibrate(directory, QUESTIONS, store=False)
    report = calibrate(directory, QUESTIONS)
    with connect(directory) as base:
        own = first(base)
    again = calibrate(directory, QUESTIONS, store=False)

    assert shipped_models().second.basis == shipped[1]
    assert ("20 judged questions of this base", True, False) == (own[1], report.is_stored, dry.is_stored)
    assert own[0] != shipped[0]
    assert report.after.brier < min(report.before.brier, report.constant_brier)
    assert dry.calibration == report.calibration
    assert abs(report.calibration.shift - again.calibration.shift) < 1 << 10
    assert abs(report.calibration.scale - again.calibration.scale) < 1 << 10


def test_a_receipt_replays_with_the_calibration_it_was_answered_with(directory: Path) -> None:
    write_calibration(directory, ConfidenceCalibration(basis="ours", scale=1 << 15, shift=1 << 16))
    with connect(directory) as base:
        answer = base.retrieve(QUESTIONS[0].question, **ASKED)
    write_calibration(directory, None)
    with connect(directory) as base:
        report = base.replay(answer.receipt_id or "")
        shipped = base.retrieve(QUESTIONS[0].question, **ASKED)

    assert report.is_same
    assert [each.confidence for each in answer.fragments] == [each.confidence for each in report.response.fragments]
    assert "ours" == report.response.fragments[0].metadata["confidence_basis"]
    assert answer.config_hash != shipped.config_hash
    assert answer.fragments[0].confidence != shipped.fragments[0].confidence


def test_settings_without_a_calibration_have_the_hash_that_they_always_had(directory: Path) -> None:
    parts = open_parts(directory)
    config = msgspec.structs.replace(parts.config, engine="evidentia-engine/6")
    parts.close()

    assert config.calibration is None
    assert config_hash(config) != config_hash(msgspec.structs.replace(config, calibration=ConfidenceCalibration(basis="")))


def test_the_order_of_fragments_stays(directory: Path) -> None:
    with connect(directory) as base:
        before = base.retrieve(QUESTIONS[0].question, **ASKED)
    write_calibration(directory, ConfidenceCalibration(basis="ours", scale=1 << 17, shift=-(1 << 16)))
    with connect(directory) as base:
        after = base.retrieve(QUESTIONS[0].question, **ASKED)

    assert [each.chunk_id for each in before.fragments] == [each.chunk_id for each in after.fragments]


def test_a_backup_takes_the_calibration_along(directory: Path, tmp_path: Path) -> None:
    write_calibration(directory, ConfidenceCalibration(basis="ours", shift=1 << 16))
    with connect(directory) as base:
        base.backup(tmp_path / "backup.tar")
    restore(tmp_path / "backup.tar", tmp_path / "restored")
    with connect(tmp_path / "restored") as base:
        assert "ours" == first(base)[1]


@pytest.mark.parametrize("questions", [QUESTIONS[:19], [msgspec.structs.replace(each, relevant=("elsewhere",)) for each in QUESTIONS]])
def test_too_few_questions_and_strange_ids_are_refused(directory: Path, questions: list[JudgedQuestion]) -> None:
    with pytest.raises(InvalidFieldError, match="questions"):
        calibrate(directory, questions)

    assert not (directory / CALIBRATION_NAME).exists()


def test_questions_come_from_lines_or_from_a_folder_without_its_corpus(tmp_path: Path) -> None:
    lines = tmp_path / "judged.jsonl"
    lines.write_text('{"question": "a?", "relevant": ["x"]}\n{"question": "b?", "relevant": []}\n', encoding="utf-8")
    folder = tmp_path / "judged"
    (folder / "qrels").mkdir(parents=True)
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "a?"}\n{"_id": "2", "text": "b?"}\n', encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tx\t2\n2\ty\t0\n", encoding="utf-8")
    expected = [JudgedQuestion(question="a?", relevant=("x",)), JudgedQuestion(question="b?", relevant=())]

    assert expected == read_questions(lines) == read_questions(folder)
    lines.write_text('{"question": "", "relevant": []}\n', encoding="utf-8")
    with pytest.raises(InvalidFieldError, match="line 1"):
        read_questions(lines)


def test_a_calibration_that_cannot_be_read_is_said_and_not_passed_over(directory: Path) -> None:
    (directory / CALIBRATION_NAME).write_text('{"basis": "ours", "scale": 0}', encoding="utf-8")

    with pytest.raises(BaseDamagedError, match=r"calibration\.json"), connect(directory) as base:
        first(base)
