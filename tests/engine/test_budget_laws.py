"""The laws of a token budget, each against a second reading that tries every beginning of the order and counts the whole text of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from evidentia.contracts.evidence import SCORE_ONE, EvidenceFragment, SignalScores
from evidentia.contracts.ids import ChunkId, DocumentId, Sha256, SourceId
from evidentia.contracts.provenance import RetrievalContext
from evidentia.contracts.vocabulary import AuthorityTier, FusionMethod
from evidentia.engine.selection import LEAST_CUT_TOKENS, OVER_BUDGET, ContextCost, Fitted, fit_budget, smallest_budget
from evidentia.provenance.evidence_tags import DOUBT, facts_of, render_tag
from evidentia.text.counting import count_tokens
from evidentia.text.sentences import split_sentences
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AS_OF = datetime(2026, 1, 1, tzinfo=UTC)
LAW = settings(max_examples=cases(300, of=5_000), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
WORDS = (
    "keys",
    "Rotate",
    "signing",
    "7.5",
    "[EVIDENCE",
    "&#91;",
    "über",
    "90 days",
    "`gpg --list`",
    "鍵",
    "\n",
    "|",
    "HRB-4012",
    "and",
    "then",
)
SENTENCES = st.builds(
    lambda words, stop: " ".join(words) + stop,
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=24),
    st.sampled_from([". ", "! ", ".\n", "\n\n", " "]),
)
CONTENTS = st.lists(SENTENCES, min_size=1, max_size=6).map("".join).filter(str.strip)


@st.composite
def orders(draw: st.DrawFn) -> list[EvidenceFragment]:
    """Return fragments in the order of their ranks."""
    return [_fragment(number, content, draw) for number, content in enumerate(draw(st.lists(CONTENTS, min_size=1, max_size=6)))]


def _fragment(number: int, content: str, draw: st.DrawFn) -> EvidenceFragment:
    dated = {"updated_at": "2025-11-02T00:00:00+00:00"} if draw(st.booleans()) else {}
    return EvidenceFragment(
        content=content,
        source_id=SourceId(draw(st.sampled_from(["handbook", "incident-log-2024", "a"]))),
        document_id=DocumentId("handbook:keys.md"),
        chunk_id=ChunkId(f"handbook:keys.md#{number}"),
        content_hash=Sha256("0" * 64),
        position=number,
        start=0,
        end=len(content),
        score=0,
        scores=SignalScores(relevance=0, authority=SCORE_ONE, freshness=0, utility=0, fused=0),
        extraction_timestamp=AS_OF,
        confidence=draw(st.sampled_from([0.0, 0.04, 0.194, 0.5, 0.957])),
        authority_tier=draw(st.sampled_from(list(AuthorityTier))),
        relevance_score=0.0,
        provenance_chain=(),
        retrieval_context=RetrievalContext(
            query_hash=Sha256("0" * 64),
            retriever_type="bm25+dense",
            retrieval_timestamp=AS_OF,
            rank_position=1,
            relevance_score=0.0,
            fusion_method=FusionMethod.RRF,
            final_rank=1,
        ),
        metadata=dated,
        token_count=count_tokens(content),
        flags=draw(st.sampled_from([(), ("conflict_won",), ("freshness_unknown", "instruction_like")])),
    )


BUDGETS = st.integers(min_value=1, max_value=700)


def _fitted(order: Sequence[EvidenceFragment], budget: int, tokenizer: str = "o200k_base") -> Fitted:
    ids = [each.chunk_id for each in order]
    return fit_budget(iter(order), ids=ids, token_budget=budget, cost=ContextCost(tokenizer, AS_OF))


def _context(fragments: Sequence[EvidenceFragment]) -> str:
    """Return what a prompt gets: a line that says so where no fragment is likely to be relevant, then the fragments."""
    told = DOUBT if fragments and max(each.confidence for each in fragments) < 0.195 else ""
    return told + "\n".join(
        render_tag(facts_of(each, rank=rank, as_of=AS_OF), each.content) for rank, each in enumerate(fragments, start=1)
    )


def _cuts(fragment: EvidenceFragment) -> Iterator[EvidenceFragment]:
    for span in split_sentences(fragment.content):
        content = fragment.content[: span.end]
        if content != fragment.content:
            yield msgspec.structs.replace(
                fragment,
                content=content,
                cut_off=fragment.content[span.end :],
                is_truncated=True,
                token_count=count_tokens(content),
                flags=(*fragment.flags, "truncated"),
            )


def _oracle(order: Sequence[EvidenceFragment], budget: int) -> tuple[EvidenceFragment, ...]:
    """Return the longest beginning of the order that fits: fragments first, then sentences of the next one."""
    beginnings: list[tuple[EvidenceFragment, ...]] = [()]
    for place, fragment in enumerate(order):
        whole = tuple(order[:place])
        beginnings += [(*whole, cut) for cut in _cuts(fragment) if not place or cut.token_count >= LEAST_CUT_TOKENS]
        beginnings.append((*whole, fragment))
    return next(each for each in reversed(beginnings) if not each or count_tokens(_context(each)) <= budget)


@LAW
@given(orders(), BUDGETS)
def test_the_longest_beginning_of_the_order_that_fits_is_given(order: list[EvidenceFragment], budget: int) -> None:
    assert _oracle(order, budget) == _fitted(order, budget).fragments


@LAW
@given(orders(), BUDGETS, st.sampled_from(["o200k_base", "chars4"]))
def test_what_a_prompt_gets_is_within_the_budget(order: list[EvidenceFragment], budget: int, tokenizer: str) -> None:
    fitted = _fitted(order, budget, tokenizer)
    cost = ContextCost(tokenizer, AS_OF)
    told = cost.before(fitted.fragments) + cost.tokens(fitted.fragments)
    printed = count_tokens(_context(fitted.fragments), tokenizer)

    assert printed <= told <= budget
    assert tokenizer == "chars4" or printed == told


@LAW
@given(orders(), BUDGETS, BUDGETS)
def test_a_larger_budget_loses_nothing_that_a_smaller_one_had(order: list[EvidenceFragment], one: int, other: int) -> None:
    small, large = (_fitted(order, budget).fragments for budget in sorted((one, other)))

    assert [each.chunk_id for each in small] == [each.chunk_id for each in large][: len(small)]
    assert all(more.content.startswith(less.content) for less, more in zip(small, large, strict=False))


@LAW
@given(orders(), BUDGETS)
def test_no_fragment_gives_way_to_a_lower_one_and_none_is_a_stub(order: list[EvidenceFragment], budget: int) -> None:
    fitted = _fitted(order, budget)
    given_up = [each.chunk_id for each in fitted.withheld]
    kept = [each.chunk_id for each in fitted.fragments]

    assert [each.chunk_id for each in order] == kept + given_up
    assert {OVER_BUDGET} >= {each.reason for each in fitted.withheld}
    assert not any(each.is_truncated for each in fitted.fragments[:-1])
    assert all(not each.is_truncated or each.token_count >= LEAST_CUT_TOKENS for each in fitted.fragments[1:])


@LAW
@given(orders(), st.data())
def test_the_smallest_budget_of_a_fragment_holds_it_and_one_token_less_does_not(order: list[EvidenceFragment], data: st.DataObject) -> None:
    index = data.draw(st.integers(min_value=0, max_value=len(order) - 1))
    needed = smallest_budget(order, index, cost=ContextCost("o200k_base", AS_OF))
    assume(needed > 1)

    assert len(_fitted(order, needed).fragments) > index
    assert len(_fitted(order, needed - 1).fragments) <= index
