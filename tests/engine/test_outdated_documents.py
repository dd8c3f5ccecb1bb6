"""What no longer holds says so, and stands behind what has taken its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia import connect

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evidentia import EvidenceResponse

AS_OF = "2026-01-01T00:00:00Z"
QUESTION = "How often are signing keys rotated?"
OLD = "Signing keys are rotated every 90 days. How often signing keys are rotated is written here: every 90 days.\n"
NEW = "Signing keys are rotated every 30 days by the operator.\n"
FOREIGN = "The canteen opens at noon.\n"


def _answer(folder: Path, pages: Mapping[str, str], **fields: object) -> EvidenceResponse:
    (folder / "docs").mkdir()
    for name, text in pages.items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    with connect(folder / "base", init=True) as base:
        base.ingest([folder / "docs"], source="handbook")
        answer = base.retrieve(QUESTION, as_of=AS_OF, receipt=False, latency_deadline_ms=60_000, **fields)
        assert base.verify(answer).ok
        return answer


def _names(answer: EvidenceResponse) -> list[str]:
    return [each.document_id.removeprefix("handbook:") for each in answer.fragments]


@pytest.mark.parametrize("key", ["status", "deprecation_status"])
@pytest.mark.parametrize("status", ["deprecated", "archived"])
@pytest.mark.parametrize("fields", [{}, {"mode": "lexical"}, {"limit": 1}, {"diversity_constraint": 1.0}, {"token_budget": 400}])
def test_a_document_that_no_longer_holds_says_so_and_stands_behind_its_successor(
    tmp_path: Path, key: str, status: str, fields: dict[str, object]
) -> None:
    pages = {"old.md": f"---\n{key}: {status}\n---\n\n{OLD}", "new.md": NEW, "other.md": FOREIGN}
    answer = _answer(tmp_path, pages, **fields)

    assert "new.md" == _names(answer)[0]
    if "limit" not in fields:
        [old] = [each for each in answer.fragments if each.document_id == "handbook:old.md"]
        assert status in old.flags
        assert status == old.metadata["deprecation_status"]
        assert f"{status}=true" in answer.to_context()
    assert not any({"deprecated", "archived"} & {*each.flags} for each in answer.fragments if each.document_id != "handbook:old.md")


@pytest.mark.parametrize(
    ("old", "new"), [("superseded_by: guide/keys.md", ""), ("", "supersedes: old.md"), ("replaced_by: handbook:guide/keys.md", "")]
)
def test_a_successor_that_is_named_stands_before_what_it_replaces_however_little_they_have_in_common(
    tmp_path: Path, old: str, new: str
) -> None:
    (tmp_path / "docs" / "guide").mkdir(parents=True)
    (tmp_path / "docs" / "old.md").write_text(f"---\nstatus: deprecated\n{old}\n---\n\n{OLD}", encoding="utf-8")
    (tmp_path / "docs" / "guide" / "keys.md").write_text(
        f"---\n{new}\n---\n\nTurnus: see the vault's calendar, signing.\n", encoding="utf-8"
    )
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "docs"], source="handbook")
        answer = base.retrieve(QUESTION, as_of=AS_OF, receipt=False, latency_deadline_ms=60_000)

    assert ["guide/keys.md", "old.md"] == _names(answer)


def test_what_is_about_something_else_does_not_pass_it(tmp_path: Path) -> None:
    answer = _answer(tmp_path, {"old.md": f"---\nstatus: deprecated\n---\n\n{OLD}", "other.md": FOREIGN})

    assert ["old.md", "other.md"] == _names(answer)


def test_whoever_gives_authority_no_weight_gets_the_order_of_the_match(tmp_path: Path) -> None:
    only = {"relevance": 1.0, "authority": 0.0, "freshness": 0.0, "utility": 0.0}
    answer = _answer(tmp_path, {"old.md": f"---\nstatus: deprecated\n---\n\n{OLD}", "new.md": NEW}, ranking_weights=only)

    assert "old.md" == _names(answer)[0]
    assert "deprecated" in answer.fragments[0].flags
