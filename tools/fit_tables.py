"""Fits the weights by which tables are ranked, on the even half of Spider's databases alone, and writes them into the package.

    python tools/fit_tables.py            (needs spider_schema and the packaged encoder; some minutes of CPU)

Each weight in turn is moved by a factor while the mean nDCG@10 improves; the steps become smaller. The judged half is never read here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import table_choice  # noqa: E402 - a benchmark is no package

from evidentia.evaluation.measures import mean_of  # noqa: E402
from evidentia.tables.table_choice import (  # noqa: E402
    ChoiceModel,
    ChoiceModels,
    TableIndex,
)

if TYPE_CHECKING:
    from evidentia.tables.table_choice import TableVectors

WEIGHTS: Final = ROOT / "src" / "evidentia" / "query" / "tables" / "weights.json"
BASIS: Final = "the even half of Spider dev's databases, 493 questions"
WORDS: Final = ("document", "named", "column_named", "name", "column", "file", "saturation", "length")
VECTORS: Final = ("similarity", "document_similarity", *WORDS)
STEPS: Final = (600, 300, 150)
LEAST: Final = 5e-4
"""A step that improves less is taken for chance."""


def main() -> None:
    """Fit both models and write them."""
    questions = table_choice.read_halves().fitted
    index = TableIndex(table_choice.read_cards())
    nothing: dict[str, TableVectors | None] = dict.fromkeys([asked.query_id for asked in questions])
    words = fit(index, questions, nothing, start=ChoiceModel(basis=BASIS), names=WORDS)
    vectors: dict[str, TableVectors | None] = {asked.query_id: table_choice.vectors_of(asked.text) for asked in questions}
    start = msgspec.structs.replace(words, similarity=2000, document_similarity=1000)
    both = fit(index, questions, vectors, start=start, names=VECTORS)
    models = ChoiceModels(words=words, with_vectors=both)
    WEIGHTS.write_text(json.dumps(msgspec.to_builtins(models), indent=2) + "\n", encoding="utf-8")


def fit(
    index: TableIndex,
    questions: tuple[table_choice.Asked, ...],
    vectors: dict[str, TableVectors | None],
    *,
    start: ChoiceModel,
    names: tuple[str, ...],
) -> ChoiceModel:
    """Return the model at which no single step improves the mean any more."""
    model, best = start, mean_ndcg(index, questions, vectors, start)
    for step in STEPS:
        for name in names:
            for sign in (1, -1):
                while (tried := _moved(model, name, sign * step)) != model:
                    mean = mean_ndcg(index, questions, vectors, tried)
                    if mean <= best + LEAST:
                        break
                    model, best = tried, mean
                    sys.stdout.write(f"{best:.4f} {name} {getattr(model, name)}\n")
                    sys.stdout.flush()
    return model


def mean_ndcg(
    index: TableIndex, questions: tuple[table_choice.Asked, ...], vectors: dict[str, TableVectors | None], model: ChoiceModel
) -> float:
    """Return the mean over databases of the mean nDCG@10: each counts the same, however often it is asked about."""
    rankings = {
        asked.query_id: [each.table_id for each in index.rank(asked.text, vectors=vectors[asked.query_id], model=model)[:10]]
        for asked in questions
    }
    scores = table_choice.scores_of(rankings, questions)
    by_database: dict[str, dict[str, float]] = {}
    for asked in questions:
        by_database.setdefault(asked.database, {})[asked.query_id] = scores[asked.query_id]
    return mean_of({database: mean_of(each) for database, each in by_database.items()})


def _moved(model: ChoiceModel, name: str, change: int) -> ChoiceModel:
    """Return the model with one weight changed by so many thousandths of itself, by a tenth of one at least; never below 0."""
    value = getattr(model, name)
    moved = max(value + change * max(value, 500) // 1000, 0)
    return msgspec.structs.replace(model, **{name: min(moved, 1000) if name == "length" else moved})


if __name__ == "__main__":
    main()
