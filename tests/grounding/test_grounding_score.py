"""What a claim scores, which sentence supports it, what speaks against it, and what no input may do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.grounding import GroundingReason, GroundingScore
from evidentia.grounding.score import WordScorer, ground, ground_answer
from soak import cases

BACKUPS = (
    "The backup policy was approved in May. Backups of the billing database are kept for 90 days. "
    "After that they are deleted by the storage team in Zurich. Nobody else has access."
)
SOUP = "Chop the onions and fry them in butter. Add water and salt, and let the soup simmer."
texts = st.text(st.characters(), max_size=60)
VOCABULARY = (
    "backups",
    "are",
    "not",
    "kept",
    "for",
    "90",
    "days",
    "higher",
    "lower",
    "risk",
    "Zurich",
    "5",
    "mg",
    "g",
    ".",
    "?",
    "100%",
    "\n",
)
words = st.lists(st.sampled_from(VOCABULARY), max_size=25).map(" ".join)


def reasons(score: GroundingScore) -> dict[GroundingReason, tuple[str, ...]]:
    return {note.reason: note.about for note in score.reasons}


def test_sentence_that_says_the_claim_is_the_evidence() -> None:
    score = ground("Backups of the billing database are kept for 90 days.", [SOUP, BACKUPS])
    (evidence,) = score.evidence

    assert score.supported
    assert (1, "Backups of the billing database are kept for 90 days.") == (evidence.passage, evidence.text)
    assert evidence.text == BACKUPS[evidence.start : evidence.end]
    assert score.score_milli == evidence.score_milli
    assert {GroundingReason.COVERED: ()} == reasons(score)


def test_claim_over_two_sentences_names_both() -> None:
    score = ground("Backups of the billing database are deleted after 90 days by the storage team in Zurich.", [BACKUPS])

    assert BACKUPS.split(". ", 1)[1].rsplit(" Nobody", 1)[0] == score.evidence[0].text


def test_claim_about_something_else_is_not_supported() -> None:
    score = ground("Backups of the billing database are kept for 90 days.", [SOUP])

    assert not score.supported
    assert () == score.evidence
    assert "database" in reasons(score)[GroundingReason.WORDS_MISSING]


@pytest.mark.parametrize(
    ("claim", "passage", "reason", "about"),
    [
        ("Backups are kept for 30 days.", "Backups are kept for 90 days.", GroundingReason.NUMBER_MISMATCH, ("30",)),
        ("The dose is 5 g per day.", "The dose is 5 mg per day.", GroundingReason.UNIT_MISMATCH, ("5 g",)),
        ("The office in Geneva is closed.", "The office in Zurich is closed.", GroundingReason.NAME_MISSING, ("Geneva",)),
        ("Backups are encrypted.", "Backups are not encrypted.", GroundingReason.NEGATION_MISMATCH, ("not",)),
        ("Backups aren't encrypted.", "Backups are encrypted.", GroundingReason.NEGATION_MISMATCH, ("aren't",)),
        ("Tea increases the risk of gout.", "Tea reduced the risk of gout.", GroundingReason.DIRECTION_MISMATCH, ("increases / reduced",)),
        ("Women had higher rates of asthma.", "Women had lower rates of asthma.", GroundingReason.DIRECTION_MISMATCH, ("higher / lower",)),
    ],
)  # fmt: skip
def test_mismatch_lowers_the_score_and_is_named(claim: str, passage: str, reason: GroundingReason, about: tuple[str, ...]) -> None:
    score = ground(claim, [passage])

    assert about == reasons(score)[reason]
    assert score.score_milli < ground(passage, [passage]).score_milli


@pytest.mark.parametrize(
    "claim",
    [
        "Backups of the billing database are kept for 30 days.",
        "Backups of the billing database are not kept for 90 days.",
        "Longer storage of backups reduces the monthly cost.",
        "Longer storage of backups does not increase the monthly cost.",
        "Visitors may enter the vault.",
    ],
)
def test_plain_contradiction_is_not_supported_however_well_it_is_covered(claim: str) -> None:
    passage = f"{BACKUPS} Longer storage of backups increases the monthly cost. Visitors may not enter the vault."

    assert not ground(claim, [passage]).supported


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Sleep is important for health.", "Sleep is not only important for health but for work."),
        ("Tea does not increase the risk of gout.", "Tea reduced the risk of gout."),
        ("Tea lowers the risk of gout.", "Tea does not raise the risk of gout. Tea lowers the risk of gout."),
    ],
)
def test_what_only_looks_like_a_contradiction_is_supported(claim: str, passage: str) -> None:
    assert ground(claim, [passage]).supported


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Coffee does not increase the risk of stroke.", "Coffee did not raise the risk of stroke."),
        ("About 1.5 million people live there.", "About 1,500,000 people live there."),
        ("Some 76 % of the patients recovered.", "Some 76.3% of the patients recovered."),
        ("Three patients died of the tumor.", "3 patients died of the tumour."),
    ],
)
def test_other_spelling_is_no_mismatch(claim: str, passage: str) -> None:
    score = ground(claim, [passage])

    assert score.supported
    assert set(reasons(score)) <= {GroundingReason.COVERED, GroundingReason.WORDS_MISSING}


def test_claim_said_word_for_word_is_supported_in_a_long_passage_too() -> None:
    filler = " ".join(f"Section {number} deals with something quite different." for number in range(400))
    score = ground("Backups of the billing database are kept for 90 days.", [f"{filler} {BACKUPS}"])

    assert score.supported
    assert "Backups of the billing database are kept for 90 days." == score.evidence[0].text


def test_further_supporting_passages_are_named_best_first() -> None:
    near = "Backups of the large billing database are usually kept for 90 days in the vault."
    score = ground("Backups of the billing database are kept for 90 days.", [SOUP, near, BACKUPS, BACKUPS])

    assert [2, 3, 1] == [evidence.passage for evidence in score.evidence]


@pytest.mark.parametrize("passages", [[], [""], [" \n", ""]])
def test_without_passages_nothing_is_supported(passages: list[str]) -> None:
    score = ground("Backups are kept.", passages)

    assert (0, False, ()) == (score.score_milli, score.supported, score.evidence)
    assert {GroundingReason.NO_PASSAGES: ()} == reasons(score)


@pytest.mark.parametrize("claim", ["", "...", "it is what it is"])
def test_claim_without_content_is_unscored(claim: str) -> None:
    score = ground(claim, [BACKUPS])

    assert (0, False) == (score.score_milli, score.supported)
    assert GroundingReason.UNSCORED in reasons(score)


# --- whole answers ---


def test_answer_is_scored_claim_by_claim_with_the_ids_it_rests_on() -> None:
    answer = (
        "# Backups\n\nBackups of the billing database are kept for 90 days. The soup has onions and butter. The moon is made of cheese."
    )
    report = ground_answer(answer, [("soup.md", SOUP), ("policy.md", BACKUPS)])

    assert [True, True, False] == [score.supported for score in report.claims]
    assert ("policy.md", "soup.md") == report.citations
    assert ("The moon is made of cheese.",) == report.unsupported
    assert sum(score.score_milli for score in report.claims) // 3 == report.confidence_milli


def test_answer_without_claims_has_no_confidence() -> None:
    report = ground_answer("Hello! How are you?", [("a", BACKUPS)])

    assert ((), (), (), 0) == (report.claims, report.citations, report.unsupported, report.confidence_milli)


def test_answer_may_be_scored_by_another_scorer() -> None:
    class Believer:
        identity = "believer"

        def score(self, claims: Any, passages: Any, *, budget_ms: int) -> list[GroundingScore]:
            assert (["Cats are animals."], ["x"]) == (list(claims), list(passages))
            assert budget_ms > 0
            return [GroundingScore(claim=claim, score_milli=1000, supported=True, scorer=self.identity) for claim in claims]

    report = ground_answer("Cats are animals.", [("a", "x")], scorer=Believer())

    assert (1000, ()) == (report.confidence_milli, report.citations)


# --- laws ---


@given(st.one_of(texts, words), st.lists(st.one_of(texts, words), max_size=4))
def test_any_text_has_a_score_in_range_and_evidence_that_quotes_it(claim: str, passages: list[str]) -> None:
    score = ground(claim, passages)

    assert 0 <= score.score_milli <= 1000
    assert score == ground(claim, list(passages))
    assert not score.supported or score.score_milli == score.evidence[0].score_milli
    for evidence in score.evidence:
        assert evidence.text
        assert evidence.text == passages[evidence.passage][evidence.start : evidence.end]


@given(words, st.lists(words, max_size=3), words)
def test_further_passage_never_lowers_the_score(claim: str, passages: list[str], further: str) -> None:
    assert ground(claim, passages).score_milli <= ground(claim, [*passages, further]).score_milli


@given(words, st.lists(words, min_size=1, max_size=4))
def test_order_of_passages_changes_no_score(claim: str, passages: list[str]) -> None:
    assert ground(claim, passages).score_milli == ground(claim, passages[::-1]).score_milli


@given(st.lists(words, max_size=3), st.lists(words, max_size=3))
def test_claims_are_scored_independently_and_in_order(claims: list[str], passages: list[str]) -> None:
    assert [ground(claim, passages) for claim in claims] == list(WordScorer().score(claims, passages, budget_ms=1))


@given(st.text(st.characters(codec=None), max_size=80))
def test_lone_surrogates_do_no_harm(text: str) -> None:
    assert 0 <= ground(text, [text]).score_milli <= 1000


TIMES = cases(1, of=5)
HOSTILE = {
    "directions": ("increase a " * (20_000 * TIMES), "increase a decrease a " * (10_000 * TIMES)),
    "one beginning": (
        " ".join(f"abcde{number}" for number in range(2_000 * TIMES)),
        " ".join(f"abcde{number}" for number in range(12_000 * TIMES)),
    ),
    "many sentences": ("The cat sat on the mat.", "The cat sat. " * (16_000 * TIMES)),
    "one word": ("The cat sat on the mat.", "x" * (200_000 * TIMES)),
    "few terms": ("a b a b c a b c d", "a b c " * (60_000 * TIMES)),
    "numbers": ("1 2 3 4 5", "1,2.3 " * (30_000 * TIMES)),
    "full stops": ("." * (200_000 * TIMES), "." * (200_000 * TIMES)),
    "no spaces": ("\u6c34" * (20_000 * TIMES), "\u6c34\u3002" * (40_000 * TIMES)),
    "negations": ("not " * (20_000 * TIMES), "not\n" * (40_000 * TIMES)),
    "brackets": ("[1,2] " * (20_000 * TIMES), "[" * (100_000 * TIMES)),
}


@pytest.mark.slow
@pytest.mark.parametrize(("claim", "passage"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_lengths_are_scored(claim: str, passage: str) -> None:
    assert 0 <= ground(claim, [passage]).score_milli <= 1000


def test_ten_thousand_sentences_are_searched() -> None:
    sentences = [f"Item {number} weighs {number * 7} grams and is stored on shelf {number % 90}." for number in range(10_000)]
    score = ground("Item 7321 weighs 51247 grams and is stored on shelf 31.", [" ".join(sentences)])

    assert score.supported
    assert sentences[7321] == score.evidence[0].text


@pytest.mark.parametrize(
    ("claim", "passages", "field"),
    [
        (1, ["x"], "claim"),
        ("x", "one text", "passages"),
        ("x", None, "passages"),
        ("x", [b"bytes"], "passages"),
        ("x", {"a": 1}, "passages"),
    ],
)
def test_wrong_types_are_refused_by_name(claim: Any, passages: Any, field: str) -> None:
    with pytest.raises(InvalidFieldError, match=f"'{field}'"):
        ground(claim, passages)


@pytest.mark.parametrize("passages", ["text", ["text"], [("a",)], [("a", 1)], [("a", "b", "c")], None])
def test_answer_needs_pairs(passages: Any) -> None:
    with pytest.raises(InvalidFieldError, match="'passages'"):
        ground_answer("Cats are animals.", passages)
