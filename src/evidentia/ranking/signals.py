"""What ranks a fragment besides its match: authority, freshness and utility, each an integer from 0 to ONE.

Nothing here calls the platform's mathematics: `decay` is exact integer work, so every machine finds the same score.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import RankingWeights
from evidentia.contracts.vocabulary import AuthorityTier, ContentType
from evidentia.ranking.fusion import ONE, min_max

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evidentia.contracts.evidence import Task
    from evidentia.contracts.search import ContentFeatures
    from evidentia.contracts.settings import RankingSettings


UNKNOWN: Final = ONE // 2
"""What stands in for a signal that nobody knows."""

_TENTHS: Final = {
    AuthorityTier.CANONICAL: 10,
    AuthorityTier.CURATED: 8,
    AuthorityTier.DERIVED: 5,
    AuthorityTier.USER: 4,
    AuthorityTier.EPHEMERAL: 3,
}
TRUSTED: Final = AuthorityTier.DERIVED
"""From this tier on a source may repeat what others say, and is not crowded out by those below."""
_MICROSECOND: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)
_MICROSECONDS: Final = 1_000_000
_HOUR_S: Final = 3600
_LARGEST_FEATURE: Final = 255
_PERCENT: Final = 100


def authority(tier: AuthorityTier, *, is_annotated: bool) -> int:
    """Return the weight of the source's word: from 1.0 for CANONICAL to 0.3 for EPHEMERAL, and 0.1 more where a human annotated it."""
    return min(10, _TENTHS[tier] + is_annotated) * ONE // 10


class Freshness(NamedTuple):
    """How fresh a fragment is, from 0 to ONE; without a date it is UNKNOWN and has to be flagged."""

    score: int
    is_dated: bool


def freshness(updated_at: datetime | None, as_of: datetime, *, tau_s: int) -> Freshness:
    """Return exp(-age / tau) with the age at `as_of`; what is dated later than that is fresh."""
    if updated_at is None:
        return Freshness(score=UNKNOWN, is_dated=False)
    age_us = (as_of - updated_at) // _MICROSECOND
    return Freshness(score=decay(age_us, tau_s * _MICROSECONDS), is_dated=True)


