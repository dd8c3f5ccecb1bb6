"""The order of candidates that were found for another question."""

from __future__ import annotations

import hashlib
import math
from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.access import AccessRule
from evidentia.contracts.ids import ChunkId, DocumentId, Sha256, SourceId
from evidentia.contracts.retrieval import ExternalCandidate
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.vocabulary import AuthorityTier
from evidentia.query.lexical import lexical_query
from evidentia.ranking.external_scores import order_for, scores_for
from evidentia.testing.determinism import START
from evidentia.text.tokens import Tokeniser

TOKENISER = Tokeniser("none")
WORDS = ("enable", "disable", "gate", "the", "to", "press", "lever", "harbour")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def said(content: str, *, rank: int = 1, title: str = "") -> ExternalCandidate:
    content_hash = Sha256(hashlib.sha256(content.encode()).hexdigest())
    return ExternalCandidate(
        chunk_id=ChunkId(f"wiki:{content_hash[:8]}#0@{content_hash[:16]}"),
        document_id=DocumentId(f"wiki:{content_hash[:8]}"),
        source_id=SourceId("wiki"),
        content=content,
        content_hash=content_hash,
        received_hash=content_hash,
        received_length=len(content),
        rank=rank,
        query="",
        origin="",
        retrieved_at=START,
        title=title,
        authority_tier=AuthorityTier.USER,
        access=AccessRule(),
    )


def ordered(text: str, *candidates: ExternalCandidate) -> list[str]:
    query = lexical_query(text, TOKENISER)
    return [candidate.content for candidate in order_for(query, candidates, tokeniser=TOKENISER)]


ENABLE = said("to enable the gate press the lever", rank=1)
DISABLE = said("to disable the gate pull the lever", rank=2)
OTHER = said("the harbour opens at six", rank=3)


def test_enabling_and_disabling_do_not_get_each_others_order() -> None:
    assert [ENABLE.content, DISABLE.content] == ordered("enable the gate", DISABLE, ENABLE, OTHER)[:2]
    assert [DISABLE.content, ENABLE.content] == ordered("disable the gate", ENABLE, DISABLE, OTHER)[:2]


def test_stemming_keeps_them_apart_too() -> None:
    tokeniser = Tokeniser("english")
    first = order_for(lexical_query("disabling gates", tokeniser), [ENABLE, DISABLE], tokeniser=tokeniser)

    assert DISABLE == first[0]


def test_what_holds_none_of_the_terms_comes_last_by_chunk_id() -> None:
    strangers = [said("nothing of it"), said("neither this"), OTHER]
    found = ordered("enable", *strangers, ENABLE)

    assert ENABLE.content == found[0]
    assert [one.content for one in sorted(strangers, key=lambda one: one.chunk_id)] == found[1:]


def test_the_title_counts() -> None:
    assert "press the lever" == ordered("enable", said("pull the lever"), said("press the lever", title="How to enable it"))[0]


def test_an_added_term_counts_its_weight() -> None:
    candidates = [ENABLE, DISABLE]
    light, heavy = (LexicalQuery(terms={"enable": 1}, expansions={"disable": weight}) for weight in (64, 512))

    assert [ENABLE, DISABLE] == list(order_for(light, candidates, tokeniser=TOKENISER))
    assert [DISABLE, ENABLE] == list(order_for(heavy, candidates, tokeniser=TOKENISER))


def test_an_added_term_that_is_worth_next_to_nothing_is_still_held() -> None:
    scores = scores_for(LexicalQuery(terms={}, expansions={"the": 1}), [ENABLE, said("nothing")], tokeniser=TOKENISER)

    assert scores[0] > 0 == scores[1]


def test_nothing_is_an_order_of_nothing() -> None:
    assert () == order_for(LexicalQuery(terms={"gate": 1}), [], tokeniser=TOKENISER)


@given(TEXTS, st.lists(TEXTS, max_size=8, unique=True), st.randoms(use_true_random=False))
def test_how_they_came_does_not_matter(text: str, contents: list[str], draw: object) -> None:
    candidates = [said(content, rank=rank) for rank, content in enumerate(contents, start=1)]
    shuffled = [msgspec.structs.replace(candidate, rank=99 - candidate.rank) for candidate in candidates]
    draw.shuffle(shuffled)  # type: ignore[attr-defined] # hypothesis gives a random.Random

    assert ordered(text, *candidates) == ordered(text, *shuffled)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=8))
def test_scores_are_those_of_bm25_over_just_these(text: str, contents: list[str]) -> None:
    query = lexical_query(text, TOKENISER)
    scores = scores_for(query, [said(content) for content in contents], tokeniser=TOKENISER)
    passages = [content.split() for content in contents]
    average = max(1.0, sum(len(passage) for passage in passages) / len(passages))
    for score, passage in zip(scores, passages, strict=True):
        expected, counts = 0.0, Counter(passage)
        for term, times in query.terms.items():
            holders = sum(term in other for other in passages)
            idf = math.log(1 + (len(passages) - holders + 0.5) / (holders + 0.5))
            weight = query.weights.get(term, 256) / 256
            expected += times * weight * idf * counts[term] * 2.5 / (counts[term] + 1.5 * (0.25 + 0.75 * len(passage) / average))

        assert abs(score / 65_536 - expected) < 0.001
        assert (score == 0) == counts.keys().isdisjoint(query.terms)
