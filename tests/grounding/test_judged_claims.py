"""What people judged: the shipped scorer on claims it never saw, and the fit by cross-validation on what it did."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from evidentia.grounding.score import WordScorer, shipped_models

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
LEAST_BALANCED_ACCURACY = 0.72


def load(path: Path) -> ModuleType:
    """Return a script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def benchmark() -> Any:
    return load(ROOT / "benchmarks" / "grounding.py")


@pytest.fixture(scope="module")
def tool() -> Any:
    return load(ROOT / "tools" / "fit_grounding.py")


@pytest.fixture(scope="module")
def pairs(tool: Any, shared_data: Path) -> Any:
    """Return the pairs that the scorer was fitted on."""
    attribution, scifact = shared_data / "attributionbench" / "dev_all_subset_balanced.jsonl", shared_data / "scifact"
    if not attribution.exists() or not scifact.exists():
        pytest.skip(f"no AttributionBench dev or SciFact in '{shared_data}'; set EVIDENTIA_DATA to the folder that holds them")
    return [*tool.load_attribution(attribution), *tool.load_scifact(scifact)]


@pytest.fixture(scope="module")
def inputs(tool: Any, pairs: Any) -> Any:
    """Return what the scorer is told of each pair."""
    return [tool.word_inputs(pair) for pair in pairs]


@pytest.mark.slow
def test_test_sample_is_judged_better_than_by_overlap(benchmark: Any, shared_data: Path) -> None:
    path = shared_data / "attributionbench" / "test_all_subset_balanced_sampled500.jsonl"
    if not path.exists():
        pytest.skip(f"no AttributionBench test sample in '{shared_data}'; set EVIDENTIA_DATA to the folder that holds it")
    rows = benchmark.load(path)
    labels = np.array([row.is_supported for row in rows])
    by_overlap = np.array([benchmark.overlap(row) >= benchmark.OVERLAP_THRESHOLD for row in rows])
    compared = benchmark.paired(labels, benchmark.judge(WordScorer(), rows), by_overlap)

    assert 500 == len(rows)
    assert 0 < compared["interval_95"][0]


@pytest.mark.slow
def test_cross_validated_fit_tells_support_from_the_rest_and_from_contradiction(tool: Any, pairs: Any, inputs: Any) -> None:
    held = tool.cross_validate(pairs, inputs, names=tool.WORDS)
    words = tool.figures(held, threshold=tool.threshold_of(held))
    by_overlap = tool.figures(tool.Held(pairs, np.array([tool.overlap(pair) for pair in pairs])), threshold=620)

    assert words["scifact_train_balanced_accuracy"] >= LEAST_BALANCED_ACCURACY
    assert words["scifact_train_supports_against_contradicts_auc"] > by_overlap["scifact_train_supports_against_contradicts_auc"]
    assert words["attributionbench_dev_macro_f1"] > by_overlap["attributionbench_dev_macro_f1"]
    assert words["threshold_milli"] == shipped_models().words.threshold_milli


@pytest.mark.slow
def test_shipped_weights_are_those_of_the_fit(tool: Any, pairs: Any, inputs: Any) -> None:
    fitted = tool.fit(pairs, inputs, names=tool.WORDS)
    shipped = shipped_models().words

    assert list(fitted.weights) == list(shipped.weights)
    # Another linear algebra library may round a weight the other way.
    assert all(abs(fitted.weights[name] - shipped.weights[name]) <= 1 for name in shipped.weights)
    assert abs(fitted.intercept - shipped.intercept) <= 1
