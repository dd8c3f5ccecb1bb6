"""Fit what ranking ships with, on a judged collection's train split: confidence, and the words' share by question.

    python tools/fit_ranking.py ../shared/data/scifact --base /tmp/scifact

Both are judged by five-fold cross-validation over questions; nothing looks at a test split. Writes
src/evidentia/ranking/confidence.json and query_weights.json, and benchmarks/results/fitted.json with the figures.
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
from evidentia.ranking.confidence import FEATURE_BITS, ConfidenceModel, confidence
from evidentia.ranking.fusion import linear, order
from evidentia.ranking.query_weights import QueryFeatures, QueryWeightModel, lexical_milli

ROOT = Path(__file__).resolve().parents[1]
RANKING = ROOT / "src" / "evidentia" / "ranking"
RESULTS = ROOT / "benchmarks" / "results" / "fitted.json"
FOLDS, DEPTH, TENTHS = 5, 20, 10
SETTLED = 1e-9
ONE = 1 << FEATURE_BITS
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
    fitted_confidence, reliability = fit_confidence(judged, basis=basis)
    fitted_weights, effect = fit_weights(judged, basis=basis)
    _write(RANKING / "confidence.json", msgspec.to_builtins(fitted_confidence))
    _write(RANKING / "query_weights.json", msgspec.to_builtins(fitted_weights))
    _write(RESULTS, {"command": "python tools/fit_ranking.py", "basis": basis, "confidence": reliability, "query_weights": effect})
    print(RESULTS.read_text())


def fit_confidence(judged: list[Judged], *, basis: str) -> tuple[ConfidenceModel, dict[str, Any]]:
    """Return the model fitted on everything, and how reliable models fitted on four fifths are on the fifth they did not see."""
    rows = [_confidence_rows(each) for each in judged]
    folds = np.arange(len(rows)) % FOLDS
    held_out: dict[str, list[tuple[int, bool]]] = {"words": [], "vectors": [], "both": []}
    for fold in range(FOLDS):
        model = _confidence_model([row for row, own in zip(rows, folds, strict=True) if own != fold], basis=basis)
        for row, own in zip(rows, folds, strict=True):
            if own == fold:
                for words, cosine, is_relevant in row:
                    held_out["words"].append((confidence(model, words=words, cosine=None), is_relevant))
                    held_out["vectors"].append((confidence(model, words=None, cosine=cosine), is_relevant))
                    held_out["both"].append((confidence(model, words=words, cosine=cosine), is_relevant))
    return _confidence_model(rows, basis=basis), {name: _reliability(pairs) for name, pairs in held_out.items()}


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


def _confidence_rows(each: Judged) -> list[tuple[int, int, bool]]:
    """Return (share of the attainable score, cosine, is relevant) of the best candidates, both at 2^-16."""
    found = each.run.found
    ids = [hit.chunk_id for hit in found.hits]
    legs = found.parts[0].legs
    best = order(linear(legs, lexical_milli=RankingSettings().lexical_milli), ids)[:DEPTH]
    attainable, bits = max(1, found.counts.attainable), found.dense.score_bits if found.dense else 0
    return [
        (min(ONE, legs[i].lexical * ONE // attainable), min(ONE, max(0, (legs[i].dense or 0) * ONE >> bits)), each.grades[i] > 0)
        for i in best
    ]


def _confidence_model(rows: list[list[tuple[int, int, bool]]], *, basis: str) -> ConfidenceModel:
    flat = np.array([row for question in rows for row in question], dtype=np.float64)
    words, cosine, relevant = flat[:, 0] / ONE, flat[:, 1] / ONE, flat[:, 2]
    constant = np.ones(len(flat))
    both = _logistic_fit(np.stack([constant, words, cosine, words * cosine], axis=1), relevant)
    alone = [_logistic_fit(np.stack([constant, each], axis=1), relevant) for each in (words, cosine)]
    return ConfidenceModel(
        basis=basis,
        words=(_fixed(alone[0][0]), _fixed(alone[0][1])),
        vectors=(_fixed(alone[1][0]), _fixed(alone[1][1])),
        both=(_fixed(both[0]), _fixed(both[1]), _fixed(both[2]), _fixed(both[3])),
    )


def _logistic_fit(design: Floats, labels: Floats) -> Floats:
    """Return maximum-likelihood coefficients by Newton's method, with a whiff of ridge for stability."""
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-design @ weights))
        gradient = design.T @ (labels - chance) - 1e-3 * weights
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + 1e-3 * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if float(np.abs(step).max()) < SETTLED:
            break
    return weights


def _reliability(pairs: list[tuple[int, bool]]) -> dict[str, Any]:
    """Return a table by tenths of confidence: how many, what was said, and what was true; and the figures over all."""
    said = np.array([chance for chance, _ in pairs]) / 1_000_000
    true = np.array([is_relevant for _, is_relevant in pairs], dtype=np.float64)
    rows, gap = [], 0.0
    for low in range(TENTHS):
        inside = (said >= low / 10) & ((said < (low + 1) / 10) | (low == TENTHS - 1))
        if inside.any():
            row = {
                "from": low / 10,
                "count": int(inside.sum()),
                "said": round(float(said[inside].mean()), 3),
                "true": round(float(true[inside].mean()), 3),
            }
            rows.append(row)
            gap += int(inside.sum()) * abs(float(said[inside].mean() - true[inside].mean()))
    return {
        "table": rows, "expected_calibration_error": round(gap / len(pairs), 4), "brier": round(float(((said - true) ** 2).mean()), 4),
        "brier_of_the_mean": round(float(((true.mean() - true) ** 2).mean()), 4), "pairs": len(pairs),
    }  # fmt: skip


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


def _fixed(value: float) -> int:
    return round(float(value) * ONE)


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
