"""What a fragment says about how it was found and how far it can be trusted is so, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evidentia import connect
from evidentia.contracts.evidence import SCORE_ONE
from evidentia.contracts.ids import SourceId
from evidentia.contracts.provenance import TransformationEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidentia import Base, EvidenceResponse

AS_OF = "2026-01-01T00:00:00Z"
PAGES = {
    "keys.md": "---\nupdated: 2025-12-02\nauthority_tier: curated\n---\n\n# Signing keys\n\nSigning keys are rotated every 30 days.\n",
    "late.md": "---\nupdated: 2025-11-02\nauthority_tier: user\n---\n\n# Signing keys\n\nSigning keys are rotated every 90 days.\n",
    "vault.md": "The vault holds credentials, which an operator replaces regularly.\n",
    "errors.md": "HRB-4012 means that a signing key has expired.\n",
    "schluessel.md": "Die Schlüssel werden von der Leitung alle dreißig Tage erneuert, und das ist nicht zu ändern.\n",
}
DAY_S = 86_400
SOURCE = SourceId("handbook")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    folder = tmp_path_factory.mktemp("fields")
    (folder / "docs").mkdir()
    for name, text in PAGES.items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    with connect(folder / "base", init=True) as made:
        made.ingest([folder / "docs"], source="handbook", authority="canonical")
        yield made


def _ask(base: Base, **fields: object) -> EvidenceResponse:
    asked = {"as_of": AS_OF, "receipt": False, "latency_deadline_ms": 60_000, **fields}
    return base.retrieve("How often are signing keys rotated?", **asked)


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_the_rank_in_each_leg_is_that_before_fusion(base: Base, mode: str) -> None:
    alone = {leg: [each.chunk_id for each in _pure(base, leg).fragments] for leg in ("lexical", "dense")}
    legs = {"lexical": "bm25", "dense": "dense"}
    answer = _ask(base, mode=mode)

    assert answer.fragments
    for fragment in answer.fragments:
        context = fragment.retrieval_context
        assert context is not None
        expected = {
            name: alone[leg].index(fragment.chunk_id) + 1
            for leg, name in legs.items()
            if mode in (leg, "hybrid") and fragment.chunk_id in alone[leg]
        }
        assert expected == context.leg_ranks
        assert min(expected.values()) == context.rank_position
    ranks = [each.retrieval_context.final_rank for each in answer.fragments if each.retrieval_context]
    assert list(range(1, len(ranks) + 1)) == ranks


def _pure(base: Base, leg: str) -> EvidenceResponse:
    weights = {"relevance": 1.0, "authority": 0.0, "freshness": 0.0, "utility": 0.0}
    return _ask(base, mode=leg, ranking_weights=weights, diversity_constraint=1.0)


def test_the_relevance_score_is_the_composite_and_the_signal_stands_beside_it(base: Base) -> None:
    for fragment in _ask(base).fragments:
        context = fragment.retrieval_context
        assert context is not None
        assert fragment.score / SCORE_ONE == fragment.relevance_score == context.relevance_score
        assert fragment.scores.relevance / SCORE_ONE == context.relevance_signal
    assert any(each.relevance_score != each.scores.relevance / SCORE_ONE for each in _ask(base).fragments)


@pytest.mark.parametrize(
    ("fields", "method"),
    [
        ({"fusion": "rrf"}, "bm25+dense_rrf"),
        ({"fusion": "linear"}, "bm25+dense_linear"),
        ({"mode": "lexical"}, "bm25"),
        ({"mode": "dense"}, "dense"),
    ],
)
def test_a_tag_names_the_fusion_and_the_age_of_the_content(base: Base, fields: dict[str, object], method: str) -> None:
    answer = _ask(base, **fields)
    opened = [line for line in answer.to_context().splitlines() if line.startswith("[EVIDENCE ")]

    assert len(answer.fragments) == len(opened)
    assert all(f'retrieval_method="{method}"' in line for line in opened)
    for fragment, line in zip(answer.fragments, opened, strict=True):
        age = {"handbook:keys.md": "freshness=30d", "handbook:late.md": "freshness=60d"}.get(fragment.document_id)
        assert (age in line) if age else ("freshness=" not in line and "freshness_unknown=true" in line)


def test_both_sides_of_a_conflict_are_flagged(base: Base) -> None:
    answer = _ask(base)
    [conflict] = answer.conflicts
    sides = {conflict.winner, *conflict.losers}
    flagged = {each.chunk_id for each in answer.fragments if each.trust_metadata and each.trust_metadata.conflict_flag}

    assert {"handbook:keys.md", "handbook:late.md"} == {each.document_id for each in answer.fragments if each.chunk_id in flagged}
    assert sides == flagged


def test_a_source_of_the_base_says_how_old_its_newest_candidate_is(base: Base) -> None:
    assert 30 * DAY_S == _ask(base).source_coverage[SOURCE].data_age_s
    assert base.retrieve("HRB-4012", mode="lexical", as_of=AS_OF, receipt=False).source_coverage[SOURCE].data_age_s is None


def test_the_embedding_is_part_of_custody_where_a_vector_was_used(base: Base) -> None:
    def steps(mode: str) -> set[tuple[str, ...]]:
        answer = _ask(base, mode=mode)
        assert base.verify(answer).ok
        return {
            tuple(entry.record.step for entry in fragment.provenance_chain if isinstance(entry, TransformationEntry))
            for fragment in answer.fragments
        }

    assert {("extract", "chunk", "embed")} == steps("hybrid") == steps("dense")
    assert {("extract", "chunk")} == steps("lexical")
    last = _ask(base).fragments[0].provenance_chain[-1]
    assert isinstance(last, TransformationEntry)
    assert _ask(base).commit.committed_at == last.record.timestamp
    assert last.record.input_hash == last.record.output_hash == _ask(base).fragments[0].content_hash


def test_the_language_of_a_document_that_does_not_say_is_detected(base: Base) -> None:
    languages = {each.document_id: each.metadata["language"] for each in _ask(base, mode="dense").fragments}

    assert {"handbook:schluessel.md": "de", "handbook:keys.md": "en"}.items() <= languages.items()
    assert ["handbook:schluessel.md"] == [each.document_id for each in _ask(base, mode="dense", filter='language = "de"').fragments]