def data_age_s(newest_at: datetime, *, at: datetime) -> int:
    """Return how old data of `newest_at` was at a moment, rounded up so that no promise is kept by rounding; never negative."""
    return max(0, -((newest_at - at) // _SECOND))


def tau_of(settings: RankingSettings, *, content_type: ContentType, tier: AuthorityTier, source_tau_s: int | None = None) -> int:
    """Return the seconds after which freshness has fallen to 1/e: what the source states (0 states nothing), else by content.

    A log is a log whoever keeps it. What is canonical comes before documentation, since most canonical specifications are both.
    """
    if source_tau_s:
        return source_tau_s
    if content_type is ContentType.LOG:
        return settings.freshness_log_h * _HOUR_S
    if tier is AuthorityTier.CANONICAL:
        return settings.freshness_canonical_h * _HOUR_S
    if content_type in {ContentType.DOCUMENTATION, ContentType.RUNBOOK}:
        return settings.freshness_documentation_h * _HOUR_S
    return settings.freshness_other_h * _HOUR_S


class TaskNeeds(NamedTuple):
    """What makes a fragment actionable for one kind of task: percentages that sum to 100, and the content types the last is for."""

    code: int
    commands: int
    configuration: int
    kind: int
    kinds: tuple[ContentType, ...] = ()


NEUTRAL: Final = TaskNeeds(code=34, commands=33, configuration=33, kind=0)
"""Without a task, or for one of an unknown type: whatever can be acted upon, in equal parts."""
NEEDS: Final = {
    "coding": TaskNeeds(code=60, commands=10, configuration=10, kind=20, kinds=(ContentType.CODE, ContentType.SCHEMA)),
    "debugging": TaskNeeds(code=35, commands=20, configuration=15, kind=30, kinds=(ContentType.LOG, ContentType.CODE, ContentType.RUNBOOK)),
    "operations": TaskNeeds(code=5, commands=50, configuration=15, kind=30, kinds=(ContentType.RUNBOOK,)),
    "configuration": TaskNeeds(code=10, commands=20, configuration=50, kind=20, kinds=(ContentType.CONFIG, ContentType.SCHEMA)),
    "explanation": TaskNeeds(code=10, commands=5, configuration=5, kind=80, kinds=(ContentType.DOCUMENTATION, ContentType.ANNOTATION)),
}
"""The kinds of task; each weighs what a fragment holds of code, commands and configuration, and whether its content type fits."""
_KIND_OF: Final = {
    **dict.fromkeys(("coding", "code", "programming", "development", "implementation", "refactoring", "code_review"), "coding"),
    **dict.fromkeys(("debugging", "debug", "troubleshooting", "diagnosis", "bug", "incident"), "debugging"),
    **dict.fromkeys(("operations", "operation", "ops", "runbook", "deployment", "maintenance"), "operations"),
    **dict.fromkeys(("configuration", "config", "setup", "installation"), "configuration"),
    **dict.fromkeys(("explanation", "question", "question_answering", "qa", "research", "summary"), "explanation"),
}


_WEIGHTS: Final = {
    "coding": RankingWeights(relevance=0.45, authority=0.15, freshness=0.15, utility=0.25),
    "debugging": RankingWeights(relevance=0.40, authority=0.10, freshness=0.30, utility=0.20),
    "operations": RankingWeights(relevance=0.40, authority=0.20, freshness=0.15, utility=0.25),
    "configuration": RankingWeights(relevance=0.40, authority=0.25, freshness=0.15, utility=0.20),
    "explanation": RankingWeights(relevance=0.50, authority=0.30, freshness=0.10, utility=0.10),
}
"""What counts for each kind of task: what can be acted upon where something is done, what is new where something broke."""
_USUAL_WEIGHTS: Final = RankingWeights()
STATED_WEIGHTS: Final = (_USUAL_WEIGHTS, *_WEIGHTS.values())
"""Every set of weights that a request without its own can have."""


def task_weights(task: Task | None) -> RankingWeights:
    """Return how much each signal counts in a task; the usual weights without one, or for one of an unknown type."""
    return _WEIGHTS.get(_kind_of(task), _USUAL_WEIGHTS)


_KIND_OF_WORD: Final = _KIND_OF | {
    **dict.fromkeys(("implement", "write", "function", "class", "method", "api", "refactor", "script", "program", "unittest"), "coding"),
    **dict.fromkeys(
        ("error", "errors", "exception", "fails", "failing", "failed", "crash", "crashes", "broken", "fix", "trace"), "debugging"
    ),
    **dict.fromkeys(("deploy", "restart", "run", "rotate", "rollback", "migrate", "backup", "restore", "operate", "execute"), "operations"),
    **dict.fromkeys(("configure", "setting", "settings", "install", "enable", "disable", "parameter", "option"), "configuration"),
    **dict.fromkeys(("explain", "why", "what", "describe", "understand", "summarize", "summarise", "compare", "overview"), "explanation"),
}
"""What words of a task's text speak for, besides the names of the kinds."""
_WORD: Final = re.compile(r"[a-z_]+")


def actionability(features: ContentFeatures, content_type: ContentType, task: Task | None) -> int:
    """Return how far a fragment can be acted upon in this task, from 0 to ONE; `NEEDS` holds the weights."""
    needs = needs_of(task)
    held = needs.code * features.code + needs.commands * features.commands + needs.configuration * features.configuration
    fitting = needs.kind * _LARGEST_FEATURE if content_type in needs.kinds else 0
    return (held + fitting) * ONE // (_PERCENT * _LARGEST_FEATURE)


def needs_of(task: Task | None) -> TaskNeeds:
    """Return what a task needs: half by its type, read in any case with spaces or hyphens for underscores, and half by its text.

    The text speaks for the kinds whose words it has, each word once and equally. Where one of the two says nothing, the other decides.
    """
    if task is None:
        return NEUTRAL
    by_type = NEEDS.get(_kind_of(task))
    said = sorted(set(_WORD.findall(task.text.lower())) & _KIND_OF_WORD.keys())
    by_text = _mean([NEEDS[_KIND_OF_WORD[word]] for word in said])
    return _mean([needs for needs in (by_type, by_text) if needs is not None]) or NEUTRAL


def _mean(needs: Sequence[TaskNeeds]) -> TaskNeeds | None:
    """Return what several needs come to, still in percentages that sum to 100; None where there are none."""
    if len(needs) <= 1:
        return needs[0] if needs else None
    code, commands, configuration = (
        sum(shares) // len(needs) for shares in zip(*[(each.code, each.commands, each.configuration) for each in needs], strict=True)
    )
    kinds = tuple(dict.fromkeys(kind for each in needs for kind in each.kinds))
    return TaskNeeds(code, commands, configuration, _PERCENT - code - commands - configuration, kinds)


def _kind_of(task: Task | None) -> str:
    return "" if task is None else _KIND_OF.get(task.type.strip().lower().replace("-", "_").replace(" ", "_"), "")


def specificity(features: ContentFeatures) -> int:
    """Return how much a fragment names in particular, from 0 to ONE."""
    return features.specificity * ONE // _LARGEST_FEATURE


def utility(*, actionability: int, specificity: int, historical: int | None = None) -> int:
    """Return 0.5 actionability + 0.4 historical utility + 0.1 specificity; a fragment without history counts as UNKNOWN there."""
    past = UNKNOWN if historical is None else historical
    return (5 * actionability + 4 * past + specificity) // 10


def utility_of(features: ContentFeatures, content_type: ContentType, needs: TaskNeeds) -> int:
    """Return the utility of a fragment without history, for needs that were found once for all fragments.

    It is `utility` of `actionability` and `specificity`, in one go: every candidate of a request is asked for it.
    """
    held = needs.code * features.code + needs.commands * features.commands + needs.configuration * features.configuration
    fitting = needs.kind * _LARGEST_FEATURE if content_type in needs.kinds else 0
    acting = (held + fitting) * ONE // (_PERCENT * _LARGEST_FEATURE)
    return (5 * acting + 4 * UNKNOWN + features.specificity * ONE // _LARGEST_FEATURE) // 10


_LAST_EXPONENT: Final = 23
_HALVINGS: Final = 8
_FIRST_BITS: Final = 72
_SLACK_BITS: Final = 20


@lru_cache(maxsize=1 << 12)
def decay(numerator: int, denominator: int) -> int:
    """Return exp(-numerator / denominator) correctly rounded to 2^-32, and ONE for a numerator of 0 or less; the denominator is positive.

    Rounding a falling function correctly leaves it falling, so an older fragment is never fresher. Bits are added until both ends of the
    error interval round alike; exp of a rational other than 0 is irrational, so that ends, nearly always at once.
    """
    if numerator <= 0:
        return ONE
    if numerator >= _LAST_EXPONENT * denominator:
        return 0  # exp(-23) is 0.44 steps of 2^-32
    bits = _FIRST_BITS
    while True:
        value, slack = _exponential(numerator, denominator, bits), 1 << _SLACK_BITS
        drop = bits - ONE.bit_length() + 1
        half = 1 << (drop - 1)
        low, high = (value - slack + half) >> drop, (value + slack + half) >> drop
        if low == high:
            return low
        bits *= 2


def exp_fixed(point: int) -> int:
    """Return exp(point / 2^16) correctly rounded to 2^-32, for points up to 0; above 0 it stays ONE."""
    return decay(-point, 1 << 16)


def _exponential(numerator: int, denominator: int, bits: int) -> int:
    """Return exp(-x) at 2^-bits for 0 < x < 23, less than 2^20 steps off.

    The series runs at x / 2^8 < 0.09, and eight squarings undo the division. With n terms, the argument is one step off and each term
    less than three, which the squarings turn into less than 2^8 * (3n + 2); n is below 20 at 72 bits and grows slower than they do.
    """
    argument = (numerator << bits) // (denominator << _HALVINGS)
    total = term = 1 << bits
    position = 0
    while term:
        position += 1
        term = (term * argument >> bits) // position
        total += -term if position & 1 else term
    for _ in range(_HALVINGS):
        total = total * total >> bits
    return total


# --- composite ---
# The one score that ranks: relevance, authority, freshness and utility under the request's weights.
#
# Weights leave the world of floats once, here, as millionths that sum to exactly a million; from there on everything is exact.

MILLION: Final = 1_000_000
"""A weight of 1 in millionths."""

_KEPT_WEIGHTS: Final = 256
_ROUNDING: Final = Fraction(1, 100_000)


def composites(signals: Sequence[tuple[int, int, int, int]], weights: tuple[int, int, int, int]) -> list[int]:
    """Return each candidate's weighted sum of relevance, authority, freshness and utility, from 0 to ONE.

    `weights_of` gives the weights; those of (1000000, 0, 0, 0) return the relevance itself.
    """
    by_relevance, by_authority, by_freshness, by_utility = weights
    return [
        (by_relevance * relevance + by_authority * authority + by_freshness * freshness + by_utility * utility) // MILLION
        for relevance, authority, freshness, utility in signals
    ]


@lru_cache(maxsize=_KEPT_WEIGHTS)
def weights_of(weights: RankingWeights) -> tuple[int, int, int, int]:
    """Return relevance, authority, freshness and utility in millionths that sum to exactly a million, by largest remainder.

    Weights that miss a sum of 1 by no more than a hundred-thousandth are scaled to it, which is for rounding; others are refused.
    """
    stated = {
        "relevance": weights.relevance,
        "authority": weights.authority,
        "freshness": weights.freshness,
        "utility": weights.utility,
    }
    exact = [_exact(f"ranking_weights.{name}", weight) for name, weight in stated.items()]
    total = sum(exact, Fraction())
    if abs(total - 1) > _ROUNDING:
        shown = " + ".join(str(weight) for weight in stated.values())
        raise InvalidFieldError("ranking_weights", f"'{shown}' does not sum to 1; change one of the four weights")
    return _apportion([weight / total for weight in exact])


@lru_cache(maxsize=_KEPT_WEIGHTS)
def millionths(field: str, value: float) -> int:
    """Return a share from 0 to 1 in whole millionths, rounded half to even; anything else is refused in the field's name."""
    return round(_exact(field, value) * MILLION)


def with_reranker(fused: Sequence[int], given: Mapping[int, int]) -> list[int]:
    """Return the relevance of each candidate: half its fused score and half its reranker's, each min-max normalised over what it scored.

    `given` holds the reranker's scores by index; where it is empty the fused scores stay as they are. A candidate that the reranker did
    not reach has 0 for that half, so it cannot pass a scored one that it was behind: the other has at least as much from both. Halves are
    rounded up for those scored and down for the rest, so that no lead over the rest is lost, not even one of a single step; where such
    two are equal they were equal before, and ids decide as they did. Among the rest, a lead of a single step may become a tie.
    """
    if not given:
        return list(fused)
    reranked = normalise_reranked(given)
    return [(score + reranked[index] + 1) // 2 if index in reranked else score // 2 for index, score in enumerate(min_max(fused))]


def normalise_reranked(given: Mapping[int, int]) -> dict[int, int]:
    """Return the reranker's scores by index, min-max normalised to the range from 0 to ONE."""
    return dict(zip(given, min_max(list(given.values())), strict=True))


def _exact(field: str, value: float) -> Fraction:
    if not math.isfinite(value) or not 0 <= Fraction(value) <= 1:
        raise InvalidFieldError(field, f"'{value}' is not a number from 0 to 1")
    return Fraction(value)


def _apportion(shares: Sequence[Fraction]) -> tuple[int, int, int, int]:
    quotas = [share * MILLION for share in shares]
    floors = [math.floor(quota) for quota in quotas]
    by_remainder = sorted(range(len(quotas)), key=lambda index: (floors[index] - quotas[index], index))
    for index in by_remainder[: MILLION - sum(floors)]:
        floors[index] += 1
    relevance, authority, freshness, utility = floors
    return relevance, authority, freshness, utility
