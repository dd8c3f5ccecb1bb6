"""Fit the grounding scorer on AttributionBench dev and SciFact train, and on nothing else; judge it by cross-validation.

    python tools/fit_grounding.py [--data ../shared/data]

A logistic regression with a ridge over the features of `evidentia.grounding`. Five folds, three times, grouped by question
(AttributionBench) or by abstract (SciFact); every held-out claim is scored by the integer model that would be shipped. The threshold
is fixed on the held-out scores of AttributionBench dev. SciFact pairs are those of its train qrels: SUPPORT is supported; CONTRADICT,
and an abstract that was cited without evidence, are not. Both classes of SciFact weigh the same, since 40 % of its pairs are supported.

Writes src/evidentia/grounding/weights.json, and benchmarks/results/grounding_fit.json with the figures.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from evidentia.backends.onnx.encoder import packaged_encoder
from evidentia.grounding.claim_features import Features, find
from evidentia.grounding.claim_terms import read_claim, read_passage
from evidentia.grounding.score import SIMILARITY, GroundingModel, ShippedModels, predict
from evidentia.grounding.similarity import SimilarityScorer, cosine_milli
from evidentia.text.tokens import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
WEIGHTS = ROOT / "src" / "evidentia" / "grounding" / "weights.json"
RESULTS = ROOT / "benchmarks" / "results" / "grounding_fit.json"
BASIS = "AttributionBench dev (1,198 claims) and SciFact train (919 pairs)"
FOLDS, REPEATS, ROUNDS = 5, 3, 3
RIDGE = 30.0
THRESHOLDS = range(400, 651, 25)
STANDARD_ERROR = 0.013
"""Of a macro-F1 of 0.7 over 1,198 claims."""
LENGTH_FLOOR = -1500
"""The least weight of a passage's length. In AttributionBench long passages are whole pages that somebody failed to find the claim in, so a
free fit (-2,400) would refuse a claim that a long text says word for word."""
CONTRADICTED = -4000
"""The weight of a plain contradiction, by rule: both sets have too few to fit it, and nothing may outweigh one."""
FIXED = {"contradicted": CONTRADICTED}
ONE = 1000
PLAIN_WORD = re.compile(r"\w+")
WORDS = Features.__struct_fields__
Inputs = dict[str, int]


class Pair(NamedTuple):
    """A claim with its passages, and what people said of them."""

    claim: str
    passages: tuple[str, ...]
    label: str
    source: str
    group: str

    @property
    def is_supported(self) -> bool:
        """Tell whether people called it supported."""
        return self.label in {"attributable", "SUPPORT"}


class Held(NamedTuple):
    """Held-out scores of pairs, in thousandths."""

    pairs: Sequence[Pair]
    scores: NDArray[np.float64]

    def only(self, keep: Callable[[Pair], bool]) -> Held:
        """Return those of some pairs."""
        chosen = [index for index, pair in enumerate(self.pairs) if keep(pair)]
        return Held([self.pairs[index] for index in chosen], self.scores[chosen])

    def of(self, source: str) -> Held:
        """Return those of one source."""
        return self.only(lambda pair: pair.source == source)

    @property
    def labels(self) -> NDArray[np.bool_]:
        """Return which are supported."""
        return np.array([pair.is_supported for pair in self.pairs])


def main() -> None:
    """Fit, measure, write."""
    given = Path(sys.argv[sys.argv.index("--data") + 1]) if "--data" in sys.argv else None
    data = given or Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
    pairs = [*load_attribution(data / "attributionbench" / "dev_all_subset_balanced.jsonl"), *load_scifact(data / "scifact")]
    words = [word_inputs(pair) for pair in pairs]
    encoded, similar = encoder_inputs(pairs, words)
    results: dict[str, Any] = {"command": "python tools/fit_grounding.py", "basis": BASIS}
    models: dict[str, GroundingModel] = {}
    arms = {"words": (words, WORDS), "with_encoder": (encoded, (*WORDS, SIMILARITY)), "similarity": (similar, (SIMILARITY,))}
    for name, (inputs, names) in arms.items():
        held = cross_validate(pairs, inputs, names=names)
        threshold = threshold_of(held)
        models[name] = msgspec.structs.replace(fit(pairs, inputs, names=names), threshold_milli=threshold)
        results[name] = {**figures(held, threshold=threshold), "dev_macro_f1_by_threshold": dev_curve(held)}
    without = tuple(name for name in WORDS if name != "length")
    held = cross_validate(pairs, words, names=without)
    results["words_without_length"] = figures(held, threshold=threshold_of(held))
    results["overlap"] = figures(Held(pairs, np.array([overlap(pair) for pair in pairs])), threshold=620)
    _write(WEIGHTS, msgspec.to_builtins(ShippedModels(**models)))
    _write(RESULTS, results)
    print(RESULTS.read_text())


def load_attribution(path: Path) -> list[Pair]:
    """Return the claims of one file of AttributionBench with the passages they cite."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Pair(row["claim"], tuple(row["references"]), row["attribution_label"], row["src_dataset"], row["question"]) for row in rows]


