"""Fit the weights of requests to a reader on development attacks and clean passages; judge them by leaving kinds and corpora out.

    python tools/fit_injection.py [--data ../shared/data] [--clean FILE.json ...] [--judge]

A logistic regression with a ridge over the features of `evidentia.text.injection_model`, of the sentence of each attack that weighs most
and of every sentence of the clean passages. Attacks are those of injections_dev (bare questions and tasks aside, which nothing but their
place tells from a document) and of tools/injection_texts.yaml; clean passages are all texts of the data folder, the ordinary texts of that
file, and further corpora from `--clean`, files of corpus names with their texts. With `--judge` each kind of attack and each corpus is
left out in turn. Writes src/evidentia/text/injection_weights.json, and benchmarks/results/injections_fit.json with the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, vstack

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from injections import clean_passages  # noqa: E402 - a benchmark is no package

from evidentia.text.injection_model import features, stretches  # noqa: E402
from evidentia.text.unmasking import undisguised  # noqa: E402

WEIGHTS = ROOT / "src" / "evidentia" / "text" / "injection_weights.json"
RESULTS = ROOT / "benchmarks" / "results" / "injections_fit.json"
TEXTS = ROOT / "tools" / "injection_texts.yaml"
BARE = ("Information Retrieval", "Content Creation", "Learning and Tutoring", "Language Translation", "Programming Help")
LEAST_SEEN = 2
"""Attacks that have a feature, at least."""
ATTACK_WEIGHT, RIDGE, ROUNDS = 2.0, 0.2, 2
FALSE_ALARMS = 2000
"""One in so many passages of corpora that were left out may be flagged."""
LEAST_CORPUS = 200
"""Passages of a corpus that is left out, at least."""
ONE = 1000
Sentence = frozenset[str]


def main() -> None:
    """Fit, judge, write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data")))
    parser.add_argument("--clean", type=Path, nargs="*", default=[])
    parser.add_argument("--judge", action="store_true")
    given = parser.parse_args()
    attacks = load_attacks(given.data)
    corpora = {name: [read(text) for text in texts] for name, texts in load_clean(given.data, given.clean).items()}
    seen = Counter(name for _, sentences in attacks for name in frozenset().union(*sentences))
    vocabulary = {name: at for at, name in enumerate(sorted(name for name, times in seen.items() if times >= LEAST_SEEN))}
    positives = [(kind, rows(sentences, vocabulary)) for kind, sentences in attacks]
    clean = {name: [rows(sentences, vocabulary) for sentences in texts] for name, texts in corpora.items()}
    weights = fit([matrix for _, matrix in positives], [matrix for texts in clean.values() for matrix in texts])
    alarms = {name: scores(texts, weights) for name, texts in clean.items()}
    figures: dict[str, Any] = {"command": "python tools/fit_injection.py --judge", "attacks": len(attacks)}
    if given.judge:
        alarms = {
            name: scores(texts, fit_without(positives, clean, corpus=name)) for name, texts in clean.items() if len(texts) >= LEAST_CORPUS
        }
    pooled = np.sort(np.concatenate(list(alarms.values())))
    threshold = float(pooled[-max(1, len(pooled) // FALSE_ALARMS)])
    figures["passages"] = len(pooled)
    figures["flagged_by_corpus"] = {name: int((found >= threshold).sum()) for name, found in sorted(alarms.items())}
    if given.judge:
        kinds = sorted({kind for kind, _ in positives})
        figures["seen_by_kind_left_out"] = {
            kind: f"{sum(score(matrix, left) >= threshold for each, matrix in positives if each == kind)}"
            f" of {sum(each == kind for each, _ in positives)}"
            for kind in kinds
            for left in (fit_without(positives, clean, kind=kind),)
        }
        RESULTS.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    write(weights, vocabulary, threshold)
    print(json.dumps(figures, indent=2))


def load_attacks(data: Path) -> list[tuple[str, list[Sentence]]]:
    """Return the attacks with their kinds."""
    written = yaml.safe_load(TEXTS.read_text(encoding="utf-8"))["attacks"]
    lines = (data / "injections_dev" / "attacks.jsonl").read_text(encoding="utf-8").splitlines()
    known = [(each["category"], each["text"]) for each in map(json.loads, lines) if each["category"] not in BARE]
    texts = known + [(kind, text) for kind, samples in written.items() for text in samples]
    return [(kind, sentences) for kind, text in texts if (sentences := read(text))]


def load_clean(data: Path, further: list[Path]) -> dict[str, list[str]]:
    """Return the clean texts by corpus."""
    found = clean_passages(data)
    for path in further:
        found |= json.loads(path.read_text(encoding="utf-8"))
    found["ordinary"] = yaml.safe_load(TEXTS.read_text(encoding="utf-8"))["ordinary"]
    return found


def read(text: str) -> list[Sentence]:
    """Return the features of each sentence of a text."""
    return sorted({frozenset(features(stretch)) for stretch in stretches(undisguised(text))}, key=sorted)


def rows(sentences: list[Sentence], vocabulary: dict[str, int]) -> csr_matrix:
    """Return sentences as rows of the features that are known."""
    cells = [(row, vocabulary[name]) for row, names in enumerate(sentences) for name in names if name in vocabulary]
    places = np.array(cells, dtype=np.int64).reshape(-1, 2)
    return csr_matrix((np.ones(len(places)), (places[:, 0], places[:, 1])), shape=(len(sentences), len(vocabulary)))


def fit(attacks: list[csr_matrix], clean: list[csr_matrix]) -> np.ndarray:
    """Return the weights, the last of which is the bias."""
    negatives = vstack(clean).tocsr()
    weights = np.zeros(negatives.shape[1] + 1)
    for turn in range(ROUNDS):
        chosen = vstack([each[int(np.argmax(each @ weights[:-1] if turn else each.sum(axis=1)))] for each in attacks])
        inputs = vstack([chosen, negatives]).tocsr()
        labels = np.concatenate([np.ones(chosen.shape[0]), -np.ones(negatives.shape[0])])
        weigh = np.where(labels > 0, ATTACK_WEIGHT, 1.0)

        def loss(
            values: np.ndarray, inputs: csr_matrix = inputs, labels: np.ndarray = labels, weigh: np.ndarray = weigh
        ) -> tuple[float, np.ndarray]:
            margin = labels * (inputs @ values[:-1] + values[-1])
            slope = -weigh * labels / (1 + np.exp(np.clip(margin, -50, 50)))
            gradient = np.append(inputs.T @ slope + RIDGE * values[:-1], slope.sum())
            return float((weigh * np.logaddexp(0, -margin)).sum() + RIDGE / 2 * (values[:-1] ** 2).sum()), gradient

        weights = minimize(loss, weights, jac=True, method="L-BFGS-B", options={"maxiter": 150}).x
    return weights


def fit_without(
    positives: list[tuple[str, csr_matrix]], clean: dict[str, list[csr_matrix]], *, kind: str = "", corpus: str = ""
) -> np.ndarray:
    """Return the weights when a kind of attack or a corpus is left out."""
    attacks = [matrix for each, matrix in positives if each != kind]
    return fit(attacks, [matrix for name, texts in clean.items() if name != corpus for matrix in texts])


def score(sentences: csr_matrix, weights: np.ndarray) -> float:
    """Return the score of the sentence that weighs most."""
    return float((sentences @ weights[:-1]).max() + weights[-1]) if sentences.shape[0] else -np.inf


def scores(texts: list[csr_matrix], weights: np.ndarray) -> np.ndarray:
    """Return the score of each text."""
    return np.array([score(sentences, weights) for sentences in texts])


def write(weights: np.ndarray, vocabulary: dict[str, int], threshold: float) -> None:
    """Write the weights in thousandths; the threshold is part of the bias."""
    milli = {name: round(float(weights[at]) * ONE) for name, at in vocabulary.items()}
    shipped = {
        "bias": round((float(weights[-1]) - threshold) * ONE),
        "weights": {name: value for name, value in sorted(milli.items()) if value},
    }
    WEIGHTS.write_text(json.dumps(shipped, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
