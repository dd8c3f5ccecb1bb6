"""Whether the right tables are found: questions of Spider against the cards of all 876 tables, beside BM25 over the same words.

    python benchmarks/table_choice.py             (needs spider_schema; --words leaves the encoder out)

The databases that are asked about, sorted by name, are split into halves: the even ones fitted the weights (`tools/fit_tables.py`), the odd
ones judge them. BM25 (k1 0.9, b 0.4) reads the titles and texts of the set as they are. Intervals are paired, per question.
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evidentia.contracts.ids import DocumentId, Sha256, SourceId
from evidentia.contracts.tables import ColumnKind, TableCard, TableColumn, TableId
from evidentia.contracts.vectors import SCALE_BITS
from evidentia.evaluation.compare import compare_scores
from evidentia.evaluation.datasets import load_dataset
from evidentia.evaluation.measures import Measure, score_rankings
from evidentia.tables.table_choice import TableIndex, TableVectors, card_text
from evidentia.text.tokens import STOP_WORDS, Tokeniser
from evidentia.text.weights import Bm25, idf_fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
RESULTS = Path(__file__).parent / "results" / "table_choice.json"
MEASURE = Measure.parse("nDCG@10")
DEPTH = 100


class Asked(NamedTuple):
    """A question with its database and the tables that answer it."""

    query_id: str
    text: str
    database: str
    grades: Mapping[str, int]


class Halves(NamedTuple):
    """Questions whose databases fitted the weights, and those that judge them."""

    fitted: tuple[Asked, ...]
    judged: tuple[Asked, ...]


def main() -> None:
    halves = read_halves()
    index = TableIndex(read_cards())
    runs: dict[str, Callable[[Sequence[Asked]], dict[str, list[str]]]] = {
        "bm25": rank_bm25,
        "words": lambda asked: rank_ours(index, asked, with_vectors=False),
    }
    if "--words" not in sys.argv:
        runs["words and vectors"] = lambda asked: rank_ours(index, asked, with_vectors=True)
    report: dict[str, Any] = {"command": "python benchmarks/table_choice.py", "tables": 876, "measure": MEASURE.name, "halves": {}}
    for half, questions in zip(Halves._fields, halves, strict=True):
        scores = {name: scores_of(run(questions), questions) for name, run in runs.items()}
        report["halves"][half] = {
            "questions": len(questions),
            "databases": sorted({asked.database for asked in questions}),
            **{name: compared(scores["bm25"], each) for name, each in scores.items()},
        }
    started = time.process_time()
    for asked in halves.judged[:50]:
        index.rank(asked.text)
    report["cpu_ms_per_question"] = round((time.process_time() - started) * 20, 1)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


def read_halves() -> Halves:
    """Return the questions by the place of their database among the names: even fits, odd judges."""
    dataset = load_dataset(DATA / "spider_schema")
    lines = (DATA / "spider_schema" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    database = {record["_id"]: record["metadata"]["db_id"] for record in map(json.loads, lines)}
    questions = [Asked(each.query_id, each.text, database[each.query_id], dataset.qrels[each.query_id]) for each in dataset.queries]
    names = sorted({asked.database for asked in questions})
    parts = [tuple(asked for asked in questions if names.index(asked.database) % 2 == half) for half in (0, 1)]
    return Halves(*parts)


def read_records() -> list[dict[str, Any]]:
    """Return the tables as the set writes them."""
    lines = (DATA / "spider_schema" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def read_cards() -> list[TableCard]:
    """Return the tables as cards: the database is the document, and what follows its words in the title is the table's."""
    return [_card(record) for record in read_records()]


def _card(record: dict[str, Any]) -> TableCard:
    database, name = record["metadata"]["db_id"], record["_id"].split(".", 1)[1]
    words = database.replace("_", " ")
    title = record["title"].removeprefix(words).strip() if record["title"].lower().startswith(words.lower()) else record["title"]
    columns = record["text"].removeprefix("columns: ").split(", ")
    return TableCard(
        table_id=TableId(record["_id"]),
        document_id=DocumentId(database),
        source_id=SourceId("spider"),
        file_name=f"{database}.sqlite",
        title=title,
        sql_name=name.lower(),
        content=Sha256(""),
        columns=tuple(
            TableColumn(name=column, sql_name=f"c{place}", kind=ColumnKind.TEXT, position=place) for place, column in enumerate(columns, 1)
        ),
    )


def scores_of(rankings: Mapping[str, Sequence[str]], questions: Sequence[Asked]) -> Mapping[str, float]:
    """Return nDCG@10 of each question."""
    return score_rankings(rankings, {asked.query_id: asked.grades for asked in questions}, measure=MEASURE).per_query


def compared(baseline: Mapping[str, float], system: Mapping[str, float]) -> dict[str, Any]:
    """Return the mean and the paired difference from BM25 with its interval."""
    result = compare_scores(baseline, system, generator=np.random.default_rng(7), measure=MEASURE.name)
    return {
        "mean": round(result.system_mean, 4),
        "difference": round(result.mean_difference, 4),
        "interval_95": [round(result.low, 4), round(result.high, 4)],
        "better_equal_worse": [result.wins, result.ties, result.losses],
    }


def rank_ours(index: TableIndex, questions: Sequence[Asked], *, with_vectors: bool) -> dict[str, list[str]]:
    """Return our rankings."""
    return {
        asked.query_id: [each.table_id for each in index.rank(asked.text, vectors=vectors_of(asked.text) if with_vectors else None)[:DEPTH]]
        for asked in questions
    }


def vectors_of(question: str) -> TableVectors:
    """Return the vectors of a question and of all cards, from the packaged encoder."""
    encoder, cards = _encoded_cards()
    return TableVectors(encoder.encode_query(question), cards, SCALE_BITS[encoder.identity.normalisation])


@cache
def _encoded_cards() -> tuple[Any, dict[Any, NDArray[np.int32]]]:  # the encoder's type is an optional package's
    from evidentia.backends.onnx.encoder import packaged_encoder

    encoder = packaged_encoder()
    return encoder, {card.table_id: encoder.encode_document(card_text(card)) for card in read_cards()}


def rank_bm25(questions: Sequence[Asked]) -> dict[str, list[str]]:
    """Return BM25's rankings (k1 0.9, b 0.4, Lucene's idf, stemmed, without stop words)."""
    tokeniser = Tokeniser()
    records = sorted(read_records(), key=lambda record: str(record["_id"]))
    bags = [[term for term in tokeniser.terms(f"{record['title']} {record['text']}") if term not in STOP_WORDS] for record in records]
    lengths = np.array([len(bag) for bag in bags], np.int32)
    setting = Bm25.of(total_length=int(lengths.sum()), documents=len(bags), k1_milli=900, b_milli=400)
    norms = setting.norms(lengths)
    rankings = {}
    for asked in questions:
        totals = np.zeros(len(bags), np.int64)
        for term in tokeniser.terms(asked.text):
            frequencies = np.array([bag.count(term) for bag in bags], np.int32)
            found = np.flatnonzero(frequencies)
            if term in STOP_WORDS or not len(found):
                continue
            idf = idf_fixed("lucene", documents=len(bags), containing=len(found))
            totals[found] += setting.impacts(frequencies[found], norms[found], idf=idf)
        order = np.argsort(-totals, kind="stable")[:DEPTH]
        rankings[asked.query_id] = [str(records[place]["_id"]) for place in order if totals[place]]
    return rankings


if __name__ == "__main__":
    main()
