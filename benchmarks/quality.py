"""Retrieval quality on SciFact and LIMIT-small through the public engine, paired with bm25s in the same run.

    make bench-quality

The tokeniser and k1, b were chosen on SciFact's train split. bm25s stems the same way (Snowball English), with k1 1.5, b 0.75 and its
English stop words. The interval is a paired bootstrap over queries, system minus bm25s.
"""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer

from evidentia.evaluation.beir import run_beir
from evidentia.evaluation.compare import compare_runs
from evidentia.evaluation.datasets import load_dataset
from evidentia.evaluation.measures import Measure, score_rankings
from evidentia.evaluation.runs import Run, ScoredDocument

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("EVIDENTIA_DATA", ROOT.parent / "shared" / "data"))
RESULTS = Path(__file__).parent / "results" / "quality.json"
MEASURES = ("nDCG@10", "R@100", "MRR")
DEPTH = 100


def run_bm25s(folder: Path, *, split: str) -> Run:
    """Return bm25s' ranking of every judged query."""
    dataset = load_dataset(folder, split=split)
    documents = list(dataset.documents())
    stemmer = Stemmer.Stemmer("english")
    texts = [f"{document.title}\n\n{document.text}" if document.title else document.text for document in documents]
    retriever = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    retriever.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
    rankings: dict[str, tuple[ScoredDocument, ...]] = {}
    for query in dataset.queries:
        asked = bm25s.tokenize([query.text], stopwords="en", stemmer=stemmer, show_progress=False)
        places, scores = retriever.retrieve(asked, k=min(DEPTH, len(documents)), show_progress=False, n_threads=0)
        rankings[query.query_id] = tuple(
            ScoredDocument(documents[int(place)].document_id, round(float(score) * 65_536))
            for place, score in zip(places[0], scores[0], strict=True)
            if score > 0
        )
    return Run(tag="bm25s", rankings=rankings)


def measure(name: str, *, split: str) -> dict[str, Any]:
    folder = DATA / name
    ours = run_beir(folder, timer_ns=time.perf_counter_ns, split=split, mode="lexical")
    theirs = run_bm25s(folder, split=split)
    qrels = load_dataset(folder, split=split).qrels
    rows: dict[str, Any] = {}
    for text in MEASURES:
        wanted = Measure.parse(text)
        compared = compare_runs(theirs, ours.run, qrels, measure=wanted, generator=np.random.default_rng(1))
        rows[text] = {
            "evidentia": round(score_rankings(ours.run.ranked_ids(), qrels, measure=wanted).mean or 0, 4),
            "bm25s": round(score_rankings(theirs.ranked_ids(), qrels, measure=wanted).mean or 0, 4),
            "difference": round(compared.mean_difference or 0, 4),
            "interval_95": [round(compared.low or 0, 4), round(compared.high or 0, 4)],
        }
    return {"dataset": name, "split": split, "queries": ours.report.queries, "measures": rows}


def main() -> None:
    measured = [measure("scifact", split="train"), measure("scifact", split="test"), measure("limit_small", split="test")]
    report = {"command": "make bench-quality", "python": platform.python_version(), "sets": measured}
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