def load_scifact(folder: Path) -> list[Pair]:
    """Return the train pairs: a claim and one abstract that its author cited."""
    abstracts = {row["_id"]: f"{row['title']}\n\n{row['text']}" for row in _read_lines(folder / "corpus.jsonl")}
    queries = {row["_id"]: row for row in _read_lines(folder / "queries.jsonl")}
    judged = [line.split("\t")[:2] for line in (folder / "qrels" / "train.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    pairs: list[Pair] = []
    for query, document in judged:
        evidence = queries[query]["metadata"].get(document)
        label = evidence[0]["label"] if evidence else "NOT_ENOUGH"
        pairs.append(Pair(queries[query]["text"], (abstracts[document],), label, "SciFact", document))
    return pairs


def overlap(pair: Pair) -> int:
    """Return the share of the claim's content words that its passages have, in thousandths: what the scorer has to beat."""
    found = {word for passage in pair.passages for word in PLAIN_WORD.findall(passage.lower())}
    wanted = [word for word in PLAIN_WORD.findall(pair.claim.lower()) if word not in STOP_WORDS]
    return sum(word in found for word in wanted) * ONE // len(wanted) if wanted else 0


def word_inputs(pair: Pair) -> list[Inputs]:
    """Return the features of each passage."""
    claim = read_claim(pair.claim)
    return [msgspec.structs.asdict(find(claim, read_passage(passage)).features) for passage in pair.passages]


def encoder_inputs(pairs: Sequence[Pair], words: Sequence[list[Inputs]]) -> tuple[list[list[Inputs]], list[list[Inputs]]]:
    """Return the features with the similarity of the window that words lead to, and the similarity of the nearest window alone."""
    encoder = packaged_encoder()
    plain = SimilarityScorer(encoder, model=GroundingModel(weights={SIMILARITY: ONE}))
    encoded: list[list[Inputs]] = []
    similar: list[list[Inputs]] = []
    for pair, inputs in zip(pairs, words, strict=True):
        claim, vector = read_claim(pair.claim), encoder.encode_query(pair.claim)
        near: list[int] = []
        for text in pair.passages:
            passage = read_passage(text)
            window = find(claim, passage).window
            quoted = text[passage.spans[window.first].start : passage.spans[window.last - 1].end]
            near.append(cosine_milli(vector, encoder.encode_document(quoted)))
        encoded.append([{**own, SIMILARITY: value} for own, value in zip(inputs, near, strict=True)])
        similar.append([{SIMILARITY: plain.nearest(pair.claim, pair.passages)}])
    return encoded, similar


def cross_validate(pairs: Sequence[Pair], inputs: Sequence[list[Inputs]], *, names: Sequence[str]) -> Held:
    """Return the mean score of each pair over the repeats, by models that saw neither it nor its group."""
    scores = np.zeros(len(pairs))
    for repeat in range(REPEATS):
        folds = [zlib.crc32(f"{repeat} {pair.group}".encode()) % FOLDS for pair in pairs]
        for fold in range(FOLDS):
            seen = [index for index, own in enumerate(folds) if own != fold]
            model = fit([pairs[index] for index in seen], [inputs[index] for index in seen], names=names)
            for index, own in enumerate(folds):
                if own == fold:
                    scores[index] += max(score(model, each) for each in inputs[index]) / REPEATS
    return Held(pairs, scores)


def fit(pairs: Sequence[Pair], inputs: Sequence[list[Inputs]], *, names: Sequence[str]) -> GroundingModel:
    """Return the integer model; of several passages, the one that the model so far likes best is fitted."""
    labels = np.array([float(pair.is_supported) for pair in pairs])
    importance = _importance(pairs)
    model = GroundingModel(weights={names[0]: ONE})
    for _ in range(ROUNDS):
        chosen = [max(own, key=lambda each: score(model, each)) for own in inputs]
        design = np.array([[each[name] / ONE for name in names] for each in chosen])
        model = _fitted(design, labels, importance, names=names)
    return model


def score(model: GroundingModel, inputs: Inputs) -> int:
    """Return the score of one passage."""
    features = Features(**{name: value for name, value in inputs.items() if name != SIMILARITY})
    return predict(model, features, similarity_milli=inputs.get(SIMILARITY, 0))


def threshold_of(held: Held) -> int:
    """Return the threshold nearest to even odds whose macro-F1 on AttributionBench dev is within a standard error of the best."""
    curve = dev_curve(held)
    good = [cut for cut, value in curve.items() if value >= max(curve.values()) - STANDARD_ERROR]
    return min(good, key=lambda cut: (abs(cut - ONE // 2), cut))


def dev_curve(held: Held) -> dict[int, float]:
    """Return the macro-F1 on AttributionBench dev by threshold."""
    dev = held.only(lambda pair: pair.source != "SciFact")
    return {cut: round(macro_f1(dev.labels, dev.scores >= cut), 4) for cut in THRESHOLDS}


def figures(held: Held, *, threshold: int) -> dict[str, Any]:
    """Return what is reported of held-out scores."""
    dev, scifact = held.only(lambda pair: pair.source != "SciFact"), held.only(lambda pair: pair.source == "SciFact")
    decided = scifact.only(lambda pair: pair.label != "NOT_ENOUGH")
    by_source = {source: dev.of(source) for source in sorted({pair.source for pair in dev.pairs})}
    return {
        "threshold_milli": threshold,
        "attributionbench_dev_macro_f1": round(macro_f1(dev.labels, dev.scores >= threshold), 4),
        "attributionbench_dev_auc": round(auc(dev.labels, dev.scores), 4),
        "attributionbench_dev_auc_by_source": {source: round(auc(own.labels, own.scores), 4) for source, own in by_source.items()},
        "scifact_train_balanced_accuracy": round(balanced_accuracy(scifact.labels, scifact.scores >= threshold), 4),
        "scifact_train_auc": round(auc(scifact.labels, scifact.scores), 4),
        "scifact_train_supports_against_contradicts_auc": round(auc(decided.labels, decided.scores), 4),
    }


def macro_f1(labels: NDArray[np.bool_], said: NDArray[np.bool_]) -> float:
    """Return the mean of the F1 of both classes."""
    pairs = ((labels, said), (~labels, ~said))
    return float(np.mean([2 * (one & other).sum() / max(1, one.sum() + other.sum()) for one, other in pairs]))


def balanced_accuracy(labels: NDArray[np.bool_], said: NDArray[np.bool_]) -> float:
    """Return the mean of the share of supported pairs that were called so, and of the others that were not."""
    return float((said[labels].mean() + (~said[~labels]).mean()) / 2)


def auc(labels: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Return the probability that a supported pair scores above another, ties counting half."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    supported = int(labels.sum())
    return float((ranks[labels].sum() - supported * (supported + 1) / 2) / (supported * (len(labels) - supported)))


def _importance(pairs: Sequence[Pair]) -> NDArray[np.float64]:
    scifact = [pair.is_supported for pair in pairs if pair.source == "SciFact"]
    share = {True: scifact.count(True), False: scifact.count(False)}
    return np.array([len(scifact) / 2 / share[pair.is_supported] if pair.source == "SciFact" else 1.0 for pair in pairs])


def _fitted(
    design: NDArray[np.float64], labels: NDArray[np.float64], importance: NDArray[np.float64], *, names: Sequence[str]
) -> GroundingModel:
    fixed = {name: weight for name, weight in FIXED.items() if name in names}
    model = _with_fixed(design, labels, importance, names=names, fixed=fixed)
    if model.weights.get("length", 0) < LENGTH_FLOOR:
        model = _with_fixed(design, labels, importance, names=names, fixed={**fixed, "length": LENGTH_FLOOR})
    return model


def _with_fixed(
    design: NDArray[np.float64],
    labels: NDArray[np.float64],
    importance: NDArray[np.float64],
    *,
    names: Sequence[str],
    fixed: dict[str, int],
) -> GroundingModel:
    free = [column for column, name in enumerate(names) if name not in fixed]
    offset = design @ np.array([fixed.get(name, 0) / ONE for name in names])
    intercept, weights = _logistic_fit(design[:, free], labels, importance, offset=offset)
    fitted = {names[column]: round(float(weight) * ONE) for column, weight in zip(free, weights, strict=True)}
    return GroundingModel(basis=BASIS, intercept=round(intercept * ONE), weights={name: {**fitted, **fixed}[name] for name in names})


def _logistic_fit(
    design: NDArray[np.float64], labels: NDArray[np.float64], importance: NDArray[np.float64], *, offset: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return intercept and weights by Newton's method; the ridge acts on standardised columns and spares the intercept."""
    mean, deviation = design.mean(axis=0), design.std(axis=0) + 1e-9
    columns = np.column_stack([np.ones(len(design)), (design - mean) / deviation])
    penalty = np.diag([1e-6] + [RIDGE] * design.shape[1])
    found = np.zeros(columns.shape[1])
    for _ in range(50):
        predicted = 1 / (1 + np.exp(-np.clip(columns @ found + offset, -30, 30)))
        slope = columns.T @ (importance * (predicted - labels)) + penalty @ found
        curvature = (columns * (importance * predicted * (1 - predicted))[:, None]).T @ columns + penalty
        found = found - np.linalg.solve(curvature, slope)
    weights = found[1:] / deviation
    return float(found[0] - weights @ mean), weights


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
