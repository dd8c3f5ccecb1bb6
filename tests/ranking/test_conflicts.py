"""Conflicts: which passages disagree, measured on labelled pairs, and one preference that every order of the fragments leads to."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from functools import cmp_to_key
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.evidence import Conflict
from evidentia.contracts.ids import ChunkId, DocumentId
from evidentia.contracts.vocabulary import AuthorityTier
from evidentia.ranking.claim_values import read_value
from evidentia.ranking.claims import MAX_TEXT_LENGTH, extract_claims
from evidentia.ranking.conflicts import ClaimedFragment, Standing, find_conflicts, preference_of, read_claims

if TYPE_CHECKING:
    from collections.abc import Sequence

PAIRS: dict[str, list[list[str]]] = yaml.safe_load((Path(__file__).parent / "claim_pairs.yaml").read_text(encoding="utf-8"))
EARLY, LATE = datetime(2023, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)

FRAGMENTS = st.builds(
    ClaimedFragment,
    chunk_id=st.integers(0, 10**6).map(lambda number: ChunkId(f"c{number}")),
    document_id=st.sampled_from("ABC").map(DocumentId),
    text=st.integers(1, 3).map(lambda number: f"The session timeout is {number} minutes."),
    authority_tier=st.sampled_from(AuthorityTier),
    updated_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    chain_length=st.integers(0, 100_000),
    standing=st.sampled_from(Standing),
)


def fragment(name: str, text: str = "The session timeout is 30 minutes.", *, title: str = "Security policy") -> ClaimedFragment:
    return ClaimedFragment(chunk_id=ChunkId(name), document_id=DocumentId(f"document {name}"), text=text, title=title)


def conflicts_of(pair: list[str]) -> tuple[Conflict, ...]:
    first_title, first, second_title, second = pair
    return find_conflicts([fragment("a", first, title=first_title), fragment("b", second, title=second_title)])


def ranked(fragments: Sequence[ClaimedFragment]) -> list[ClaimedFragment]:
    return sorted(fragments, key=lambda one: (-preference_of(one), one.chunk_id))


# --- what is found ---


def test_labelled_pairs_are_told_apart() -> None:
    found = sum(bool(conflicts_of(pair)) for pair in PAIRS["conflicting"])
    mistaken = sum(bool(conflicts_of(pair)) for pair in PAIRS["consistent"])

    assert len(PAIRS["conflicting"]) >= 60
    assert len(PAIRS["consistent"]) >= 120
    assert found / (found + mistaken) >= 0.95
    assert found / len(PAIRS["conflicting"]) >= 0.6


@pytest.mark.parametrize("pair", PAIRS["conflicting"], ids=lambda pair: pair[1][:40])
def test_the_order_of_a_pair_changes_nothing(pair: list[str]) -> None:
    first = fragment("a", pair[1], title=pair[0])
    second = fragment("b", pair[3], title=pair[2])

    assert find_conflicts([first, second]) == find_conflicts([second, first])


def test_unrelated_abstracts_hardly_ever_conflict(shared_data: Path) -> None:
    corpus = shared_data / "scifact" / "corpus.jsonl"
    if not corpus.is_file():
        pytest.skip(f"no SciFact in '{shared_data}'; set EVIDENTIA_DATA to the folder that holds it")
    abstracts = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    drawn = random.Random(3).sample(abstracts, 400)
    flagged = sum(
        bool(conflicts_of([one["title"], one["text"], other["title"], other["text"]]))
        for one, other in zip(drawn[::2], drawn[1::2], strict=True)
    )

    assert flagged <= 1


def test_a_document_never_conflicts_with_itself() -> None:
    one = fragment("a")
    other = msgspec.structs.replace(fragment("b", "The session timeout is 5 minutes."), document_id=one.document_id)

    assert () == find_conflicts([one, other])


def test_a_document_that_gives_several_values_takes_no_part() -> None:
    several = "The session timeout is 30 minutes.\n\nThe session timeout is 60 minutes."

    assert () == find_conflicts([fragment("a", several), fragment("b", "The session timeout is 5 minutes.")])


def test_a_conflict_names_its_subject_and_its_values() -> None:
    conflict = find_conflicts([fragment("a"), fragment("b", "The session timeout is 900 seconds.")])

    expected = Conflict(
        subject="session",
        attribute="timeout",
        winner=ChunkId("a"),
        value="30 minutes",
        losers=(ChunkId("b"),),
        losing_values=("900 seconds",),
        decided_by="id",
    )
    assert (expected,) == conflict


def test_all_who_claim_are_one_conflict_and_those_who_agree_do_not_lose() -> None:
    texts = ("is 30 minutes", "is 15 minutes", "is 1800 seconds", "is 1 hour")
    fragments = [fragment(name, f"The session timeout {text}.") for name, text in zip("abcd", texts, strict=True)]
    (conflict,) = find_conflicts(fragments)

    assert ("a", ("b", "d"), ("15 minutes", "1 hour")) == (conflict.winner, conflict.losers, conflict.losing_values)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("90 minutes", "1.5 hours"),
        ("2 weeks", "14d"),
        ("500ms", "0.5 s"),
        ("2 years", "24 months"),
        ("1 GB", "1024MB"),
        ("1 GB", "1000 MB"),
        ("512M", "0.5 GiB"),
        ("$1,500", "1500 USD"),
        ("50 %", "50.0 percent"),
        ("1 March 2025", "2025-03-01"),
        ("March 1st, 2025", "2025-03-01"),
        ("9:30", "09:30"),
        ("v1.2.3", "1.2.3"),
        ("enabled", "TRUE"),
    ],
)
def test_equal_values_have_one_spelling(one: str, other: str) -> None:
    assert read_value(one) == read_value(other) is not None


@pytest.mark.parametrize(("one", "other"), [("90 days", "3 months"), ("30", "30 s"), ("$5", "EUR 5"), ("3.11", "3.11.1"), ("5", "five")])
def test_values_of_different_dimensions_are_not_compared(one: str, other: str) -> None:
    first, second = read_value(one), read_value(other)

    assert first is not None
    assert second is not None
    assert first.dimension != second.dimension


@pytest.mark.parametrize("text", ["TBD", "80, 443", "5 or 6", "30 to 60", "3-5", "${PORT}", "", "7" * 50])
def test_what_is_not_one_value_is_none(text: str) -> None:
    assert read_value(text) is None


def test_remembered_claims_give_the_same_conflicts() -> None:
    fragments = [fragment("a"), fragment("b", "The session timeout is 5 minutes.")]
    remembered = {one.chunk_id: read_claims(one) for one in fragments}
    bare = [msgspec.structs.replace(one, text="") for one in fragments]

    assert () != find_conflicts(fragments) == find_conflicts(bare, read=lambda one: remembered[one.chunk_id])


# --- hostile text ---


@given(st.text(alphabet="aZ1 :=|#-[]{}\"'`*.,$%\n\t\u20ac\u0665", max_size=300))
def test_any_text_is_read_without_harm(text: str) -> None:
    claims = extract_claims(text, title=text[:20])

    assert () == find_conflicts([fragment("a", text), fragment("b", text)])
    assert all(claim.value.strip() for claim in claims)


@pytest.mark.parametrize("unit", ["7", ":", "a:\n", "a b=1\n", " |", "|-|\n", "1 ", "1.", "1,000", "# \n", "'\"`*", " ", "is 5. "])
def test_a_megabyte_of_one_thing_conflicts_with_nothing(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))

    assert () == find_conflicts([fragment("a", text), fragment("b", text)])


def test_a_claim_beyond_the_longest_text_is_not_read() -> None:
    claim = "\n\nThe session timeout is 30 minutes."

    assert 1 == len(extract_claims("x" * (MAX_TEXT_LENGTH - len(claim)) + claim, title=""))
    assert 0 == len(extract_claims("x" * MAX_TEXT_LENGTH + claim, title=""))


# --- who is preferred ---


@pytest.mark.parametrize(
    ("better", "worse", "decided_by"),
    [
        ({"standing": Standing.CORRECTION}, {"standing": Standing.ANNOTATED, "authority_tier": AuthorityTier.CANONICAL}, "annotation"),
        ({"standing": Standing.ANNOTATED}, {"authority_tier": AuthorityTier.CANONICAL, "updated_at": LATE}, "annotation"),
        ({"authority_tier": AuthorityTier.CURATED}, {"updated_at": LATE}, "authority"),
        ({"updated_at": LATE, "chain_length": 9}, {"updated_at": EARLY}, "updated_at"),
        ({"updated_at": datetime.min.replace(tzinfo=UTC), "chain_length": 9}, {}, "updated_at"),
        ({"chain_length": 1}, {"chain_length": 2}, "chain"),
        ({"chain_length": 1}, {"chain_length": 2**40}, "chain"),
    ],
)
def test_a_higher_criterion_decides_whatever_the_lower_ones_say(
    better: dict[str, object], worse: dict[str, object], decided_by: str
) -> None:
    # The ids are against the winner.
    loser = msgspec.structs.replace(fragment("a", "The session timeout is 5 minutes."), **worse)
    winner = msgspec.structs.replace(fragment("b"), **better)
    (conflict,) = find_conflicts([loser, winner])

    assert ("b", ("a",), decided_by) == (conflict.winner, conflict.losers, conflict.decided_by)


def test_a_moment_without_a_zone_is_in_utc() -> None:
    aware = msgspec.structs.replace(fragment("a"), updated_at=LATE)

    assert preference_of(aware) == preference_of(msgspec.structs.replace(aware, updated_at=LATE.replace(tzinfo=None)))


def compare(one: ClaimedFragment, other: ClaimedFragment) -> int:
    """Compare by the rule in words: criterion by criterion, the first difference decides."""
    earliest = datetime.min.replace(tzinfo=UTC)
    pairs = [
        (one.standing, other.standing),
        (one.authority_tier.rank, other.authority_tier.rank),
        (one.updated_at is not None, other.updated_at is not None),
        (one.updated_at or earliest, other.updated_at or earliest),
        (-min(one.chain_length, 65_535), -min(other.chain_length, 65_535)),
        (other.chunk_id, one.chunk_id),
    ]
    return next((1 if left > right else -1 for left, right in pairs if left != right), 0)  # type: ignore[operator]  # each pair is of one type


@given(st.lists(FRAGMENTS, unique_by=lambda one: one.chunk_id, max_size=8))
def test_the_integer_orders_as_the_criteria_do(fragments: list[ClaimedFragment]) -> None:
    assert sorted(fragments, key=cmp_to_key(compare), reverse=True) == ranked(fragments)


@given(st.lists(FRAGMENTS, unique_by=lambda one: one.chunk_id, min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_the_fragments_changes_nothing(fragments: list[ClaimedFragment], generator: random.Random) -> None:
    shuffled = list(fragments)
    generator.shuffle(shuffled)

    assert find_conflicts(fragments) == find_conflicts(shuffled)


@given(st.lists(FRAGMENTS, unique_by=lambda one: one.chunk_id, min_size=2, max_size=6))
def test_the_winner_is_preferred_to_every_loser_pair_by_pair(fragments: list[ClaimedFragment]) -> None:
    by_id = {one.chunk_id: one for one in fragments}
    for conflict in find_conflicts(fragments):
        ordered = [by_id[conflict.winner], *(by_id[loser] for loser in conflict.losers)]

        assert ranked(ordered) == ordered
        assert all(-1 == compare(worse, better) == -compare(better, worse) for better, worse in combinations(ordered, 2))
        assert all(value != conflict.value for value in conflict.losing_values)
