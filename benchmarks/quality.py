"""Retrieval quality of the default request on judged sets of other people, beside the pure relevance order, the legs and bm25s.

    make bench-quality
    python benchmarks/quality.py --sets covidqa,xquad --ways default,relevance --out after.json
    python benchmarks/quality.py --compare before.json after.json

`default` is `base.retrieve(question)` and nothing else: no weights, no diversity setting, ten fragments, 500 ms; only the receipt, which is
not part of an answer, is left out. R@100 asks the same for a hundred. `relevance` is the order by the match alone, as `evidentia eval run`
asks; `lexical` and `dense` are its legs by themselves. bm25s ranks whole documents: Lucene's method, stemmed, without English stop words.
A document stands where the first of its fragments stands. Intervals are bootstraps over questions, paired where two ways are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from judged_bases import CACHE, SOURCE, base_of
from judged_sets import SETS, JudgedSet, Question
from quality_bm25s import bm25s_rankings
from quality_measures import interval_of_mean, interval_of_means
from quality_table import render, summarise

from evidentia import connect
from evidentia.evaluation.beir import RELEVANCE_ALONE
from evidentia.evaluation.measures import ndcg, recall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evidentia import Base
    from evidentia.contracts.evidence import EvidenceResponse

RESULTS = Path(__file__).parent / "results" / "quality.json"
LIMIT, DEPTH = 10, 100
DEADLINE_MS, PATIENT_MS = 500, 60_000
BY_MATCH = {"ranking_weights": RELEVANCE_ALONE, "diversity_constraint": 1.0}
WAYS: dict[str, dict[str, object]] = {
    "default": {},
    "relevance": BY_MATCH,
    "lexical": {**BY_MATCH, "mode": "lexical"},
    "dense": {**BY_MATCH, "mode": "dense"},
}
"""What each way adds to the question."""
PEER = "bm25s"
PROGRESS_EVERY = 200


class Answer(NamedTuple):
    """What is kept of one answer: its fragments as (document, confidence), and whether it says that it is degraded."""

    fragments: list[tuple[str, float]]
    degraded: list[str]

    @classmethod
    def of(cls, response: EvidenceResponse) -> Answer:
        """Return what is kept of a response."""
        found = [(each.document_id.removeprefix(f"{SOURCE}:"), each.confidence) for each in response.fragments]
        return cls(found, sorted(response.degraded))


def ask(base: Base, question: Question, way: str, *, limit: int | None, deadline_ms: int) -> Answer:
    """Ask one question in one way; the default request sets no limit of its own, and waits as long as a default request."""
    fields: dict[str, object] = {**WAYS[way], "latency_deadline_ms": deadline_ms if way == "default" else PATIENT_MS}
    if limit is not None:
        fields["limit"] = limit
    if question.turns:
        fields["turns"] = question.turns
    return Answer.of(base.retrieve(question.text, receipt=False, **fields))


def scores_of(question: Question, answer: Answer, deep: Answer | None) -> dict[str, Any]:
    """Return what is stored of a question: measures of the first ten fragments, and of a hundred where they were asked for."""
    stored: dict[str, Any] = {
        "found": len(answer.fragments),
        "first": round(answer.fragments[0][1], 4) if answer.fragments else None,
        **({"degraded": answer.degraded} if answer.degraded else {}),
    }
    if not question.is_judged:
        return {**stored, "label": str(question.metadata.get("answerability", ""))}
    stored["ndcg10"] = round(ndcg(_folded(answer), question.grades, cut=10), 6)
    stored["confidence"] = [[round(confidence, 4), int(question.grades.get(document, 0) > 0)] for document, confidence in answer.fragments]
    stored["documents"] = _folded(answer)
    if "answerability" in question.metadata:
        stored["label"] = question.metadata["answerability"]
    if deep is not None:
        stored["r100"] = round(recall(_folded(deep), question.grades, cut=DEPTH), 6)
        stored["ndcg10_of_100"] = round(ndcg(_folded(deep), question.grades, cut=10), 6)
    return stored


def _folded(answer: Answer) -> list[str]:
    return list(dict.fromkeys(document for document, _ in answer.fragments))


def run_set(judged: JudgedSet, ways: Sequence[str], *, cache: Path, deadline_ms: int, deep: bool, most: int | None) -> dict[str, Any]:
    """Ask every question of a set in every way and return the scores of each, by way and question."""
    questions = sampled(judged.questions, most)
    rows: dict[str, Any] = {}
    if PEER in ways:
        rankings = bm25s_rankings(judged, cache=cache, depth=DEPTH)
        rows[PEER] = {each.question_id: _peer_scores(each, rankings[each.question_id]) for each in questions}
    own = [way for way in ways if way != PEER]
    if own:
        with connect(base_of(judged, cache_folder=cache)) as base:
            base.retrieve(questions[0].text, receipt=False, latency_deadline_ms=PATIENT_MS)  # opens the encoder and the index
            for way in own:
                rows[way] = _run_way(base, questions, way, name=judged.name, deadline_ms=deadline_ms, deep=deep)
    return {
        "split": judged.layout.split,
        "is_dev": judged.layout.is_dev,
        "documents": len(judged.documents),
        "questions": sum(each.is_judged for each in questions),
        "ways": rows,
    }


def _run_way(base: Base, questions: Sequence[Question], way: str, *, name: str, deadline_ms: int, deep: bool) -> dict[str, Any]:
    started = time.monotonic()
    rows: dict[str, Any] = {}
    for number, question in enumerate(questions, start=1):
        more = ask(base, question, way, limit=DEPTH, deadline_ms=deadline_ms) if deep and question.is_judged else None
        if more is not None and way != "default":  # without diversity the first ten of a hundred are the ten
            answer = Answer(more.fragments[:LIMIT], more.degraded)
        else:
            answer = ask(base, question, way, limit=None, deadline_ms=deadline_ms)
        rows[question.question_id] = scores_of(question, answer, more)
        if number % PROGRESS_EVERY == 0:
            print(f"{name} {way}: {number} of {len(questions)} asked, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return rows


def _peer_scores(question: Question, ranking: Sequence[str]) -> dict[str, Any]:
    stored: dict[str, Any] = {"found": len(ranking)}
    if question.is_judged:
        stored["ndcg10"] = stored["ndcg10_of_100"] = round(ndcg(ranking, question.grades, cut=10), 6)
        stored["r100"] = round(recall(ranking, question.grades, cut=DEPTH), 6)
        stored["documents"] = list(ranking[:10])
    return stored


def sampled(questions: Sequence[Question], most: int | None) -> Sequence[Question]:
    """Return at most so many questions, taken at equal steps, so that the same are taken each time."""
    if most is None or len(questions) <= most:
        return questions
    return [questions[place * len(questions) // most] for place in range(most)]


def run(names: Iterable[str], ways: Sequence[str], *, cache: Path, deadline_ms: int, deep: bool, most: int | None) -> dict[str, Any]:
    """Run every set and return everything that was measured, the score of every question included."""
    cache.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {
        "command": " ".join(["python", "benchmarks/quality.py", *sys.argv[1:]]),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "deadline_ms": deadline_ms,
        "load_average_before": round(os.getloadavg()[0], 2),
        "sets": {},
    }
    for name in names:
        started = time.monotonic()
        report["sets"][name] = run_set(JudgedSet(name), ways, cache=cache, deadline_ms=deadline_ms, deep=deep, most=most)
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    report["load_average_after"] = round(os.getloadavg()[0], 2)
    return report


def compare(before: Mapping[str, Any], after: Mapping[str, Any], *, way: str) -> str:
    """Return the paired differences of two stored runs, after minus before, for each set and in the mean over sets."""
    lines = [f"{'set':<20} {'measure':<14} {'questions':>9} {'before':>7} {'after':>7}  after minus before (95 %)"]
    shared = [name for name in before["sets"] if name in after["sets"]]
    for measure in ("ndcg10", "ndcg10_of_100", "r100", "empty", "degraded"):
        groups: list[list[float]] = []
        for name in shared:
            pairs = _pairs(before["sets"][name]["ways"].get(way, {}), after["sets"][name]["ways"].get(way, {}), measure)
            if not pairs:
                continue
            figure = interval_of_mean([new - old for old, new in pairs])
            groups.append([new - old for old, new in pairs])
            old, new = (sum(each) / len(pairs) for each in zip(*pairs, strict=True))
            bounds = f"{figure.value:+.4f} [{figure.low:+.4f}, {figure.high:+.4f}]"
            lines.append(f"{name:<20} {measure:<14} {len(pairs):>9} {old:>7.4f} {new:>7.4f}  {bounds}")
        if groups:
            figure = interval_of_means(groups)
            lines.append(
                f"{'mean of sets':<20} {measure:<14} {'':>9} {'':>7} {'':>7}  {figure.value:+.4f} [{figure.low:+.4f}, {figure.high:+.4f}]"
            )
    return "\n".join(lines)


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any], measure: str) -> list[tuple[float, float]]:
    def value(row: Mapping[str, Any]) -> float | None:
        if measure == "empty":
            return float(row["found"] == 0)
        return float("degraded" in row) if measure == "degraded" else row.get(measure)

    found = [(value(before[each]), value(after[each])) for each in before if each in after and "ndcg10" in before[each]]
    return [(old, new) for old, new in found if old is not None and new is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description="Retrieval quality of the default request on judged sets.")
    parser.add_argument("--sets", default=",".join(SETS), help="which sets, with commas")
    parser.add_argument("--ways", default=",".join([*WAYS, PEER]), help="which ways, with commas")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where bases and vectors are kept (EVIDENTIA_BENCH_CACHE)")
    parser.add_argument("--deadline-ms", type=int, default=DEADLINE_MS, help="how long a default request may take")
    parser.add_argument("--questions", type=int, help="at most so many questions of each set")
    parser.add_argument("--shallow", action="store_true", help="leave out the requests for a hundred fragments, hence R@100")
    parser.add_argument("--out", type=Path, help="write the scores of every question to this file")
    parser.add_argument("--store", action="store_true", help="keep the figures in benchmarks/results/quality.json and quality.md")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="compare two such files")
    parser.add_argument("--summary", type=Path, help="print the table of such a file")
    parser.add_argument("--way", default="default", help="which way is compared")
    given = parser.parse_args()
    if given.compare:
        print(compare(*(json.loads(path.read_text(encoding="utf-8")) for path in given.compare), way=given.way))
        return
    if given.summary:
        print(render(summarise(json.loads(given.summary.read_text(encoding="utf-8")))))
        return
    options = {"cache": given.cache, "deadline_ms": given.deadline_ms, "deep": not given.shallow, "most": given.questions}
    report = run(given.sets.split(","), given.ways.split(","), **options)
    if given.out:
        given.out.write_text(json.dumps(report) + "\n", encoding="utf-8")
    summary = summarise(report)
    print(render(summary))
    if given.store:
        RESULTS.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        RESULTS.with_suffix(".md").write_text(render(summary), encoding="utf-8")


if __name__ == "__main__":
    main()
