"""Fit what the words' share by question ships with, on a judged collection's train split.

    python tools/fit_ranking.py ../shared/data/scifact --base /tmp/scifact

It is judged by five-fold cross-validation over questions; nothing looks at a test split. Writes
src/evidentia/ranking/query_weights.json, and benchmarks/results/fitted.json with the figures.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from judged_base import Judged, judged_runs, make_base, ndcg
from numpy.typing import NDArray

from evidentia.contracts.settings import RankingSettings
from evidentia.evaluation.compare import compare_scores
from evidentia.ranking.fusion import linear
from evidentia.ranking.query_weights import QueryFeatures, QueryWeightModel, lexical_milli

ROOT = Path(__file__).resolve().parents[1]
RANKING = ROOT / "src" / "evidentia" / "ranking"
RESULTS = ROOT / "benchmarks" / "results" / "fitted.json"
FOLDS = 5
SETTLED = 1e-9
SHARES = range(100, 901, 20)
WEIGHED = ("terms", "identifiers", "mean_rarity", "rarest")
Floats = NDArray[np.float64]


def main() -> None:
    """Fit, measure, write."""
    folder = Path(sys.argv[1])
    base = Path(sys.argv[sys.argv.index("--base") + 1]) if "--base" in sys.argv else Path(tempfile.mkdtemp()) / "base"
    make_base(folder, base)
    judged = list(judged_runs(folder, base, split="train"))
    basis = f"{folder.name} train, {len(judged)} questions"
    fitted_weights, effect = fit_weights(judged, basis=basis)
    _write(RANKING / "query_weights.json", msgspec.to_builtins(fitted_weights))
    _write(RESULTS, {"command": "python tools/fit_ranking.py", "basis": basis, "query_weights": effect})
    print(RESULTS.read_text())


def fit_weights(judged: list[Judged], *, basis: str) -> tuple[QueryWeightModel, dict[str, Any]]:
    """Return the model fitted on everything, and its paired effect where it was fitted on the other folds."""
    table = np.array([[ndcg(each, linear(each.run.found.parts[0].legs, lexical_milli=share)) for share in SHARES] for each in judged])
    features = [each.run.question.features or QueryFeatures() for each in judged]
    folds = np.arange(len(judged)) % FOLDS
    predicted = np.zeros(len(judged))
    for fold in range(FOLDS):
        model = _weight_model(table[folds != fold], [each for each, own in zip(features, folds, strict=True) if own != fold], basis=basis)
        for index in np.flatnonzero(folds == fold):
            predicted[index] = table[index, _column(lexical_milli(features[index], model))]
    fixed = table[:, _column(RankingSettings().lexical_milli)]
    scores = [{each.query_id: float(value) for each, value in zip(judged, values, strict=True)} for values in (fixed, predicted)]
    compared = compare_scores(scores[0], scores[1], generator=np.random.default_rng(0), measure="nDCG@10")
    effect = {
        "fixed": round(compared.baseline_mean, 4), "by_query": round(compared.system_mean, 4),
        "difference": round(compared.mean_difference, 4), "interval_95": [round(compared.low, 4), round(compared.high, 4)],
        "best_per_question": round(float(table.max(axis=1).mean()), 4),
        "by_fixed_share": {share: round(float(value), 4) for share, value in zip(SHARES, table.mean(axis=0), strict=True)},
    }  # fmt: skip
    return _weight_model(table, features, basis=basis), effect


def _weight_model(table: Floats, features: list[QueryFeatures], *, basis: str) -> QueryWeightModel:
    """Return coefficients found by going along each in turn while the mean improves; the steps are powers of two."""
    names = ("intercept", *WEIGHED)
    values = dict.fromkeys(names, 0)
    best = _mean_gain(table, features, values, basis=basis)
    for step in (1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11, 1 << 10):
        for _ in range(4):
            moved = False
            for name in names:
                for change in (step, -step):
                    tried = values | {name: values[name] + change}
                    gain = _mean_gain(table, features, tried, basis=basis)
                    if gain > best + SETTLED:
                        values, best, moved = tried, gain, True
            if not moved:
                break
    return _model(values, basis=basis)


def _mean_gain(table: Floats, features: list[QueryFeatures], values: dict[str, int], *, basis: str) -> float:
    model = _model(values, basis=basis)
    return float(np.mean([row[_column(lexical_milli(each, model))] for row, each in zip(table, features, strict=True)]))


def _model(values: dict[str, int], *, basis: str) -> QueryWeightModel:
    return QueryWeightModel(
        basis=basis, intercept=values["intercept"], coefficients={name: values[name] for name in WEIGHED if values[name]}
    )


def _column(share: int) -> int:
    return round((share - SHARES.start) / SHARES.step)


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
