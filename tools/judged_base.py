"""A judged collection in a base, with what each leg says of every candidate of every question: what fitting starts from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia import connect
from evidentia.contracts.access import local_owner
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest, RankingWeights
from evidentia.engine.stage_log import StageLog
from evidentia.evaluation.datasets import load_dataset
from evidentia.ranking.fusion import order
from evidentia.wiring import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from evidentia.engine.pipeline import Answered

SOURCE = "corpus"
RELEVANCE_ALONE = RankingWeights(relevance=1.0, authority=0.0, freshness=0.0, utility=0.0)


class Judged(NamedTuple):
    """One question: its run, the grade of every candidate in the order of `run.found.hits`, and all grades there are."""

    query_id: str
    text: str
    run: Answered
    grades: list[int]
    ideal: list[int]


def make_base(folder: Path, base: Path) -> None:
    """Ingest and embed a BEIR folder unless that was done before; what was embedded stays."""
    with connect(base, init=True) as opened:
        opened.ingest([folder / "corpus.jsonl"], source=SOURCE)


def judged_runs(folder: Path, base: Path, *, split: str) -> Iterator[Judged]:
    """Yield every judged question of a split, with its hybrid run over the base."""
    dataset = load_dataset(folder, split=split)
    parts = embedded.open_parts(base)
    by_query = msgspec.structs.replace(parts.config.ranking, weights="by_query")  # so that the features of questions are there
    engine = parts.engine(msgspec.structs.replace(parts.config, ranking=by_query))
    for query in dataset.queries:
        request = EvidenceRequest(
            query=DecomposedQuery(text=query.text), ranking_weights=RELEVANCE_ALONE, diversity_constraint=1.0, latency_deadline_ms=60_000,
            receipt=False,
        )  # fmt: skip
        log = StageLog(parts.clock, deadline_ms=request.latency_deadline_ms)
        prepared = engine.prepare(request, principal=local_owner(), log=log, is_live=False)
        run = engine.conclude(engine.search(prepared, log), log)
        grades = dataset.qrels.get(query.query_id, {})
        found = [grades.get(hit.document_id.removeprefix(f"{SOURCE}:"), 0) for hit in run.found.hits]
        yield Judged(query.query_id, query.text, run, found, sorted((grade for grade in grades.values() if grade > 0), reverse=True))
    parts.close()


def ndcg(each: Judged, scores: Sequence[int], *, cut: int = 10) -> float:
    """Return nDCG of one question with its candidates in the order of these scores."""
    best = order(scores, [hit.chunk_id for hit in each.run.found.hits])[:cut]
    gained = sum((2 ** each.grades[index] - 1) / math.log2(rank + 2) for rank, index in enumerate(best))
    ideal = sum((2**grade - 1) / math.log2(rank + 2) for rank, grade in enumerate(each.ideal[:cut]))
    return gained / ideal if ideal else 0.0
