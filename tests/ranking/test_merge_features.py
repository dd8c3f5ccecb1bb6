"""The rows of learned merging: named columns, whole numbers, and no dependence on the order of candidates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.search import ChunkSignals, ContentFeatures, LegScores
from evidentia.contracts.settings import RankingSettings
from evidentia.contracts.vocabulary import AuthorityTier, ContentType
from evidentia.ranking.fusion import ONE
from evidentia.ranking.merge_features import ABSENT_RANK, FEATURES, FEATURES_VERSION, NO_VECTOR, MergeCandidate, feature_rows
from evidentia.ranking.query_weights import FEATURES as QUERY_FEATURES
from evidentia.ranking.query_weights import QueryFeatures

if TYPE_CHECKING:
    from random import Random

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUERY = QueryFeatures(terms=2, words=3, phrases=4, identifiers=5, is_question=1, rarest=6, mean_rarity=7)
BYTES = st.integers(0, 255)
RANKS = st.none() | st.integers(1, 20_000)
CANDIDATES = st.builds(
    MergeCandidate,
    legs=st.builds(LegScores, lexical=st.integers(0, 1 << 30), dense=st.none() | st.integers(-(1 << 44), 1 << 44)),
    lexical_rank=RANKS,
    dense_rank=RANKS,
    signals=st.builds(
        ChunkSignals,
        authority_tier=st.sampled_from(list(AuthorityTier)),
        content_type=st.sampled_from(list(ContentType)),
        updated_at=st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - bounds
        features=st.builds(ContentFeatures, code=BYTES, commands=BYTES, configuration=BYTES, specificity=BYTES),
        is_annotated=st.booleans(),
    ),
    length=st.integers(0, 200_000),
)


def rows(candidates: list[MergeCandidate]) -> list[dict[str, int]]:
    return [dict(zip(FEATURES, row, strict=True)) for row in feature_rows(candidates, query=QUERY, as_of=NOW, settings=RankingSettings())]


def candidate(*, lexical: int = 0, dense: int | None = None, updated_at: datetime | None = None) -> MergeCandidate:
    about = ChunkSignals(
        authority_tier=AuthorityTier.CURATED,
        content_type=ContentType.RUNBOOK,
        updated_at=updated_at,
        features=ContentFeatures(code=1, commands=2, configuration=3, specificity=4),
        is_annotated=True,
    )
    return MergeCandidate(LegScores(lexical=lexical, dense=dense), lexical_rank=3, dense_rank=None, signals=about, length=1000)


def test_the_columns_are_those_of_this_version() -> None:
    assert (1, 30) == (FEATURES_VERSION, len(FEATURES))
    assert len(FEATURES) == len(set(FEATURES))
    assert [f"is_type_{word}" for word in ContentType.words()] == list(FEATURES[-len(ContentType) :])
    assert [f"query_{name}" for name in QUERY_FEATURES] == [name for name in FEATURES if name.startswith("query_")]


def test_every_column_holds_what_its_name_says() -> None:
    first, second = rows([candidate(lexical=5, dense=-3, updated_at=NOW), candidate(lexical=1)])

    assert {
        "lexical_score": ONE,
        "dense_score": ONE,
        "lexical_rank": 3,
        "dense_rank": ABSENT_RANK,
        "found_by_lexical": 1,
        "found_by_dense": 0,
        "has_vector": 1,
        "query_terms": 2,
        "query_words": 3,
        "query_phrases": 4,
        "query_identifiers": 5,
        "query_is_question": 1,
        "query_rarest": 6,
        "query_mean_rarity": 7,
        "authority": 9 * ONE // 10,
        "is_annotated": 1,
        "freshness_bucket": 8,
        "is_dated": 1,
        "length_bits": 10,
        "code": 1,
        "commands": 2,
        "configuration": 3,
        "specificity": 4,
        "is_type_code": 0,
        "is_type_documentation": 0,
        "is_type_config": 0,
        "is_type_log": 0,
        "is_type_annotation": 0,
        "is_type_schema": 0,
        "is_type_runbook": 1,
    } == first
    assert {"lexical_score": 0, "dense_score": NO_VECTOR, "has_vector": 0, "freshness_bucket": 4, "is_dated": 0}.items() <= second.items()


def test_a_source_may_state_how_fast_it_ages() -> None:
    old = candidate(updated_at=NOW - timedelta(days=30))
    plain, slow = (
        feature_rows([old], query=QUERY, as_of=NOW, settings=RankingSettings(), source_taus_s=taus)[0] for taus in (None, {0: 10**10})
    )

    assert (2, 7) == (plain[FEATURES.index("freshness_bucket")], slow[FEATURES.index("freshness_bucket")])


@given(st.lists(CANDIDATES, max_size=8), st.randoms(use_true_random=False))
def test_rows_ignore_the_order_of_candidates(candidates: list[MergeCandidate], shuffler: Random) -> None:
    places = list(range(len(candidates)))
    shuffler.shuffle(places)
    straight = rows(candidates)

    assert [straight[place] for place in places] == rows([candidates[place] for place in places])


@given(st.lists(CANDIDATES, min_size=1, max_size=8))
def test_rows_are_whole_numbers_in_bounds_with_one_content_type(candidates: list[MergeCandidate]) -> None:
    for row in rows(candidates):
        assert all(type(value) is int for value in row.values())
        assert NO_VECTOR <= min(row.values())
        assert max(row.values()) <= ONE
        assert 1 == sum(value for name, value in row.items() if name.startswith("is_type_"))
        assert 1 <= row["lexical_rank"] <= ABSENT_RANK
        assert 0 <= row["freshness_bucket"] <= 8
