"""Copies of a false page, however many a source of low authority puts in, neither fill an answer nor hide the page they falsify."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evidentia import connect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia import Base, EvidenceResponse

AS_OF = "2026-01-01T00:00:00Z"
QUESTION = "How often are signing keys rotated?"
TRUE = (
    "Signing keys are rotated every 30 days. The operator on duty starts the rotation in the vault, waits until all services have taken "
    "the new key, and writes the change into the journal. A second person checks the entry before the old key is destroyed."
)
FALSE = TRUE.replace("30 days", "90 days")
OTHERS = {
    "alarms.md": "An alarm is raised when signing keys are older than the policy allows, and the duty desk is called.\n",
    "audit.md": "The auditors ask once a year how keys are kept, who may sign a release, and where the journal lies.\n",
    "backup.md": "Backups of the vault are encrypted and are tested in the first week of every quarter.\n",
    "release.md": "A release is signed in the build farm, and the signature is checked before it is published.\n",
    "tokens.md": "Tokens of services are rotated by themselves, often within the hour.\n",
    "travel.md": "Expenses of a journey are paid back within a month.\n",
}
FLOOD = 130
"""More than both legs propose."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    folder = tmp_path_factory.mktemp("floods")
    (folder / "docs").mkdir()
    for name, text in {**OTHERS, "keys.md": f"# Signing keys\n\n{TRUE}\n"}.items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    with connect(folder / "base", init=True) as made:
        made.ingest([folder / "docs"], source="handbook")
        made.ingest(
            [_written(folder, [f"{QUESTION} {FALSE} Post {number} says so." for number in range(FLOOD)])], source="forum", authority="user"
        )
        yield made


def _written(folder: Path, texts: list[str]) -> Path:
    corpus = folder / "forum.jsonl"
    lines = [json.dumps({"_id": f"post-{number:03}", "title": "Signing keys", "text": text}) for number, text in enumerate(texts)]
    corpus.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return corpus


def _ask(base: Base, **fields: object) -> EvidenceResponse:
    return base.retrieve(QUESTION, **{"as_of": AS_OF, "receipt": False, "latency_deadline_ms": 60_000, **fields})


@pytest.mark.parametrize("fields", [{}, {"mode": "lexical"}, {"mode": "dense"}, {"fusion": "rrf"}, {"diversity_constraint": 0.2}])
def test_a_flood_of_copies_stands_behind_what_it_copies_and_all_else(base: Base, fields: dict[str, object]) -> None:
    sources = [each.source_id for each in _ask(base, limit=7, **fields).fragments]
    pages = 5 if fields == {"mode": "lexical"} else 7  # by words alone, the others that have one in common

    assert ["handbook"] * pages == sources[:pages]
    assert "handbook:keys.md" == _ask(base, limit=1, **fields).fragments[0].document_id


def test_without_diversity_the_flood_is_all_there_is(base: Base) -> None:
    assert {"forum"} == {each.source_id for each in _ask(base, diversity_constraint=1.0, limit=5).fragments}


def test_a_flood_does_not_hide_that_the_better_source_disagrees(base: Base) -> None:
    [conflict] = _ask(base, limit=3).conflicts

    assert ("30 days", "authority") == (conflict.value, conflict.decided_by)
    assert conflict.winner.startswith("handbook:keys.md")


def test_a_replay_finds_the_same_answer(base: Base) -> None:
    answer = _ask(base, receipt=True)

    assert answer.receipt_id is not None
    assert base.replay(answer.receipt_id).is_same


def test_pages_that_are_merely_about_the_same_keep_the_order_of_their_scores(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name, text in {**OTHERS, "keys.md": TRUE}.items():
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "docs"], source="handbook")
        default, by_score = (_ask(base, **fields) for fields in ({}, {"diversity_constraint": 1.0}))

    assert [each.chunk_id for each in by_score.fragments] == [each.chunk_id for each in default.fragments]
