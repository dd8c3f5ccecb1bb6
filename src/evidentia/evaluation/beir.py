"""A BEIR folder through the public engine: ingested into a base that is gone afterwards, and asked like any other.

Nothing here knows how search works: only `connect`, `ingest` and `retrieve` are used, so the figures are those a user gets.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.base.base_ingest import word
from evidentia.base.sync_base import Base, connect
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vocabulary import RetrievalMode
from evidentia.evaluation.datasets import Dataset, load_dataset
from evidentia.evaluation.runner import Search, TimerNs, collect_run, measure_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.reports import IngestProgress
    from evidentia.contracts.vectors import EmbedProgress
    from evidentia.evaluation.measures import EvalReport
    from evidentia.evaluation.runs import Run

DEPTH: Final = 100
"""Documents kept per query; R@100 needs as many."""
FIRST_LIMIT: Final = 100
"""Fragments asked for at first, as many as each leg proposes by default; more are asked for when they are too few documents."""
LARGEST_LIMIT: Final = 10_000
DEADLINE_MS: Final = 60_000
SCORE_BITS: Final = 32
"""Fragments' scores are integers at 2^-32."""
RELEVANCE_ALONE: Final = {"relevance": 1.0, "authority": 0.0, "freshness": 0.0, "utility": 0.0}
"""Judgments know nothing of authority or age."""

_SOURCE: Final = "corpus"
_EMPTY: Final = "empty"  # a document without text is no mistake of the folder; it cannot be found and counts as missed


class BeirRun(NamedTuple):
    """What came out: the measures, and the rankings they were computed from."""

    report: EvalReport
    run: Run


def run_beir(
    folder: Path,
    *,
    timer_ns: TimerNs,
    split: str = "test",
    mode: str = RetrievalMode.HYBRID.value,
    k: int = 10,
    on_ingest: Callable[[IngestProgress], None] | None = None,
    on_embed: Callable[[EmbedProgress], None] | None = None,
    on_answer: Callable[[int, int], None] | None = None,
) -> BeirRun:
    """Ingest a folder's corpus into a temporary base, ask every judged query of a split, and measure the answers.

    Steps: 1. read the judgments; 2. check the corpus; 3. ingest and embed it; 4. ask; 5. measure. `on_ingest` is called from a worker
    thread, `on_answer` with how many queries are answered and how many there are.
    """
    chosen = word(RetrievalMode, mode, field="mode")
    if not 1 <= k <= DEPTH:
        raise InvalidFieldError("k", f"'{k}' is not between 1 and {DEPTH}")
    dataset = load_dataset(folder, split=split)
    _check_corpus(dataset)
    with tempfile.TemporaryDirectory(prefix="evidentia-eval-") as directory, connect(Path(directory) / "base", init=True) as base:
        _ingest(base, dataset, on_ingest=on_ingest)
        if chosen is not RetrievalMode.LEXICAL:
            base.embed(on_progress=on_embed)
        collected = collect_run(
            dataset,
            _search_of(base, chosen),
            timer_ns=timer_ns,
            depth=DEPTH,
            tag=f"evidentia-{chosen.value}",
            score_bits=SCORE_BITS,
            on_answer=on_answer,
        )
    return BeirRun(report=measure_run(dataset, collected, k=k), run=collected.run)


def _check_corpus(dataset: Dataset) -> None:
    """Read every line once, so that a malformed one is named before anything long begins."""
    for _ in dataset.documents():
        pass


def _ingest(base: Base, dataset: Dataset, *, on_ingest: Callable[[IngestProgress], None] | None) -> None:
    corpus = dataset.folder / "corpus.jsonl"
    report = base.ingest([corpus], source=_SOURCE, embed=False, on_progress=on_ingest)
    refused = [entry for entry in report.skipped if entry.reason != _EMPTY]
    if refused:
        raise InvalidFieldError("dataset", f"'{corpus}': {refused[0].message}")


def _search_of(base: Base, mode: RetrievalMode) -> Search:
    def search(text: str) -> list[tuple[str, int]]:
        limit = FIRST_LIMIT
        while True:
            found, is_all = _ask(base, text, mode=mode, limit=limit)
            if is_all or limit == LARGEST_LIMIT or len({document_id for document_id, _ in found}) >= DEPTH:
                return found
            limit = min(limit * 4, LARGEST_LIMIT)

    return search


def _ask(base: Base, text: str, *, mode: RetrievalMode, limit: int) -> tuple[list[tuple[str, int]], bool]:
    response = base.retrieve(
        text,
        mode=mode,
        limit=limit,
        latency_deadline_ms=DEADLINE_MS,
        ranking_weights=RELEVANCE_ALONE,
        diversity_constraint=1.0,
        receipt=False,
    )
    found = [(fragment.document_id.removeprefix(f"{_SOURCE}:"), fragment.score) for fragment in response.fragments]
    return found, len(found) < limit
