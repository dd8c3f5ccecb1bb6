"""The judge without a base: with texts that come with records, for titles and addresses, and for passages that are checked."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from evidentia.agents import Context, InvalidRecordError, PolicyViolationError
from evidentia.contracts.runs import GroundingEntry
from evidentia.governance.governed_runs import MAX_GIVEN_CHARS, GivenTexts

SAID = "Keys expire after 30 days."
OTHER = "The moon belongs to 14 owls."
TITLE, URL = "Key Handbook, 3rd edition", "https://example.org/keys?page=2#expiry"
SCORE = 0.923
"""What the scorer gives a sentence for itself."""


def judged(*, posture: str = "open", **rules: Any) -> dict[str, Any]:
    wanted = {
        "llm_grounding_check": True,
        "llm_grounding_model": "local:words",
        "min_citations": 0,
        "action_on_violation": "block",
        **rules,
    }
    return {"name": "judged", "category": "grounding", "rules": wanted, "posture": {"llm_grounding_check": posture}}


def heard(ctx: Context, kind: str = "grounding") -> tuple[str, float | None, tuple[str, ...]]:
    """Return what the judge said of the last entry: its status, its score and its notes."""
    call = next(each.inputs for each in reversed(ctx.decisions) if each.kind == kind)
    (said,) = call["judgements"].values()
    return said["status"], said.get("score"), tuple(said.get("notes", ()))


@pytest.mark.parametrize("citation", [TITLE, URL])
@pytest.mark.parametrize("texts", [lambda name: {name: SAID}, lambda _: [SAID]])
def test_texts_come_with_the_grounding(citation: str, texts: Any) -> None:
    with Context("a", policies=[judged()]) as ctx:
        ctx.record_llm_call("m", response=SAID)
        ctx.record_grounding(grounding_scores=[0.9], citations=[citation], texts=texts(citation))

    assert ("judged", SCORE, ("1 of 1 texts came with the run",)) == heard(ctx)


@pytest.mark.parametrize("names", [{"source": TITLE}, {"source": URL}, {"source": "s", "title": TITLE}, {"source": "s", "chunk_id": "s#1"}])
def test_texts_come_with_a_retrieved_document(names: dict[str, Any]) -> None:
    with Context("a", policies=[judged()]) as ctx:
        ctx.record_retrieval_result(relevance_score=0.9, text=SAID, **names)
        ctx.record_llm_call("m", response=SAID)
        ctx.record_grounding(grounding_scores=[0.9], citations=[list(names.values())[-1]])

    assert ("judged", SCORE) == heard(ctx)[:2]


@pytest.mark.parametrize("how", [{}, {"mid_execution_governance": False}])
def test_documents_of_other_libraries_bring_their_texts(how: dict[str, Any]) -> None:
    with Context("a", policies=[judged()], **how) as ctx:
        ctx.record_retrieval_results([{"content": SAID, "metadata": {"source": URL, "title": TITLE}, "score": 0.9}])
        ctx.record_llm_call("m", response=SAID)
        ctx.record_grounding(grounding_scores=[0.9], citations=[TITLE, URL])

    assert ("judged", SCORE) == heard(ctx)[:2]


def test_the_judge_at_the_end_reads_all_that_was_given() -> None:
    with Context("a", policies=[judged(llm_grounding_phase="after_workflow")]) as ctx:
        ctx.record_grounding(grounding_scores=[0.9], citations=[TITLE], texts={TITLE: SAID})
        ctx.record_grounding(grounding_scores=[0.9], citations=[URL], texts={URL: OTHER})
        ctx.set_result(f"{SAID} {OTHER}")

    assert ("judged", SCORE) == heard(ctx, "end")[:2]


PASSAGES: dict[str, Any] = {
    "texts": [OTHER, SAID],
    "by name": {"moon": OTHER, TITLE: SAID},
    "pairs of names and texts": [{"source": "moon", "text": OTHER}, {"source": TITLE, "text": SAID}],
    "documents": [{"content": SAID, "metadata": {"source": URL}}],
}


@pytest.mark.parametrize("shape", PASSAGES)
@pytest.mark.parametrize("phase", ["mid_execution", "after_workflow"])
def test_an_answer_is_grounded_in_passages_and_judged_by_them(shape: str, phase: str) -> None:
    ctx = Context("a", policies=[judged(llm_grounding_phase=phase)])
    with ctx:
        report = ctx.ground(SAID, PASSAGES[shape])

    assert report.confidence_milli > 800
    assert ("judged", SCORE) == heard(ctx, "grounding" if phase == "mid_execution" else "end")[:2]


def test_an_answer_that_no_passage_supports_is_stopped() -> None:
    with Context("a", policies=[judged(min_grounding_score=0.0)]) as ctx, pytest.raises(PolicyViolationError, match="LLM grounding score"):
        ctx.ground(f"{SAID} The moon is made of 14 green owls, and they sing opera.", [SAID])


def test_a_passage_without_a_text_is_refused() -> None:
    with Context("a") as ctx, pytest.raises(InvalidRecordError, match=r"passages\[0\].*no text"):
        ctx.ground(SAID, [{"source": "a"}])


def test_a_citation_that_names_nothing_counts_as_fabricated() -> None:
    with Context("a", policies=[judged()]) as ctx:
        ctx.record_llm_call("m", response=SAID)
        with pytest.raises(PolicyViolationError, match=r"LLM grounding score \(0.461\) below threshold"):
            ctx.record_grounding(grounding_scores=[0.9], citations=[TITLE, "made up"], texts={TITLE: SAID})

    assert ("judged", 0.461, ("1 of 2 texts came with the run", "1 of 2 citations name nothing that can be read")) == heard(ctx)


@pytest.mark.parametrize(("posture", "action"), [("open", "allow"), ("degrade", "warn"), ("closed", "block")])
@pytest.mark.parametrize(("model", "status"), [("gpt-4o-mini", "no_key"), ("local:none", "not_configured")])
def test_posture_decides_what_a_missing_judge_means(
    monkeypatch: pytest.MonkeyPatch, posture: str, action: str, model: str, status: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ctx = Context("a", policies=[judged(posture=posture, llm_grounding_model=model)])
    with ctx:
        ctx.record_llm_call("m", response=SAID)
        with pytest.raises(PolicyViolationError) if posture == "closed" else nullcontext():
            ctx.record_grounding(grounding_scores=[0.9], citations=[TITLE], texts={TITLE: SAID})
    said = next(each for each in ctx.decisions if each.kind == "grounding")

    assert (action, "bypassed", f"LLM grounding check skipped ({status})") == (said.action.value, said.status.value, said.reason)


def test_posture_decides_where_no_citation_can_be_read() -> None:
    with Context("a", policies=[judged(posture="closed")]) as ctx:
        ctx.record_llm_call("m", response=SAID)
        with pytest.raises(PolicyViolationError, match=r"skipped \(source_unavailable\)"):
            ctx.record_grounding(grounding_scores=[0.9], citations=["made up"])


def test_a_judge_reads_what_was_said_last() -> None:
    with Context("a", policies=[judged(action_on_violation="warn")]) as ctx:
        ctx.set_output_text(OTHER)
        ctx.record_grounding(citations=[TITLE], texts={TITLE: OTHER})
        first = heard(ctx)[1]
        ctx.record_llm_call("m", response=SAID)
        ctx.record_grounding(citations=[TITLE], texts={TITLE: OTHER})

    assert (SCORE, True) == (first, (heard(ctx)[1] or 0.0) < SCORE)


def test_no_text_is_in_the_log() -> None:
    with Context("a", policies=[judged()]) as ctx:
        ctx.record_retrieval_result(relevance_score=0.9, source="s", text="xyzzy one")
        ctx.record_llm_call("m", response=SAID)
        ctx.record_grounding(grounding_scores=[0.9], citations=[TITLE], texts={TITLE: f"{SAID} xyzzy two"})

    assert "xyzzy" not in str(ctx.decisions)


def test_the_number_of_texts_is_that_of_the_citations() -> None:
    with Context("a") as ctx, pytest.raises(InvalidRecordError, match="there are 1 for 2 citations"):
        ctx.record_grounding(citations=["a", "b"], texts=["one"])


def test_texts_of_a_run_are_bounded() -> None:
    given = GivenTexts()
    for number in range(30):
        given.add({f"s{number}": "x" * (MAX_GIVEN_CHARS // 10), "same": "y"})

    assert sum(len(name) + len(text) for name, text in given.texts.items()) <= MAX_GIVEN_CHARS
    assert "y" == given.texts["same"]
    assert "s29" in given.texts


def test_names_without_a_text_are_bounded_too() -> None:
    given = GivenTexts()
    given.add({f"{number:0100}": "" for number in range(MAX_GIVEN_CHARS // 50)})

    assert len(given.texts) <= MAX_GIVEN_CHARS // 100


def test_a_run_without_a_judge_keeps_no_text() -> None:
    with Context("a", policies=[{"name": "p", "category": "grounding", "rules": {"min_citations": 0}}]) as ctx:
        ctx.record_call(GroundingEntry(citations=("a",)))
        ctx.record_grounding(citations=["a"], texts={"a": SAID})
        run: Any = ctx._recorded.live

        assert run._given is None
