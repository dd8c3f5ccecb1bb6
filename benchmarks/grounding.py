"""How well the grounding scorer judges claims it was not fitted on: AttributionBench's test sample, beside plain word overlap.

    python benchmarks/grounding.py [--encoder]

Nothing is fitted here: weights and threshold are those of the package, which tools/fit_grounding.py fixed on AttributionBench dev and
SciFact train. Word overlap is the share of the claim's words in the cited passages, the 33 stop words of the tokeniser aside, with the
threshold 0.62 from dev; `overlap_without_empty_words` leaves out the scorer's own, longer list instead, which makes it stronger.
Differences are paired: 10,000 resamples of the claims, both systems judged on each. CPU time is that of a score, from text to reasons, one
claim and its passages per call, the least of ten passes. With `--encoder` the two scorers over the packaged encoder are measured too;
without it their figures are kept as they are.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evidentia.backends.onnx.encoder import packaged_encoder
from evidentia.grounding.claim_terms import is_empty
from evidentia.grounding.score import WordScorer
from evidentia.grounding.similarity import EncodedWordScorer, SimilarityScorer
from evidentia.text.tokens import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from evidentia.contracts.ports import ClaimScorer

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
RESULTS = Path(__file__).parent / "results" / "grounding.json"
OVERLAP_THRESHOLD = 0.62
RESAMPLES = 10_000
UNLIMITED_MS = 3_600_000
WORD = re.compile(r"\w+")


class Row(NamedTuple):
    """A claim with the passages it cites."""

    claim: str
    passages: tuple[str, ...]
    is_supported: bool
    source: str


def main() -> None:
    """Measure and write."""
    rows = load(DATA / "attributionbench" / "test_all_subset_balanced_sampled500.jsonl")
    labels = np.array([row.is_supported for row in rows])
    sources = [row.source for row in rows]
    by_overlap = np.array([overlap(row) >= OVERLAP_THRESHOLD for row in rows])
    by_longer = np.array([overlap(row, is_stop=is_empty) >= OVERLAP_THRESHOLD for row in rows])
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    scorer = WordScorer()
    words = judge(scorer, rows)
    results: dict[str, Any] = {
        "command": "python benchmarks/grounding.py --encoder",
        "claims": len(rows),
        "scorer": scorer.identity,
        "cpu_ms_per_claim": round(cpu_ms(scorer, rows), 3),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "overlap": figures(labels, by_overlap, sources),
        "overlap_without_empty_words": figures(labels, by_longer, sources),
        "words": {
            **figures(labels, words, sources),
            "against_overlap": paired(labels, words, by_overlap),
            "against_overlap_without_empty_words": paired(labels, words, by_longer),
        },
    }
    for name in ("with_encoder", "similarity"):
        if name in kept:
            results[name] = kept[name]
    if "--encoder" in sys.argv:
        encoder = packaged_encoder()
        for name, other in (("with_encoder", EncodedWordScorer(encoder)), ("similarity", SimilarityScorer(encoder))):
            said = judge(other, rows)
            results[name] = {
                **figures(labels, said, sources),
                "against_overlap": paired(labels, said, by_overlap),
                "against_words": paired(labels, said, words),
            }
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


def load(path: Path) -> list[Row]:
    """Return the claims of a file of AttributionBench."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Row(row["claim"], tuple(row["references"]), row["attribution_label"] == "attributable", row["src_dataset"]) for row in rows]


def overlap(row: Row, *, is_stop: Callable[[str], bool] = STOP_WORDS.__contains__) -> float:
    """Return the share of the claim's content words that its passages have."""
    found = {word for passage in row.passages for word in WORD.findall(passage.lower())}
    wanted = [word for word in WORD.findall(row.claim.lower()) if not is_stop(word)]
    return sum(word in found for word in wanted) / len(wanted) if wanted else 0.0


def judge(scorer: ClaimScorer, rows: Sequence[Row]) -> NDArray[np.bool_]:
    """Return which claims a scorer calls supported."""
    return np.array([scorer.score([row.claim], row.passages, budget_ms=UNLIMITED_MS)[0].supported for row in rows])


def cpu_ms(scorer: ClaimScorer, rows: Sequence[Row]) -> float:
    """Return the CPU time of one claim, the least of ten passes."""
    passes: list[float] = []
    for _ in range(10):
        started = time.process_time()
        judge(scorer, rows)
        passes.append((time.process_time() - started) * 1000 / len(rows))
    return min(passes)


def macro_f1(labels: NDArray[np.bool_], said: NDArray[np.bool_]) -> float:
    """Return the mean of the F1 of both classes."""
    pairs = ((labels, said), (~labels, ~said))
    return float(np.mean([2 * (one & other).sum() / max(1, one.sum() + other.sum()) for one, other in pairs]))


def figures(labels: NDArray[np.bool_], said: NDArray[np.bool_], sources: Sequence[str]) -> dict[str, Any]:
    """Return macro-F1 over all claims and for each source."""
    by_source = {
        source: round(macro_f1(labels[chosen], said[chosen]), 4)
        for source in sorted(set(sources))
        for chosen in [np.array([own == source for own in sources])]
    }
    mean = round(float(np.mean(list(by_source.values()))), 4)
    return {"macro_f1": round(macro_f1(labels, said), 4), "mean_over_sources": mean, "by_source": by_source}


def paired(labels: NDArray[np.bool_], said: NDArray[np.bool_], other: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the difference of two systems in macro-F1 with its 95 % interval."""
    generator = np.random.default_rng(0)
    differences = np.empty(RESAMPLES)
    for draw in range(RESAMPLES):
        chosen = generator.integers(0, len(labels), len(labels))
        differences[draw] = macro_f1(labels[chosen], said[chosen]) - macro_f1(labels[chosen], other[chosen])
    low, high = np.quantile(differences, [0.025, 0.975])
    difference = macro_f1(labels, said) - macro_f1(labels, other)
    return {"difference": round(difference, 4), "interval_95": [round(float(low), 4), round(float(high), 4)]}


if __name__ == "__main__":
    main()
