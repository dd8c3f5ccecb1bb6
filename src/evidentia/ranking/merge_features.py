"""The features by which a fitted model merges the legs: one row of integers per candidate.

`FEATURES` names the columns in their order. A change to a name, its meaning or its place is a new `FEATURES_VERSION`: a model fitted on
one version must not score rows of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.vocabulary import ContentType
from evidentia.ranking.fusion import ONE, min_max
from evidentia.ranking.signals import authority, freshness, tau_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from evidentia.contracts.search import ChunkSignals, LegScores
    from evidentia.contracts.settings import RankingSettings
    from evidentia.ranking.query_weights import QueryFeatures

FEATURES_VERSION: Final = 1
FEATURES_IDENTITY: Final = f"evidentia-merging/{FEATURES_VERSION}"
"""What a model file states to have been fitted on."""
NO_VECTOR: Final = -1
"""The dense score of a candidate without a vector."""
ABSENT_RANK: Final = 10_001
"""The rank of a candidate that a leg did not propose, and the most that any rank counts."""
FRESHNESS_BUCKETS: Final = 8

FEATURES: Final = (
    "lexical_score",  # min-max over the candidates, at 2^-32
    "dense_score",  # the same over those with a vector, else NO_VECTOR
    "lexical_rank",  # from 1 in the leg's own list, else ABSENT_RANK
    "dense_rank",
    "found_by_lexical",
    "found_by_dense",
    "has_vector",
    "query_terms",  # these seven as in `query_weights.QueryFeatures`
    "query_words",
    "query_phrases",
    "query_identifiers",
    "query_is_question",
    "query_rarest",
    "query_mean_rarity",
    "authority",  # at 2^-32, a human's annotation included
    "is_annotated",
    "freshness_bucket",  # eighths, 8 being fresh; without a date the middle
    "is_dated",
    "length_bits",  # the bit length of the number of positions
    "code",  # these four from 0 to 255
    "commands",
    "configuration",
    "specificity",
    "is_type_code",  # one of these seven is 1
    "is_type_documentation",
    "is_type_config",
    "is_type_log",
    "is_type_annotation",
    "is_type_schema",
    "is_type_runbook",
)
"""The columns of a row."""

_TYPES: Final = (
    ContentType.CODE,
    ContentType.DOCUMENTATION,
    ContentType.CONFIG,
    ContentType.LOG,
    ContentType.ANNOTATION,
    ContentType.SCHEMA,
    ContentType.RUNBOOK,
)


class MergeCandidate(NamedTuple):
    """What is known of one candidate; a rank is None where the leg did not propose it."""

    legs: LegScores
    lexical_rank: int | None
    dense_rank: int | None
    signals: ChunkSignals
    length: int
    """In positions."""


def feature_rows(
    candidates: Sequence[MergeCandidate],
    *,
    query: QueryFeatures,
    as_of: datetime,
    settings: RankingSettings,
    source_taus_s: Mapping[int, int] | None = None,
) -> list[tuple[int, ...]]:
    """Return one row per candidate, in the order given, with the columns of `FEATURES`.

    A row depends on the candidate and on the least and greatest scores among all, not on their order. `source_taus_s` holds the freshness
    constants that sources state, by index.
    """
    lexical = min_max([candidate.legs.lexical for candidate in candidates])
    dense = _dense_scores(candidates)
    about_query = _query_columns(query)
    taus = source_taus_s or {}
    return [
        (
            lexical[index],
            dense[index],
            *_leg_columns(candidate),
            *about_query,
            *_document_columns(candidate, as_of=as_of, settings=settings, source_tau_s=taus.get(index)),
            *(int(candidate.signals.content_type is content_type) for content_type in _TYPES),
        )
        for index, candidate in enumerate(candidates)
    ]


def _dense_scores(candidates: Sequence[MergeCandidate]) -> list[int]:
    measured = [(index, candidate.legs.dense) for index, candidate in enumerate(candidates) if candidate.legs.dense is not None]
    scores = [NO_VECTOR] * len(candidates)
    for (index, _), score in zip(measured, min_max([dense for _, dense in measured]), strict=True):
        scores[index] = score
    return scores


def _leg_columns(candidate: MergeCandidate) -> tuple[int, ...]:
    ranks = (candidate.lexical_rank, candidate.dense_rank)
    return (
        *(ABSENT_RANK if rank is None else min(rank, ABSENT_RANK) for rank in ranks),
        *(int(rank is not None) for rank in ranks),
        int(candidate.legs.dense is not None),
    )


def _query_columns(query: QueryFeatures) -> tuple[int, ...]:
    return (query.terms, query.words, query.phrases, query.identifiers, query.is_question, query.rarest, query.mean_rarity)


def _document_columns(
    candidate: MergeCandidate, *, as_of: datetime, settings: RankingSettings, source_tau_s: int | None
) -> tuple[int, ...]:
    about, features = candidate.signals, candidate.signals.features
    tau_s = tau_of(settings, content_type=about.content_type, tier=about.authority_tier, source_tau_s=source_tau_s)
    fresh = freshness(about.updated_at, as_of, tau_s=tau_s)
    return (
        authority(about.authority_tier, is_annotated=about.is_annotated),
        int(about.is_annotated),
        fresh.score * FRESHNESS_BUCKETS // ONE,
        int(fresh.is_dated),
        candidate.length.bit_length(),
        features.code,
        features.commands,
        features.configuration,
        features.specificity,
    )
