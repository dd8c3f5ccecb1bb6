"""The questions of SciFact have the answers that were written down in tests/house/golden_answers.json, by their hashes.

One in ten is asked, of the base that the other tests of this folder ask; EVIDENTIA_SCIFACT=full asks all 300 of all abstracts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.embedded_samples import DOCUMENTS, IS_FULL, QUERIES
from evidentia import connect

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

from golden_answers import answer_hash, read_judgements, read_questions  # noqa: E402 - tools is no package

if TYPE_CHECKING:
    from engine.embedded_samples import SciFact

STEP = 1 if IS_FULL else 10


@pytest.mark.slow
def test_questions_have_the_answers_that_were_written_down(scifact: SciFact, shared_data: Path) -> None:
    golden = json.loads((ROOT / "tests" / "house" / "golden_answers.json").read_text(encoding="utf-8"))["scifact"][str(DOCUMENTS)]
    questions = read_questions(shared_data / "scifact", read_judgements(shared_data / "scifact"))

    with connect(scifact.path) as base:
        found = {query_id: answer_hash(base, text) for query_id, text in questions[::STEP]}

    assert QUERIES == len(golden) == len(questions)
    assert {query_id: golden[query_id] for query_id in found} == found
