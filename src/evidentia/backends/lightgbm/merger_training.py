"""A merging model fitted on judged groups: pairs of one question that are ordered wrongly are what it learns from (LambdaMART).

The same groups, in any order, with the same settings give the same bytes.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import numpy as np

from evidentia.backends.lightgbm.lightgbm_merger import LightGbmMerger, import_lightgbm, stamp, to_matrix
from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from collections.abc import Sequence

MEASURED_AT: Final = 10
LARGEST_GRADE: Final = 30
"""Gains are 2^grade - 1, and LightGBM has a table of them up to here."""


class JudgedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The candidates of one question: a row of features and a grade for each, 0 for what does not answer it."""

    id: str
    features: tuple[tuple[int, ...], ...]
    grades: tuple[Annotated[int, msgspec.Meta(ge=0, le=LARGEST_GRADE)], ...]


class FittedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model file, and how well it orders the groups it has seen and those it has not (nDCG@10; None without a judged one)."""

    content: bytes
    held_out: tuple[str, ...]
    fitted_ndcg: float | None
    held_out_ndcg: float | None


def fit(
    groups: Sequence[JudgedGroup], *, features: Sequence[str], fitted_on: str, seed: int, held_out: float = 0.2, trees: int = 50
) -> FittedModel:
    """Fit a model on all but a share of the groups, which the seed chooses by their ids.

    1. check the groups; 2. hold some out; 3. fit on the others; 4. measure on both.
    """
    _check(groups, features=features, share=held_out)
    kept_out = _held_out(groups, seed=seed, share=held_out)
    seen = [_ordered(group) for group in sorted(groups, key=lambda group: group.id) if group.id not in kept_out]
    content = stamp(_train(seen, features=features, seed=seed, trees=trees), fitted_on=fitted_on)
    merger = LightGbmMerger.of_bytes(content, features=features, fitted_on=fitted_on)
    unseen = [group for group in groups if group.id in kept_out]
    return FittedModel(content=content, held_out=kept_out, fitted_ndcg=mean_ndcg(merger, seen), held_out_ndcg=mean_ndcg(merger, unseen))


def mean_ndcg(merger: LightGbmMerger, groups: Sequence[JudgedGroup], *, at: int = MEASURED_AT) -> float | None:
    """Return the mean nDCG over the groups that have anything to find; of equal scores the worse candidate comes first."""
    values = [_ndcg(group.grades, merger.merge(group.features), at=at) for group in groups if any(group.grades)]
    return math.fsum(values) / len(values) if values else None


def _ndcg(grades: Sequence[int], scores: Sequence[int], *, at: int) -> float:
    found = [grade for _, grade in sorted(zip(scores, grades, strict=True), key=lambda pair: (-pair[0], pair[1]))]
    return _dcg(found[:at]) / _dcg(sorted(grades, reverse=True)[:at])


def _dcg(grades: Sequence[int]) -> float:
    return math.fsum((2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def _check(groups: Sequence[JudgedGroup], *, features: Sequence[str], share: float) -> None:
    if not 0 <= share < 1:
        raise InvalidFieldError("held_out", f"{share} is no share from 0 up to, but not including, 1")
    if len({group.id for group in groups}) != len(groups):
        raise InvalidFieldError("groups", "two groups have one id")
    if not all(name.isascii() and name.isidentifier() for name in features) or len(set(features)) != len(features):
        raise InvalidFieldError("features", "their names are not distinct words of ASCII letters, digits and underscores")
    for place, group in enumerate(groups):
        if len(group.features) != len(group.grades) or not group.grades:
            raise InvalidFieldError(f"groups[{place}]", f"{len(group.grades)} grades for {len(group.features)} candidates")
        if not all(0 <= grade <= LARGEST_GRADE for grade in group.grades):
            raise InvalidFieldError(f"groups[{place}].grades", f"a grade is not between 0 and {LARGEST_GRADE}")


def _held_out(groups: Sequence[JudgedGroup], *, seed: int, share: float) -> tuple[str, ...]:
    """Return the ids of the groups to hold out: those with the smallest hashes, so that the order given has no say."""
    drawn = sorted((hashlib.sha256(f"{seed}:{group.id}".encode()).hexdigest(), group.id) for group in groups)
    return tuple(sorted(name for _, name in drawn[: round(len(groups) * share)]))


def _ordered(group: JudgedGroup) -> JudgedGroup:
    """Return the group in an order that says nothing of the grades: LightGBM breaks its first ties by position."""
    rows = sorted(zip(group.features, group.grades, strict=True))
    return JudgedGroup(id=group.id, features=tuple(row for row, _ in rows), grades=tuple(grade for _, grade in rows))


def _train(groups: Sequence[JudgedGroup], *, features: Sequence[str], seed: int, trees: int) -> str:
    if not any(len(set(group.grades)) > 1 for group in groups):
        raise InvalidFieldError("groups", "no group has candidates of different grades; judge more questions")
    lightgbm = import_lightgbm()
    settings = {
        "objective": "lambdarank",
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "seed": seed,
        "verbosity": -1,
    }
    table = lightgbm.Dataset(
        to_matrix([row for group in groups for row in group.features], width=len(features)),
        label=np.array([grade for group in groups for grade in group.grades], dtype=np.int32),
        group=[len(group.grades) for group in groups],
        feature_name=list(features),
        params=settings,
    )
    booster = lightgbm.train(settings, table, num_boost_round=trees)
    if all(tree["num_leaves"] == 1 for tree in booster.dump_model()["tree_info"]):
        raise InvalidFieldError("groups", "there is too little in them to learn from; judge more questions")
    return str(booster.model_to_string(num_iteration=-1))
