"""What each step of query understanding is worth: paired effect on SciFact's train split, hybrid and by words alone.

    make bench-understanding            (or: python benchmarks/understanding.py --base DIR, to use a base again)

Each step is switched on or off alone and compared, question by question, with the rest of the defaults: on the questions as they are, and
on questions with the flaw that the step is for (two neighbouring letters swapped in the longest word; full-width letters and no-break
spaces). A step that helps nowhere stays off. Context needs a conversation and synonyms need a file, neither of which SciFact has: they
do nothing until a request or a setting brings one.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from evidentia import connect
from evidentia.contracts.access import local_owner
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest, RankingWeights
from evidentia.contracts.vocabulary import RetrievalMode
from evidentia.evaluation.compare import compare_scores
from evidentia.evaluation.datasets import Dataset, load_dataset
from evidentia.evaluation.measures import Measure, score_rankings
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.receipts import EngineConfig
    from evidentia.engine.pipeline import Engine

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
RESULTS = Path(__file__).parent / "results" / "understanding.json"
SOURCE = "corpus"
STEPS = ("normalise", "spelling", "abbreviations", "decompose")
LEAST_LETTERS = 6


def typed_in_haste(text: str) -> str:
    """Return a question with two neighbouring letters swapped in the middle of its longest word."""
    words = text.split(" ")
    longest = max(range(len(words)), key=lambda index: (len(words[index]) if words[index].isalpha() else 0, -index))
    word = words[longest]
    if word.isalpha() and len(word) >= LEAST_LETTERS:
        middle = len(word) // 2
        words[longest] = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
    return " ".join(words)


def pasted(text: str) -> str:
    """Return a question as some programs paste it: no-break spaces, and every third word in full-width letters."""
    words = [
        "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in word) if number % 3 == 0 else word
        for number, word in enumerate(text.split(" "))
    ]
    return "\N{NO-BREAK SPACE}".join(words)


QUESTIONS: dict[str, Callable[[str], str]] = {"as they are": str, "typed in haste": typed_in_haste, "pasted": pasted}
RUNS = (
    *(("as they are", step) for step in STEPS),
    ("typed in haste", "spelling"),
    ("pasted", "normalise"),
)
MEASURE = Measure.parse("nDCG@10")
MODES = (RetrievalMode.HYBRID, RetrievalMode.LEXICAL)


def main() -> None:
    dataset = load_dataset(DATA / "scifact", split="train")
    base = Path(sys.argv[sys.argv.index("--base") + 1]) if "--base" in sys.argv else Path(tempfile.mkdtemp()) / "base"
    with connect(base, init=True) as opened:
        opened.ingest([dataset.folder / "corpus.jsonl"], source=SOURCE)
    parts = embedded.open_parts(base)
    rows = []
    for mode in MODES:
        for questions, step in RUNS:
            off, on = (
                measure(parts.engine(_switched(parts.config, step, is_on=is_on)), dataset, mode, QUESTIONS[questions])
                for is_on in (False, True)
            )
            rows.append({"mode": mode.value, "questions": questions, "step": step, **compared(off, on)})
            print(rows[-1])
    report = {"command": "make bench-understanding", "python": platform.python_version(), "split": "train", "rows": rows}
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")


def _switched(config: EngineConfig, step: str, *, is_on: bool) -> EngineConfig:
    return msgspec.structs.replace(config, query=msgspec.structs.replace(config.query, **{step: is_on}))


def measure(engine: Engine, dataset: Dataset, mode: RetrievalMode, flaw: Callable[[str], str]) -> dict[str, float]:
    """Return nDCG@10 of every question."""
    rankings = {query.query_id: tuple(ask(engine, flaw(query.text), mode)) for query in dataset.queries}
    return dict(score_rankings(rankings, dataset.qrels, measure=MEASURE).per_query)


def ask(engine: Engine, text: str, mode: RetrievalMode) -> list[str]:
    request = EvidenceRequest(
        query=DecomposedQuery(text=text),
        mode=mode,
        limit=10,
        ranking_weights=RankingWeights(relevance=1.0, authority=0.0, freshness=0.0, utility=0.0),
        diversity_constraint=1.0,
        latency_deadline_ms=60_000,
        receipt=False,
    )
    answer = engine.answer(request, principal=local_owner())
    return list(dict.fromkeys(fragment.document_id.removeprefix(f"{SOURCE}:") for fragment in answer.fragments))


def compared(before: dict[str, float], after: dict[str, float]) -> dict[str, Any]:
    found = compare_scores(before, after, generator=np.random.default_rng(1), measure=MEASURE.name)
    return {
        "off": round(found.baseline_mean, 4),
        "on": round(found.system_mean, 4),
        "difference": round(found.mean_difference, 4),
        "interval_95": [round(found.low, 4), round(found.high, 4)],
        "better_equal_worse": [found.wins, found.ties, found.losses],
    }


if __name__ == "__main__":
    main()
