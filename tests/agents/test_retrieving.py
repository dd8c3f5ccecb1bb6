"""Documents in batches, as other libraries hold them, and as the engine answers with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from contexts_at_work import violation_of

from evidentia import connect
from evidentia.agents import Context, PolicyViolationError
from evidentia.agents.errors import InvalidRecordError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia import EvidenceResponse
    from evidentia.contracts.decisions import PolicyDecision

TWO = {"name": "Two", "category": "retrieval", "rules": {"min_chunks": 2, "action_on_chunk_violation": "block", "min_relevance_score": 0.0}}
OPEN: dict[str, Any] = {"name": "Open", "category": "retrieval", "rules": {"min_chunks": 0, "min_relevance_score": 0.0}}


class Hit(NamedTuple):
    """A document of another library."""

    id: str
    score: float
    collection: str = ""
    age_days: int | None = None


def documents(ctx: Context) -> list[PolicyDecision]:
    return [decision for decision in ctx.decisions if decision.kind == "retrieval"]


@pytest.fixture(scope="module")
def response(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EvidenceResponse]:
    folder: Path = tmp_path_factory.mktemp("evidence")
    page = folder / "keys.md"
    page.write_text("---\nupdated_at: 2020-01-01T00:00:00Z\n---\nSigning keys are rotated every quarter.\n", encoding="utf-8")
    with connect(folder / "base", init=True) as base:
        base.ingest([page], source="handbook")
        yield base.retrieve("how often are signing keys rotated?")


def test_a_batch_is_counted_for_itself_and_settled_at_its_end() -> None:
    def work(ctx: Context) -> None:
        with ctx.retrieval_batch(query="first") as batch:
            batch.record(source="a", relevance_score=0.9)
            batch.record(source="b", relevance_score=0.9)
        with ctx.retrieval_batch(query="second") as other:
            other.record(source="c", relevance_score=0.9)

    error, ctx = violation_of(work, policies=[TWO])

    assert "Retrieved chunks (1) below minimum (2)" == str(error)
    assert [1, 2, 1] == [decision.metadata["chunk_count"] for decision in documents(ctx)]
    assert ["batch-1", "batch-1", "batch-2"] == [decision.inputs["batch"] for decision in documents(ctx)]


def test_a_list_of_documents_is_a_batch() -> None:
    with Context("a", policies=[TWO]) as ctx:
        ctx.record_retrieval_results([{"source": "a", "relevance_score": 0.9}, Hit("b", 0.8, "kb", 3)])
        ctx.record_retrieval_results(["c", "d"], batch_id="mine")

    assert [("a", 0.9), ("b", 0.8), ("c", 0.0), ("d", 0.0)] == [
        (decision.inputs.get("source"), decision.inputs.get("relevance_score", 0.0)) for decision in documents(ctx)
    ]
    assert ["batch-1", "batch-1", "mine", "mine"] == [decision.inputs["batch"] for decision in documents(ctx)]
    assert 3 == documents(ctx)[1].inputs["age_days"]


def test_the_documents_after_a_block_are_not_recorded() -> None:
    guard = {**OPEN, "rules": {**OPEN["rules"], "blocked_sources": ["bad"]}}
    with Context("a", policies=[guard]) as ctx, pytest.raises(PolicyViolationError):
        ctx.record_retrieval_results(["good", "bad", "never"])

    assert ["good", "bad"] == [decision.inputs["source"] for decision in documents(ctx)]


def test_query_id_is_another_word_for_batch_id() -> None:
    with Context("a", policies=[OPEN]) as ctx:
        ctx.record_retrieval_result(source="a", query_id="q1")
        ctx.record_retrieval_result(source="a", batch_id="b1", query_id="q1")

    assert ["q1", "b1"] == [decision.inputs["batch"] for decision in documents(ctx)]


def test_a_retrieval_with_scores_is_a_tool_call_and_a_batch() -> None:
    with Context("a", policies=[OPEN], auto_grounding=True) as ctx:
        ctx.record_retrieval(query="why", documents=["a", {"id": "b"}], source="index", duration_ms=3, top_k=5, scores=[0.9, 0.4])

    assert [("a", 0.9), ("b", 0.4)] == [(each.inputs["source"], each.inputs["relevance_score"]) for each in documents(ctx)]


def test_scores_of_a_retrieval_ground_where_that_is_wanted() -> None:
    claims = {"name": "Claims", "category": "grounding", "rules": {"action_on_violation": "block"}}
    with Context("a", policies=[claims]) as ctx:
        ctx.record_grounding(citations=["x"])
        ctx.record_retrieval(documents=["a"], scores=[0.2])
    with (
        pytest.raises(PolicyViolationError, match=r"Grounding score \(0.2\)"),
        Context("a", policies=[claims], auto_grounding=True) as strict,
    ):
        strict.record_retrieval(documents=["a"], scores=[0.2])


def test_scores_that_do_not_fit_are_refused() -> None:
    with Context("a") as ctx, pytest.raises(InvalidRecordError, match="scores"):
        ctx.record_retrieval(documents=["a", "b"], scores=[0.9])


def test_an_answer_of_the_engine_is_recorded_fragment_by_fragment(response: EvidenceResponse) -> None:
    with Context("a", policies=[OPEN | {"rules": {**OPEN["rules"], "action_on_stale_source": "warn"}}]) as ctx:
        ctx.record_retrieval(response)

    fragment = response.fragments[0]
    inputs = documents(ctx)[0].inputs
    assert (fragment.confidence, fragment.document_id, fragment.source_id, fragment.chunk_id) == (
        inputs["relevance_score"],
        inputs["source"],
        inputs["collection"],
        inputs["chunk_id"],
    )
    assert (response.as_of.year - 2020) * 365 <= inputs["age_days"]
    assert "warn" == documents(ctx)[0].action


def test_what_the_engine_judged_is_not_judged_again_by_the_same_policies(tmp_path: Path) -> None:
    page = tmp_path / "keys.md"
    page.write_text("Signing keys are rotated every quarter.\n", encoding="utf-8")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([page], source="handbook", embed=False)
        before = base.retrieve("signing keys")
        base.add_policy(OPEN)
        passed = base.retrieve("signing keys")
        with Context("a", base=base) as ctx:
            ctx.record_retrieval(passed)
            none = list(documents(ctx))
            ctx.record_retrieval(before)
            once = list(documents(ctx))
        with Context("a", base=base, policies=[{**OPEN, "name": "another"}]) as other:
            other.record_retrieval(passed)
        base.add_policy({**OPEN, "rules": {**OPEN["rules"], "allowed_collections": ["elsewhere"]}})
        flagged = base.retrieve("signing keys")
        with pytest.raises(PolicyViolationError, match="not in allowed list"), Context("a", base=base) as stopped:
            stopped.record_retrieval(flagged)
        counted = ctx.decisions[-1]

    assert ([], [f"request-{before.request_id}"]) == (none, [decision.inputs["batch"] for decision in once])
    assert [f"request-{passed.request_id}"] == [decision.inputs["batch"] for decision in documents(other)]
    assert {"chunk_count": 2} == counted.metadata


def test_a_fragment_without_a_date_has_an_unknown_age(response: EvidenceResponse) -> None:
    undated = [msgspec.structs.replace(response.fragments[0], metadata={"updated_at": text}) for text in ("", "soon", "2020-01-01")]
    with Context("a", policies=[OPEN]) as ctx:
        ctx.record_retrieval(msgspec.structs.replace(response, fragments=tuple(undated)))

    assert [None] * 3 == [decision.inputs.get("age_days") for decision in documents(ctx)]


def test_an_answer_without_fragments_is_a_batch_of_none(response: EvidenceResponse) -> None:
    with pytest.raises(PolicyViolationError, match=r"Retrieved chunks \(0\)"), Context("a", policies=[TWO]) as ctx:
        ctx.record_retrieval(msgspec.structs.replace(response, fragments=()))


def test_an_answer_is_grounded_claim_by_claim(response: EvidenceResponse) -> None:
    claims = {"name": "Claims", "category": "grounding", "rules": {"max_unsupported_claims": 0}}
    with Context("a", policies=[claims]) as ctx:
        report = ctx.ground("Signing keys are rotated every quarter. The moon is made of cheese.", response)

    assert (response.fragments[0].chunk_id,) == report.citations
    assert 2 == len(report.claims)
    assert "Unsupported claims (1) exceeds max (0)" in ctx.decisions[-1].reason
