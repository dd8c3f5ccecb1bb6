"""What taking questions apart is worth: two judged questions asked in one, and the judged questions that have parts of their own.

    python benchmarks/decomposition.py                  (or: make bench-decomposition)

Neighbours by the hash of their ids are joined, as `A? B?` and as `A and b?`; relevant is what is relevant to either. Each question is
asked with the step `decompose` and without it, by the match alone; differences are nDCG@10, paired. `of_their_own` are the questions of a
set that the rules take apart as they stand: there the step should lose nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged_bases import CACHE, base_of
from judged_sets import SETS, JudgedSet
from quality import BY_MATCH, PATIENT_MS, Answer
from quality_measures import interval_of_mean

from evidentia import connect
from evidentia.evaluation.measures import ndcg
from evidentia.query.decomposition import decompose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia import Base

RESULTS = Path(__file__).parent / "results" / "decomposition.json"
MAX_PAIRS = 120


def cases_of(judged: JudgedSet) -> dict[str, list[tuple[str, Mapping[str, int]]]]:
    """Return texts with the grades of their documents, by kind."""
    asked = sorted(
        (each for each in judged.questions if each.is_judged), key=lambda each: hashlib.sha256(each.question_id.encode()).digest()
    )
    pairs = list(zip(asked[::2], asked[1::2], strict=False))[:MAX_PAIRS]
    bare = [(first.text.strip(" ?."), second.text.strip(" ?."), {**first.grades, **second.grades}) for first, second in pairs]
    return {
        "A? B?": [(f"{first}? {second[:1].upper()}{second[1:]}?", grades) for first, second, grades in bare],
        "A and b?": [(f"{first} and {second[:1].lower()}{second[1:]}?", grades) for first, second, grades in bare],
        "of_their_own": [(each.text, each.grades) for each in asked if decompose(each.text)],
    }


def score(base: Base, text: str, grades: Mapping[str, int], *, without: tuple[str, ...]) -> float:
    response = base.retrieve(text, receipt=False, latency_deadline_ms=PATIENT_MS, without=without, **BY_MATCH)
    return ndcg(list(dict.fromkeys(document for document, _ in Answer.of(response).fragments)), grades, cut=10)


def measure(base: Base, judged: JudgedSet) -> dict[str, Any]:
    """Return the means without the step and the differences with it, by kind; `over_the_set` spreads the last over every question."""
    rows: dict[str, Any] = {}
    for kind, cases in cases_of(judged).items():
        scores = [(score(base, *case, without=("decompose",)), score(base, *case, without=())) for case in cases]
        if not scores:
            continue
        figure = interval_of_mean([on - off for off, on in scores])
        rows[kind] = {
            "questions": len(scores),
            "taken_apart": sum(bool(decompose(text)) for text, _ in cases),
            "whole": round(sum(off for off, _ in scores) / len(scores), 4),
            "difference": round(figure.value, 4),
            "interval_95": [round(figure.low, 4), round(figure.high, 4)],
        }
    if "of_their_own" in rows:
        all_judged = sum(each.is_judged for each in judged.questions)
        rows["of_their_own"]["over_the_set"] = round(rows["of_their_own"]["difference"] * rows["of_their_own"]["questions"] / all_judged, 4)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="What taking questions apart is worth.")
    parser.add_argument("--sets", default=",".join(name for name, each in SETS.items() if each.is_dev and not each.with_turns))
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    sets = {}
    for name in chosen.sets.split(","):
        judged = JudgedSet(name)
        with connect(base_of(judged)) as base:
            sets[name] = measure(base, judged)
        print(name, json.dumps(sets[name]), flush=True)
    command = " ".join(["python", "benchmarks/decomposition.py", *sys.argv[1:]])
    chosen.out.write_text(json.dumps({"command": command, "python": platform.python_version(), "sets": sets}, indent=2) + "\n")


if __name__ == "__main__":
    main()
