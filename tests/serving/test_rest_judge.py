"""The plane's own judge: it reads the documents of the tenant that asks, and nobody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import evidentia
from serving.rest_planes import Served, recorded, serving, started

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("starlette", reason="the extra `server` is not installed")

JUDGED = {
    "name": "judged",
    "category": "grounding",
    "rules": {"llm_grounding_check": True, "llm_grounding_model": "local:words", "action_on_violation": "block"},
}
TEXT = "Keys expire after 30 days."


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a plane over a base with one document, with the judge in force for two tenants."""
    folder = tmp_path_factory.mktemp("judged")
    (folder / "docs").mkdir()
    (folder / "docs" / "keys.md").write_text(f"# Keys\n\n{TEXT}\n", encoding="utf-8")
    with evidentia.connect(folder / "base", init=True) as base:
        base.ingest([folder / "docs"], source="handbook", embed=False)
    with serving(folder / "base") as served:
        for each in (served, served.within("other")):
            assert 201 == each.admin.post("/v1/policies", json=JUDGED).status_code
        yield served


def grounded(plane: Served, *citations: str, text: str) -> list[dict[str, Any]]:
    """Record a grounding entry and return what the judge's rule said."""
    entry = {"kind": "grounding", "grounding_scores": [0.9], "citations": citations}
    (result,) = recorded(plane, started(plane), 1, entry, text=text)["results"]
    evaluations = [each for verdict in result.get("verdicts", ()) for each in verdict["evaluations"]]
    return [each for each in evaluations if each.get("rule") == "llm_grounding_check"]


def test_what_a_document_says_is_grounded(plane: Served) -> None:
    assert [] == grounded(plane, "handbook:keys.md", text=TEXT)


def test_what_no_document_says_is_blocked(plane: Served) -> None:
    (said,) = grounded(plane, "handbook:keys.md", text="The moon is made of green cheese and belongs to 14 owls.")

    assert "block" == said["action"]
    assert said["reason"].startswith("LLM grounding score (")


@pytest.mark.parametrize("citation", ["nothing", "handbook:nothing.md", "handbook:keys.md#0@0000000000000000"])
def test_a_citation_without_a_text_is_a_bypass(plane: Served, citation: str) -> None:
    (said,) = grounded(plane, citation, text=TEXT)

    assert ("bypassed", "LLM grounding check skipped (source_unavailable)") == (said["status"], said["reason"])


def test_a_document_of_another_tenant_is_not_read(plane: Served) -> None:
    (said,) = grounded(plane.within("other"), "handbook:keys.md", text=TEXT)

    assert "LLM grounding check skipped (source_unavailable)" == said["reason"]


def test_what_was_said_is_not_kept(plane: Served) -> None:
    grounded(plane, "handbook:keys.md", text=f"{TEXT} xyzzy")
    plane.control.log.flush()

    folder = plane.control.directory / "decisions"
    assert not any(b"xyzzy" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
