"""Fit a model for `fusion = learned` on a judged collection's train split, and say what it is worth.

    python tools/fit_merging.py ../shared/data/scifact merging.txt --base /tmp/scifact

The effect is measured by five-fold cross-validation over questions, paired with linear fusion; the model written is fitted on all.
Needs the extra `learned`. To use it: `ranking.merging_model = "merging.txt"` and `fusion="learned"` in a request.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np
from judged_base import Judged, judged_runs, make_base, ndcg

from evidentia.backends.lightgbm.lightgbm_merger import LightGbmMerger
from evidentia.backends.lightgbm.merger_training import JudgedGroup, fit
from evidentia.contracts.settings import RankingSettings
from evidentia.engine.ordering import merge_features
from evidentia.evaluation.compare import compare_scores
from evidentia.ranking.fusion import linear
from evidentia.ranking.merge_features import FEATURES, FEATURES_IDENTITY

FOLDS, SEED = 5, 0


def main() -> None:
    """Fit, measure, write."""
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    base = Path(sys.argv[sys.argv.index("--base") + 1]) if "--base" in sys.argv else Path(tempfile.mkdtemp()) / "base"
    make_base(folder, base)
    judged = list(judged_runs(folder, base, split="train"))
    groups = [_group(each) for each in judged]
    share = RankingSettings().lexical_milli
    fused = {each.query_id: ndcg(each, linear(each.run.found.parts[0].legs, lexical_milli=share)) for each in judged}
    merged: dict[str, float] = {}
    for fold in range(FOLDS):
        unseen = {each.query_id for number, each in enumerate(judged) if number % FOLDS == fold}
        merger = _merger([group for group in groups if group.id not in unseen and group.grades])
        merged |= {
            each.query_id: ndcg(each, list(merger.merge(group.features)))
            for each, group in zip(judged, groups, strict=True)
            if each.query_id in unseen
        }
    compared = compare_scores(fused, merged, generator=np.random.default_rng(SEED), measure="nDCG@10")
    target.write_bytes(
        fit([group for group in groups if group.grades], features=FEATURES, fitted_on=FEATURES_IDENTITY, seed=SEED, held_out=0).content
    )
    print(json.dumps(msgspec.to_builtins(compared) | {"only_baseline": [], "only_system": []}, indent=2))


def _group(each: Judged) -> JudgedGroup:
    found = each.run.found
    rows = merge_features(each.run.question, found, found.parts[0], settings=RankingSettings())
    return JudgedGroup(id=each.query_id, features=tuple(rows), grades=tuple(each.grades))


def _merger(groups: list[JudgedGroup]) -> LightGbmMerger:
    content = fit(groups, features=FEATURES, fitted_on=FEATURES_IDENTITY, seed=SEED, held_out=0).content
    return LightGbmMerger.of_bytes(content, features=FEATURES, fitted_on=FEATURES_IDENTITY)


if __name__ == "__main__":
    main()
